"""`minimsg replay`: verdict, reasons, exit codes; and records that somebody has tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from minimsg.cli.main import main

EXAMPLE: Final = Path(__file__).parent.parent / "server" / "example_trace.json"
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def replay(data_dir: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", "--data-dir", str(data_dir), *arguments])


@pytest.fixture
def changed(tmp_path: Path) -> Callable[[Change], str]:
    """The example with a change, as a file."""

    def write(change: Change) -> str:
        record = json.loads(EXAMPLE.read_text())
        change(record)
        file = tmp_path / "record.json"
        file.write_text(json.dumps(record))
        return str(file)

    return write


@pytest.fixture
def recorded(data_dir: Path, tmp_path: Path) -> Path:
    """A record made here: the example is of a machine whose instructions round otherwise."""
    file = tmp_path / "record.json"
    flags = ["--data-dir", str(data_dir), "--max-tokens", "9", "--trace", str(file)]
    asked = CliRunner().invoke(main, ["run", "tiny", "Hello", *flags])
    assert asked.exit_code == 0, asked.output
    return file


def test_a_reply_recorded_by_run_comes_out_again(data_dir: Path, recorded: Path) -> None:
    done = replay(data_dir, str(recorded))
    assert done.exit_code == 0, done.output
    assert "9 tokens are the same, bit for bit" in done.stdout


def test_another_token_is_a_difference_that_is_shown(data_dir: Path, recorded: Path) -> None:
    record = json.loads(recorded.read_text())
    record["tokens"][5] |= {"id": 7, "text": "\x1b[31m"}
    recorded.write_text(json.dumps(record))
    done = replay(data_dir, str(recorded), "--diff")
    assert done.exit_code == 1
    assert 'token 5 differs: recorded 7 "\\u001b[31m"' in done.stdout
    assert "\x1b" not in done.output
    assert [line[0] for line in done.stdout.splitlines()[:7]] == [*" " * 5, "!", " "]


BROKEN: Final[dict[str, Change]] = {
    "another version": lambda record: record.update(version=2),
    "a word for a number": lambda record: record["sampling"].update(seed="7"),
    "a number below all": lambda record: record["sampling"].update(max_tokens=-1),
    "a thousand threads less": lambda record: record["engine"].update(threads=-1000),
    "no tokens in the prompt": lambda record: record["prompt"].update(tokens=[]),
    "an id beyond the vocabulary": lambda record: record["prompt"]["tokens"][0].update(id=1 << 40),
    "a temperature below 0": lambda record: record["sampling"].update(temperature=-1.0),
    "a parser of its own": lambda record: record["settings"].update(tool_call_parser="\x1b[2J"),
    "a request that is none": lambda record: record["request"].update(messages="\x1b[2J"),
    "knowledge of another kind": lambda record: record["known"].update(uploads=7),
    "a model that is not here": lambda record: record.update(model="../\x1b[2Jnone"),
    "a key too few": lambda record: record.pop("steps"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_record_that_cannot_be_is_refused_in_words(
    name: str, data_dir: Path, changed: Callable[[Change], str]
) -> None:
    done = replay(data_dir, changed(BROKEN[name]))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("Error: ")
    assert "\x1b" not in done.output
    assert len(done.stderr) < 2_000


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"version": 1', b"7", b"1" * 5_000],
    ids=["nothing", "an empty object", "too deep", "no text", "cut", "a number", "a long number"],
)
def test_what_is_no_record_is_refused_in_words(data: bytes, data_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(data)
    done = replay(data_dir, str(file))
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("Error: ")

"""`minimsg run`: a question, a pipe, a chat at a terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from minimsg.bench.sample import Sample
from minimsg.builtin import DEFAULT_TAPES
from minimsg.cli.main import main
from minimsg.cli.run import printable, rates, read_prompt

from .process import MINIMSG

FIRST, SECOND = DEFAULT_TAPES


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def run(data_dir: Path, *arguments: str, piped: str = "") -> Result:
    return CliRunner().invoke(main, ["run", "--data-dir", str(data_dir), *arguments], input=piped)


def test_a_question_prints_the_reply_and_nothing_else(data_dir: Path) -> None:
    done = run(data_dir, "scripted", "Hello?")
    assert (done.exit_code, done.stdout, done.stderr) == (0, FIRST + "\n", "")


def test_a_piped_question_is_asked(data_dir: Path) -> None:
    assert run(data_dir, "scripted", piped="Hello?\n").stdout == FIRST + "\n"


@pytest.mark.parametrize(
    ("prompt", "piped", "question"),
    [
        ("Summarise:", "One. Two.\n", "Summarise:\n\nOne. Two.\n"),
        ("Why?", "", "Why?"),
        (None, "Why?\n", "Why?\n"),
    ],
)
def test_what_is_piped_in_follows_the_prompt(
    prompt: str | None, piped: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    assert read_prompt(prompt) == question


def test_flags_reach_the_request(data_dir: Path) -> None:
    done = run(data_dir, "scripted", "Hello?", "--stop", "scripted")
    assert done.stdout == FIRST[: FIRST.index("scripted")] + "\n"


def test_verbose_shows_load_time_and_rates_beside_the_reply(data_dir: Path) -> None:
    done = run(data_dir, "scripted", "Hello?", "--verbose", "--max-tokens", "5")
    assert done.stdout == FIRST[:5] + "\n"
    assert "loaded in" in done.stderr
    assert "reply: 5 tokens" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["scripted", "Hello?", "--temperature", "7"], "temperature: "),
        (["scripted", "Hello?", "--max-tokens", "0"], "--max-tokens"),
        (["scripted", "Hello?", "--kv-memory", "lots"], "2GiB"),
        (["scripted", "Hello?", "--max-context", "99999"], "1 to 8192"),
        (["no-such"], "no-such"),
        (["tinny"], "did you mean tiny?"),
        (["Why is it blue?"], "minimsg run smollm2 'Why is it blue?'"),
    ],
)
def test_what_cannot_work_is_refused_in_one_paragraph(
    data_dir: Path, arguments: list[str], named: str
) -> None:
    done = run(data_dir, *arguments, piped="Hello?")
    assert done.exit_code == 2
    assert named in done.stderr
    assert "Traceback" not in done.output


def test_an_empty_question_is_refused(data_dir: Path) -> None:
    done = run(data_dir, "scripted", piped=" \n")
    assert done.exit_code == 2
    assert "the question is empty" in done.stderr


@pytest.mark.parametrize(
    "flags", [["--kv-memory", "lots"], ["--device", "nowhere"], ["--temperature", "7"]]
)
def test_a_setting_that_no_model_can_have_is_refused_before_one_is_made(
    tmp_path: Path, flags: list[str]
) -> None:
    assert run(tmp_path, "tiny", "Hello?", *flags).exit_code == 2
    assert list(tmp_path.iterdir()) == []


class Terminal:
    """The other side of a pseudo-terminal."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.unread = b""

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def read_until(self, end: str) -> str:
        """What appears up to and with `end`; what came with it waits for the next call."""
        deadline = time.monotonic() + 120
        while end.encode() not in self.unread:
            patience = deadline - time.monotonic()
            assert select.select([self.handle], [], [], patience)[0], self.unread
            self.unread += os.read(self.handle, 4096)
        said, _, self.unread = self.unread.partition(end.encode())
        return said.decode() + end


@contextmanager
def chat(data_dir: Path, *arguments: str) -> Iterator[tuple[Terminal, subprocess.Popen[bytes]]]:
    """`minimsg run` at a terminal of its own."""
    outside, inside = pty.openpty()
    process = subprocess.Popen(
        [*MINIMSG, "run", "--data-dir", str(data_dir), *arguments],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**os.environ, "TERM": "dumb"},
        start_new_session=True,
    )
    os.close(inside)
    try:
        yield Terminal(outside), process
    finally:
        process.kill()
        process.wait()
        os.close(outside)


def test_a_chat_remembers_and_obeys_its_commands(data_dir: Path) -> None:
    with chat(data_dir, "scripted") as (terminal, process):
        terminal.read_until(">>> ")
        terminal.type("/set max_tokens 5\n")
        assert "max_tokens = 5" in terminal.read_until(">>> ")
        terminal.type("/set temperature 9\n")
        assert "temperature: " in terminal.read_until(">>> "), "a refusal leaves the chat alive"
        terminal.type("Hello?\n")
        assert FIRST[:5] in terminal.read_until(">>> ")
        terminal.type("/set max_tokens\n")
        terminal.read_until(">>> ")
        terminal.type('"""Two\nlines"""\n')
        assert SECOND in terminal.read_until(SECOND)
        terminal.read_until(">>> ")
        terminal.type("/clear\n")
        assert "forgotten" in terminal.read_until(">>> ")
        terminal.type("Hello?\n")
        assert FIRST in terminal.read_until(FIRST)
        terminal.read_until(">>> ")
        terminal.type("\x04")  # Ctrl-D
        assert process.wait(timeout=60) == 0


def test_ctrl_c_stops_the_reply_and_not_the_chat(data_dir: Path) -> None:
    """`tiny` talks nonsense without end: 2,000 tokens take seconds, by the slowest kernel."""
    slowly = ("--kernel", "reference", "--max-tokens", "2000", "--temperature", "0")
    with chat(data_dir, "tiny", *slowly) as (terminal, process):
        terminal.read_until(">>> ")
        terminal.type("Hello?\n")
        terminal.read_until("Hello?")
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert "(stopped)" in terminal.read_until(">>> ")
        terminal.type("/set\n")
        assert "max_tokens" in terminal.read_until(">>> ")
        terminal.type("\x04")
        assert process.wait(timeout=60) == 0


def test_rates_are_tokens_by_seconds() -> None:
    sample = Sample([0.5, 1.0, 1.5], total_s=1.6, input_tokens=100, output_tokens=3)
    assert rates(sample) == "prompt: 100 tokens, 200.0/s\nreply: 3 tokens, 2.0/s"


def test_a_model_cannot_drive_the_terminal() -> None:
    assert printable("a\x1b[2Jb\tc\n") == "a\\x1b[2Jb\tc\n"

"""`minimsg batch run`: one result for each request, whatever is wrong and whenever it ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from socket import AF_INET, SOCK_STREAM
from typing import Any

import pytest
from click.testing import CliRunner, Result

from minimsg.cli.main import main
from minimsg.errors import DiskFailed, GenerationFailed
from minimsg.offline.answering import Answerer
from minimsg.offline.results import ResultsFile

from ..prompt.pdf_files import document, pdf  # noqa: TID252
from .files import request, results, write

MINIMSG = [sys.executable, "-c", "from minimsg.cli.main import main; main()"]
FLAGS = ("--threads", "1", "--dtype", "float32", "--num-pages", "1024")
MANY = [pytest.mark.soak, pytest.mark.timeout(3_600)]


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, data_dir: Path) -> Run:
    """`run("--shard", "1/2")` answers `requests.jsonl` with the tiny model, in this process."""

    def invoke(*flags: str) -> Result:
        return CliRunner().invoke(main, [*command(tmp_path, data_dir), *flags])

    return invoke


def command(folder: Path, data_dir: Path) -> list[str]:
    files = [str(folder / "requests.jsonl"), "tiny", "-o", str(folder / "results.jsonl")]
    return ["batch", "run", *files, "--data-dir", str(data_dir), *FLAGS]


def test_every_request_has_its_result_and_a_second_run_changes_nothing(
    run: Run, tmp_path: Path
) -> None:
    wrong: list[tuple[object, str]] = [
        (request("a0", stream=True), "stream: is not supported in a message batch"),
        (request("a1", "nobody"), "model: nobody"),
        (request("a2", max_tokens="many"), "max_tokens: Input should be a valid integer"),
        ({"custom_id": "a3", "params": []}, "params: Input should be a valid dictionary"),
        (request("a4", system="x" * 100_000), "prompt is too long"),
    ]
    good = [request(f"r{n}", max_tokens=1 + n % 9) for n in range(199)]
    good.append(request("pdf", messages=[{"role": "user", "content": [document(pdf("words"))]}]))
    write(tmp_path / "requests.jsonl", *good, *(each for each, _ in wrong))
    done = run()
    assert done.exit_code == 0, done.output
    assert "5 errored, 200 succeeded" in done.stderr
    found = results(tmp_path / "results.jsonl")
    assert len(found) == 205
    for each in good:
        message = found[each["custom_id"]]["message"]
        assert message["usage"]["output_tokens"] <= each["params"]["max_tokens"]
        assert message["usage"]["service_tier"] == "batch"
    for number, (_, said) in enumerate(wrong):
        error = found[f"a{number}"]["error"]
        assert (found[f"a{number}"]["type"], error["type"]) == ("errored", "error")
        assert error["request_id"].startswith("req_")
        assert said in error["error"]["message"]
    before = (tmp_path / "results.jsonl").read_bytes()
    assert run().exit_code == 0
    assert (tmp_path / "results.jsonl").read_bytes() == before


def test_urls_are_fetched_by_the_rules_of_a_server(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a name leads to is told here; sockets would be dialled by the address alone."""
    told, asked = [(AF_INET, SOCK_STREAM, 6, "", ("127.0.0.1", 443))], []

    def look_up(name: str, *_: object) -> Any:
        asked.append(name)
        return told

    monkeypatch.setattr("minimsg.server.fetch.socket.getaddrinfo", look_up)
    monkeypatch.setattr("minimsg.server.fetch._open_socket", pytest.fail)
    urls = ["https://127.0.0.1/", "https://@1.1.1.1/", "https://inner.example.com/"]
    sources = [{"type": "document", "source": {"type": "url", "url": each}} for each in urls]
    turns = [[{"role": "user", "content": [each]}] for each in sources]
    write(
        tmp_path / "requests.jsonl",
        *(request(f"r{n}", messages=each) for n, each in enumerate(turns)),
        request("good"),
    )
    assert run("--allow-urls").exit_code == 0
    found = results(tmp_path / "results.jsonl")
    assert found.pop("good")["type"] == "succeeded"
    assert all("Unable to" in each["error"]["error"]["message"] for each in found.values())
    assert asked == ["inner.example.com"]


def test_the_engine_has_all_the_sequences_that_it_can_run(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most: list[int] = []
    answer = Answerer.answer

    async def watched(self: Answerer, line: Any) -> Any:
        most.append(self._server.worker.stats().running)
        return await answer(self, line)

    monkeypatch.setattr(Answerer, "answer", watched)
    write(tmp_path / "requests.jsonl", *(request(f"r{n}", max_tokens=20) for n in range(60)))
    assert run("--max-sequences", "8").exit_code == 0
    assert max(most) == 8


def test_shards_together_have_every_result_once(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "requests.jsonl", *(request(f"r{n}") for n in range(7)))
    found: dict[str, Any] = {}
    for number in (1, 2):
        output = tmp_path / f"results-{number}.jsonl"
        done = run("--shard", f"{number}/2", "-o", str(output))
        assert done.exit_code == 0, done.output
        assert not found.keys() & results(output).keys()
        found |= results(output)
    assert set(found) == {f"r{n}" for n in range(7)}


def test_requests_that_have_changed_are_noticed(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "requests.jsonl", request("a"))
    assert run().exit_code == 0
    write(tmp_path / "requests.jsonl", request("a"), request("b"))
    refused = run()
    assert refused.exit_code == 2
    assert "has changed since" in refused.stderr
    assert run("--keep").exit_code == 0
    assert set(results(tmp_path / "results.jsonl")) == {"a", "b"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--profile", "strict", "--api-version", "1999"), '"1999" is not a valid version'),
        (("--shard", "3/2"), "--shard"),
        (("--workers", "2"), "--ray"),
        (("--device", "abacus"), "abacus"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    flags: tuple[str, ...], said: str, run: Run, tmp_path: Path
) -> None:
    write(tmp_path / "requests.jsonl", request("a"))
    refused = run(*flags)
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_a_full_disk_ends_with_1_and_is_gone_on_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "requests.jsonl", *(request(f"r{n}") for n in range(9)))
    append = ResultsFile.append

    def full(self: ResultsFile, *result: Any) -> None:
        if len(self.done) == 4:
            raise DiskFailed("no space")
        append(self, *result)

    with monkeypatch.context() as patched:
        patched.setattr(ResultsFile, "append", full)
        done = run()
    assert (done.exit_code, len(results(tmp_path / "results.jsonl"))) == (1, 4)
    assert "no space" in done.stderr
    assert run().exit_code == 0
    assert len(results(tmp_path / "results.jsonl")) == 9


def test_an_engine_that_has_failed_for_good_ends_with_70(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(self: Answerer) -> None:
        raise GenerationFailed("for good")

    monkeypatch.setattr(Answerer, "check", check)
    write(tmp_path / "requests.jsonl", request("a"))
    assert run().exit_code == 70


def test_ctrl_c_lets_what_is_in_work_end_and_begins_nothing_more(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    answer = Answerer.answer

    async def watched(self: Answerer, line: Any) -> Any:
        begun.append(line.custom_id)
        if len(begun) == 20:
            threading.Timer(0, os.kill, (os.getpid(), signal.SIGINT)).start()
        return await answer(self, line)

    write(tmp_path / "requests.jsonl", *(request(f"r{n}", max_tokens=60) for n in range(400)))
    with monkeypatch.context() as patched:
        patched.setattr(Answerer, "answer", watched)
        stopped = run("--max-sequences", "4")
    assert stopped.exit_code == 130
    assert "the same command goes on" in stopped.stderr
    found = results(tmp_path / "results.jsonl")
    assert set(found) == set(begun)
    assert 20 <= len(found) < 400
    assert all(result["type"] == "succeeded" for result in found.values())


@pytest.mark.parametrize(("num_items", "num_kills"), [(60, 1), pytest.param(500, 30, marks=MANY)])
def test_each_result_is_there_once_however_often_it_is_killed(
    num_items: int, num_kills: int, tmp_path: Path, data_dir: Path, run: Run
) -> None:
    moments, output = random.Random(num_items), tmp_path / "results.jsonl"
    items = [request(f"r{n}", max_tokens=1 + n % 30) for n in range(num_items)]
    write(tmp_path / "requests.jsonl", *items)
    num_cut = 0
    for _ in range(num_kills):
        size = output.stat().st_size if output.exists() else 0
        with subprocess.Popen([*MINIMSG, *command(tmp_path, data_dir)]) as process:
            while process.poll() is None and (not output.exists() or output.stat().st_size <= size):
                time.sleep(0.005)
            time.sleep(moments.uniform(0, 0.1))
            process.kill()
        num_cut += process.returncode != 0
    assert num_cut > 0, "no kill came before the end"
    assert run().exit_code == 0
    found = results(output)
    assert set(found) == {item["custom_id"] for item in items}
    assert all(result["type"] == "succeeded" for result in found.values())


def test_a_prompt_of_megabytes_is_no_concern_of_the_others(run: Run, tmp_path: Path) -> None:
    huge = request("huge", system="word " * 1_000_000)
    write(tmp_path / "requests.jsonl", request("a"), huge, request("b"))
    assert run().exit_code == 0
    found = results(tmp_path / "results.jsonl")
    kinds = {name: result["type"] for name, result in found.items()}
    assert kinds == {"a": "succeeded", "b": "succeeded", "huge": "errored"}
    assert "prompt is too long" in found["huge"]["error"]["error"]["message"]

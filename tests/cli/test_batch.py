"""`minimsg batch` against a server in a process of its own, against none, and against others'."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

from minimsg.cli import transfer
from minimsg.cli.batch_words import described, table
from minimsg.limits import Limits

from .batch_asking import BATCH, EMPTY, RUNNING, batch, requests
from .pretending import Cut, error, pretending
from .process import MINIMSG, Serving


def test_a_batch_is_created_waited_for_read_and_deleted(serving: Serving, tmp_path: Path) -> None:
    file = requests(tmp_path, "a", "b", "c")
    made = batch("create", file, "--wait", "--json", url=serving.url)
    assert made.exit_code == 0, made.output
    found = MessageBatch.model_validate_json(made.stdout)
    assert (found.processing_status, found.request_counts.succeeded) == ("ended", 3)
    assert "3 processing" in made.stderr

    shown = batch("show", found.id, url=serving.url + "/v1")
    assert "ended" in shown.stdout
    assert "3 succeeded" in shown.stdout
    printed = batch("results", found.id, url=serving.url).stdout
    output = tmp_path / "results.jsonl"
    assert batch("results", found.id, "-o", str(output), url=serving.url).exit_code == 0
    assert output.read_text() == printed
    lines = [
        MessageBatchIndividualResponse.model_validate_json(each) for each in printed.splitlines()
    ]
    assert sorted(line.custom_id for line in lines) == ["a", "b", "c"]
    assert {line.result.type for line in lines} == {"succeeded"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    ended = batch("cancel", found.id, url=serving.url)
    assert ended.exit_code == 2
    assert "has ended and cannot be canceled" in ended.stderr
    assert batch("delete", found.id, url=serving.url).stdout == f"deleted {found.id}\n"
    gone = batch("show", found.id, url=serving.url)
    assert gone.exit_code == 2
    assert f"{found.id}; `minimsg batch list` shows those there" in gone.stderr


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["{}"], ":1: custom_id: Field required"),
        (["", '{"custom_id": "a", "params": {}}', "{"], ":3: The request body is not valid JSON"),
        (['{"custom_id": "a b", "params": {}}'], ":1: custom_id: String should match"),
        (['{"custom_id": "a", "params": {}}'] * 2, ":2: custom_id 'a' is that of line 1"),
        (['{"custom_id": "a", "params": 1}'], ":1: params: Input should be a valid dict"),
        ([], "there is no request in it"),
    ],
)
def test_a_file_that_is_wrong_is_refused_before_anybody_is_asked(
    lines: list[str], said: str, tmp_path: Path
) -> None:
    (tmp_path / "requests.jsonl").write_text("\n".join(lines))
    refused = batch("create", str(tmp_path / "requests.jsonl"))
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_a_file_that_is_too_large_for_a_batch_says_what_else_can_be_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "LIMITS", Limits(batch_requests=2))
    refused = batch("create", requests(tmp_path, "a", "b", "c"))
    assert refused.exit_code == 2
    assert "3 requests" in refused.stderr
    assert "minimsg batch run" in refused.stderr


def test_what_is_sent_is_one_body_of_the_lines_with_the_names_that_sdks_read(
    tmp_path: Path,
) -> None:
    mark = b"\xef\xbb\xbf"
    file = Path(requests(tmp_path, "a", "b"))
    file.write_bytes(mark + file.read_bytes().replace(b"\n", b"\r\n\r\n"))
    with pretending(GET_batches=(200, EMPTY), POST_batches=(200, RUNNING)) as server:
        env = {
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_AUTH_TOKEN": "token",
        }
        words = ("create", str(file), "--beta", "one", "--beta", "two", "--api-version", "2026")
        made = batch(*words, url="", env=env)
    assert made.exit_code == 0, made.output
    sent = json.loads(server.bodies[-1])
    assert [each["custom_id"] for each in sent["requests"]] == ["a", "b"]
    headers = server.headers[-1]
    assert (headers["x-api-key"], headers["authorization"]) == ("key", "Bearer token")
    assert (headers["anthropic-beta"], headers["anthropic-version"]) == ("one,two", "2026")
    assert server.headers[0]["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((404, error("not_found_error", "Not found")), ["no message batches", "batch run"]),
        ((405, b"<html>"), ["no message batches"]),
        ((401, error("authentication_error", "invalid x-api-key")), ["name a key", "invalid"]),
        ((403, b""), ["name a key with --api-key"]),
        ((429, error("rate_limit_error", "slow\x9b down")), ["slow\\x9b down; try again"]),
        ((200, b"<html>hello</html>"), ["is this a Messages server?"]),
        ((200, b"[]"), ["is this a Messages server?"]),
        ((302, b""), ["HTTP 302"]),
    ],
)
@pytest.mark.parametrize("verb", ["list", "create"])
def test_a_server_that_cannot_is_told_apart(
    answer: tuple[int, object], words: list[str], verb: str, tmp_path: Path
) -> None:
    with pretending(GET_batches=answer) as server:
        file = [requests(tmp_path, "a")] if verb == "create" else []
        refused = batch(verb, *file, url=server.url)
    assert refused.exit_code == 2
    for each in words:
        assert each in refused.stderr


def test_a_key_that_was_sent_is_the_wrong_one() -> None:
    with pretending(GET_batches=(401, error("authentication_error", "no"))) as server:
        refused = batch("list", "--api-key", "wrong", url=server.url)
    assert "name another key" in refused.stderr
    assert "wrong" not in refused.stderr


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense", "http://"])
def test_where_nobody_answers_it_says_so_and_what_to_do(url: str) -> None:
    for words in (["list"], ["show", "msgbatch_1", "--wait"], ["results", "msgbatch_1"]):
        refused = batch(*words, url=url)
        assert refused.exit_code == 2
        assert f"no server answers at {url.rstrip('/')}" in refused.stderr
        assert "--base-url or ANTHROPIC_BASE_URL" in refused.stderr


def test_waiting_outlasts_a_server_that_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "POLL_S", (0.001, 0.001))
    busy = (529, error("overloaded_error", "busy"))
    with pretending(GET_batches__msgbatch_1=[(200, RUNNING), busy, (200, BATCH)]) as server:
        shown = batch("show", "msgbatch_1", "--wait", "--json", url=server.url)
    assert json.loads(shown.stdout) == BATCH
    assert [word in shown.stderr for word in ("in_progress", "busy", "ended")] == [True] * 3


def test_an_id_is_one_part_of_a_path_whatever_it_is() -> None:
    with pretending(GET_batches=(200, EMPTY)) as server:
        refused = batch("show", "../../x?y#z\x1b", url=server.url)
    assert server.asked[0] == "GET /v1/messages/batches/..%2F..%2Fx%3Fy%23z%1B"
    assert refused.exit_code == 2
    assert "\x1b" not in refused.stderr


def test_results_that_are_not_there_are_not_asked_for(tmp_path: Path) -> None:
    archived = BATCH | {"archived_at": "2026-12-29T04:10:32Z"}
    for answer, said in ((RUNNING, "--wait"), (archived, "are gone")):
        with pretending(GET_batches__msgbatch_1=(200, answer)) as server:
            refused = batch("results", "msgbatch_1", url=server.url)
        assert (refused.exit_code, len(server.asked)) == (2, 1)
        assert said in refused.stderr


@pytest.mark.parametrize("body", [b"", b'{"custom_id":"a"}\n', b"{}\n" * 3, b"{}\n{}\n{"])
def test_a_file_of_results_that_did_not_come_whole_is_left_as_it_was(
    body: bytes, tmp_path: Path
) -> None:
    output = tmp_path / "results.jsonl"
    output.write_text("before")
    answers: Any = {
        "GET_batches__msgbatch_1": (200, BATCH),
        "GET_batches__msgbatch_1__results": (200, body),
    }
    with pretending(**answers) as server:
        refused = batch("results", "msgbatch_1", "-o", str(output), url=server.url)
    assert refused.exit_code == 2
    assert "of 2 results came" in refused.stderr
    assert output.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["results.jsonl"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_results_that_a_signal_cuts_off_leave_nothing_beside_them(
    number: signal.Signals, tmp_path: Path
) -> None:
    answers: Any = {
        "GET_batches__msgbatch_1": (200, BATCH),
        "GET_batches__msgbatch_1__results": (200, Cut(b"{}\n")),
    }
    with pretending(**answers) as server:
        words = ["batch", "results", "msgbatch_1", "-o", str(tmp_path / "results.jsonl")]
        process = subprocess.Popen([*MINIMSG, *words, "--base-url", server.url])
        deadline = time.monotonic() + 30
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert list(tmp_path.iterdir())
        process.send_signal(number)
        assert process.wait(30) == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_what_results_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    answers: Any = {
        "GET_batches__msgbatch_1": (200, BATCH),
        "GET_batches__msgbatch_1__results": (200, b"{}\n{}\n"),
    }
    with pretending(**answers) as server:
        for path in ("/dev/null", str(tmp_path), str(tmp_path / "none" / "x")):
            refused = batch("results", "msgbatch_1", "-o", path, url=server.url)
            assert refused.exit_code == 2, path
    assert not Path("/dev/null").is_file()


def test_what_a_server_says_drives_no_terminal() -> None:
    evil = BATCH | {"id": "a\x1b[2J\n", "created_at": "\u202e"}
    for text in (described(evil), table([evil])):
        assert "\x1b" not in text
        assert "\u202e" not in text

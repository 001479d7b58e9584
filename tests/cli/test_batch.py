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
from click.testing import CliRunner, Result

from minimsg.cli import transfer
from minimsg.cli.batch_words import described, table
from minimsg.cli.main import main
from minimsg.limits import Limits

from .pretending import Cut, error, pretending
from .process import MINIMSG, Serving

BATCH: Any = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "request_counts": {"processing": 0, "succeeded": 2, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-11-30T04:10:32Z",
    "results_url": "/",
}
RUNNING: Any = BATCH | {"processing_status": "in_progress"}
NOBODY = "http://127.0.0.1:1"
EMPTY: Any = {"data": [], "has_more": False, "first_id": None, "last_id": None}


def batch(*words: str, url: str = NOBODY, env: dict[str, str] | None = None) -> Result:
    """`minimsg batch WORDS` for the server at `url`."""
    clean = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_BASE_URL": ""}
    where = ["--base-url", url] if url else []
    return CliRunner().invoke(main, ["batch", *words, *where], env=clean | (env or {}))


def page(*ids: str, is_last: bool = False) -> tuple[int, object]:
    """An answer with a page of the list."""
    data = [BATCH | {"id": each} for each in ids]
    ends = {"first_id": ids[0], "last_id": ids[-1]}
    return 200, {"data": data, "has_more": not is_last, **ends}


def requests(folder: Path, *custom_ids: str) -> str:
    """A file of good requests."""
    params = {"model": "scripted", "max_tokens": 5, "messages": [{"role": "user", "content": "?"}]}
    lines = [json.dumps({"custom_id": each, "params": params}) + "\n" for each in custom_ids]
    (folder / "requests.jsonl").write_text("".join(lines))
    return str(folder / "requests.jsonl")


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


def test_lists_go_in_both_directions_a_page_at_a_time_or_all(
    serving: Serving, tmp_path: Path
) -> None:
    file = requests(tmp_path, "a")
    made = [json.loads(batch("create", file, "--json", url=serving.url).stdout) for _ in range(5)]
    ids = [each["id"] for each in reversed(made)]  # newest first

    def listed(*flags: str) -> tuple[list[str], bool]:
        page = json.loads(batch("list", "--json", *flags, url=serving.url).stdout)
        found = [each["id"] for each in page["data"]]
        assert (page["first_id"], page["last_id"]) == (found[0], found[-1])
        return found, page["has_more"]

    assert listed("--limit", "2") == (ids[:2], True)
    assert listed("--limit", "2", "--after-id", ids[1]) == (ids[2:4], True)
    assert listed("--limit", "2", "--before-id", ids[4]) == (ids[2:4], True)
    assert listed("--limit", "2", "--before-id", ids[4], "--all") == (ids[:4], False)
    assert listed("--limit", "2", "--all")[0][:5] == ids
    shown = batch("list", "--limit", "2", url=serving.url)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["ID", *ids[:2]]
    assert f"--after-id {ids[1]}" in shown.stderr
    both = batch("list", "--after-id", ids[0], "--before-id", ids[1], url=serving.url)
    assert both.exit_code == 2
    for each in ids:
        batch("show", each, "--wait", url=serving.url)
        assert batch("delete", each, url=serving.url).exit_code == 0


@pytest.mark.parametrize("flags", [[], ["--before-id", "msgbatch_0"]])
def test_a_list_of_all_goes_on_where_the_batch_it_had_come_to_is_deleted(flags: list[str]) -> None:
    deleted = (400, error("invalid_request_error", "no item of this list has that id"))
    pages = [page("9", "8"), deleted, page("7", "6", is_last=True)]
    with pretending(GET_batches=[*pages]) as server:
        listed = batch("list", "--all", "--json", *flags, url=server.url)
    found = json.loads(listed.stdout)
    ids = [each["id"] for each in found["data"]]
    assert ids == (["7", "6", "9", "8"] if flags else ["9", "8", "7", "6"])
    assert (found["first_id"], found["last_id"]) == (ids[0], ids[-1])
    name, nearest, other = ("before", "9", "8") if flags else ("after", "8", "9")
    assert [asked.partition("&")[2] for asked in server.asked[1:]] == [
        f"{name}_id={each}" for each in (nearest, other)
    ]


def test_a_list_of_all_that_was_deleted_amid_it_ends_with_what_it_had() -> None:
    deleted = (400, error("invalid_request_error", "no item of this list has that id"))
    with pretending(GET_batches=[page("9", "8"), deleted, deleted, (200, EMPTY)]) as server:
        found = json.loads(batch("list", "--all", "--json", url=server.url).stdout)
    assert (found["first_id"], found["last_id"], found["has_more"]) == ("9", "8", False)
    with pretending(GET_batches=deleted) as server:
        refused = batch("list", "--all", "--after-id", "x", url=server.url)
    assert (refused.exit_code, len(server.asked)) == (2, 1)


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

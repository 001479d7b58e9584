"""Requests of real clients get the answers that those clients key on.

Each test of recordings has a twin on requests written by us, so that a clone without
the recordings checks the same behaviour. Source: Messages API reference; what the
clients do with the answers is tried with the clients themselves in `tests/clients`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from minimsg.builtin import write_scripted
from minimsg.config import EngineConfig, ServerConfig

from . import coding_requests as written
from .conftest import Start
from .recordings import Answer, Recording, replay
from .running import LONG, TAPES, Running, ask
from .test_disconnect import connect, until

REPLY = "Certainly."  # as long as the shortest max_tokens of a recording allows
WINDOW = 65_536  # tokens, here bytes: room for the longest recording
ENGINE = EngineConfig(dtype="float32", num_pages=WINDOW // 16 + 64, threads=1)
ANY_MODEL = ServerConfig(any_model=True)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Instead of the usual models one with a long window, which says the same to everyone."""
    folder = tmp_path_factory.mktemp("long")
    tapes = [*[REPLY] * LONG, TAPES[LONG]]
    write_scripted(folder, tapes, window=WINDOW)
    return lambda name: folder


@pytest.fixture(scope="module")
def recorded(test_data: Path) -> dict[str, Recording]:
    """Every recording by its name."""
    files = sorted((test_data / "recordings").glob("*.json"))
    assert len(files) >= 40, "recordings are missing"
    return {file.stem: Recording.read(file) for file in files}


REFUSED = {"img_02", "toolsearch_03"}  # a picture; a tool that the hosted API runs


async def test_every_recording_is_answered_but_a_picture_and_a_server_tool(
    start: Start, recorded: dict[str, Recording]
) -> None:
    running = await start(engine=ENGINE, config=ANY_MODEL)
    await assert_answered(running, [recorded[name] for name in recorded.keys() - REFUSED])


async def test_written_requests_are_answered_like_recorded_ones(start: Start) -> None:
    running = await start(engine=ENGINE, config=ANY_MODEL)
    await assert_answered(running, [*written.REPLIES, *written.COUNTS])


async def assert_answered(running: Running, requests: Iterable[Recording]) -> None:
    """Each gets 200, with the whole reply or with a count."""
    complaints = {}
    for request in requests:
        answer = await replay(running, request)
        if answer.status != 200:
            complaints[request.name] = f"{answer.status} {answer.message}"
        elif request.counts:
            assert list(answer.data) == ["input_tokens"], request.name
        elif request.body is not None:
            assert answer.text == REPLY, request.name
    assert complaints == {}


async def test_counts_grow_with_the_tools_counted(start: Start) -> None:
    running = await start(engine=ENGINE, config=ANY_MODEL)
    none, one, all_tools = [
        (await replay(running, request)).input_tokens for request in written.COUNTS
    ]
    assert none < one < all_tools


async def test_a_recorded_picture_is_refused_by_its_place(
    start: Start, recorded: dict[str, Recording]
) -> None:
    running = await start(engine=ENGINE, config=ANY_MODEL)
    assert_names_the_picture(await replay(running, recorded["img_02"]))


async def test_a_written_picture_is_refused_by_its_place(start: Start) -> None:
    running = await start(engine=ENGINE, config=ANY_MODEL)
    assert_names_the_picture(await replay(running, written.PICTURE))


def assert_names_the_picture(answer: Answer) -> None:
    assert (answer.status, answer.kind) == (400, "invalid_request_error")
    assert answer.message.startswith("messages.3.content.1.tool_result.content.0.image: ")


async def test_a_recorded_server_tool_is_refused_by_its_place_or_dropped(
    start: Start, recorded: dict[str, Recording]
) -> None:
    await assert_refused_or_dropped(start, recorded["toolsearch_03"])


async def test_a_written_server_tool_is_refused_by_its_place_or_dropped(start: Start) -> None:
    await assert_refused_or_dropped(start, written.SERVER_TOOL)


async def assert_refused_or_dropped(start: Start, request: Recording) -> None:
    refused = await replay(await start(engine=ENGINE, config=ANY_MODEL), request)
    assert (refused.status, refused.kind) == (400, "invalid_request_error")
    assert "tools.0" in refused.message
    assert "web_search" in refused.message
    dropping = ServerConfig(any_model=True, drop_server_tools=True)
    answered = await replay(await start(engine=ENGINE, config=dropping), request)
    assert (answered.status, answered.text) == (200, REPLY)


# Feature switched off, prefix of the recordings, the words that the client keys on, and
# what its next request has instead.
RECOVERIES = {
    "system-turns": (
        "e400sys",
        "role 'system' is not supported on this model",
        written.first("again", messages=[written.USER_TURN]),
    ),
    "context-management": (
        "e400ctx",
        "context_management: Extra inputs are not permitted",
        written.first("again", remove=("context_management",)),
    ),
    "adaptive-thinking": (
        "e400think",
        "thinking: Input tag 'adaptive' found using 'type' does not match any of the expected "
        "tags: 'enabled', 'disabled'. adaptive thinking is not supported on this model",
        written.first("again", thinking={"type": "enabled", "budget_tokens": 127_999}),
    ),
}


@pytest.mark.parametrize("feature", RECOVERIES)
async def test_a_recorded_client_is_told_what_to_leave_out(
    start: Start, recorded: dict[str, Recording], feature: str
) -> None:
    prefix, words, _ = RECOVERIES[feature]
    await assert_recovers(start, feature, words, recorded[f"{prefix}_01"], recorded[f"{prefix}_02"])


@pytest.mark.parametrize("feature", RECOVERIES)
async def test_a_written_client_is_told_what_to_leave_out(start: Start, feature: str) -> None:
    _, words, again = RECOVERIES[feature]
    await assert_recovers(start, feature, words, written.first("at first"), again)


async def assert_recovers(
    start: Start, feature: str, words: str, before: Recording, after: Recording
) -> None:
    """`before` is refused in `words` where the feature is off, and `after` answered."""
    off = ServerConfig(any_model=True, without=(feature,))
    running = await start(engine=ENGINE, config=off)
    refused = await replay(running, before)
    assert (refused.status, refused.kind) == (400, "invalid_request_error")
    assert words in refused.message
    answered = await replay(running, after)
    assert (answered.status, answered.text) == (200, REPLY)


async def test_an_unknown_model_is_not_found_with_and_without_a_stream(
    start: Start, recorded: dict[str, Recording]
) -> None:
    running = await start(engine=ENGINE)
    for name in ("e404_01", "e404_02"):
        assert_not_found(await replay(running, recorded[name]), "claude-opus-5-5")


async def test_a_written_request_for_an_unknown_model_is_not_found(start: Start) -> None:
    running = await start(engine=ENGINE)
    for request in written.REPLIES[:2]:
        assert_not_found(await replay(running, request), "claude-of-some-kind")


def assert_not_found(answer: Answer, model: str) -> None:
    assert (answer.status, answer.kind) == (404, "not_found_error")
    assert answer.message == f"model: {model}"


async def test_a_full_queue_is_an_overload_that_passes(start: Start) -> None:
    single = EngineConfig(dtype="float32", num_pages=ENGINE.num_pages, threads=1, max_sequences=1)
    running = await start(engine=single, config=ServerConfig(any_model=True, max_queue=0))
    writer = await connect(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    refused = await replay(running, written.first("while another runs"))
    assert (refused.status, refused.kind) == (529, "overloaded_error")
    writer.close()
    await running.until_free()
    answered = await replay(running, written.first("after it"))
    assert (answered.status, answered.text) == (200, REPLY)

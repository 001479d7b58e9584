"""One reply, streamed and plain: its text, its end, its numbers, its events."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import anthropic.types
import pytest
from pydantic import JsonValue

from minimsg.config import ServerConfig
from minimsg.protocol.build import fold

from .conftest import Start
from .running import (
    EMOJI,
    EMPTY,
    HALF_STOP,
    INJECTION,
    LONG,
    PLAIN,
    STOPS,
    TAPES,
    Json,
    Running,
    ask,
)

Answer = dict[str, Any]


async def both(running: Running, body: Json) -> Answer:
    """The plain answer, which the streamed one must equal but for its id."""
    plain, _ = await running.post(body)
    events = cast("list[Any]", await running.stream(body))
    streamed = cast("Json", fold(events))
    assert streamed | {"id": plain["id"]} == plain
    return plain


def text_of(answer: Answer) -> str:
    return "".join(block["text"] for block in answer["content"])


@pytest.mark.parametrize("tape", [PLAIN, INJECTION, EMOJI])
async def test_a_reply_is_the_text_of_its_tape_to_the_end(scripted: Running, tape: int) -> None:
    answer = await both(scripted, ask(tape))
    assert text_of(answer) == TAPES[tape]
    assert answer["stop_reason"] == "end_turn"
    assert answer["stop_sequence"] is None
    assert answer["usage"]["output_tokens"] == len(TAPES[tape].encode()) + 1  # and the end id


async def test_every_field_of_the_official_type_is_there(scripted: Running) -> None:
    answer = await both(scripted, ask(PLAIN))
    assert set(answer) == set(anthropic.types.Message.model_fields)
    assert set(answer["usage"]) == set(anthropic.types.Usage.model_fields)
    anthropic.types.Message.model_validate(answer, strict=True)


async def test_an_empty_reply_has_no_content_and_costs_its_end_id(scripted: Running) -> None:
    answer = await both(scripted, ask(EMPTY))
    assert answer["content"] == []
    assert answer["stop_reason"] == "end_turn"
    assert answer["usage"]["output_tokens"] == 1


STOPPED: list[tuple[int, list[JsonValue], str, str | None]] = [
    (STOPS, ["STOP"], "one two ", "STOP"),
    (STOPS, ["three", "two"], "one ", "two"),
    (STOPS, ["one"], "", "one"),
    (STOPS, ["three"], "one two STOP ", "three"),  # the last token completes it
    (STOPS, ["four"], TAPES[STOPS], None),
    (HALF_STOP, ["</end>"], TAPES[HALF_STOP], None),  # half a match is text after all
    (EMOJI, ["é"], "a", "é"),  # two bytes, two tokens
    (EMOJI, ["\u200d"], "aé\U0001f469", "\u200d"),
]


@pytest.mark.parametrize(("tape", "stops", "text", "hit"), STOPPED)
async def test_a_stop_sequence_ends_the_reply_and_is_not_shown(
    scripted: Running, tape: int, stops: list[JsonValue], text: str, hit: str | None
) -> None:
    answer = await both(scripted, ask(tape, stop_sequences=stops))
    assert text_of(answer) == text
    assert answer["stop_reason"] == ("stop_sequence" if hit else "end_turn")
    assert answer["stop_sequence"] == hit
    ended_by = hit if hit else "."  # the end id counts as one
    assert answer["usage"]["output_tokens"] == len((text + ended_by).encode())
    await scripted.until_free()


async def test_max_tokens_counts_ids_and_never_cuts_a_character_in_two(scripted: Running) -> None:
    text = TAPES[EMOJI]
    for n in range(1, len(text.encode()) + 1):
        answer = await both(scripted, ask(EMOJI, max_tokens=n))
        assert text_of(answer) == text.encode()[:n].decode(errors="replace")
        assert answer["stop_reason"] == "max_tokens"
        assert answer["usage"]["output_tokens"] == n


async def test_no_delta_of_a_whole_reply_holds_half_a_character(scripted: Running) -> None:
    events = cast("list[Any]", await scripted.stream(ask(EMOJI)))
    deltas = [event["delta"]["text"] for event in events if event["type"] == "content_block_delta"]
    assert deltas == list(TAPES[EMOJI])


async def test_max_tokens_zero_reads_the_prompt_and_writes_nothing(scripted: Running) -> None:
    answer, _ = await scripted.post(ask(PLAIN, max_tokens=0))
    assert answer["content"] == []
    assert answer["stop_reason"] == "max_tokens"
    assert cast("Any", answer["usage"])["output_tokens"] == 0
    await scripted.until_free()


async def test_without_max_tokens_the_default_of_the_server_holds(start: Start) -> None:
    running = await start(config=ServerConfig(default_max_tokens=33))
    body = ask(LONG)
    del body["max_tokens"]
    answer = await both(running, body)
    assert answer["stop_reason"] == "max_tokens"
    assert answer["usage"]["output_tokens"] == 33


async def test_a_full_window_is_its_own_reason(tiny: Running) -> None:
    prompt = "x" * (tiny.server.max_context - 100)
    body: Json = {
        "model": "tiny",
        "max_tokens": 100_000,
        "temperature": 0,
        "messages": [{"role": "user", "content": prompt}],
    }
    answer = await both(tiny, body)
    if answer["stop_reason"] != "end_turn":  # random weights might end the turn by chance
        assert answer["stop_reason"] == "model_context_window_exceeded"
        usage = answer["usage"]
        assert usage["input_tokens"] + usage["output_tokens"] >= tiny.server.max_context


async def test_the_start_of_a_stream_has_the_real_input_tokens(scripted: Running) -> None:
    body = ask(STOPS, system="Be brief.")
    counted, _ = await scripted.post(
        {name: body[name] for name in ("model", "messages", "system")}, "/v1/messages/count_tokens"
    )
    answer = await both(scripted, body)
    start = cast("Any", await scripted.stream(body))[0]
    assert start["message"]["usage"]["input_tokens"] == answer["usage"]["input_tokens"]
    assert counted == {"input_tokens": answer["usage"]["input_tokens"]}


async def test_the_first_block_is_followed_by_a_ping(scripted: Running) -> None:
    events = await scripted.stream(ask(PLAIN))
    kinds = [event["type"] for event in events[:4]]
    assert kinds == ["message_start", "content_block_start", "ping", "content_block_delta"]


async def test_the_end_of_a_stream_spells_out_what_is_missing(scripted: Running) -> None:
    events = await scripted.stream(ask(PLAIN))
    nothing = {"stop_sequence": None, "stop_details": None}
    assert events[-2]["delta"] == {"stop_reason": "end_turn", **nothing}


async def test_a_stream_says_how_it_wants_to_be_carried(scripted: Running) -> None:
    async with scripted.session.post(
        scripted.url + "/v1/messages", json=ask(PLAIN, stream=True)
    ) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert response.headers["cache-control"] == "no-cache"
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["request-id"].startswith("req_01")


async def test_equal_seeds_draw_equal_replies(tiny: Running) -> None:
    body: Json = {
        "model": "tiny",
        "max_tokens": 40,
        "seed": 11,
        "messages": [{"role": "user", "content": "hi"}],
    }
    first, second = await both(tiny, body), await both(tiny, body)
    assert first["content"] == second["content"]


async def test_replies_at_once_are_the_same_as_replies_alone(tiny: Running) -> None:
    bodies: list[Json] = [
        {
            "model": "tiny",
            "max_tokens": 24,
            "temperature": 0,
            "messages": [{"role": "user", "content": f"question {i} " * (i + 1)}],
        }
        for i in range(8)
    ]
    alone = [(await tiny.post(body))[0]["content"] for body in bodies]
    at_once = await asyncio.gather(*(tiny.post(body) for body in bodies))
    assert [answer["content"] for answer, _ in at_once] == alone


async def test_fields_that_nobody_reads_are_listed_in_a_header(scripted: Running) -> None:
    body = ask(PLAIN, tool=[], thought={"type": "disabled"}, **{"bad\nkey": 1})
    _, response = await scripted.post(body)
    assert sorted(response.headers["minimsg-ignored"].split(", ")) == [
        "bad?key",
        "thought",
        "tool",
    ]
    _, response = await scripted.post(ask(PLAIN))
    assert "minimsg-ignored" not in response.headers


async def test_the_list_of_ignored_fields_has_a_length_that_clients_take(scripted: Running) -> None:
    body = ask(PLAIN, **{f"a_rather_long_field_name_{i}": 1 for i in range(1_000)})
    _, response = await scripted.post(body)
    header = response.headers["minimsg-ignored"]
    assert len(header) < 1_100
    shown = header.split(", ")
    assert shown[-1] == f"and {1_000 - len(shown) + 1} more"


@pytest.mark.parametrize("path", ["/messages", "/v1/messages?beta=true", "/v1/messages"])
async def test_the_route_has_an_alias_and_ignores_its_query(scripted: Running, path: str) -> None:
    answer, _ = await scripted.post(ask(PLAIN), path)
    assert text_of(answer) == TAPES[PLAIN]

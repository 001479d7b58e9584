"""Cache marks from the body of a request to the engine, and what `diagnostics` answers.

What a client moves about between requests changes no id of the prompt.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from minimsg.builtin import write_scripted
from minimsg.config import ServerConfig
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.dialect import PLAIN
from minimsg.server.catalog import Catalog
from minimsg.server.prepare import Prepared, Served, Settings, prepare_message

from .conftest import Start
from .generated import requests, without_cache_marks
from .running import PLAIN as TAPE
from .running import Json, Running, ask

WINDOW: Final = 65_536
MARK: Final[Json] = {"type": "ephemeral"}
AUTOMATIC: Final[Json] = {"cache_control": MARK}
LONG: Final[Json] = {"type": "ephemeral", "ttl": "1h"}
DEFERRED: Final[Json] = {
    "name": "nobody_named_it",
    "input_schema": {"type": "object"},
    "defer_loading": True,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """The byte model, whose template takes neither tools nor thinking."""
    folder = tmp_path_factory.mktemp("model") / "scripted"
    write_scripted(folder, window=WINDOW)
    chat = ChatModel.open(folder, "generated")
    return Served(chat, Settings(Catalog("generated"), WINDOW, 100))


def prepared(body: object, served: Served) -> Prepared:
    return prepare_message(json.dumps(body).encode(), served, PLAIN)


def turned(value: JsonValue) -> JsonValue:
    """`value` with the keys of its blocks in another order; inputs and schemas are text to us."""
    if isinstance(value, list):
        return [turned(item) for item in value]
    if isinstance(value, dict):
        kept = ("input", "input_schema", "input_examples")
        return {key: v if key in kept else turned(v) for key, v in reversed(value.items())}
    return value


def in_other_form(content: JsonValue) -> JsonValue:
    """A string as one block of text, and the other way round."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else content
    match content:
        case [{"type": "text", "text": text, **others}] if not others:
            return text
    return content


def moved_about(body: Any) -> Any:
    """`body` as the same client might say it in its next request."""
    body = without_cache_marks(body)
    for message in body["messages"]:
        if "clear_at" not in message and "output_config" not in message:
            message["content"] = in_other_form(message["content"])
    if "system" in body:
        body["system"] = in_other_form(body["system"])
    if body.get("tools"):
        body["tools"] = [*body["tools"], DEFERRED]
    return turned(body)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(body=requests())
def test_what_a_client_moves_about_changes_no_id(served: Served, body: Json) -> None:
    ids = prepared(body, served).prompt_ids
    assert prepared(moved_about(body), served).prompt_ids == ids


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(body=requests(), version=st.text("0123456789abcdef", min_size=3))
def test_the_billing_text_of_a_client_changes_no_id(
    served: Served, body: Json, version: str
) -> None:
    system = body.get("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    billing: JsonValue = {"type": "text", "text": f"x-anthropic-billing-header: {version};"}
    assert isinstance(blocks, list)
    bodies = [{**body, "system": [*more, *blocks]} for more in ([billing], [])]
    assert prepared(bodies[0], served).prompt_ids == prepared(bodies[1], served).prompt_ids


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(body=requests())
def test_marks_are_lengths_of_the_prompt(served: Served, body: Json) -> None:
    made = prepared(body, served)
    lengths = [mark.num_tokens for mark in made.marks]
    assert lengths == sorted(set(lengths))
    for mark in made.marks:
        assert 0 < mark.num_tokens <= len(made.prompt_ids)
        assert [*mark.earlier] == sorted(set(mark.earlier), reverse=True)
        assert all(0 < length < mark.num_tokens for length in mark.earlier)


async def test_marks_reach_the_engine(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    running = await start(config=ServerConfig(min_cache_tokens=10))
    submitted = watched(running, monkeypatch)
    system: JsonValue = [{"type": "text", "text": "Be brief and clear.", "cache_control": LONG}]
    await running.post(ask(TAPE, system=system, cache_control=MARK))
    (generation,) = submitted
    long, short = generation.marks
    assert (long.num_tokens, long.ttl_s) == (1 + len("system\nBe brief and clear"), 3600)
    assert short.ttl_s == 300
    assert short.earlier == (long.num_tokens,)


async def test_a_mark_below_the_least_is_none(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start(config=ServerConfig(min_cache_tokens=100))
    submitted = watched(running, monkeypatch)
    await running.post(ask(TAPE, cache_control=MARK))
    assert submitted[0].marks == ()


def watched(running: Running, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is submitted to the engine from now on."""
    submitted: list[Any] = []
    submit = running.server.worker.submit

    async def noted(generation: Any) -> Any:
        submitted.append(generation)
        return await submit(generation)

    monkeypatch.setattr(running.server.worker, "submit", noted)
    return submitted


async def test_what_a_turn_has_written_the_next_one_reads(scripted: Running) -> None:
    question: Json = {"type": "text", "text": "What do you say, friend?"}
    first = await usage_of(scripted, [{"role": "user", "content": [{**question, **AUTOMATIC}]}])
    written = 1 + len("user\nWhat do you say, friend")
    assert first == (0, written, len("?") + 2 + len("\n") + len("assistant\n"))
    answer: Json = {"role": "assistant", "content": "Hello, I am the first tape."}
    turns = [{"role": "user", "content": question["text"]}, answer]
    again = await usage_of(scripted, [*turns, {"role": "user", "content": "I see."}], **AUTOMATIC)
    more = len("?") + 2 + len("\nassistant\n") + len(str(answer["content"]))
    assert again == (written, more + 2 + len("\nuser\nI see"), first[2])


async def usage_of(
    running: Running, messages: list[JsonValue], **fields: JsonValue
) -> tuple[int, int, int]:
    """Tokens that a request read from the cache, wrote to it, and neither."""
    body = {"model": "scripted", "max_tokens": 1, "messages": messages, **fields}
    usage: Any = (await running.post(body))[0]["usage"]
    parts = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens")
    read, written, others = (usage[part] for part in parts)
    return read, written, others


async def test_a_prompt_is_read_ahead_with_max_tokens_zero(scripted: Running) -> None:
    answer, _ = await scripted.post(ask(TAPE, max_tokens=0, cache_control=MARK))
    assert (answer["content"], answer["stop_reason"]) == ([], "max_tokens")
    usage = answer["usage"]
    assert isinstance(usage, dict)
    assert usage["output_tokens"] == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
        {
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any"},
        },
    ],
)
async def test_nothing_can_be_asked_of_a_reply_of_no_tokens(
    fields: Json, scripted: Running
) -> None:
    answer, _ = await scripted.post(ask(TAPE, max_tokens=0, **fields), status=400)
    assert "max_tokens" in json.dumps(answer)

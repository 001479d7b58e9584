"""`diagnostics`: which part of a prompt has changed since an earlier message, and at what price."""

from __future__ import annotations

import json
from array import array
from typing import Any, Final

import pytest

from minimsg.builtin import write_scripted
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.diagnosis import Diagnosis
from minimsg.protocol.dialect import PLAIN
from minimsg.server.catalog import Catalog
from minimsg.server.past_prompts import ENTRY_BYTES, PastPrompts
from minimsg.server.prepare import Prepared, Served, Settings, prepare_message

from .running import PLAIN as TAPE
from .running import Json, Running, ask

TOOL: Final[Json] = {"name": "f", "input_schema": {"type": "object"}}
DEFERRED: Final[Json] = {**TOOL, "name": "g", "defer_loading": True}
CALL: Final[Json] = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
BODY: Final[Json] = {
    "model": "m",
    "max_tokens": 1,
    "system": "Be brief.",
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
    ],
}
MESSAGES: Final[list[Any]] = list(BODY["messages"])  # type: ignore[arg-type]
MORE: Final[list[Any]] = [
    *MESSAGES,
    {"role": "assistant", "content": "two"},
    {"role": "user", "content": "three"},
]
CACHED: Final[Json] = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("model") / "scripted"
    write_scripted(folder)
    return Served(ChatModel.open(folder, "m"), Settings(Catalog("m"), 8_192, 100))


class Chain:
    """What one server remembers, and the messages `a`, `b`, ... that it has answered."""

    def __init__(self, served: Served, **bounds: int) -> None:
        self._served = served
        self.prompts = PastPrompts(**bounds)

    def ask(
        self, body: Json, previous: str | None, message: str = "later", tenant: str = "us"
    ) -> tuple[Any, Prepared]:
        """Why the cache was missed, and the prompt."""
        asked = {**body, "diagnostics": {"previous_message_id": previous}}
        made = prepare_message(json.dumps(asked).encode(), self._served, PLAIN)
        assert made.asking is not None
        cached = max((mark.num_tokens for mark in made.marks), default=0)
        found: Diagnosis = self.prompts.diagnose(tenant, made.asking, made.prompt_ids)
        self.prompts.remember(tenant, message, made.asking, made.prompt_ids, cached)
        return found["cache_miss_reason"], made


def test_the_first_of_a_chain_misses_nothing(served: Served) -> None:
    assert Chain(served).ask(BODY, None)[0] is None


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"messages": MORE},
        {"messages": MORE, **CACHED},
        {"system": [{"type": "text", "text": "Be brief.", **CACHED}], "messages": MORE},
        {"tools": [TOOL, DEFERRED], "messages": MORE},
    ],
)
def test_what_goes_on_misses_nothing(changed: Json, served: Served) -> None:
    chain = Chain(served)
    chain.ask({**BODY, **CACHED}, None, "a")
    assert chain.ask({**BODY, **changed}, "a")[0] is None


@pytest.mark.parametrize(
    ("changed", "type", "begins"),
    [
        ({"system": "Be long."}, "system_changed", "long."),
        ({"tools": [{**TOOL, "name": "F"}]}, "tools_changed", 'F", "parameters"'),
        ({"tools": [{**TOOL, "name": "F"}], "system": "Be long."}, "tools_changed", "long."),
        ({"messages": [{"role": "user", "content": "once"}, *MORE[1:]]}, "messages_changed", "ce<"),
        ({"messages": MESSAGES[:1]}, "messages_changed", ""),
    ],
)
def test_the_part_that_changed_is_named_with_the_tokens_from_there_on(
    changed: Json, type: str, begins: str, served: Served
) -> None:
    chain = Chain(served)
    chain.ask({**BODY, **CACHED}, None, "a")
    reason, made = chain.ask({**BODY, **changed}, "a")
    assert reason["type"] == type
    missed = made.prompt_ids[len(made.prompt_ids) - reason["cache_missed_input_tokens"] :]
    text = b"".join(map(served.chat.tokenizer.token_bytes, missed)).decode()
    assert text.startswith(begins)
    assert bool(text) == bool(begins)


def test_an_answer_that_was_begun_is_no_part_of_what_must_stay(served: Served) -> None:
    chain = Chain(served)
    begun = [*MORE, {"role": "assistant", "content": "I"}]
    chain.ask({**BODY, "messages": begun}, None, "a")
    said, then = {"role": "assistant", "content": "I do."}, {"role": "user", "content": "so"}
    later: list[Any] = [*MORE, said, then]
    assert chain.ask({**BODY, "messages": later}, "a")[0] is None


def test_another_tenant_s_message_is_not_found(served: Served) -> None:
    chain = Chain(served)
    chain.ask(BODY, None, "a", "them")
    assert chain.ask(BODY, "a")[0] == {"type": "previous_message_not_found"}
    assert chain.ask(BODY, "a", tenant="them")[0] is None


def test_the_oldest_of_a_tenant_are_forgotten_first(served: Served) -> None:
    _, made = Chain(served).ask(BODY, None)
    size = len(made.prompt_ids) * array("I").itemsize + ENTRY_BYTES
    chain = Chain(served, max_bytes=2 * size)
    for message in "abc":
        chain.ask(BODY, None, message)
    assert chain.ask(BODY, "a", "d")[0] == {"type": "previous_message_not_found"}
    assert chain.ask(BODY, "c", "e")[0] is None


def test_of_a_prompt_that_is_too_long_to_keep_nothing_can_be_said(served: Served) -> None:
    chain = Chain(served, max_bytes=ENTRY_BYTES)
    chain.ask(BODY, None, "a")
    assert chain.ask(BODY, "a")[0] == {"type": "unavailable"}


def test_so_many_tenants_are_remembered(served: Served) -> None:
    chain = Chain(served, max_tenants=2)
    for tenant in ("us", "them", "others"):
        chain.ask(BODY, None, "a", tenant)
    assert chain.ask(BODY, "a", tenant="others")[0] is None
    assert chain.ask(BODY, "a", tenant="us")[0] == {"type": "previous_message_not_found"}


async def test_a_message_says_it_to_who_asks_and_to_nobody_else(scripted: Running) -> None:
    assert (await scripted.post(ask(TAPE)))[0]["diagnostics"] is None
    first, _ = await scripted.post(ask(TAPE, diagnostics={"previous_message_id": None}))
    assert first["diagnostics"] == {"cache_miss_reason": None}
    again = ask(TAPE, system="New.", diagnostics={"previous_message_id": first["id"]})
    found: Any = (await scripted.post(again))[0]["diagnostics"]
    assert found["cache_miss_reason"]["type"] == "system_changed"

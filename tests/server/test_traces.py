"""The record of a request that was traced: who may read it, and that it says what happened."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import JsonValue

from minimsg.builtin import write_scripted
from minimsg.config import EngineConfig, ServerConfig
from minimsg.errors import NotFound
from minimsg.prompt.chat import ChatModel
from minimsg.protocol.dialect import PLAIN as PLAIN_DIALECT
from minimsg.server.catalog import Catalog
from minimsg.server.explain import explain_prompt
from minimsg.server.prepare import Served, Settings, count_prompt
from minimsg.server.records import Records
from minimsg.trace import Trace, from_json, to_json

from .conftest import ENGINE, SERVING, Start
from .generated import MODEL, count_body, requests
from .running import LONG, PLAIN, STOPS, Json, Running, ask, eventually
from .test_counting import WITH_TOOLS

EXAMPLE = Path(__file__).parent / "example_trace.json"
ALL = replace(SERVING, trace=3)
ASKED = {"minimsg-trace": "1"}
FORCED: Json = {
    "model": "tiny",
    "max_tokens": 60,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "héllo"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [{"type": "text", "text": "call it"}]},
    ],
    "tools": [
        {
            "name": "now",
            "description": "The time in a zone.",
            "input_schema": {
                "type": "object",
                "properties": {"zone": {"type": "string", "enum": ["utc", "cet"]}},
                "required": ["zone"],
                "additionalProperties": False,
            },
        }
    ],
    "tool_choice": {"type": "tool", "name": "now"},
}


async def listed(running: Running, **headers: str) -> list[Any]:
    """The list of records, the latest first."""
    async with running.session.get(running.url + "/minimsg/traces", headers=headers) as response:
        assert response.status == 200, await response.text()
        lines: list[Any] = (await response.json())["data"]
        return lines


async def read(running: Running, id: str) -> Trace:
    """The record of one request."""
    async with running.session.get(f"{running.url}/minimsg/traces/{id}") as response:
        assert response.status == 200, await response.text()
        return from_json(await response.read())


async def latest(running: Running) -> Trace:
    """The record of the last request that has ended."""
    return await read(running, (await listed(running))[0]["id"])


async def post(running: Running, body: Json, **headers: str) -> str:
    """The id of a request that was answered."""
    url = running.url + "/v1/messages"
    async with running.session.post(url, json=body, headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.read()
        return response.headers["request-id"]


def test_the_example_is_read_and_written_as_it_is() -> None:
    data = EXAMPLE.read_bytes()
    assert json.loads(to_json(from_json(data))) == json.loads(data)


async def test_the_record_of_a_stream_has_its_events_and_its_usage(start: Start) -> None:
    running = await start("tiny", config=ALL)
    events = await running.stream(FORCED)
    trace = await latest(running)
    assert [each.event for each in trace.events] == events
    assert trace.request == {**FORCED, "stream": True}
    assert trace.usage is not None
    assert len(trace.tokens) == trace.usage["output_tokens"]
    assert trace.finish.stop_reason == "max_tokens"
    calls = "".join(each.text for each in trace.segments if each.kind == "call_input")
    assert calls.startswith('{"zone": ')


async def test_a_grammar_shows_in_what_it_left_and_what_it_forced(start: Start) -> None:
    running = await start("tiny", config=ALL)
    await post(running, FORCED)
    first, *_ = (await latest(running)).tokens
    assert (first.text, first.forced_by, first.allowed) == ("<", "grammar", 1 / 259)


async def test_without_a_hook_nothing_is_masked(start: Start) -> None:
    running = await start("tiny", config=ALL)
    await post(running, {**FORCED, "tools": [], "tool_choice": None})
    tokens = (await latest(running)).tokens
    assert {(token.allowed, token.forced_by) for token in tokens} == {(None, None)}
    assert all(len(token.top) == 8 for token in tokens)


async def test_the_steps_compute_the_prompt_and_each_token_once(start: Start) -> None:
    running = await start("tiny", engine=replace(ENGINE, max_step_tokens=100), config=ALL)
    await post(running, FORCED)
    trace = await latest(running)
    spans = [(step.start, step.stop) for step in trace.steps]
    num_prompt = len(trace.prompt.tokens)
    assert spans[0] == (0, 100)
    assert [stop for _, stop in spans[:-1]] == [start for start, _ in spans[1:]]
    assert spans[-1][1] == num_prompt + len(trace.tokens) - 1
    assert [step.event for step in trace.steps] == ["admitted", *[None] * (len(spans) - 1)]
    times = [trace.steps[0].at_s, *(token.at_s for token in trace.tokens)]
    assert times == sorted(times)
    sampled_in = {step.number: step.stop for step in trace.steps}
    places = [num_prompt + place for place in range(len(trace.tokens))]
    assert [sampled_in[token.step] for token in trace.tokens] == places


async def test_a_step_that_was_checked_has_its_errors_by_layer(start: Start) -> None:
    running = await start("tiny", engine=replace(ENGINE, check_kernels=0.5), config=ALL)
    await post(running, FORCED)
    errors = [step.layer_errors for step in (await latest(running)).steps]
    assert [each is not None for each in errors] == [place % 2 == 1 for place in range(len(errors))]
    checked = [error for each in errors if each is not None for error in each]
    assert len(checked) == 2 * (len(errors) // 2)  # the model has two layers
    assert all(error is not None and error < 1e-5 for error in checked)


async def test_a_record_whose_kernel_gave_no_numbers_can_be_read(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.engine.kernel_check._error", lambda *_: math.inf)
    running = await start("tiny", engine=replace(ENGINE, check_kernels=1), config=ALL)
    await post(running, FORCED)
    assert (await latest(running)).steps[0].layer_errors == [None, None]


async def test_a_second_time_the_marked_prefix_is_a_hit(start: Start) -> None:
    running = await start("tiny", config=ALL)
    await post(running, FORCED)
    await post(running, FORCED)
    second, first = [await read(running, line["id"]) for line in await listed(running)]
    (mark,) = second.prompt.marks
    assert first.prompt.cache.written_5m == second.prompt.cache.read == mark.num_tokens
    assert second.steps[0].start == second.prompt.cache.reused > 0


@pytest.mark.parametrize(("profile", "is_kept"), [("compat", True), ("strict", False)])
async def test_a_header_asks_for_one_record_where_headers_of_ours_are_known(
    start: Start, profile: str, is_kept: bool
) -> None:
    running = await start(config=replace(SERVING, profile=profile))
    body = ask(PLAIN)
    version = {"anthropic-version": "2023-06-01"}
    await post(running, body, **version)
    id = await post(running, body, **version, **ASKED)
    assert [line["id"] for line in await listed(running)] == ([id] if is_kept else [])


async def test_strict_traces_what_the_command_line_asks_for(start: Start) -> None:
    running = await start(config=replace(ALL, profile="strict"))
    await post(running, ask(PLAIN), **{"anthropic-version": "2023-06-01"})
    assert (await latest(running)).profile == "strict"


async def test_only_the_last_are_kept(start: Start) -> None:
    running = await start(config=ALL)
    ids = [await post(running, ask(PLAIN)) for _ in range(5)]
    assert [line["id"] for line in await listed(running)] == ids[:1:-1]
    async with running.session.get(f"{running.url}/minimsg/traces/{ids[0]}") as response:
        assert response.status == 404


async def test_a_record_is_for_its_tenant_alone(start: Start, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"alice": "a", "bob": "b"}))
    running = await start(config=ServerConfig(keys_file=keys, no_store=True, trace=3))
    id = await post(running, ask(PLAIN), **{"x-api-key": "a"})
    url = f"{running.url}/minimsg/traces/{id}"
    for key, status in (("a", 200), ("b", 404), ("c", 401)):
        async with running.session.get(url, headers={"x-api-key": key}) as response:
            assert response.status == status
    assert await listed(running, **{"x-api-key": "b"}) == []


async def test_nothing_of_a_record_is_logged(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    running = await start("tiny", config=ALL)
    await post(running, FORCED)
    await latest(running)
    assert "minimsg/traces" in caplog.text
    assert "brief" not in caplog.text
    assert "zone" not in caplog.text


async def test_a_reply_that_a_stop_sequence_ends_has_the_tokens_up_to_it(start: Start) -> None:
    running = await start(config=ALL)
    await post(running, ask(STOPS, stop_sequences=["STOP"]))
    trace = await latest(running)
    assert "".join(token.text for token in trace.tokens) == "one two STOP"
    assert trace.finish.stop_reason == "stop_sequence"
    assert "".join(each.text for each in trace.segments) == "one two "


async def test_a_client_that_leaves_has_a_record_of_what_came(start: Start) -> None:
    running = await start(config=ALL)
    url = running.url + "/v1/messages"
    async with running.session.post(url, json={**ask(LONG), "stream": True}) as response:
        await response.content.readany()
        response.close()
    await eventually(lambda: bool(running.server.records.of("local")))
    trace = await latest(running)
    assert (trace.finish.reason, trace.finish.stop_reason) == ("cancelled", None)


async def test_a_reply_that_fails_has_its_error(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await start(config=ALL)

    def fail(*_: object) -> None:
        raise RuntimeError("no such luck")

    monkeypatch.setattr(running.server.worker.engine.runner, "run", fail)
    await running.post(ask(PLAIN), status=500)
    finish = (await latest(running)).finish
    assert finish.reason == "error"
    assert "no such luck" in (finish.error or "")


async def test_who_is_preempted_is_told_so(start: Start) -> None:
    engine = EngineConfig(dtype="float32", max_context=256, num_pages=16, threads=1)
    running = await start("tiny", engine=engine, config=ALL)
    body: Json = {"model": "tiny", "max_tokens": 90, "temperature": 0}
    prompts = ["a" * 60, "b" * 60]
    await asyncio.gather(
        *(post(running, {**body, "messages": [{"role": "user", "content": p}]}) for p in prompts)
    )
    traces = [await read(running, line["id"]) for line in await listed(running)]
    preempted = [s for t in traces for s in t.steps if s.event == "preempted"]
    assert preempted
    assert all(len(step.pages) == -(-step.stop // 16) for step in preempted)


async def test_items_of_batches_are_traced_with_all_others(start: Start) -> None:
    running = await start(config=ALL)
    requests = [{"custom_id": "one", "params": ask(PLAIN)}]
    await running.post({"requests": requests}, path="/v1/messages/batches")
    await eventually(lambda: bool(running.server.records.of("local")))
    assert (await latest(running)).settings.in_batch


class Sized:
    """What is kept, without all that a record is made of."""

    def __init__(self, id: str, num_bytes: int, tenant: str = "t") -> None:
        self.generation = type("Generation", (), {"id": id})
        self.num_bytes = num_bytes
        self.tenant = tenant


def test_memory_is_bounded_by_the_oldest_that_go_and_the_large_that_never_come() -> None:
    records = Records(10, max_bytes=100)
    for id, size in (("a", 60), ("b", 30), ("c", 40)):
        records.keep(Sized(id, size))  # type: ignore[arg-type]
    assert [each.generation.id for each in records.of("t")] == ["c", "b"]
    records.keep(Sized("d", 101))  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        records.find("t", "d")
    assert len(records.of("t")) == 2


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A model whose template shows tools and thinking."""
    folder = tmp_path_factory.mktemp("traced") / MODEL
    write_scripted(folder, ["<think>x</think>y"], template=WITH_TOOLS)
    chat = ChatModel.open(folder, MODEL)
    return Served(chat, Settings(Catalog(MODEL, (), False), 1 << 20, 100))


def test_every_token_has_a_place_in_the_request_and_the_bill_is_that_of_counting(
    served: Served,
) -> None:
    @settings(max_examples=12, suppress_health_check=list(HealthCheck))
    @given(requests())
    def check(body: Json) -> None:
        sent = json.dumps(body).encode()
        explained = explain_prompt(sent, served, PLAIN_DIALECT)
        counting = json.dumps({**count_body(body), "bill": True}).encode()
        counted = count_prompt(counting, served, PLAIN_DIALECT).answer
        assert explained.bill == counted["bill"]
        assert len(explained.sources) == len(explained.ids) == counted["input_tokens"]
        for source in filter(None, explained.sources):
            assert 0 <= source.start <= source.end <= _size(body, source.path)

    check()


def _size(body: JsonValue, path: str) -> int:
    """How many characters the block at `path` says; of anything but a text, enough.

    What is said of a tool has more in it than the client's own words, such as its examples.
    """
    value = body
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value.get(step)  # a key may hold a dot
    is_text = isinstance(value, dict) and value.get("type") == "text"
    return len(value["text"]) if is_text else 1 << 30  # type: ignore[index, arg-type, call-overload]

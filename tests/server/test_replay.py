"""A recorded request comes out again, bit for bit, whatever it was and whoever ran beside it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue

from minimsg.builtin import write_scripted
from minimsg.config import EngineConfig
from minimsg.errors import InvalidTrace
from minimsg.offline.compared import Compared
from minimsg.offline.replay import chunk_ends, load, replay
from minimsg.server.loading import Loaded
from minimsg.trace import Trace, TracedStep, from_json, to_json

from ..models.seeing_checkpoints import picture  # noqa: TID252
from .conftest import ENGINE, SERVING, WRITERS, Start
from .running import LONG, Json, Running, ask, eventually
from .test_images import CATS, DOGS, block, result
from .test_images import NAME as SEEING
from .test_images import ask as see
from .test_images import text as said
from .test_traces import listed, read

FEW: Final = 5
MANY: Final = 100  # for the proof
CALL: Final = '<tool_call>\n{"name": "now", "arguments": {"zone": "utc"}}\n</tool_call>'
THOUGHT: Final = f"<think>{'hm ' * 600}</think>"
TOOL: Final[Json] = {
    "name": "now",
    "input_schema": {
        "type": "object",
        "properties": {"zone": {"type": "string"}},
        "required": ["zone"],
        "additionalProperties": False,
    },
}
WRITERS["thinker that calls"] = lambda folder: write_scripted(folder, [f"{THOUGHT}So: {CALL}"])
FORMAT: Final[Json] = {
    "format": {"type": "json_schema", "schema": {"type": "array", "items": {"type": "integer"}}}
}
FORMS: Final[list[Json]] = [
    {},
    {"tools": [TOOL]},
    {"tools": [TOOL], "tool_choice": {"type": "any"}},
    {"tools": [{**TOOL, "strict": True}], "tool_choice": {"type": "auto"}},
    {"tools": [TOOL], "tool_choice": {"type": "none"}},
    {"output_config": FORMAT},
    {"stop_sequences": ["e", "hm hm hm"]},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1_200},
    {"thinking": {"type": "disabled"}},
]
DRAWS: Final[list[Json]] = [
    {},
    {"temperature": 0},
    {"temperature": 1.7, "seed": 2**62 + 1},
    {"top_p": 0.5, "temperature": 1},
    {"top_k": 3, "seed": 11},
]


def body(model: str, numbers: random.Random) -> Json:
    """A request that a model of any kind answers somehow."""
    text = "".join(numbers.choices("abé <|im_end|>\n\U0001f469", k=numbers.randrange(1, 400)))
    messages: list[JsonValue] = [{"role": "user", "content": f"x{text}"}]
    if numbers.random() < 0.3:
        messages += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "on"}]
    asked: Json = {"model": model, "max_tokens": numbers.randrange(1, 60), "messages": messages}
    return {**asked, **numbers.choice(DRAWS), **numbers.choice(FORMS)}


async def trace_many(running: Running, model: str, number: int) -> list[Trace]:
    """Records of different requests, plain and streamed, eight at a time."""
    numbers = random.Random(number)
    gate = asyncio.Semaphore(8)

    async def ask_one(body: Json) -> None:
        async with gate, running.session.post(running.url + "/v1/messages", json=body) as response:
            assert response.status == 200, await response.text()
            await response.read()

    bodies = [{**body(model, numbers), "stream": numbers.random() < 0.5} for _ in range(number)]
    await asyncio.gather(*map(ask_one, bodies))
    return [await read(running, line["id"]) for line in await listed(running)]


async def compared(trace: Trace, loaded: Loaded) -> Compared:
    replayed = await asyncio.to_thread(replay, trace, loaded)
    return Compared(trace, replayed, loaded.chat.tokenizer)


@pytest.mark.parametrize("number", [FEW, pytest.param(MANY, marks=pytest.mark.proof)])
@pytest.mark.parametrize(
    ("model", "engine"),
    [
        ("tiny", ENGINE),
        ("tiny", replace(ENGINE, max_step_tokens=40, num_pages=140, max_context=2_048)),
        ("tiny", replace(ENGINE, speculate=4)),
        ("tiny", replace(ENGINE, deterministic=True)),
        ("tiny", replace(ENGINE, check_kernels=0.5)),
        ("thinker that calls", ENGINE),
    ],
    ids=["plain", "short of pages", "speculating", "deterministic", "checked", "thinking"],
)
async def test_random_requests_come_out_again_bit_for_bit(
    start: Start,
    model_folder: Callable[[str], Path],
    model: str,
    engine: EngineConfig,
    number: int,
) -> None:
    running = await start(model, engine=engine, config=replace(SERVING, trace=number))
    traces = await trace_many(running, model, number)
    assert len(traces) == number
    loaded, passed_over = load(traces[0], model, model_folder(model))
    assert passed_over is None
    for trace in traces:
        made = await compared(trace, loaded)
        assert made.verdict() == f"{len(trace.tokens)} tokens are the same, bit for bit", made
        assert made.is_same


@pytest.mark.parametrize(
    "engine",
    [replace(ENGINE, max_step_tokens=12), replace(ENGINE, deterministic=True)],
    ids=["in chunks", "deterministic"],
)
async def test_requests_with_images_come_out_again_bit_for_bit(
    start: Start, model_folder: Callable[[str], Path], engine: EngineConfig
) -> None:
    """The first to see a picture, one who finds it in the cache, and one who got it from a tool."""
    running = await start(SEEING, engine=engine, config=replace(SERVING, trace=8))
    twice = see(block(CATS), said("and"), block(DOGS), temperature=1, max_tokens=12)
    bodies = [twice, {**twice, "seed": 7}, result(said("seen:"), block(DOGS)), {**twice, "seed": 7}]
    for body in bodies:
        await running.post(body)
    traces = [await read(running, line["id"]) for line in await listed(running)]
    assert [len(trace.prompt.images) for trace in traces] == [2, 1, 2, 2]
    assert traces[0].prompt.cache.reused > traces[0].prompt.images[0].stop
    loaded, passed_over = load(traces[0], SEEING, model_folder(SEEING))
    assert passed_over is None
    for trace in traces:
        made = await compared(from_json(to_json(trace)), loaded)
        assert made.verdict() == f"{len(trace.tokens)} tokens are the same, bit for bit", made
        assert made.is_same


async def test_other_pixels_are_another_reply(
    start: Start, model_folder: Callable[[str], Path]
) -> None:
    running = await start(SEEING, config=replace(SERVING, trace=1))
    await running.post(see(block(CATS), temperature=1, max_tokens=12))
    trace = await read(running, (await listed(running))[0]["id"])
    changed = replace(trace, request=see(block(picture(30, 40, seed=9)), max_tokens=12))
    loaded, _ = load(trace, SEEING, model_folder(SEEING))
    assert (await compared(trace, loaded)).is_same
    made = await compared(changed, loaded)
    assert "bit for bit" not in made.verdict()
    larger = replace(trace, request=see(block(picture(60, 40)), max_tokens=12))
    with pytest.raises(InvalidTrace, match="cannot be placed"):
        await asyncio.to_thread(replay, larger, loaded)


async def test_what_a_client_left_comes_out_as_far_as_it_came(
    start: Start, model_folder: Callable[[str], Path]
) -> None:
    running = await start(config=replace(SERVING, trace=1))
    url = running.url + "/v1/messages"
    async with running.session.post(url, json={**ask(LONG), "stream": True}) as response:
        await response.content.readany()
        response.close()
    await eventually(lambda: bool(running.server.records.of("local")))
    trace = await read(running, (await listed(running))[0]["id"])
    loaded, _ = load(trace, "scripted", model_folder("scripted"))
    assert (await compared(trace, loaded)).is_same


async def test_other_weights_are_named_and_the_token_where_they_show(
    start: Start, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    running = await start(config=replace(SERVING, trace=1))
    await running.post(ask(0))
    trace = await read(running, (await listed(running))[0]["id"])
    write_scripted(tmp_path / "other", ["Hello, I am another."])
    loaded, _ = load(trace, "scripted", tmp_path / "other")
    made = await compared(trace, loaded)
    assert not made.is_same
    assert made.verdict().startswith(f"token {len('Hello, I am ')} differs: recorded 116 ")
    assert any(reason.startswith("weights: recorded ") for reason in made.reasons())
    shown = list(made.diff())
    assert [line[0] for line in shown[11:14]] == [" ", "!", "!"]


async def test_a_kernel_that_cannot_run_here_gives_way_to_one_that_can(
    start: Start, model_folder: Callable[[str], Path]
) -> None:
    running = await start("tiny", config=replace(SERVING, trace=1))
    (trace,) = await trace_many(running, "tiny", 1)
    foreign = replace(trace, engine=replace(trace.engine, kernel="metal_paged", device="mps"))
    loaded, passed_over = load(foreign, "tiny", model_folder("tiny"))
    assert passed_over is not None
    made = await compared(foreign, loaded)
    assert made.is_same
    assert any(reason.startswith("kernel: recorded 'metal_paged'") for reason in made.reasons())


def step(start: int, stop: int) -> TracedStep:
    return TracedStep(1, 0.0, 0.0, start, stop, 1, stop - start, [], None)


@pytest.mark.parametrize(
    ("spans", "ends"),
    [
        ([(0, 10), (10, 11), (11, 12)], [10]),
        ([(0, 4), (4, 9), (9, 10), (10, 11)], [4, 9, 10]),
        ([(6, 8), (8, 10)], [6, 8, 10]),
        ([(0, 4), (4, 6), (2, 7), (7, 10)], [2, 7, 10]),
        ([], [10]),
    ],
    ids=["at once", "in chunks", "behind a hit", "preempted", "never begun"],
)
def test_chunks_are_those_of_the_record(spans: list[tuple[int, int]], ends: list[int]) -> None:
    assert chunk_ends([step(*span) for span in spans], 10) == ends

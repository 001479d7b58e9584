"""Deterministic mode: tokens and log probabilities to the last bit, whatever else runs.

The oracle is the request alone, in an engine of its own that computes all of it cold.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tokenizers import Tokenizer

from minimsg import hub
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import Admitted, GenerationRequest, Output, SamplingParams
from minimsg.errors import ModelNotFound
from minimsg.loading import load_engine

from ..models.checkpoints import save_checkpoint  # noqa: TID252 tests have no absolute name

Said = dict[str, list[Output]]  # of each request, its tokens with all their numbers

NUM_TOKENS = 12
GREEDY = SamplingParams(temperature=0, top_logprobs=3)
DRAWN = SamplingParams(temperature=1.2, top_p=0.95, seed=5, repetition_penalty=1.1)
WINDOW = {"use_sliding_window": True, "sliding_window": 21, "max_window_layers": 1}
ODD = {"head_dim": 10, "intermediate_size": 45, "vocab_size": 101}
MODELS: dict[str, tuple[str, Mapping[str, object], str]] = {
    "qwen3": ("qwen3", {}, "float32"),
    "qwen3 in bfloat16": ("qwen3", {}, "bfloat16"),
    "qwen3 in int8": ("qwen3", {}, "int8"),
    "qwen2 with a window": ("qwen2", WINDOW, "float32"),
    "llama with odd sizes": ("llama", ODD, "float32"),  # the kernel `tiled`; above, the native one
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str]:
    """A checkpoint's folder, and the number format to run it in."""
    family, settings, dtype = MODELS[request.param]
    folder = tmp_path_factory.mktemp("checkpoint")
    save_checkpoint(folder, family, **settings)
    return folder, dtype


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    """Prompts of 1 to 113 ids, every other one greedy; some continue the one before them."""
    numbers = random.Random(3)
    prompts: list[list[int]] = [[]]
    for before, length in ((0, 30), (1, 16), (0, 17), (0, 1), (2, 67), (0, 15), (0, 52), (7, 45)):
        prompts.append(prompts[before] + [numbers.randrange(101) for _ in range(length)])
    prompts[0] = prompts[1][:16]
    return [
        GenerationRequest(f"r{index}", ids, NUM_TOKENS, sampling=DRAWN if index % 2 else GREEDY)
        for index, ids in enumerate(prompts)
    ]


@pytest.fixture(scope="module")
def alone(model: tuple[Path, str], requests: list[GenerationRequest]) -> Said:
    said: Said = {}
    for request in requests:
        said |= run(open_engine(*model, no_prefix_cache=True), [request])
    return said


@pytest.mark.parametrize("max_step_tokens", [1, 5, 16, 37, 512])
def test_chunks_and_neighbours_change_no_bit(
    model: tuple[Path, str], requests: list[GenerationRequest], alone: Said, max_step_tokens: int
) -> None:
    engine = open_engine(*model, max_step_tokens=max_step_tokens)
    assert run(engine, requests) == alone


@pytest.mark.parametrize("seed", range(4))
def test_who_else_runs_and_when_each_came_changes_no_bit(
    model: tuple[Path, str], requests: list[GenerationRequest], alone: Said, seed: int
) -> None:
    numbers = random.Random(seed)
    chosen = numbers.sample(requests, numbers.randint(2, 9))
    engine = open_engine(*model, max_step_tokens=numbers.choice((16, 37, 512)))
    assert run(engine, chosen, arrivals=numbers) == {each.id: alone[each.id] for each in chosen}


@pytest.mark.parametrize("max_step_tokens", [11, 512])
def test_preemption_changes_no_bit(
    model: tuple[Path, str], requests: list[GenerationRequest], alone: Said, max_step_tokens: int
) -> None:
    engine = open_engine(*model, max_step_tokens=max_step_tokens, num_pages=8)
    assert run(engine, requests) == alone
    assert engine.scheduler.num_preemptions


def test_a_prefix_from_the_cache_changes_no_bit(
    model: tuple[Path, str], requests: list[GenerationRequest], alone: Said
) -> None:
    engine = open_engine(*model)
    run(engine, requests)
    first, *others = requests[::-1]
    assert engine.add(first).reused
    assert run(engine, others) == alone


def test_another_thread_changes_no_bit(
    model: tuple[Path, str], requests: list[GenerationRequest], alone: Said
) -> None:
    said: Said = {}
    engine = open_engine(*model)
    thread = Thread(target=lambda: said.update(run(engine, requests[:3])))
    thread.start()
    thread.join()
    assert said == {each.id: alone[each.id] for each in requests[:3]}


@pytest.mark.weights
def test_the_trained_model_says_the_same_to_the_last_bit_alone_and_in_chunks_among_others() -> None:
    try:
        folder = hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = ["The capital of France is", "def reverse(text):", "1, 2, 3,"]
    requests = [
        GenerationRequest(text, tokenizer.encode(text).ids, 6, sampling=GREEDY) for text in texts
    ]
    engine = open_engine(folder, "float32", num_pages=128, max_context=256)
    cold = run(engine, requests[:1])
    among = open_engine(folder, "float32", num_pages=128, max_context=256, max_step_tokens=4)
    assert run(among, requests)[texts[0]] == cold[texts[0]]


def open_engine(folder: Path, dtype: str, **settings: Any) -> Engine:
    return load_engine(folder, EngineConfig(dtype=dtype, deterministic=True, **settings))


def run(
    engine: Engine, requests: list[GenerationRequest], *, arrivals: random.Random | None = None
) -> Said:
    """Step to the end; with `arrivals` the requests come one by one at random steps."""
    coming = list(requests)
    said: Said = defaultdict(list)
    while coming or engine.has_work:
        while coming and (arrivals is None or arrivals.random() < 0.3):
            engine.add(coming.pop(0))
        for output in engine.step():
            if not isinstance(output, Admitted):
                said[output.request_id].append(output)
        engine.scheduler.check()
    return said

"""Token for token on a real transformer with random weights: however it is run, it is the same.

The oracle is a forward of the whole text at once, in a fresh cache, for every token.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from minimsg.config import EngineConfig
from minimsg.engine.batch import build_batch
from minimsg.engine.cache import PagedKVCache
from minimsg.engine.engine import Engine
from minimsg.engine.runner import Runner
from minimsg.engine.types import GenerationRequest, SamplingParams, Sequence
from minimsg.loading import load_engine

CPU = torch.device("cpu")
NUM_TOKENS = 16
GREEDY = SamplingParams(temperature=0)


@pytest.fixture(scope="module")
def requests() -> list[GenerationRequest]:
    numbers = random.Random(11)
    return [
        GenerationRequest(
            f"r{index}",
            [numbers.randrange(256) for _ in range(1 + 4 * index)],
            NUM_TOKENS,
            sampling=GREEDY,
        )
        for index in range(16)
    ]


@pytest.fixture(scope="module")
def uncached(folder: Path, requests: list[GenerationRequest]) -> list[list[int]]:
    engine = load_engine(folder, EngineConfig(dtype="float32", kernel="reference", num_pages=8))
    return [forward_each_time(engine, list(request.prompt_ids)) for request in requests]


def forward_each_time(engine: Engine, ids: list[int]) -> list[int]:
    """Greedy tokens from the whole text, computed anew for each, in pages full of NaN."""
    model, pages = engine.runner.model, list(range(8))
    for _ in range(NUM_TOKENS):
        cache = PagedKVCache(
            model.cache_specs, num_pages=8, page_size=16, dtype=torch.float32, device=CPU
        )
        for layer in cache.layers:
            layer.key.fill_(torch.nan)
            layer.value.fill_(torch.nan)
        whole = Sequence(GenerationRequest("r", ids, 1), ids, page_table=pages)
        logits = Runner(model, cache, CPU).run(build_batch([(whole, len(ids))], 16))
        ids = [*ids, int(logits[0].argmax())]
    return ids[-NUM_TOKENS:]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "reference"},
        {"max_sequences": 1},
        {"max_step_tokens": 7},
        {"num_pages": 8},
        {"speculate": 6, "max_sequences": 2},
        {"speculate": 6, "max_sequences": 1, "kernel": "reference"},
        {"max_step_tokens": 7, "num_pages": 8, "kernel": "reference"},
    ],
    ids=str,
)
def test_greedy_tokens_are_those_of_a_forward_without_a_cache(
    folder: Path,
    requests: list[GenerationRequest],
    uncached: list[list[int]],
    run: Any,
    ids_of: Any,
    settings: dict[str, Any],
) -> None:
    config = EngineConfig(dtype="float32", **settings)
    said = run(load_engine(folder, config), *requests)
    assert [ids_of(said[request.id]) for request in requests] == uncached

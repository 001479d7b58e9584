"""A model whose logits spell out what it read from the pages, and engines that run it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import pytest
import torch
from torch import Tensor

from minimsg import builtin
from minimsg.config import EngineConfig
from minimsg.engine.engine import Engine
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Output, Token
from minimsg.kernels.contract import Pages
from minimsg.models.contract import Inputs, PagedSpec

VOCAB = 97


def context_logits(ids: Sequence[int]) -> Tensor:
    """(V,) pseudo-random numbers that depend on every id and on their order."""
    seed = int.from_bytes(blake2b(repr(list(ids)).encode(), digest_size=7).digest(), "big")
    return torch.randn(VOCAB, generator=torch.Generator().manual_seed(seed)) * 3


class ContextModel:
    """Stores ids and positions as keys, and reads the whole context back for its logits.

    A wrong slot, page, position or row changes the output or trips the assertion.
    """

    vocab_size = VOCAB
    cache_specs = (PagedSpec(num_kv_heads=1, head_dim=2),)

    def __init__(self, logits: Callable[[Sequence[int]], Tensor] = context_logits) -> None:
        self.on_call: Callable[[Inputs], None] = lambda inputs: None
        self.logits = logits

    def __call__(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        self.on_call(inputs)
        keys = cache[0].key.view(-1, 2)
        keys[inputs.layout.slots] = torch.stack([inputs.ids, inputs.positions], dim=-1).float()
        rows = [self._context(row, inputs, keys) for row in inputs.sample_rows.tolist()]
        return torch.stack([self.logits(ids) for ids in rows]) if rows else torch.empty(0, VOCAB)

    def _context(self, row: int, inputs: Inputs, keys: Tensor) -> list[int]:
        layout = inputs.layout
        index = bisect_right(layout.query_starts, row) - 1
        length = layout.context_lens[index] - (layout.query_starts[index + 1] - 1 - row)
        table = layout.page_tables[index].tolist()
        slots = [table[position // 16] * 16 + position % 16 for position in range(length)]
        ids, positions = keys[slots].long().unbind(-1)
        assert positions.tolist() == list(range(length)), "a position was lost or read twice"
        return [int(id) for id in ids]


class Run(Protocol):
    def __call__(self, engine: Engine, *requests: GenerationRequest) -> dict[str, list[Output]]: ...


class MakeEngine(Protocol):
    def __call__(self, *, max_context: int = ..., **settings: object) -> Engine: ...


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in model with random weights: a small transformer."""
    path = tmp_path_factory.mktemp("tiny")
    builtin.write_tiny(path)
    return path


@pytest.fixture
def model() -> ContextModel:
    return ContextModel()


@pytest.fixture
def make_engine(model: ContextModel) -> MakeEngine:
    """Engines on the context model, with any setting."""

    def make(*, max_context: int = 128, **settings: object) -> Engine:
        return Engine(model, EngineConfig(**settings), max_context=max_context)  # type: ignore[arg-type]

    return make


@pytest.fixture
def run() -> Run:
    """Adds requests, steps with every check to the end, and sorts what was said by request."""

    def run_to_end(engine: Engine, *requests: GenerationRequest) -> dict[str, list[Output]]:
        for request in requests:
            engine.add(request)
        said: dict[str, list[Output]] = {request.id: [] for request in requests}
        while engine.has_work:
            for output in engine.step():
                said[output.request_id].append(output)
            engine.scheduler.check()
        assert engine.pool.num_used == 0
        return said

    return run_to_end


@pytest.fixture
def logits_of() -> Callable[[Sequence[int]], Tensor]:
    """The context model's logits after some ids, from its definition."""
    return context_logits


@pytest.fixture
def expected() -> Callable[[Sequence[int], int], list[int]]:
    """The greedy ids of the context model, from its definition: no cache, no engine."""

    def greedy(prompt: Sequence[int], n: int) -> list[int]:
        ids = list(prompt)
        for _ in range(n):
            ids.append(int(context_logits(ids).argmax()))
        return ids[len(prompt) :]

    return greedy


@pytest.fixture
def ids_of() -> Callable[[list[Output]], list[int]]:
    """The ids of a request's tokens; asserts that exactly one finish follows them."""

    def ids(outputs: list[Output]) -> list[int]:
        *tokens, finish = outputs
        assert isinstance(finish, Finish)
        assert finish.reason is not FinishReason.ERROR, finish.error
        return [token.id for token in tokens if isinstance(token, Token)]

    return ids

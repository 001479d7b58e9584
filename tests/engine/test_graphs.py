"""Padded decode steps give what plain ones give; a graph is replaced by computing again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor

from minimsg import builtin
from minimsg.config import EngineConfig
from minimsg.engine.cache import PagedKVCache
from minimsg.engine.engine import GREEDY, Engine
from minimsg.engine.graphs import DecodeGraphs, decode_graphs, padded_size
from minimsg.engine.runner import Runner
from minimsg.engine.types import Batch, GenerationRequest, Token
from minimsg.kernels.capture import Capture, Captured
from minimsg.kernels.contract import Pages
from minimsg.kernels.triton_paged import Backend
from minimsg.kernels.triton_plan import PlannedLayout
from minimsg.loading import load_engine
from minimsg.models.contract import Inputs, Model, PagedSpec
from minimsg.models.weights import load_model

from .conftest import VOCAB, ContextModel, context_logits

CPU = torch.device("cpu")
PAGE_SIZE, NUM_PAGES = 16, 12


class PlanModel(ContextModel):
    """What a captured model must be: it takes every number of a step from a tensor."""

    def __call__(self, inputs: Inputs, cache: Sequence[Pages]) -> Tensor:
        layout = inputs.layout
        assert isinstance(layout, PlannedLayout)
        keys = cache[0].key.view(-1, 2)
        is_stored = layout.slots >= 0
        new = torch.stack([inputs.ids, inputs.positions], dim=-1).float()
        keys[layout.slots[is_stored]] = new[is_stored]
        logits = torch.zeros(len(inputs.ids), VOCAB)
        lengths = layout.plan.lengths.tolist()
        for row, (length, table) in enumerate(zip(lengths, layout.page_tables, strict=True)):
            read = cache[0].key[table].view(-1, 2)[:length].long()
            assert read[:, 1].tolist() == list(range(length))
            logits[row] = context_logits([int(id) for id in read[:, 0]])
        return logits


def eagerly(compute: Callable[[], Tensor]) -> Captured:
    """Compute again where a device would replay."""
    logits = compute()
    return Captured(logits, lambda: logits.copy_(compute()))


def noting(sizes: list[int]) -> Capture:
    """`eagerly`, with the rows of each captured step added to `sizes`."""

    def capture(compute: Callable[[], Tensor]) -> Captured:
        captured = eagerly(compute)
        sizes.append(len(captured.result))
        return captured

    return capture


PLAIN, PLANNED = cast("Model", ContextModel()), cast("Model", PlanModel())


def cache() -> PagedKVCache:
    return PagedKVCache(
        [PagedSpec(num_kv_heads=1, head_dim=2)],
        num_pages=NUM_PAGES,
        page_size=PAGE_SIZE,
        dtype=torch.float32,
        device=CPU,
    )


def batch_of(*sequences: tuple[list[int], int, list[int]]) -> Batch:
    """Each sequence: all its ids, how many of them are new, its pages."""
    batch = Batch([], [], [], [], [0], [], [], [], [])
    for ids, num_new, table in sequences:
        positions = range(len(ids) - num_new, len(ids))
        batch.request_ids.append(str(table))
        batch.input_ids.extend(ids[-num_new:])
        batch.positions.extend(positions)
        batch.slots.extend(table[p // PAGE_SIZE] * PAGE_SIZE + p % PAGE_SIZE for p in positions)
        batch.query_starts.append(len(batch.input_ids))
        batch.context_lens.append(len(ids))
        batch.page_tables.append(table)
        batch.sample_rows.append(len(batch.input_ids) - 1)
        batch.sample_ids.append(str(table))
    return batch


@pytest.fixture
def plain() -> Runner:
    return Runner(PLAIN, cache(), CPU)


@pytest.fixture
def replaying() -> Runner:
    """Prompts go to a plain model, decode steps to graphs over the same cache."""
    runner = Runner(PLAIN, cache(), CPU)
    runner.graphs = DecodeGraphs(PLANNED, runner.cache, CPU, eagerly)
    return runner


def test_steps_of_all_sizes_give_the_logits_of_plain_ones(plain: Runner, replaying: Runner) -> None:
    """Three sequences grow, one of them over the end of a page; the batch shrinks and grows."""
    prompts = [list(range(1, 4)), list(range(20, 35)), list(range(40, 75))]
    tables = [[3], [7, 1], [2, 5, 0]]
    steps = [(prompt, len(prompt)) for prompt in prompts]
    assert_same(plain, replaying, batch_of(*((*s, t) for s, t in zip(steps, tables, strict=True))))
    for running in ([0, 1, 2], [0, 1, 2], [1], [2, 1], [0, 2], [2, 1, 0]):
        for index in running:
            prompts[index].append(80 + index)
        batch = batch_of(*((prompts[i], 1, tables[i]) for i in running))
        assert_same(plain, replaying, batch)


def test_padding_is_stored_nowhere(replaying: Runner) -> None:
    replaying.cache.layers[0].key.fill_(-7)
    replaying.run(batch_of(([11], 1, [3]), ([12], 1, [4]), ([13], 1, [5])))
    changed = (replaying.cache.layers[0].key != -7).any(dim=-1).flatten().nonzero().flatten()
    assert changed.tolist() == [3 * PAGE_SIZE, 4 * PAGE_SIZE, 5 * PAGE_SIZE]


def test_a_row_that_is_padding_now_leaves_alone_what_it_wrote_before(replaying: Runner) -> None:
    batches = [batch_of(*(([11 + page], 1, [page]) for page in range(num))) for num in (4, 3)]
    replaying.run(batches[0])
    replaying.cache.layers[0].key.fill_(-7)  # others have the pages now
    replaying.run(batches[1])
    assert (replaying.cache.layers[0].key[3] == -7).all()


def test_each_size_is_captured_once(replaying: Runner) -> None:
    captured: list[int] = []
    replaying.graphs = DecodeGraphs(PLANNED, replaying.cache, CPU, noting(captured))
    for num in (3, 4, 1, 3, 2, 4):
        replaying.run(batch_of(*(([9], 1, [page]) for page in range(num))))
    assert captured == [4, 1, 2]


@pytest.mark.parametrize(
    ("num_rows", "num_pages", "size"),
    [(1, 1, (1, 256)), (3, 256, (4, 256)), (8, 257, (8, 512)), (200, 5000, (256, 8192))],
)
def test_sizes_are_powers_of_two(num_rows: int, num_pages: int, size: tuple[int, int]) -> None:
    assert padded_size(num_rows, num_pages) == size


@pytest.mark.parametrize(
    ("batch", "can_run"),
    [
        (batch_of(([1, 2], 1, [0]), ([5], 1, [1])), True),
        (batch_of(([1, 2], 2, [0])), False),  # a prompt
        (batch_of(([1, 2], 1, [0]), ([5, 6], 2, [1])), False),
        (batch_of(*(([1], 1, [0]) for _ in range(257))), False),
    ],
    ids=["decoding", "a prompt", "both", "too many"],
)
def test_only_decode_steps_are_captured(replaying: Runner, batch: Batch, can_run: bool) -> None:
    assert replaying.graphs is not None
    assert replaying.graphs.can_run(replaying._inputs(batch)) == can_run


def test_a_chunk_of_one_token_that_does_not_sample_is_computed_plainly(replaying: Runner) -> None:
    batch = batch_of(([1, 2], 1, [0]))
    batch.sample_rows.clear()
    assert replaying.graphs is not None
    assert not replaying.graphs.can_run(replaying._inputs(batch))


def test_there_are_no_graphs_on_a_cpu(plain: Runner) -> None:
    assert plain.graphs is None
    assert decode_graphs(PLAIN, plain.cache, torch.device("cuda")) is None  # no kernel


@pytest.mark.triton
def test_a_decoder_says_through_graphs_what_it_says_with_the_reference(tmp_path: Path) -> None:
    """Prompts of three lengths together, in the interpreter: set TRITON_INTERPRET=1."""
    why_not = Backend().supports(device=CPU, dtype=torch.float32, head_dim=16)
    if why_not is not None:
        pytest.skip(why_not)
    builtin.write_tiny(tmp_path)
    config = EngineConfig(num_pages=16, max_context=64, dtype="float32", kernel="reference")
    expected = tokens_of(load_engine(tmp_path, config))

    model = load_model(tmp_path, dtype=torch.float32, device=CPU, backend=Backend())
    engine = Engine(model, config, max_context=64)
    sizes: list[int] = []
    engine.runner.graphs = DecodeGraphs(model, engine.runner.cache, CPU, noting(sizes))
    assert tokens_of(engine) == expected
    assert sizes == [4, 2, 1]


def tokens_of(engine: Engine) -> list[tuple[str, int]]:
    """Greedy tokens of three prompts; one ends early, then another."""
    requests = [
        GenerationRequest(str(num), list(range(5, 5 + num)), 12 - num, sampling=GREEDY)
        for num in (1, 4, 9)
    ]
    said = [each for step in engine.steps(*requests) for each in step.outputs]
    return sorted((each.request_id, each.id) for each in said if isinstance(each, Token))


def assert_same(plain: Runner, replaying: Runner, batch: Batch) -> None:
    torch.testing.assert_close(replaying.run(batch), plain.run(batch), rtol=0, atol=0)

"""How a step is cut into whole pages: by hand, and in what the model is asked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from minimsg import builtin
from minimsg.config import EngineConfig
from minimsg.engine.tiles import tiles
from minimsg.engine.types import Batch
from minimsg.loading import load_engine

CHUNK = Batch(
    request_ids=["r"],
    input_ids=[71, 72, 73],
    positions=[6, 7, 8],
    slots=[22, 23, 8],
    query_starts=[0, 3],
    context_lens=[9],
    page_tables=[[0, 5, 2]],
    sample_rows=[2],
    sample_ids=["r"],
)


def test_a_chunk_over_the_end_of_a_page_is_two_tiles() -> None:
    """Pages of four; the token at position p is in row p % 4, page 9 takes the padding."""
    first, second = tiles(CHUNK, page_size=4, scratch_page=9)
    assert first == Batch(
        request_ids=["r"],
        input_ids=[0, 0, 71, 72],
        positions=[4, 5, 6, 7],
        slots=[36, 37, 22, 23],
        query_starts=[2, 4],
        context_lens=[8],
        page_tables=[[0, 5]],
        sample_rows=[],
        sample_ids=[],
    )
    assert second == Batch(
        request_ids=["r"],
        input_ids=[73, 0, 0, 0],
        positions=[8, 9, 10, 11],
        slots=[8, 37, 38, 39],
        query_starts=[0, 1],
        context_lens=[9],
        page_tables=[[0, 5, 2]],
        sample_rows=[0],
        sample_ids=["r"],
    )


def test_a_batch_says_which_rows_and_positions_are_whose() -> None:
    mixed = replace(CHUNK, request_ids=["a", "b"], query_starts=[0, 1, 3], context_lens=[30, 2])
    assert mixed.rows == {"a": range(1), "b": range(1, 3)}
    assert mixed.spans == {"a": range(29, 30), "b": range(2)}


def test_tiles_of_a_step_that_computes_nothing_have_no_logits(tmp_path: Path) -> None:
    builtin.write_tiny(tmp_path)
    engine = load_engine(tmp_path, EngineConfig(deterministic=True, num_pages=8))
    nothing = Batch([], [], [], [], [0], [], [], [], [])
    assert engine.runner.run(nothing).shape == (0, engine.vocab_size)

"""What tokens say that they attended to is what transformers' attention pays there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from minimsg.engine.types import Output, Token
from minimsg.errors import InvalidRequest

from ..models.checkpoints import save_checkpoint  # noqa: TID252 tests have no absolute name
from .activations import oracle_points
from .test_watching import IDS, OTHERS, ask, open_engine, run

PASSAGES = ((0, 5), (5, 21), (20, 37), (0, 0))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("llama")
    return folder, save_checkpoint(folder, "llama")


def expected(oracle: Any, said: list[Output]) -> list[list[float]]:
    """Of two layers the second is meant: the mean of all heads."""
    tokens = [each.id for each in said if isinstance(each, Token)]
    found = oracle_points(oracle, [*IDS, *tokens])
    pattern = found["blocks.1.attn.hook_pattern"]
    rows = pattern.mean(dim=1)[len(IDS) - 1 : -1]  # (tokens, keys)
    return [[float(row[start:stop].sum()) for start, stop in PASSAGES] for row in rows]


@pytest.mark.parametrize("settings", [{}, {"max_step_tokens": 9}, {"speculate": 6}], ids=str)
def test_each_token_says_what_its_row_paid_to_each_passage(
    saved: tuple[Path, Any], settings: dict[str, Any]
) -> None:
    """Beside others, and again where the prompt need not be computed."""
    folder, oracle = saved
    engine = open_engine(folder, **settings)
    for _ in range(2):
        mine, other = ask("mine", IDS, passages=PASSAGES), ask("other", OTHERS[2])
        said = run(engine, [other, mine])
        attended = [each.attended for each in said["mine"] if isinstance(each, Token)]
        torch.testing.assert_close(
            torch.tensor(attended), torch.tensor(expected(oracle, said["mine"]))
        )
        assert all(each.attended == () for each in said["other"] if isinstance(each, Token))


def test_looking_changes_no_token(saved: tuple[Path, Any]) -> None:
    engine = open_engine(saved[0])
    plain, watched = (
        [each.id for each in run(engine, [request])["mine"] if isinstance(each, Token)]
        for request in (ask("mine", IDS), ask("mine", IDS, passages=PASSAGES))
    )
    assert plain == watched


def test_a_function_of_the_caller_looks_too(saved: tuple[Path, Any]) -> None:
    seen: list[str] = []
    hooks = {"blocks.*.attn.hook_pattern": lambda values, place: seen.append(place.point)}
    engine = open_engine(saved[0])
    said = run(engine, [ask("mine", IDS, 2, passages=PASSAGES)], {"mine": hooks})["mine"]
    assert all(len(each.attended) == 4 for each in said if isinstance(each, Token))
    assert set(seen) == {"blocks.0.attn.hook_pattern", "blocks.1.attn.hook_pattern"}


def test_a_passage_outside_the_prompt_is_refused(saved: tuple[Path, Any]) -> None:
    with pytest.raises(InvalidRequest, match="passage"):
        open_engine(saved[0]).add(ask("mine", IDS, passages=((0, 38),)))

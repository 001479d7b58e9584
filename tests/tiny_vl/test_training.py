"""Training does what it says. How well its result does: tests/server/test_tiny_vl.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from minimsg.hub.checkpoint import check_folder
from minimsg.tiny_vl.team import Team, together
from minimsg.tiny_vl.training import Plan, Training


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_a_few_steps_write_a_folder_that_can_be_served(tmp_path: Path) -> None:
    plan = Plan(num_looks=2, num_talks=2, num_rising=1, num_lessons=2, num_pictures=4)
    training = Training(tmp_path, plan)
    before = {name: value.clone() for name, value in training.network.state_dict().items()}
    assert [progress.step for progress in training] == [1, 2, 3, 4]
    training.save()
    assert check_folder(tmp_path).model_type == "qwen3_vl"
    stored = load_file(tmp_path / "model.safetensors")
    assert stored.keys() == before.keys()
    assert {value.dtype for value in stored.values()} == {torch.float16}
    moved = [name for name, value in stored.items() if not torch.equal(value.float(), before[name])]
    assert len(moved) > 0.9 * len(before)


def test_the_same_seed_gives_the_same_losses(tmp_path: Path) -> None:
    plan = Plan(num_looks=1, num_talks=1, num_lessons=2, num_pictures=2)
    first, second = ([p.loss for p in Training(tmp_path, plan)] for _ in range(2))
    assert first == pytest.approx(second, rel=1e-4)


@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_the_loss_falls_within_two_hundred_steps_of_each_kind(tmp_path: Path) -> None:
    """A guess costs about 2 in looking; in talking 6.4 a token, the logarithm of 580 words."""
    plan = Plan(num_looks=200, num_talks=200, num_lessons=16)
    losses = [progress.loss for progress in Training(tmp_path, plan)]
    assert mean(losses[:5]) > 1.8
    assert mean(losses[180:200]) < 0.9
    assert mean(losses[200:203]) > 4
    assert mean(losses[380:]) < 1.2


def test_a_team_learns_one_network_from_the_lessons_of_all(tmp_path: Path) -> None:
    """Two processes end with the same weights, and with others than either has alone."""
    plan = Plan(num_looks=1, num_talks=1, num_rising=1, num_lessons=2, num_pictures=4)
    together(trained_alike, 2, tmp_path, plan)
    first, second = (load_file(tmp_path / str(rank) / "model.safetensors") for rank in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    alone = Training(tmp_path / "alone", plan)
    assert list(alone)
    embedding = "model.language_model.embed_tokens.weight"
    assert not torch.equal(alone.network.state_dict()[embedding].half(), first[embedding])


def trained_alike(team: Team, folder: Path, plan: Plan) -> None:
    training = Training(folder / str(team.rank), plan, team)
    assert list(training)
    training.save()

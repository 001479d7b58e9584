"""Training does what it says. How well its result does: tests/server/test_tiny_vl.py."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
import torch
from safetensors.torch import load_file

from minimsg.hub.checkpoint import check_folder
from minimsg.tiny_vl.team import MOST_VALUES, Team
from minimsg.tiny_vl.training import Plan, Training, train


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
def test_the_loss_falls_within_some_hundred_steps_of_each_kind(tmp_path: Path) -> None:
    """A guess costs about 2 in looking; in talking 6.4 a token, the logarithm of 580 words."""
    plan = Plan(num_looks=300, num_talks=200, num_lessons=16)
    losses = [progress.loss for progress in Training(tmp_path, plan)]
    looks, talks = losses[: plan.num_looks], losses[plan.num_looks :]
    assert mean(looks[:5]) > 1.8
    assert mean(looks[-20:]) < 0.9
    assert mean(talks[:3]) > 4
    assert mean(talks[-20:]) < 1.2


def steps_of(training: Training) -> int:
    return len(list(training))


def test_a_team_learns_one_network_from_the_lessons_of_all(tmp_path: Path) -> None:
    """Two members, here threads, end with the same weights, and with others than one alone."""
    plan = Plan(num_looks=1, num_talks=1, num_rising=1, num_lessons=2, num_pictures=4)
    board, barrier = torch.zeros(2, MOST_VALUES), Barrier(2, timeout=60)
    members = [Training(tmp_path, plan, Team(rank, 2, board, barrier)) for rank in range(2)]
    alone = Training(tmp_path, plan)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(steps_of, members)) == [2, 2]
    assert steps_of(alone) == 2
    first, second, other = (each.network.state_dict() for each in (*members, alone))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_two_processes_train_together(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    plan = Plan(num_looks=1, num_talks=1, num_rising=1, num_lessons=2, num_pictures=4)
    train(tmp_path, plan)
    assert "step=2" in capfd.readouterr().out
    assert check_folder(tmp_path).model_type == "qwen3_vl"

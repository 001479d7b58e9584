"""Processes that teach one network: each has its own lessons, and all take the same steps.

Their gradients meet in shared memory, where each reads the mean; so networks that began equal
stay equal, and nothing is sent. Knows no network and no lesson: that is `training.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import get_context
from threading import Barrier
from typing import Concatenate, Final, ParamSpec

import torch
from torch import Tensor
from torch.multiprocessing.spawn import spawn

MOST_VALUES: Final = 1 << 22  # of all gradients of a network together
P = ParamSpec("P")


@dataclass(frozen=True)
class Team:
    """One process's place in a team."""

    rank: int
    size: int
    board: Tensor  # (size, MOST_VALUES) float32 in shared memory
    barrier: Barrier

    def average(self, parameters: Iterable[Tensor]) -> None:
        """Give each gradient the mean of those of all processes, which have the same ones."""
        if self.size == 1:
            return
        gradients = [each.grad for each in parameters if each.grad is not None]
        sizes = [gradient.numel() for gradient in gradients]
        rows = self.board[:, : sum(sizes)]
        torch.cat([gradient.flatten() for gradient in gradients], out=rows[self.rank])
        self.barrier.wait()
        means = rows.mean(0)
        self.barrier.wait()  # nobody writes what others still read
        for gradient, part in zip(gradients, torch.split(means, sizes), strict=True):
            gradient.copy_(part.view_as(gradient))


ALONE: Final = Team(0, 1, torch.empty(1, 0), Barrier(1))


def together(
    task: Callable[Concatenate[Team, P], None], size: int, *args: P.args, **_: P.kwargs
) -> None:
    """Run `task` in `size` processes of one thread each; what one raises ends all."""
    board = torch.zeros(size, MOST_VALUES).share_memory_()  # type: ignore[no-untyped-call]
    barrier = get_context("spawn").Barrier(size)
    teams = [Team(rank, size, board, barrier) for rank in range(size)]
    spawn(_member, (task, teams, args), nprocs=size)  # type: ignore[no-untyped-call]


def _member(
    rank: int, task: Callable[..., None], teams: list[Team], args: Iterable[object]
) -> None:
    torch.set_num_threads(1)
    task(teams[rank], *args)

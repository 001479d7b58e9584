"""Muon: momentum, made orthogonal (Jordan et al. 2024, kellerjordan.github.io/posts/muon).

The step of a matrix is the nearest matrix whose singular values are all about 1, so that rare
directions move as far as common ones. A Newton-Schulz iteration finds it with products alone.
torch has one too, which works in bfloat16; on a CPU that is many times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import Tensor

NUM_ROUNDS: Final = 5
A, B, C = 3.4445, -4.7750, 2.0315  # of the quintic, as published: the steepest at zero


class Muon(torch.optim.Optimizer):
    """For matrices only; whatever the gradient's size, a step has `lr`, or more if it is tall."""

    def __init__(
        self, groups: Iterable[dict[str, Any]], lr: float = 0.02, momentum: float = 0.95
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in (each for each in group["params"] if each.grad is not None):
                state = self.state[matrix]
                if not state:
                    state["mean"] = torch.zeros_like(matrix)
                state["mean"].lerp_(matrix.grad, 1 - group["momentum"])
                ahead = matrix.grad.lerp(state["mean"], group["momentum"])
                longer = max(1.0, len(matrix) / matrix.shape[1]) ** 0.5
                matrix.add_(orthogonal(ahead), alpha=-group["lr"] * longer)


def orthogonal(matrix: Tensor) -> Tensor:
    """Nearly `U V^T` of `matrix = U S V^T`."""
    is_tall = len(matrix) > matrix.shape[1]
    x = matrix.T if is_tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(NUM_ROUNDS):
        product = x @ x.T
        x = torch.addmm(x, torch.addmm(product, product, product, beta=B, alpha=C), x, beta=A)
    return x.T if is_tall else x

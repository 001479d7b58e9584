"""Two engines side by side: where their numbers first differ, layer by layer and point by point.

Both compute the same prompt and go on greedily, one with one kernel or number format, the
other with another; functions at every point (`watching.py`) keep what each computes with.
Errors grow from layer to layer by rounding alone: what tells a fault is where they jump.
Knows engines and points; how it looks is in `minimsg/show/comparison.py`.
"""

from __future__ import annotations

from collections.abc import Sequence as Ids
from dataclasses import dataclass

from torch import Tensor

from minimsg.engine.differences import largest_difference
from minimsg.engine.engine import Engine
from minimsg.engine.lens import Reading
from minimsg.errors import ConfigError
from minimsg.models.points import layer_of


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two engines are from each other at a point, over all positions of a prompt."""

    point: str
    absolute: float  # the largest
    relative: float  # that, of the largest value there

    @property
    def layer(self) -> int | None:
        """The layer of the point, if it is in one."""
        return layer_of(self.point)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two engines make of one prompt."""

    names: tuple[str, str]  # kernel and number format of each
    differences: tuple[Difference, ...]  # in the order in which a step comes to the points
    replies: tuple[list[int], list[int]]  # greedy

    def first(self, tolerance: float = 0.0) -> Difference | None:
        """The first point where they are further apart than `tolerance`, relatively."""
        return next((each for each in self.differences if each.relative > tolerance), None)

    @property
    def first_token(self) -> int | None:
        """The place in the replies where they begin to differ, if they do."""
        pairs = enumerate(zip(*self.replies, strict=False))
        return next((place for place, (ours, other) in pairs if ours != other), None)

    def worst(self) -> list[Difference]:
        """The largest relative difference of each layer, and of the points in none."""
        worst: dict[int | None, Difference] = {}
        for each in self.differences:
            if each.layer not in worst or each.relative > worst[each.layer].relative:
                worst[each.layer] = each
        return list(worst.values())

    def _repr_html_(self) -> str:
        from minimsg.show.comparison import show_comparison

        return show_comparison(self)


def compare(
    first: Engine, second: Engine, prompt_ids: Ids[int], *, max_tokens: int = 16
) -> Comparison:
    """The differences between two engines of one model. Steps both.

    Raises ConfigError where they have other layers, and what `Engine.generate` raises.
    """
    if first.hooks.points != second.hooks.points:
        raise ConfigError("two engines can be compared that have the same layers")
    readings, replies = [], []
    for engine in (first, second):
        readings.append(Reading(["*"], range(len(prompt_ids))))
        tokens = engine.generate(prompt_ids, max_tokens=max_tokens, hooks=readings[-1].hooks)
        replies.append([token.id for token in tokens])
    differences = tuple(
        _difference(point, readings[0].values(point), readings[1].values(point))
        for point in first.hooks.points
    )
    return Comparison((name_of(first), name_of(second)), differences, (replies[0], replies[1]))


def name_of(engine: Engine) -> str:
    """Kernel and number format, as in `cpu_native, bfloat16`."""
    kernel = getattr(getattr(engine.runner.model, "backend", None), "name", "no kernel")
    return f"{kernel}, {engine.config.dtype}"


def _difference(point: str, ours: Tensor, other: Tensor) -> Difference:
    return Difference(point, *largest_difference(other, ours))

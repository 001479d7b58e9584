"""Two engines compared in rounds: A, B, A, B ... and the ratio inside each round.

On a shared machine the same command moves by up to 2x between moments, so only what was
measured back to back is compared. Knows no engine: a side is two generators of figures
(`Side`). Ours and transformers' are in `sides.py`, llama.cpp's in `llama.py`, those of
servers in `serving.py`; what all rounds say together is in `findings.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol, TypeVar

from minimsg.bench.settings import Shapes

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)
Prompt = list[int]
Figures = Generator[float, None, None]  # measures once for each item that is taken


class Side(Protocol[P_contra]):
    """One of the two, which takes prompts as ids or as text."""

    def decoding(self, prompts: Sequence[P_contra], new_tokens: int) -> Figures:
        """Tokens per second of `new_tokens` more steps of all prompts together.

        The prompts are computed once, before the first item; the context then grows.
        """

    def prefilling(self, prompts: Sequence[P_contra]) -> Figures:
        """Prompt tokens per second up to the first new token, of one prompt after the other."""


@dataclass(frozen=True)
class Round:
    """Tokens per second of both sides back to back, and how busy the machine was."""

    ours: float
    theirs: float
    read_gb_per_s: float
    load_average: float | None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


def measure(
    ours: Side[P],
    theirs: Side[P],
    shapes: Shapes,
    prompts: Callable[[int, int], list[P]],
    rounds: Rounds,
) -> dict[str, list[Round]]:
    """The rounds of each figure. `prompts(number, tokens)` makes prompts of equal length.

    The cheapest figures come first, the report has them in the order of its names.
    """
    figures = {}

    def prefill(name: str) -> None:
        shared = prompts(rounds.number + 1, shapes.prefills[name])
        figures[name] = rounds.run(name, ours.prefilling(shared), theirs.prefilling(shared))

    short, *longer = sorted(shapes.prefills, key=shapes.prefills.__getitem__)
    prefill(short)
    for name, batch in shapes.decodes.items():
        shared = prompts(batch, shapes.context)
        sides = [side.decoding(shared, shapes.new_tokens) for side in (ours, theirs)]
        figures[name] = rounds.run(name, *sides)
    for name in longer:
        prefill(name)
    return {name: figures[name] for name in (*shapes.decodes, *shapes.prefills)}


class Rounds:
    """Runs rounds, as many as are wanted and fit into the time."""

    def __init__(
        self,
        number: int,
        num_figures: int,
        time_limit_s: float,
        probe: Callable[[], tuple[float, float | None]],
        on_round: Callable[[str, Round], None],
    ) -> None:
        """`probe` gives read bandwidth and load average; `on_round` hears of each round."""
        self.number = number
        self._figures_left = num_figures
        self._deadline = perf_counter() + time_limit_s
        self._probe = probe
        self._on_round = on_round

    def run(self, name: str, ours: Figures, theirs: Figures) -> list[Round]:
        """Rounds of one figure, at least one; then both sides are closed.

        A figure may use its share of the time left, and what cheaper ones before it left over.
        """
        now = perf_counter()
        deadline = now + (self._deadline - now) / self._figures_left
        self._figures_left -= 1
        with closing(ours), closing(theirs):
            return self._run(name, ours, theirs, deadline)

    def _run(self, name: str, ours: Figures, theirs: Figures, deadline: float) -> list[Round]:
        for side in (ours, theirs):
            next(side)  # the first run of anything is slower; it is not counted
        done: list[Round] = []
        longest_s = 0.0
        while not done or (len(done) < self.number and perf_counter() + longest_s < deadline):
            start = perf_counter()
            bandwidth, load = self._probe()
            done.append(Round(next(ours), next(theirs), bandwidth, load))
            longest_s = max(longest_s, perf_counter() - start)
            self._on_round(name, done[-1])
        return done

"""`minimsg bench --vs untraced`: what it costs to record a request, and not to record one.

*On* is measured from outside: the same requests at one server, with the header that asks for a
record and without it, in turn. *Off* cannot be measured so: every server has the places where a
record would be noted, and two runs differ by more than they cost. So those that the engine
passes in each step are timed, in place, in steps of requests that nobody records. What is left
out of it are three comparisons with None for each token. Nor is a record read: it is written
down when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from minimsg.bench.rounds import Prompt, Round
from minimsg.bench.sides import Ours
from minimsg.bench.stages import timed
from minimsg.server.records import HEADER

TRACED: Final = {HEADER: "1"}  # asks for a record
MAX_OFF_PERCENT: Final = 1.0  # of a step
MAX_ON_PERCENT: Final = 10.0  # of the speed of a reply


@dataclass(frozen=True)
class UntracedStep:
    """What a step of requests that nobody records spends on records; means of all steps."""

    streams: int
    step_ms: float
    recording_us: float  # the timers' own time is in it

    @property
    def percent(self) -> float:
        """Of the step."""
        return 0.1 * self.recording_us / self.step_ms


def measure_untraced(
    ours: Ours, prompts: Callable[[int], Sequence[Prompt]], batches: Sequence[int], num_steps: int
) -> list[UntracedStep]:
    """At each number of streams; `prompts(number)` makes that many."""
    return [_untraced(ours, prompts(batch), num_steps) for batch in batches]


def trace_lines(steps: Sequence[UntracedStep], figures: Mapping[str, list[Round]]) -> list[str]:
    """What both cost, beside what is wanted."""
    costs = {
        name: 100 * (1 - median(each.ratio for each in rounds)) for name, rounds in figures.items()
    }
    on = ", ".join(f"{name} {cost:.1f}%" for name, cost in costs.items())
    off = ", ".join(
        f"{each.recording_us:.1f} us of {each.step_ms:.2f} ms with {each.streams}: "
        f"{each.percent:.2g}%"
        for each in steps
    )
    return [
        f"on, the header's requests beside others at one server: {on} slower (medians); wanted are "
        f"less than {MAX_ON_PERCENT:g}%",
        f"off, what a step spends on records that nobody wants: {off}; wanted are less than "
        f"{MAX_OFF_PERCENT:g}%",
        "off is timed inside the engine, timers included: two servers differ by more than it costs",
    ]


def _untraced(ours: Ours, prompts: Sequence[Prompt], num_steps: int) -> UntracedStep:
    engine = ours.engine
    figures = ours.decoding(prompts, num_steps)
    next(figures)  # the first steps of anything are slower
    with timed((engine, "step"), (engine.timeline, "begin"), (engine.timeline, "told")) as seconds:
        next(figures)
    figures.close()
    recording_s = seconds["begin"] + seconds["told"]
    return UntracedStep(
        len(prompts), 1e3 * seconds["step"] / num_steps, 1e6 * recording_s / num_steps
    )

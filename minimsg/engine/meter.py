"""What the engine's thread counts and times, for `/health` and `/metrics`.

The totals belong to the worker: they only grow, also over an engine that was set up anew.
One thread writes, any may read. A token costs little more than a look-up in a small dict.
Knows requests, tokens and seconds; what the figures are called is in `server/metrics.py`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from minimsg.engine.types import (
    Admitted,
    CacheCounts,
    Finish,
    FinishReason,
    GenerationRequest,
    Output,
    Stepped,
    Token,
)

# Upper bounds in seconds, near vLLM's, so that dashboards made for it draw sensible lines.
WAITS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0),
)
GAPS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 10.0),
)
WHOLE: Final = (
    *(0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0),
)


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine in numbers, as of its latest step."""

    num_pages: int
    free_pages: int
    cached_pages: int  # not in use, and given away when others are needed
    pinned_pages: int  # kept by cache_control, in use or not
    running: int
    waiting: int
    steps: int
    preemptions: int
    drafted_tokens: int  # ids that a step computed in case they come,
    accepted_tokens: int  # and those of them that came
    prefix_queries: int  # prompt tokens that were looked up in the cache,
    prefix_hits: int  # and those that did not have to be computed
    restarts: int  # after a failure of the engine itself

    @property
    def used_pages(self) -> int:
        """Pages that hold what runs or is about to."""
        return self.num_pages - self.free_pages - self.cached_pages


class Distribution:
    """Durations, sorted into bins: bin i holds those up to `bounds[i]`, the last one the rest."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float, number: int = 1) -> None:
        """Note a duration, as often as `number` says."""
        self.counts[bisect_left(self.bounds, seconds)] += number
        self.sum_s += seconds * number


@dataclass(slots=True)
class Progress:
    """How far one request has come, and when."""

    num_prompt_tokens: int
    counts: CacheCounts
    arrived: float
    began: float | None = None  # the first step that computed any of it
    latest: float | None = None  # its latest token


class Meter:
    """The totals and times of all requests of a worker."""

    def __init__(self) -> None:
        self.prompt_tokens = 0  # of the prompts that were computed to their end
        self.reused_tokens = 0  # those of them that the cache had
        self.generated_tokens = 0
        self.queue_time = Distribution(WAITS)
        self.time_to_first_token = Distribution(WAITS)
        self.inter_token = Distribution(GAPS)
        self.whole_time = Distribution(WHOLE)

    def open(self, request: GenerationRequest, counts: CacheCounts, now: float) -> Progress:
        """A request has arrived."""
        return Progress(len(request.prompt_ids), counts, now)

    def begin(self, progress: Progress, now: float) -> None:
        """A step is about to compute some of it; only the first counts."""
        if progress.began is None:
            progress.began = now
            self.queue_time.add(now - progress.arrived)

    def push(self, said: Iterable[tuple[Progress, Output]], now: float) -> None:
        """A step has said this. Tokens whose last came in the same step are timed together."""
        gaps: dict[float, int] = {}
        for progress, output in said:
            if isinstance(output, Token):
                if (latest := progress.latest) is None:
                    self._begin_reply(progress, now)
                else:
                    gaps[latest] = gaps.get(latest, 0) + 1
                progress.latest = now
                self.generated_tokens += 1
            elif not isinstance(output, Stepped):
                self._note(progress, output, now)
        for latest, number in gaps.items():
            self.inter_token.add(now - latest, number)

    def _begin_reply(self, progress: Progress, now: float) -> None:
        self._count_prompt(progress)
        self.time_to_first_token.add(now - progress.arrived)

    def _note(self, progress: Progress, output: Admitted | Finish, now: float) -> None:
        if isinstance(output, Admitted):
            progress.counts = output.counts
            return
        if output.reason is FinishReason.LENGTH and progress.latest is None:
            self._count_prompt(progress)  # it was only to fill the cache
        self.whole_time.add(now - progress.arrived)

    def _count_prompt(self, progress: Progress) -> None:
        self.prompt_tokens += progress.num_prompt_tokens
        self.reused_tokens += progress.counts.reused

"""What an engine is doing, as ints and names: its pages, its sequences, its latest steps.

Taken between two steps under the engine's lock, in the time that it takes to copy some lists;
whatever is made of it, is made without the lock. Steps are noted only while somebody looks.
Knows no tenant's rights (`server/inspect.py` does) and no tensor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from time import monotonic
from typing import Final

from minimsg.engine.page_map import PageMap, page_map
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import Batch, Checks, Sequence

MAX_PAGES: Final = 4096  # of the map: 64 rows of 64; the pool gives low numbers first
MAX_STEPS: Final = 120  # that are remembered
WATCHED_S: Final = 10.0  # so long after the last look steps are still noted


class PageState(IntEnum):
    """What a page is to the pool."""

    FREE = 0
    CACHED = 1  # nobody uses it; given away when others are needed
    KEPT = 2  # the same, but cache_control keeps it
    USED = 3


@dataclass(frozen=True, slots=True)
class SeenSequence:
    """A request that runs or waits."""

    request_id: str
    tenant: str
    is_running: bool
    num_prompt: int  # ids
    num_ids: int  # with what was generated
    num_computed: int


@dataclass(frozen=True, slots=True)
class SeenRows:
    """The rows of a step that were one request's."""

    request_id: str
    tenant: str
    start: int  # positions
    stop: int
    samples: bool


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step that is over."""

    number: int
    started: float  # time.monotonic
    took_s: float
    rows: tuple[SeenRows, ...]

    @property
    def num_tokens(self) -> int:
        """What it computed."""
        return sum(each.stop - each.start for each in self.rows)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The engine between two steps."""

    num_steps: int
    pages: PageMap
    pinned: frozenset[int]  # pages that cache_control keeps
    sequences: tuple[SeenSequence, ...]  # running ones first
    checks: Checks | None = None  # of the kernel beside the reference

    def states(self) -> list[PageState]:
        """What each of the first pages is, of at most `MAX_PAGES`."""
        used, first = self.pages.used, range(min(self.pages.num_pages, MAX_PAGES))
        return [PageState.USED if page in used else self._unused(page) for page in first]

    def _unused(self, page: int) -> PageState:
        if page not in self.pages.kept:
            return PageState.FREE
        return PageState.KEPT if page in self.pinned else PageState.CACHED


class Onlookers:
    """The latest steps, for those who look on. One thread writes, any may read."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until = 0.0
        self._steps: deque[SeenStep] = deque(maxlen=MAX_STEPS)

    def note(self, scheduler: Scheduler, batch: Batch, number: int, started: float) -> None:
        """A step is over; it costs nothing while nobody looks."""
        if started < self._until and batch.request_ids:
            took_s, rows = self._clock() - started, _rows(batch, scheduler.tenants)
            self._steps.append(SeenStep(number, started, took_s, rows))

    def look(self, after: int) -> list[SeenStep]:
        """The steps noted with a number above `after`; those to come will be noted for a while."""
        now = self._clock()
        if now > self._until:
            self._steps.clear()  # there is a gap
        self._until = now + WATCHED_S
        return [step for step in tuple(self._steps) if step.number > after]


def snapshot(scheduler: Scheduler, num_steps: int, checks: Checks | None = None) -> Snapshot:
    """What `scheduler` has, copied; the caller has the lock."""
    running = [_seen(each, is_running=True) for each in scheduler.running]
    waiting = [_seen(each, is_running=False) for each in scheduler.waiting]
    pinned = scheduler.cache.index.pinned_pages()
    return Snapshot(num_steps, page_map(scheduler), pinned, (*running, *waiting), checks)


def _seen(sequence: Sequence, *, is_running: bool) -> SeenSequence:
    request = sequence.request
    return SeenSequence(
        request.id,
        request.tenant,
        is_running,
        len(request.prompt_ids),
        len(sequence.ids),
        sequence.num_computed,
    )


def _rows(batch: Batch, tenants: Mapping[str, str]) -> tuple[SeenRows, ...]:
    sampling = frozenset(batch.sample_ids)
    return tuple(
        SeenRows(id, tenants[id], span.start, span.stop, id in sampling)
        for id, span in batch.spans.items()
    )

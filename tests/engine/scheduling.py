"""A scheduler without a model: small, on a clock that a test moves, with prompts that share."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import monotonic

from minimsg.engine.entries import Entries
from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import PrefixIndex
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.speculation import Speculation
from minimsg.engine.types import (
    Batch,
    CacheMark,
    GenerationRequest,
    ImageSpan,
    Output,
    Priority,
    Sampled,
    Sequence,
    Token,
)

PAGE_SIZE = 4
WINDOW = 20
END = 0


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_scheduler(
    *,
    num_pages: int = 5,
    max_step_tokens: int = 64,
    max_sequences: int = 4,
    window: int = WINDOW,
    pin_budget: int | None = None,
    clock: Callable[[], float] = monotonic,
    is_on: bool = True,
    max_drafts: int = 0,
) -> Scheduler:
    """Half of the pages may be pinned, unless told otherwise."""
    pool = PagePool(num_pages)
    index = PrefixIndex(pool, PAGE_SIZE)
    entries = Entries(index, num_pages // 2 if pin_budget is None else pin_budget, clock)
    cache = PromptCache(pool, index, entries, is_on=is_on)
    return Scheduler(
        cache,
        Speculation(cache, max_drafts, window),
        max_context=window,
        max_step_tokens=max_step_tokens,
        max_sequences=max_sequences,
    )


def sequence(
    id: str,
    num_ids: int,
    max_tokens: int = 5,
    first: int = 1,
    *,
    tenant: str = "a",
    marks: tuple[CacheMark, ...] = (),
    images: tuple[ImageSpan, ...] = (),
    priority: Priority = Priority.INTERACTIVE,
) -> Sequence:
    """Prompts whose `first` differ share nothing."""
    ids = list(range(first, first + num_ids))
    request = GenerationRequest(
        id,
        ids,
        max_tokens,
        frozenset({END}),
        tenant=tenant,
        marks=marks,
        images=images,
        priority=priority,
    )
    return Sequence(request, list(ids))


def tokens(batch: Batch, id: int = 7) -> list[list[Sampled]]:
    """The same id for every sequence that samples."""
    return [[Token(request_id, id, 0.0)] for request_id in dict.fromkeys(batch.sample_ids)]


def step(scheduler: Scheduler, id: int = 7) -> tuple[Batch, list[Output]]:
    """One step, checked before and after."""
    batch = scheduler.schedule()
    scheduler.check()
    outputs = scheduler.commit(batch, tokens(batch, id))
    scheduler.check()
    return batch, outputs


def run_to_end(scheduler: Scheduler) -> list[Output]:
    """All that is said from now on."""
    said: list[Output] = []
    while scheduler.has_work:
        said += step(scheduler)[1]
    return said


STREAMS = ([1] * WINDOW, [1, 2] * (WINDOW // 2), [1, 1, 1, 1, 2, 2, 2, 2] * 3)
IMAGES = (
    *((), (), ()),
    (ImageSpan(2, 9, b"cat"),),
    (ImageSpan(2, 9, b"dog"),),
    (ImageSpan(3, 7, b"cow"),),
)


def prompt(numbers: Random) -> list[int]:
    """Prompts that share, branch from and shorten each other."""
    stem = numbers.choice(STREAMS)[: numbers.randint(1, WINDOW)]
    room = WINDOW - len(stem)
    return [*stem, *numbers.choices((1, 2), k=numbers.choice((0, min(3, room), room)))]


def cache_marks(numbers: Random, num_ids: int) -> tuple[CacheMark, ...]:
    """Up to three marks, an hour's before those of five minutes, with some lengths to look at."""
    lengths = sorted(numbers.sample(range(1, num_ids + 1), min(num_ids, numbers.randint(0, 3))))
    ttls = sorted((numbers.choice((300, 3600)) for _ in lengths), reverse=True)
    return tuple(
        CacheMark(length, ttl, tuple(range(length - 1, max(0, length - 6), -1)))
        for length, ttl in zip(lengths, ttls, strict=True)
    )

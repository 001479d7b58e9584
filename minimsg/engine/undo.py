"""Steps that can be taken back: what the engine was before each of the last few.

Before a step the state of the scheduler is copied (sequences, pages, prefix index, drafts);
while it runs, pages are copied before they are written to. Going back puts both in place,
so that the same steps come to the same bits again. Requests and the functions that look at
them are not copied; a hook is told to take its ids back. For a script or notebook, whose
thread steps the engine: whoever is told of tokens elsewhere (`worker.py`) cannot unhear them.
Knows an engine; what a step shows is in `stepping.py`.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from minimsg.engine.cache import PagedKVCache
from minimsg.engine.scheduler import Scheduler
from minimsg.engine.types import Batch, Sequence
from minimsg.errors import ConfigError

if TYPE_CHECKING:
    from minimsg.engine.engine import Engine


class Journal:
    """What pages held before they were written to, since the last `take`."""

    def __init__(self, cache: PagedKVCache) -> None:
        self._cache = cache
        self._pages: dict[int, list[Tensor]] = {}  # keys and values of each layer

    @torch.inference_mode()
    def note(self, batch: Batch) -> None:
        """A batch is about to be computed."""
        for page in {slot // self._cache.page_size for slot in batch.slots}:
            if page not in self._pages:
                self._pages[page] = [part[page].clone() for part in self._parts()]

    def take(self) -> dict[int, list[Tensor]]:
        """What was noted, and begin anew."""
        pages, self._pages = self._pages, {}
        return pages

    @torch.inference_mode()
    def put_back(self, pages: dict[int, list[Tensor]]) -> None:
        """Fill pages with what they held."""
        for page, held in pages.items():
            for part, values in zip(self._parts(), held, strict=True):
                part[page] = values

    def _parts(self) -> list[Tensor]:
        return [part for layer in self._cache.layers for part in (layer.key, layer.value)]


@dataclass(slots=True)
class _Past:
    """The engine before a step, and what the step wrote over."""

    scheduler: Scheduler
    batch: Batch | None
    pages: dict[int, list[Tensor]]


class History:
    """The last `keep` steps of an engine. One at a time; `close` it to be rid of its cost."""

    def __init__(self, engine: Engine, keep: int) -> None:
        if engine.runner.journal is not None:
            raise ConfigError("the engine's steps are kept already; close those first")
        self._engine = engine
        self._journal = engine.runner.journal = Journal(engine.runner.cache)
        self._pasts: deque[_Past] = deque(maxlen=keep)
        self._newest: dict[int, Sequence] = {}  # by the identity of the request

    def mark(self) -> None:
        """A step is about to be taken."""
        self._end_step()
        scheduler = self._engine.scheduler
        self._newest |= {id(each.request): each for each in scheduler.sequences}
        self._pasts.append(_Past(copy_of(scheduler), self._engine.batch, {}))

    def rewind(self, num_steps: int) -> None:
        """Be where the engine was before its last `num_steps` steps, whoever has come since.

        Raises ConfigError where so many are not kept.
        """
        if not 0 <= num_steps <= len(self._pasts):
            raise ConfigError(f"{num_steps} steps back; {len(self._pasts)} are kept")
        self._end_step()
        for _ in range(num_steps):
            past = self._pasts.pop()
            self._journal.put_back(past.pages)
            self._take_back_ids(past.scheduler)
            self._engine.restore(past.scheduler, past.batch)

    def close(self) -> None:
        """Keep nothing any more."""
        self._pasts.clear()
        self._engine.runner.journal = None

    def _end_step(self) -> None:
        """What was written since the last `mark` belongs to its step."""
        pages = self._journal.take()
        if self._pasts:
            self._pasts[-1].pages |= {
                page: held for page, held in pages.items() if page not in self._pasts[-1].pages
            }

    def _take_back_ids(self, scheduler: Scheduler) -> None:
        """Have the hooks of its sequences forget what they were told since."""
        for sequence in scheduler.sequences:
            newest = self._newest[id(sequence.request)]
            num_told = newest.num_generated + newest.num_ahead
            surplus = num_told - sequence.num_generated - sequence.num_ahead
            if surplus and sequence.request.hook is not None:
                sequence.request.hook.rollback(surplus)
            self._newest[id(sequence.request)] = sequence


def copy_of(scheduler: Scheduler) -> Scheduler:
    """A scheduler that goes its own way, with its own pages, of the same requests."""
    entries, counts = scheduler.cache.entries, scheduler.speculation.counts
    shared: list[object] = [scheduler.timeline, counts, entries.clock]  # these only go on
    for sequence in scheduler.known:
        shared.append(sequence.request)
        if (watched := sequence.watched) is not None:
            shared += [watched.functions, watched.attended]
    return deepcopy(scheduler, {id(each): each for each in shared})

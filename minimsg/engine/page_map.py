"""Whose each page of the cache is, at one moment: for those who look on.

Knows page numbers and ids of requests. How it is drawn is in `minimsg/show/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from minimsg.engine.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class PageMap:
    """Pages by their number. Invariant: a page is in exactly one of: free, cached, in use.

    Taken with each step that somebody looks at, so what can be worked out later is.
    """

    page_size: int
    num_pages: int
    tables: dict[str, tuple[int, ...]]  # the pages of each request, in its order
    kept: frozenset[int]  # that are cached once nobody uses them

    @property
    def users(self) -> list[list[str]]:
        """(P,) the requests that use each page."""
        users: list[list[str]] = [[] for _ in range(self.num_pages)]
        for request_id, pages in self.tables.items():
            for page in pages:
                users[page].append(request_id)
        return users

    @property
    def used(self) -> frozenset[int]:
        """Pages that requests use."""
        return frozenset(chain.from_iterable(self.tables.values()))

    @property
    def cached(self) -> frozenset[int]:
        """Pages that nobody uses, kept for who begins alike."""
        return self.kept - self.used

    @property
    def num_free(self) -> int:
        """Pages that hold nothing of use."""
        return self.num_pages - len(self.kept | self.used)

    def _repr_html_(self) -> str:
        from minimsg.show.batches import show_pages

        return show_pages(self)


def page_map(scheduler: Scheduler) -> PageMap:
    """The pages as `scheduler` has them now; the caller sees to it that nothing changes them."""
    pool = scheduler.cache.pool
    tables = {each.request.id: tuple(each.page_table) for each in scheduler.sequences}
    return PageMap(scheduler.page_size, pool.num_pages, tables, pool.kept)

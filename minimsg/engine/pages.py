"""The page allocator: which pages of the KV cache are free, kept or in use.

Knows page numbers only: no tensor (`cache.py`), no sequence (`scheduler.py`), not what
a page holds (`prefix.py`). Reference counts let several sequences share the pages of a
common prefix; a page that is worth keeping stays as it is when nobody uses it any more.
"""

from __future__ import annotations

from collections.abc import Iterable


class PagePool:
    """`num_pages` pages. Invariant: a page is in exactly one of: free, cached, in use.

    In use: someone has a reference to it. Cached: nobody has, but it is kept.
    """

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = list(reversed(range(num_pages)))  # a stack: the page freed last is warm
        self._references = [0] * num_pages
        self._kept: set[int] = set()
        self._num_cached = 0

    @property
    def num_free(self) -> int:
        """Pages that can be allocated now."""
        return len(self._free)

    @property
    def num_cached(self) -> int:
        """Pages that nobody uses and that hold something worth keeping."""
        return self._num_cached

    @property
    def num_used(self) -> int:
        """Pages that someone has a reference to."""
        return self.num_pages - len(self._free) - self._num_cached

    @property
    def kept(self) -> frozenset[int]:
        """Pages that hold something worth keeping, in use or not."""
        return frozenset(self._kept)

    def allocate(self, n: int) -> list[int] | None:
        """`n` pages with one reference each; None, and nothing changed, if fewer are free."""
        assert n >= 0, f"{n} pages asked for"
        if n > len(self._free):
            return None
        pages = [self._free.pop() for _ in range(n)]
        for page in pages:
            self._references[page] = 1
        return pages

    def share(self, page: int) -> None:
        """One more user of a page in use or cached; each of them frees it once."""
        if not self._references[page]:
            assert page in self._kept, f"page {page} is free and cannot be shared"
            self._num_cached -= 1
        self._references[page] += 1

    def free(self, pages: Iterable[int]) -> None:
        """One user less of each page; one without users is cached if it is kept, else free."""
        for page in pages:
            assert self._references[page] > 0, f"page {page} was freed twice"
            self._references[page] -= 1
            if self._references[page]:
                continue
            if page in self._kept:
                self._num_cached += 1
            else:
                self._free.append(page)

    def keep(self, page: int) -> None:
        """Cache a page in use once nobody uses it."""
        assert self._references[page] > 0, f"page {page} is not in use and holds nothing"
        self._kept.add(page)

    def forget(self, page: int) -> None:
        """Keep a page no longer; it is free once nobody uses it."""
        self._kept.remove(page)
        if not self._references[page]:
            self._num_cached -= 1
            self._free.append(page)

    def references(self, page: int) -> int:
        """How many users a page has; 0 if it is free or cached."""
        return self._references[page]

    def check(self) -> None:
        """Assert the invariant."""
        unused = {page for page in range(self.num_pages) if not self._references[page]}
        cached = unused & self._kept
        assert sorted(self._free) == sorted(unused - cached), "a page is lost, or in two places"
        assert len(cached) == self._num_cached, "cached pages are miscounted"

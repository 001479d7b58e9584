"""The page allocator: which pages of the KV cache are free, and how often each is used.

Knows page numbers only: no tensor (`cache.py`), no sequence (`scheduler.py`).
Reference counts let several sequences share the pages of a common prefix.
"""

from __future__ import annotations

from collections.abc import Iterable


class PagePool:
    """`num_pages` pages. Invariant: a page is in exactly one of: free, in use."""

    def __init__(self, num_pages: int) -> None:
        self.num_pages = num_pages
        self._free = list(reversed(range(num_pages)))  # a stack: the page freed last is warm
        self._references = [0] * num_pages

    @property
    def num_free(self) -> int:
        """Pages that can be allocated now."""
        return len(self._free)

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
        """One more user of a page in use; each of them frees it once."""
        assert self._references[page] > 0, f"page {page} is free and cannot be shared"
        self._references[page] += 1

    def free(self, pages: Iterable[int]) -> None:
        """One user less of each page; a page without users can be allocated again."""
        for page in pages:
            assert self._references[page] > 0, f"page {page} was freed twice"
            self._references[page] -= 1
            if not self._references[page]:
                self._free.append(page)

    def references(self, page: int) -> int:
        """How many users a page has; 0 if it is free."""
        return self._references[page]

    def check(self) -> None:
        """Assert the invariant."""
        unused = [page for page in range(self.num_pages) if not self._references[page]]
        assert sorted(self._free) == unused, "a page is lost, or free and in use"

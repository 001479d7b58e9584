"""The page allocator against a plain model of it: who holds which page, and what is kept."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.pages import PagePool


class PagesMachine(RuleBasedStateMachine):
    """Allocates, shares, frees, keeps and forgets.

    `held` has one entry for each reference; `kept` are the pages that are not to be lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(9)
        self.held: list[int] = []
        self.kept: set[int] = set()

    @rule(n=st.integers(0, 11))
    def allocate(self, n: int) -> None:
        free_before = self.pool.num_free
        pages = self.pool.allocate(n)
        if n > free_before:
            assert pages is None
            assert self.pool.num_free == free_before
        else:
            assert pages is not None
            assert len(set(pages)) == n
            assert not set(pages) & {*self.held, *self.kept}
            self.held += pages

    @precondition(lambda self: self.held or self.kept)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted({*self.held, *self.kept})))
        self.pool.share(page)
        self.held.append(page)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        pages = data.draw(st.lists(st.sampled_from(self.held), unique=True))
        self.pool.free(pages)
        for page in pages:
            self.held.remove(page)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def keep(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.held))
        self.pool.keep(page)
        self.kept.add(page)

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.kept)))
        self.pool.forget(page)
        self.kept.remove(page)

    @invariant()
    def each_page_is_free_or_cached_or_in_use(self) -> None:
        self.pool.check()
        used, cached = set(self.held), self.kept - set(self.held)
        assert self.pool.num_used == len(used)
        assert self.pool.num_cached == len(cached)
        assert self.pool.num_free == 9 - len(used) - len(cached)
        assert [self.pool.references(page) for page in range(9)] == [
            self.held.count(page) for page in range(9)
        ]


TestPages = PagesMachine.TestCase
TestPages.settings = settings(max_examples=60, stateful_step_count=40, derandomize=True)


def test_a_page_freed_twice_is_a_fault_of_ours() -> None:
    pool = PagePool(2)
    pages = pool.allocate(1)
    assert pages is not None
    pool.free(pages)
    with pytest.raises(AssertionError, match="freed twice"):
        pool.free(pages)
    with pytest.raises(AssertionError, match="cannot be shared"):
        pool.share(pages[0])


def test_a_page_that_holds_nothing_cannot_be_kept() -> None:
    with pytest.raises(AssertionError, match="holds nothing"):
        PagePool(2).keep(0)


def test_a_page_kept_twice_is_forgotten_once() -> None:
    pool = PagePool(1)
    pages = pool.allocate(1)
    assert pages == [0]
    pool.keep(0)
    pool.keep(0)
    pool.free(pages)
    pool.forget(0)
    assert pool.num_free == 1


def test_check_finds_a_page_miscounted() -> None:
    pool = PagePool(2)
    pool._num_cached += 1
    with pytest.raises(AssertionError, match="miscounted"):
        pool.check()


def test_check_finds_a_lost_page() -> None:
    pool = PagePool(2)
    pool._free.pop()
    with pytest.raises(AssertionError, match="lost"):
        pool.check()

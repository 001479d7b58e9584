"""The page allocator against a plain model of it: who holds which page how often."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine.pages import PagePool


class PagesMachine(RuleBasedStateMachine):
    """Allocates, shares and frees; `held` is a list with one entry for each reference."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(9)
        self.held: list[int] = []

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
            assert not set(pages) & set(self.held)
            self.held += pages

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def share(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.held))
        self.pool.share(page)
        self.held.append(page)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def free(self, data: st.DataObject) -> None:
        pages = data.draw(st.lists(st.sampled_from(self.held), unique=True))
        self.pool.free(pages)
        for page in pages:
            self.held.remove(page)

    @invariant()
    def each_page_is_free_or_in_use(self) -> None:
        self.pool.check()
        assert self.pool.num_free == 9 - len(set(self.held))
        assert [self.pool.references(page) for page in range(9)] == [
            self.held.count(page) for page in range(9)
        ]


TestPages = PagesMachine.TestCase
TestPages.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)


def test_a_page_freed_twice_is_a_fault_of_ours() -> None:
    pool = PagePool(2)
    pages = pool.allocate(1)
    assert pages is not None
    pool.free(pages)
    with pytest.raises(AssertionError, match="freed twice"):
        pool.free(pages)
    with pytest.raises(AssertionError, match="cannot be shared"):
        pool.share(pages[0])


def test_check_finds_a_lost_page() -> None:
    pool = PagePool(2)
    pool._free.pop()
    with pytest.raises(AssertionError, match="lost"):
        pool.check()

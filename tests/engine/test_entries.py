"""Cache entries against a dict of marked prefixes and a list of pins, on a clock that jumps.

The oracle keeps every prefix as ids: an entry is found if its tenant marked these very ids, its
time is not over, and none of its full pages was given away since.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minimsg.engine import entries as entries_module
from minimsg.engine.entries import Entries
from minimsg.engine.pages import PagePool
from minimsg.engine.prefix import Chain, PrefixIndex
from minimsg.engine.types import CacheMark

PAGE_SIZE = 2
NUM_PAGES = 8
BUDGET = 3  # less than a prompt may fill
IDS = st.lists(st.integers(1, 2), min_size=1, max_size=9)

Prefix = tuple[str, tuple[int, ...]]  # a tenant, and ids from the first on


@dataclass
class Kept:
    """What the oracle knows of one entry."""

    ttl_s: int
    until: float


class EntriesMachine(RuleBasedStateMachine):
    """Prompts are read, marked and forgotten. `kept` is in the order of use, as are `pins`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.pool = PagePool(NUM_PAGES)
        self.index = PrefixIndex(self.pool, PAGE_SIZE)
        self.entries = Entries(self.index, BUDGET, lambda: self.now)
        self.pages: dict[Prefix, int] = {}
        self.kept: dict[Prefix, Kept] = {}
        self.pins: list[Prefix] = []

    @rule(
        tenant=st.sampled_from("ab"),
        ids=IDS,
        marks=st.lists(st.integers(1, 9), max_size=3, unique=True),
        ttl_s=st.sampled_from((300, 3600)),
        waited=st.sampled_from((0, 0, 200)),
    )
    def read(self, tenant: str, ids: list[int], marks: list[int], ttl_s: int, waited: int) -> None:
        """A prompt from its look-up to its end; `waited` seconds of it in the queue."""
        lengths = sorted(mark for mark in marks if mark <= len(ids))
        chain = self.index.chain(tenant, ids, ())
        self.look(tenant, ids, chain, lengths)
        since = self.now
        self.now += waited
        held = self.compute(tenant, ids, chain)
        for length in lengths:
            num_pages = length // PAGE_SIZE
            if num_pages <= len(held):
                nodes = self.index.match(chain, 0, num_pages)
                self.entries.write(chain, nodes, CacheMark(length, ttl_s), since)
                self.note_write((tenant, tuple(ids[:length])), ttl_s, since)
        self.index.release(held)

    def look(self, tenant: str, ids: list[int], chain: Chain, lengths: list[int]) -> None:
        if not lengths:
            return
        *earlier, last = lengths
        mark = CacheMark(last, 300, tuple(reversed(earlier)))
        num_matched = len(self.index.match(chain, 0, chain.num_full))
        found = self.entries.find(chain, num_matched, [mark])
        prefixes = [(tenant, tuple(ids[:length])) for length in lengths]
        alive = [each for each in prefixes if self.is_alive(each)]
        assert found == max([len(each[1]) for each in alive], default=0)
        self.forget_expired()
        if found:
            self.note_use(alive[-1], self.kept[alive[-1]].ttl_s, self.now)

    def compute(self, tenant: str, ids: list[int], chain: Chain) -> list[int]:
        """The pages of the prompt, as many as can be had."""
        held = []
        for node in self.index.match(chain, 0, chain.num_full):
            self.index.use(node)
            held.append(node.page)
        while len(held) < chain.num_full:
            page = self.allocate()
            if page is None:
                break
            published = self.index.publish(chain, len(held), [*held, page])
            assert published is not None
            assert published.page == page
            held.append(page)
            self.pages[tenant, tuple(ids[: len(held) * PAGE_SIZE])] = page
        return held

    def allocate(self) -> int | None:
        while (pages := self.pool.allocate(1)) is None:
            if not self.evict() and not self.unpin_oldest():
                return None
        return pages[0]

    @rule()
    def pressure(self) -> None:
        self.evict()

    @rule()
    def more_pressure(self) -> None:
        self.unpin_oldest()

    def evict(self) -> bool:
        """No pinned page is given away; the entries that end in it are gone."""
        node = self.index.evict()
        if node is None:
            return False
        (gone,) = (prefix for prefix, page in self.pages.items() if page == node.page)
        assert not any(gone in self.full_pages(pin) for pin in self.pins)
        self.entries.forget(node)
        del self.pages[gone]
        for each in [each for each in self.kept if gone in self.full_pages(each)]:
            self.drop(each)
        return True

    def unpin_oldest(self) -> bool:
        """The pin that was used longest ago yields; its entry stays."""
        yielded = self.entries.unpin_oldest()
        assert yielded == bool(self.pins)
        self.pins = self.pins[1:]
        return yielded

    @rule(seconds=st.sampled_from((1, 250, 4000)))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        assert self.entries.expire() == self.now
        self.forget_expired()

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), id=st.integers(1, 2))
    def ask(self, data: st.DataObject, id: int) -> None:
        """A prompt that continues what was marked."""
        tenant, prefix = data.draw(st.sampled_from(sorted(self.kept)))
        ids = [*prefix, id]
        self.look(tenant, ids, self.index.chain(tenant, ids, ()), [len(prefix)])

    @invariant()
    def everything_holds(self) -> None:
        self.entries.check()
        assert len(self.entries) == len(self.kept)
        pinned = {page for pin in self.pins for page in self.full_pages(pin)}
        assert self.index.num_pinned == len(pinned) <= BUDGET

    def is_alive(self, prefix: Prefix) -> bool:
        kept = self.kept.get(prefix)
        return kept is not None and kept.until > self.now

    def full_pages(self, prefix: Prefix) -> list[Prefix]:
        tenant, ids = prefix
        return [(tenant, ids[:end]) for end in range(PAGE_SIZE, len(ids) + 1, PAGE_SIZE)]

    def note_write(self, prefix: Prefix, ttl_s: int, since: float) -> None:
        known = self.kept.get(prefix)
        self.note_use(prefix, max(ttl_s, known.ttl_s) if known else ttl_s, since)
        own = self.full_pages(prefix)
        if own and len(own) <= BUDGET and prefix not in self.pins:
            self.pins.append(prefix)
        while len({page for pin in self.pins for page in self.full_pages(pin)}) > BUDGET:
            self.pins = self.pins[1:]

    def note_use(self, prefix: Prefix, ttl_s: int, since: float) -> None:
        known = self.kept.pop(prefix, None)
        until = since + ttl_s
        self.kept[prefix] = Kept(ttl_s, max(until, known.until) if known else until)
        if prefix in self.pins:
            self.pins.remove(prefix)
            self.pins.append(prefix)

    def forget_expired(self) -> None:
        for each in [each for each, kept in self.kept.items() if kept.until <= self.now]:
            self.drop(each)

    def drop(self, prefix: Prefix) -> None:
        del self.kept[prefix]
        self.pins = [pin for pin in self.pins if pin != prefix]


TestEntries = EntriesMachine.TestCase
TestEntries.settings = settings(max_examples=80, stateful_step_count=40, derandomize=True)


def test_of_too_many_entries_the_one_used_longest_ago_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries_module, "MAX_ENTRIES", 2)
    entries = Entries(PrefixIndex(PagePool(1), PAGE_SIZE), 0, lambda: 0.0)
    chains = {id: entries.index.chain("a", [id], ()) for id in (1, 2, 3)}
    mark = CacheMark(1, 300)
    for id in (1, 2):
        entries.write(chains[id], [], mark, 0.0)
    assert entries.find(chains[1], 0, [mark]) == 1
    entries.write(chains[3], [], mark, 0.0)
    assert [id for id, chain in chains.items() if entries.find(chain, 0, [mark])] == [1, 3]


def test_time_runs_from_the_start_of_a_request_not_from_its_end() -> None:
    now = 500.0
    entries = Entries(PrefixIndex(PagePool(1), PAGE_SIZE), 0, lambda: now)
    chain, mark = entries.index.chain("a", [1], ()), CacheMark(1, 300)
    entries.write(chain, [], mark, 400.0)
    now = 699.0
    assert entries.find(chain, 0, [mark]) == 1  # and is refreshed
    now = 998.0
    assert entries.find(chain, 0, [mark]) == 1
    now = 1298.0
    assert entries.find(chain, 0, [mark]) == 0

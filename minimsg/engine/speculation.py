"""Speculation: drafts that one step verifies, beside the last id of a sequence.

Decoding reads all weights for one row; a few rows more cost far less than the steps that
they save, if what was drafted is what comes. What is said is the same with and without
(`rows.py`). So all that is decided here is whether it pays: sequences draft only while few
of them run and none reads its prompt, at nobody's cost in rows or pages, and each within
a budget of what its drafts have saved. Drafts are from `drafts.py`; keys and values of those
that are rejected lie behind the sequence's ids, where nobody reads before they are
overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from minimsg.engine.drafts import Drafter
from minimsg.engine.prompt_cache import PromptCache
from minimsg.engine.types import Sequence

MAX_SPECULATING: Final = 2  # of more, the rows together keep the machine as busy as it can be
ROW_COST: Final = 0.12  # of a step of one row: SmolLM2 on two CPU cores, 0.06 to 0.1, and sampling
ALLOWANCE: Final = 0.02  # of the time without drafts, that drafts may cost in the long run
START: Final = 0.8  # steps that they may cost before they have saved any


@dataclass(slots=True)
class DraftCounts:
    """Totals of an engine; they only grow."""

    proposed: int = 0
    accepted: int = 0


class Budget:
    """The steps' worth of time that a sequence may lose to drafts.

    An accepted draft saves a step, each costs its row. Invariant: `credit` is never below 0,
    so with `n` ids said the drafts have cost at most `START + ALLOWANCE * n` steps more than
    they have saved. It is bounded above: what was saved long ago does not pay for a text that
    does not repeat itself any more.
    """

    def __init__(self, max_drafts: int) -> None:
        self._most = 2 * max_drafts * ROW_COST
        self.credit = min(START, self._most)

    @property
    def num_drafts(self) -> int:
        """How many drafts it pays for, if none is accepted."""
        return int(self.credit / ROW_COST)

    def settle(self, num_drafts: int, num_accepted: int) -> None:
        """Note a step of a row and `num_drafts` more, of which some have saved one each."""
        said = 1 + num_accepted
        earned = said * ALLOWANCE + num_accepted - num_drafts * ROW_COST
        self.credit = min(self.credit + earned, self._most)


@dataclass(slots=True)
class _Speculator:
    """What speculation remembers of a sequence."""

    drafter: Drafter
    budget: Budget


@dataclass(slots=True)
class Speculation:
    """Gives sequences their `drafts`, and takes them back. `max_drafts` 0: never."""

    cache: PromptCache
    max_drafts: int
    max_context: int
    counts: DraftCounts = field(default_factory=DraftCounts)
    _speculators: dict[Sequence, _Speculator] = field(default_factory=dict)
    _drafting: list[Sequence] = field(default_factory=list)  # those that have drafts

    def draft(self, running: list[Sequence], num_rows: int) -> None:
        """Draft for the sequences that run, at most `num_rows` ids, in pages to spare."""
        if not self.max_drafts or len(running) > MAX_SPECULATING:
            return
        if any(sequence.num_pending > 1 for sequence in running):
            return
        for sequence in running:
            if sequence.watched is not None:
                continue  # who looks at it sees no row that comes to nothing
            sequence.drafts = self._drafts(sequence, num_rows)
            num_rows -= len(sequence.drafts)
            self._drafting.append(sequence)

    def withdraw(self) -> None:
        """The latest step is over: take back drafts, and the pages that were only for them."""
        for sequence in self._drafting:
            sequence.drafts = []
            self.cache.trim(sequence, len(sequence.ids))
        self._drafting = []

    def settle(self, sequence: Sequence, num_accepted: int) -> None:
        """A step has sampled one id of a sequence and accepted `num_accepted` of its drafts."""
        if speculator := self._speculators.get(sequence):
            speculator.budget.settle(len(sequence.drafts), num_accepted)
            self.counts.proposed += len(sequence.drafts)
            self.counts.accepted += num_accepted

    def close(self, sequence: Sequence) -> None:
        """The sequence has ended."""
        self._speculators.pop(sequence, None)

    def _drafts(self, sequence: Sequence, num_rows: int) -> list[int]:
        speculator = self._speculators.get(sequence)
        if speculator is None:
            speculator = _Speculator(Drafter(sequence.ids), Budget(self.max_drafts))
            self._speculators[sequence] = speculator
        request, num_ids = sequence.request, len(sequence.ids)
        count = min(
            self.max_drafts,
            num_rows,
            speculator.budget.num_drafts,
            request.max_tokens - sequence.num_generated - 1,  # one id more than drafts may come
            self.max_context - num_ids - 1,
        )
        if count < 1:
            return []
        drafts = before_end(speculator.drafter.propose(count), request.end_ids)
        return drafts[: self.cache.spare(sequence, num_ids + len(drafts)) - num_ids]


def before_end(ids: list[int], end_ids: Iterable[int]) -> list[int]:
    """The ids before the first that ends a turn: the row before that one draws it anyway."""
    count = next((index for index, id in enumerate(ids) if id in end_ids), len(ids))
    return ids[:count]

"""The rows of a step that sample: whose each of them is, and which of their ids stand.

A sequence has one row, and one more for each of its drafts: the k-th is at the place after
its ids and k drafts. An id is drawn there as if the drafts before it had been sampled, with
the random number of its place. So where each of them was, it is the very id that would have
come without drafts, whatever the temperature; the first row that drew another than the
draft is the last that stands. (Drafts that are copied are a point mass: accepting one with
its probability, as in arXiv 2211.17192 section 2.3, comes to the same.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from minimsg.engine.types import Finish, GenerationRequest, Sampled, Sequence


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the logits: `num_drafts` drafts of its sequence come before its id."""

    sequence: Sequence
    num_drafts: int

    @property
    def request(self) -> GenerationRequest:
        """Whose it is."""
        return self.sequence.request

    @property
    def next_draft(self) -> list[int]:
        """The draft that its id is to be, or none."""
        return self.sequence.drafts[self.num_drafts : self.num_drafts + 1]

    @property
    def position(self) -> int:
        """Where in the sequence its id comes."""
        return len(self.sequence.ids) + self.num_drafts

    @property
    def ids(self) -> list[int]:
        """All that comes before its id."""
        return self.sequence.ids + self.sequence.drafts[: self.num_drafts]


def rows_of(sequences: Iterable[Sequence]) -> list[Row]:
    """(S,) the rows of sequences, in order."""
    return [Row(each, count) for each in sequences for count in range(1 + len(each.drafts))]


def standing(sampled: list[Sampled], sequences: Iterable[Sequence]) -> list[list[Sampled]]:
    """For each sequence the outputs of its rows (S,) that stand: one, or more."""
    stood: list[list[Sampled]] = []
    start = 0
    for sequence in sequences:
        stop = start + 1 + len(sequence.drafts)
        stood.append(_standing(sampled[start:stop], sequence.drafts))
        start = stop
    return stood


def _standing(outputs: list[Sampled], drafts: list[int]) -> list[Sampled]:
    """A row that failed behind others is left to the next step, where it comes first."""
    count = 1
    for output, later, draft in zip(outputs, outputs[1:], drafts, strict=False):
        if isinstance(output, Finish) or isinstance(later, Finish) or output.id != draft:
            break
        count += 1
    return outputs[:count]

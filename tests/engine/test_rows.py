"""Which of several rows of a sequence stand, by hand."""

from __future__ import annotations

import pytest

from minimsg.engine.rows import rows_of, standing
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Sampled, Sequence, Token

FAILED = Finish("r", FinishReason.ERROR, "it failed")


def drafting(*drafts: int) -> Sequence:
    return Sequence(GenerationRequest("r", [1, 2], 9), [1, 2], drafts=list(drafts))


def drawn(*ids: int) -> list[Sampled]:
    return [Token("r", id, 0.0) for id in ids]


@pytest.mark.parametrize(
    ("drafts", "sampled", "num_standing"),
    [
        ((), drawn(7), 1),
        ((5, 6), drawn(5, 6, 7), 3),
        ((5, 6), drawn(5, 9, 7), 2),
        ((5, 6), drawn(9, 6, 7), 1),
        ((5, 6), [FAILED, *drawn(6, 7)], 1),
        ((5, 6), [*drawn(5), FAILED, *drawn(7)], 1),  # it comes first in the next step
        ((5, 6), [*drawn(5, 6), FAILED], 2),
        ((5, 6), [*drawn(9), FAILED, FAILED], 1),
    ],
)
def test_rows_stand_up_to_the_first_that_is_not_the_draft(
    drafts: tuple[int, ...], sampled: list[Sampled], num_standing: int
) -> None:
    assert standing(sampled, [drafting(*drafts)]) == [sampled[:num_standing]]


def test_each_sequence_has_its_own_rows() -> None:
    sequences = [drafting(5), drafting(), drafting(6, 7)]
    assert [row.num_drafts for row in rows_of(sequences)] == [0, 1, 0, 0, 1, 2]
    stood = standing(drawn(5, 8, 9, 6, 1, 2), sequences)
    assert stood == [drawn(5, 8), drawn(9), drawn(6, 1)]

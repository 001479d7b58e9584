"""Prompt lookup by hand, and against a scan of the whole text."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from minimsg.engine.drafts import LENGTHS, Drafter


@pytest.mark.parametrize(
    ("ids", "draft"),
    [
        ([1, 2, 3, 4, 5, 6, 1, 2], [3, 4, 5]),
        ([1, 2, 3, 9, 1, 2, 7, 9, 1, 2], [7, 9, 1]),  # the latest of two
        ([5, 1, 2, 3, 9, 8, 1, 2, 7, 5, 1, 2], [3, 9, 8]),  # the longer of two, though earlier
        ([7, 1, 2, 1, 2], [1, 2, 1]),  # a loop goes on
        ([4, 4, 4], [4, 4, 4]),
        ([1, 2, 3, 2], []),  # one id alone is no run
        ([3, 4, 5], []),
        ([2], []),
    ],
    ids=str,
)
def test_a_draft_is_what_followed_the_last_run_like_the_last_ids(
    ids: list[int], draft: list[int]
) -> None:
    assert Drafter(ids).propose(3) == draft


def test_a_reply_is_looked_up_in_the_prompt_and_in_itself() -> None:
    ids = [10, 11, 12, 13, 14]
    drafter = Drafter(ids)
    assert drafter.propose(2) == []
    ids += [11, 12]
    assert drafter.propose(2) == [13, 14]
    ids += [77, 78, 12, 77]
    assert drafter.propose(2) == [78, 12]


def test_asking_again_changes_nothing() -> None:
    drafter = Drafter([1, 2, 3, 1, 2])
    assert drafter.propose(9) == drafter.propose(9)


@pytest.mark.parametrize("num_ids", [2, 3, 8])
def test_an_index_that_grows_finds_what_a_scan_finds(num_ids: int) -> None:
    numbers = Random(num_ids)
    ids = [0]
    drafter = Drafter(ids)
    for _ in range(300):
        ids += [numbers.randrange(num_ids) for _ in range(numbers.randint(1, 3))]
        assert drafter.propose(6) == scan(ids, 6)


def scan(ids: list[int], count: int) -> list[int]:
    """The draft from its definition."""
    for length in LENGTHS:
        for start in reversed(range(len(ids) - length)):
            if ids[start : start + length] == ids[-length:]:
                text = list(ids)
                for place in range(start + length, start + length + count):
                    text.append(text[place])
                return text[len(ids) :]
    return []


class Counted(list[int]):
    """Ids that count how often a part of them is read."""

    num_reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.num_reads += 1
        return super().__getitem__(index)


def test_a_draft_of_a_long_text_reads_only_what_is_new() -> None:
    numbers = Random(1)
    ids = Counted(numbers.randrange(500) for _ in range(8_000))
    drafter = Drafter(ids)
    drafter.propose(8)
    ids.num_reads = 0
    for _ in range(10):
        ids.append(numbers.randrange(500))
        drafter.propose(8)
    assert ids.num_reads <= 10 * (2 * len(LENGTHS) + 1)

"""Prompts of a wanted length that no cache has seen."""

from __future__ import annotations

import pytest

from minimsg.bench.prompts import words, words_for


def test_two_requests_share_no_prefix_that_could_be_cached() -> None:
    """A page of a prefix cache holds 16 tokens, here as many words."""
    starts = {tuple(words(200, seed).split()[:8]) for seed in range(500)}
    assert len(starts) == 500


def test_the_same_seed_asks_the_same() -> None:
    assert words(50, seed=7) == words(50, seed=7)


@pytest.mark.parametrize(("template", "tokens_per_word"), [(0, 1), (31, 1), (12, 2), (5, 1.3)])
async def test_the_length_is_met_whatever_tokenizer_and_template_are(
    template: int, tokens_per_word: float
) -> None:
    async def count(text: str) -> int:
        return template + round(tokens_per_word * len(text.split()))

    number = await words_for(256, count)
    assert await count(words(number, seed=1)) == pytest.approx(256, abs=2)

"""Generated prompts of about a wanted length in tokens.

Common English words, drawn with a seed: no two requests share a prefix that a server
could have cached, and two runs ask the same. `questions` are what a model answers at
length. Knows no tokenizer; a counting function is passed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

TEXT = (
    "the old river runs past a small town where people work in their gardens and read "
    "books about water light stone and time every morning children walk to school along "
    "the green road while birds sing over quiet houses some of them learn how engines "
    "move how bread is made or why winter follows autumn then they ask another question"
)
WORDS = TEXT.split()

FORMS = (
    "Write a long story about {}.",
    "Explain in detail what {} is good for.",
    "Describe the history of {}.",
    "Give ten pieces of advice about {}.",
)
TOPICS = (
    *("bread", "rivers", "clocks", "bees", "trains", "salt", "maps", "glass", "gardens"),
    *("music", "bridges", "stars", "paper", "wool", "ships", "numbers", "kites", "tea"),
    *("owls", "rain"),
)

# Two lengths, far enough apart that the slope between them is the tokens of a word.
SHORT, LONG = 32, 160
TOKENS_PER_WORD = 1.1  # typical of WORDS; taken where nobody counts


def words(count: int, seed: int) -> str:
    """`count` words; different seeds differ from the first words on."""
    return " ".join(Random(seed).choices(WORDS, k=count))


def questions(count: int) -> list[str]:
    """The first `count` of 80, which differ by topic first."""
    return [form.format(topic) for form in FORMS for topic in TOPICS][:count]


async def words_for(tokens: int, count: Callable[[str], Awaitable[int]]) -> int:
    """How many words make a prompt of about `tokens` tokens, the chat template included."""
    short, long = await count(words(SHORT, seed=0)), await count(words(LONG, seed=0))
    tokens_per_word = max(long - short, 1) / (LONG - SHORT)
    return max(1, round(SHORT + (tokens - short) / tokens_per_word))


def words_by_rule(tokens: int) -> int:
    """The same without a count."""
    return max(1, round(tokens / TOKENS_PER_WORD))

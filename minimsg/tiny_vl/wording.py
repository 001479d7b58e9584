"""The words of the little language: how each kind of question is spelled, and what they are in all.

What is true of a scene is in `questions.py`. Needs no picture and no model.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from minimsg.tiny_vl.scenes import COLOURS, DIGITS, GROUNDS, SHAPES

ONLY_KNOW: Final = "I only know colours, shapes, digits, counts, left and right."
NO_PICTURE: Final = "I see no picture."
HELLO: Final = "Hello! Show me a picture."
GREETINGS: Final = ("Hello", "Hello!", "Hi", "Hi!", "Hello there!")
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "colour": (
        "What colour is the {wish}?", "Which colour is the {wish}?",
        "What is the colour of the {wish}?", "What colour does the {wish} have?",
    ),
    "ground": (
        "What colour is the background?", "What is the colour of the background?",
        "Which colour is the background?",
    ),
    "shape": (
        "What shape is the {wish}?", "Which shape is the {wish}?",
        "What is the shape of the {wish}?",
    ),
    "digit": ("What digit is {colour}?", "Which digit is {colour}?", "What is the {colour} digit?"),
    "it shape": (
        "What shape is it?", "What shape is this?", "What shape do you see?", "Which shape is it?",
        "What shape is in the picture?", "Which shape do you see?", "What is the shape?",
        "What shape is shown?", "Which shape is in the picture?",
    ),
    "it digit": (
        "What digit is it?", "What digit is this?", "What digit do you see?", "Which digit is it?",
        "What number is it?", "What number do you see?", "What digit is in the picture?",
        "Which number is this?", "What is the digit?", "Which digit do you see?",
        "What digit is shown?", "Which digit is in the picture?", "What number is in the picture?",
    ),
    "it colour": (
        "What colour is it?", "What colour is this?", "What colour do you see?",
        "What is the colour?", "Which colour is it?",
    ),
    "count": (
        "How many {wishes} are there?", "How many {wishes} do you see?", "Count the {wishes}.",
        "How many {wishes} are in the picture?", "How many {wishes} can you see?",
    ),
    "exists": (
        "Is there {a_wish}?", "Do you see {a_wish}?", "Is there {a_wish} in the picture?",
        "Can you see {a_wish}?",
    ),
    "is colour": (
        "Is the {wish} {colour}?",
    ),
    "end": (
        "What is on the {side}?", "What do you see on the {side}?", "Which thing is on the {side}?",
        "What is on the {side} side?",
    ),
    "where": (
        "Where is the {wish}?", "On which side is the {wish}?",
        "Is the {wish} on the left or on the right?", "Is the {wish} on the left or right?",
    ),
    "order": (
        "Is the {wish} {side} of the {other}?", "Is the {wish} to the {side} of the {other}?",
    ),
    "describe": (
        "What is in the picture?", "What do you see?", "Describe the picture.", "What is this?",
        "What does the picture show?", "What is shown?",
        "What is it?", "What can you see?", "What do you see in the picture?", "What is there?",
    ),
}  # fmt: skip
_SYNONYMS: Final = (
    ("the picture", "this picture"),
    ("colour", "color"),
    ("picture", "image"),
    ("picture", "photo"),
    ("grey", "gray"),
    ("thing", "object"),
)


def spelled(random: random.Random, kind: str, **words: str) -> str:
    """One of the spellings of a kind of question, with its blanks filled."""
    return random.choice(SPELLINGS[kind]).format(**words)


def varied(random: random.Random, text: str) -> str:
    """The same question with other words for some, with a small letter or without its mark."""
    for word, other in _SYNONYMS:
        if word in text and random.random() < 0.3:
            text = text.replace(word, other)
    if random.random() < 0.15:
        text = text[0].lower() + text[1:]
    if random.random() < 0.15:
        text = text.rstrip("?.!")
    return text


def plural(words: str) -> str:
    """`red cross` -> `red crosses`; a digit has none."""
    return f"{words}es" if words.endswith("ss") else f"{words}s"


def with_article(words: str) -> str:
    """`orange star` -> `an orange star`."""
    return f"an {words}" if words[0] in "aeiou8" else f"a {words}"


def sentences() -> Iterator[str]:
    """Texts that hold every word of the language at least once."""
    wishes = [*SHAPES, *DIGITS, "shape", "digit", "thing"]
    for spellings in SPELLINGS.values():
        for spelling in spellings:
            yield spelling.format(
                wish="", wishes="", a_wish="a", colour="", side="left", other="right"
            )
    yield from (word for pair in _SYNONYMS for word in pair)
    yield from (
        *GREETINGS,
        HELLO,
        ONLY_KNOW,
        NO_PICTURE,
        "Yes, No, an It, so",
        *COLOURS,
        *GROUNDS,
        *wishes,
    )
    yield "I see of it and The background A picture"
    yield from map(plural, (*SHAPES, "shape", "digit", "thing", "object"))

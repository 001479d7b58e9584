"""What is no question of the little language: other questions, other words, other tongues.

To all of it the answer is the same sentence; only who greets is greeted. Most words here are made
up of random letters, so that no word is known by having been seen: whatever is spelled in single
bytes is foreign.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from minimsg.tiny_vl.questions import Question
from minimsg.tiny_vl.vocabulary import words
from minimsg.tiny_vl.wording import GREETINGS, HELLO, ONLY_KNOW

LETTERS: Final = "eeeaaaiiiooouutttnnnsssrrrhhldcmfpgwybvkxjqz"
OTHERS: Final = "äöüéñçßøабвгдежзиклмнопрαβγδλπ你好世界图片颜色日本語の絵한국어العربية👋🙂🎨"
MARKS: Final = "?!.,;:-()[]{}<>/\\'\"`=+*&%$#@_|~^\n"
QUESTIONS: Final = (
    "What is the {} of {}?", "Who is {}?", "Write a {} about the {}.", "How are you?",
    "Tell me a {}.", "Why is the {} {}?", "What is your name?", "Who are you?", "What can you do?",
    "How do I {} a {}?", "Translate {} to {}.", "What is {} times {}?", "What {} is it?",
    "Is there a {}?", "How many {} are there?", "What colour is the {}?", "Is this a {}?",
    "Where is the {}?", "What do you know?", "What time is it?", "Can you {}?", "{} {} {}",
    "Thank you.", "Please {} the {}.", "def {}({}):\n    return {}", "{}", "Explain {} to me.",
    "What shape is the {}?", "Which {} is on the left?", "Describe the {}.", "Count the {}.",
    "Do you see a {}?", "What is {}?", '{{"{}": "{}"}}', "{}, {} and {}", "Help me {} this {}.",
)  # fmt: skip


def stranger(random: random.Random) -> Question:
    """A text that is no question of the language, or a greeting."""
    draw = random.random()
    if draw < 0.1:
        return Question("greeting", random.choice(GREETINGS), HELLO)
    if draw < 0.25:
        return Question("stranger", foreign_text(random, random.randint(1, 12)), ONLY_KNOW)
    return short_stranger(random)


def short_stranger(random: random.Random) -> Question:
    """A sentence with some foreign words, or one of which not all words are foreign."""
    text = random.choice(QUESTIONS)
    words = (foreign_word(random) for _ in range(text.count("{}")))
    return Question("stranger", text.format(*words), ONLY_KNOW)


def foreign_text(random: random.Random, num_words: int) -> str:
    """Words and marks, for system prompts and the like; some of the words are known ones."""
    share = 0.2 if num_words > 1 else 0.0
    return "".join(
        (random.choice(_known()) if random.random() < share else foreign_word(random))
        + _mark(random)
        for _ in range(num_words)
    ).strip()


def foreign_word(random: random.Random) -> str:
    """Some letters that are likely no word of the language."""
    draw = random.random()
    if draw < 0.06:
        return "".join(random.choices(OTHERS, k=random.randint(1, 6)))
    if draw < 0.1:
        return str(random.randint(10, 10**6))
    word = "".join(random.choices(LETTERS, k=random.randint(2, 10)))
    return word if random.random() < 0.8 else word.capitalize()


@lru_cache(maxsize=1)
def _known() -> Sequence[str]:
    return sorted({word.strip() for word in words()})


def _mark(random: random.Random) -> str:
    return random.choice(MARKS) + random.choice(("", " ")) if random.random() < 0.2 else " "

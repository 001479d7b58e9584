"""What texts are about: the stems of their words, less those that are in every text.

Stems are rough, the first six characters, so that "opened" is "opens"; of writing without
spaces, pairs of characters. Knows text only.
"""

from __future__ import annotations

import re
from typing import Final

STEM_CHARS: Final = 6
WORD: Final = re.compile(r"\w+")
UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# English; of other languages the words that most passages share count little as it is.
ENGLISH: Final = """
a about after all also although am an and any are as at be because been before being both but
by can could did do does doing during each few for from had has have having he her here hers
him his how i if in into is it its itself just me might more most must my no nor not of off on
once only or other our out over own s same shall she should so some such t than that the their
them then there these they this those through to too under until up upon us very was we were
what when where which while who whom whose why will with would you your
according answer document documents mentioned passage provided question says states text
"""
FUNCTION_WORDS: Final = frozenset(ENGLISH.split())


def stems(text: str) -> list[str]:
    """The stems of `text` in its order; numbers are kept whole."""
    found: list[str] = []
    for word in WORD.findall(text.casefold()):
        if UNSPACED.search(word):
            found += [word[n : n + 2] for n in range(max(1, len(word) - 1))]
        elif word not in FUNCTION_WORDS:
            found.append(word if word.isdigit() else _stem(word))
    return found


def _stem(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM_CHARS]

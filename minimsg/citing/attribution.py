"""What a sentence was taken from: passages that have its words, and that its tokens looked at.

`Index` is made once for a request, `sources_of` asked for each sentence.

- A stem counts the more, the fewer passages have it; one that none has counts most. A
  passage has the share of it all that its stems count.
- Where attention was recorded, a passage gets `ATTENTION` times its share of what the tokens
  paid to all passages on top; one without any word of the sentence gets nothing.
- The strongest passage is cited if it has `MIN_GAIN` (or `MIN_GAIN_ATTENDED`), further ones if
  they add that much with words that the others do not have. Of equals the shorter one is
  taken, then the earlier one.

Deterministic: no chance, no clock, no order of sets. Knows sentences and passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from minimsg.citing.passages import Passage
from minimsg.citing.words import stems

# Chosen on the tuning half of `bench/cited.toml`, in the middle of a range that does alike.
MIN_GAIN: Final = 0.3
MIN_GAIN_ATTENDED: Final = 0.4  # the same where attention was recorded
ATTENTION: Final = 0.6
MAX_SOURCES: Final = 3  # of a sentence
MAX_POSTINGS: Final = 2_000  # passages with a stem; one that more have tells nothing


@dataclass(frozen=True, slots=True)
class Index:
    """The passages of a request, and which of them have a stem."""

    passages: list[Passage]
    postings: dict[str, list[int]]
    sizes: list[int]  # the number of stems of each passage


def index_of(passages: Sequence[Passage]) -> Index:
    """The index of `passages`."""
    postings: dict[str, list[int]] = {}
    sizes: list[int] = []
    for number, passage in enumerate(passages):
        found = dict.fromkeys(stems(passage.text))
        sizes.append(len(found))
        for stem in found:
            postings.setdefault(stem, []).append(number)
    kept = {stem: found for stem, found in postings.items() if len(found) <= MAX_POSTINGS}
    return Index(list(passages), kept, sizes)


def sources_of(sentence: str, index: Index, attention: Sequence[float] = ()) -> list[Passage]:
    """The passages that `sentence` was taken from, the most telling first; often none.

    `attention`: what its tokens paid to each passage, if that was recorded.
    """
    weights = {stem: _weight(stem, index) for stem in stems(sentence)}
    total, paid = sum(weights.values()), sum(attention) or 1.0
    bonus = [ATTENTION * each / paid for each in attention]
    least = MIN_GAIN_ATTENDED if attention else MIN_GAIN
    chosen: list[int] = []
    while weights and len(chosen) < MAX_SOURCES:
        best, gain = _best(weights, total, index, bonus)
        if gain < least:
            break
        chosen.append(best)
        weights = {s: w for s, w in weights.items() if best not in index.postings.get(s, ())}
    return [index.passages[number] for number in chosen]


def _weight(stem: str, index: Index) -> float:
    return log(1 + len(index.passages) / max(1, len(index.postings.get(stem, ()))))


def _best(
    weights: Mapping[str, float], total: float, index: Index, bonus: Sequence[float]
) -> tuple[int, float]:
    """The strongest of the passages that have any of the stems, and how strong; or (-1, 0)."""
    gains: dict[int, float] = {}
    for stem, weight in weights.items():
        for number in index.postings.get(stem, ()):
            gains[number] = gains.get(number, 0.0) + weight / total
    for number in gains if bonus else ():
        gains[number] += bonus[number]
    if not gains:
        return -1, 0.0
    best = min(gains, key=lambda number: (-round(gains[number], 9), index.sizes[number], number))
    return best, gains[best]

"""What a sentence was taken from, by the words that it shares with passages.

`Index` is made once for a request, `sources_of` asked for each sentence. A stem counts the
more, the fewer passages have it; one that none has counts most. A passage is cited if it
has `MIN_GAIN` of what the stems of a sentence count in all, and further ones if they add so
much that the others do not have, as long as all together have `MIN_SHARE`. Of passages that
have the same, the shorter one is taken, then the earlier one.

Deterministic: no chance, no clock, no order of sets. Knows sentences and passages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from minimsg.citing.passages import Passage
from minimsg.citing.words import stems

MIN_SHARE: Final = 0.5
MIN_GAIN: Final = 0.3
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


def sources_of(sentence: str, index: Index) -> list[Passage]:
    """The passages that `sentence` was taken from, the most telling first; often none."""
    weights = {stem: _weight(stem, index) for stem in stems(sentence)}
    total = sum(weights.values())
    chosen: list[int] = []
    covered = 0.0
    while weights and len(chosen) < MAX_SOURCES:
        best, gain = _best(weights, index)
        if gain < MIN_GAIN * total:
            break
        chosen.append(best)
        covered += gain
        weights = {s: w for s, w in weights.items() if best not in index.postings.get(s, ())}
    is_known = covered > 0 and covered >= MIN_SHARE * total
    return [index.passages[number] for number in chosen] if is_known else []


def _weight(stem: str, index: Index) -> float:
    return log(1 + len(index.passages) / max(1, len(index.postings.get(stem, ()))))


def _best(weights: Mapping[str, float], index: Index) -> tuple[int, float]:
    """The passage whose stems count most, and how much; (-1, 0) if none has any."""
    gains: dict[int, float] = {}
    for stem, weight in weights.items():
        for number in index.postings.get(stem, ()):
            gains[number] = gains.get(number, 0.0) + weight
    if not gains:
        return -1, 0.0
    best = min(gains, key=lambda number: (-round(gains[number], 9), index.sizes[number], number))
    return best, gains[best]

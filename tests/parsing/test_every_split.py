"""No cut into pieces changes what a text is. One table of texts per format."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from minimsg.parsing.segments import Segment
from minimsg.parsing.thinking import THINK, ThinkingTags

from .hermes_texts import HERMES, HERMES_CUT
from .json_texts import JSON, LLAMA_CUT, LLAMA_JSON
from .own_ways_texts import HERMES_OWN, JSON_OWN, LLAMA_OWN, QWEN_XML_OWN
from .qwen_xml_texts import QWEN_XML, QWEN_XML_CUT, QWEN_XML_UNENDED
from .splitting import joined, parsed, splits
from .thinking_texts import NO_CALLS, OPENED_THINKING, THINKING, THINKING_LLAMA, THINKING_XML


@dataclass(frozen=True)
class Row:
    """A text in a format, and its segments with neighbours joined."""

    name: str
    text: str
    expected: list[Segment]
    thinking: ThinkingTags | None
    is_cut: bool

    def check(self, pieces: list[str]) -> None:
        segments = parsed(self.name, pieces, self.thinking, is_cut=self.is_cut)
        assert joined(segments) == joined(self.expected), pieces


TABLES = [
    ("hermes", HERMES, None, False),
    ("hermes", HERMES_CUT, None, True),
    ("qwen_xml", QWEN_XML, None, False),
    ("qwen_xml", QWEN_XML_UNENDED, None, False),
    ("qwen_xml", QWEN_XML_CUT, None, True),
    ("llama_json", LLAMA_JSON, None, False),
    ("llama_json", LLAMA_CUT, None, True),
    ("json", JSON, None, False),
    ("hermes", HERMES_OWN, None, False),
    ("qwen_xml", QWEN_XML_OWN, None, False),
    ("llama_json", LLAMA_OWN, None, False),
    ("json", JSON_OWN, None, False),
    ("hermes", THINKING, THINK, False),
    ("qwen_xml", THINKING_XML, THINK, False),
    ("llama_json", THINKING_LLAMA, THINK, False),
    ("hermes", OPENED_THINKING, ThinkingTags(is_opened=True), False),
    ("none", NO_CALLS, THINK, False),
]
ROWS = {
    f"{name}{' cut' * is_cut}: {title}": Row(name, text, expected, tags, is_cut)
    for name, table, tags, is_cut in TABLES
    for title, (text, expected) in table.items()
}
assert len(ROWS) == sum(len(table) for _, table, _, _ in TABLES), "a title stands twice"


@pytest.mark.parametrize("title", ROWS)
def test_no_split_changes_what_a_text_is(title: str) -> None:
    row = ROWS[title]
    for pieces in splits(row.text):
        row.check(pieces)


def test_no_split_at_random_places_changes_what_a_text_is() -> None:
    chance = random.Random(1)
    for row in [*ROWS.values()] * 5:
        cuts = sorted(chance.choices(range(len(row.text) + 1), k=chance.randrange(8)))
        places = zip([0, *cuts], [*cuts, None], strict=True)
        row.check([row.text[start:end] for start, end in places])

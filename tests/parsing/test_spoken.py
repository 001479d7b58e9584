"""Calls that the request forbids are lines of JSON, and nothing of their markup is seen."""

from __future__ import annotations

import pytest

from minimsg.parsing.formats import parser_for
from minimsg.parsing.segments import Segment
from minimsg.parsing.spoken import SpokenCalls
from minimsg.parsing.thinking import THINK

from .splitting import TOOLS, Table, joined, splits, text, thinking

NOW = '{"name": "now", "arguments": {}}'
HERMES = '<tool_call>\n{"arguments": {}, "name": "now"}\n</tool_call>'
XML = "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
SPOKEN: Table = {
    "hermes": (HERMES, text(NOW)),
    "qwen_xml": (XML, text('{"name": "add", "arguments": {"a": 1}}')),
    "llama_json": ("<|python_tag|>now.call()", text(NOW)),
    "json": ("```json\n" + NOW + "\n```", text(NOW)),
}
AROUND: Table = {
    "text around it": (f"I look.\n{HERMES}\n\nDone.", text(f"I look.\n{NOW}\nDone.")),
    "another": (f"{HERMES}\n{HERMES}", text(f"{NOW}\n{NOW}")),
    "thinking before it": (f"<think>a</think>{HERMES}", thinking("a") + text(NOW)),
    "thinking behind it": (
        f"{HERMES}<think>a</think>b{HERMES}",
        text(NOW) + thinking("a") + text(f"b\n{NOW}"),
    ),
    "an unknown tool": ('<tool_call>{"name": "rm"', text('<tool_call>{"name": "rm"')),
}


def spoken(name: str, pieces: list[str]) -> list[Segment]:
    parser = SpokenCalls(parser_for(name, TOOLS, THINK))
    segments = [segment for piece in pieces for segment in parser.push(piece)]
    return joined(segments + parser.flush(is_cut=False))


@pytest.mark.parametrize("format", SPOKEN)
def test_a_forbidden_call_is_a_line_of_json_in_every_format(format: str) -> None:
    written, expected = SPOKEN[format]
    for pieces in splits(written):
        assert spoken(format, pieces) == expected, pieces


@pytest.mark.parametrize("title", AROUND)
def test_what_stands_around_a_forbidden_call_keeps_its_place(title: str) -> None:
    written, expected = AROUND[title]
    for pieces in splits(written):
        assert spoken("hermes", pieces) == expected, pieces

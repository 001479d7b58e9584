"""What holds for any text at all, and how long it takes; no example knows the answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import jiter
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minimsg.parsing.formats import PARSERS
from minimsg.parsing.segments import (
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.parsing.thinking import THINK

from .splitting import TOOLS, joined, parsed

SCRAPS = [
    *(
        "<tool_call>",
        "</tool_call>",
        "<function=",
        "<function=add>",
        "</function>",
        "<parameter=a>",
    ),
    *("<parameter=note>", "</parameter>", "<think>", "</think>", "<|python_tag|>", "```json\n"),
    *(
        "```",
        '{"name": "now"',
        '{"name": "write", "arguments": {',
        '{"arguments": ',
        '"name": "add"',
    ),
    *(
        '{"text": "',
        '{"name": "rm", ',
        '"function": ',
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        ":",
        ",",
        ", ",
    ),
    *("\\", "\\u", "\\ud83d", "d83d", "\n", " ", "<", "</", "a", "é", "\U0001f600", "1", "-1.5e3"),
    *("<|python_tag|>add.call(", "now", ".call(", "a=", "note='", ")"),
    *("true", "None", "}}", '"}', "null", "x</t", "\n\n", ";", "\x00"),
]
texts = st.lists(st.sampled_from(SCRAPS), max_size=30).map("".join)


def calls_of(segments: list[Segment]) -> Iterator[tuple[str, str, bool]]:
    """Name, input and whether it has an end, of each call; nothing else is inside one."""
    name, input = "", ""
    for segment in segments:
        match segment:
            case ToolCallStart(begun):
                if name:
                    yield name, input, False
                name, input = begun, ""
            case ToolCallInput(fragment):
                assert name
                assert fragment
                input += fragment
            case ToolCallEnd():
                assert name
                yield name, input, True
                name = ""
            case TextSegment(text) | ThinkingSegment(text):
                assert text
                assert not name
    if name:
        yield name, input, False


@settings(max_examples=200)
@given(st.sampled_from(list(PARSERS)), texts, st.integers(1, 6), st.booleans())
def test_calls_are_known_and_their_input_is_json_whatever_the_text(
    name: str, text: str, size: int, is_cut: bool
) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    segments = parsed(name, pieces, THINK, is_cut=is_cut)
    assert joined(segments) == joined(parsed(name, [text], THINK, is_cut=is_cut))
    for tool, input, is_whole in calls_of(segments):
        assert tool in TOOLS
        assert is_whole or is_cut, "a model that ends by itself leaves no call open"
        if is_whole:
            assert isinstance(json.loads(input), dict)
            assert isinstance(jiter.from_json(input.encode()), dict)
        elif input:
            jiter.from_json(input.encode(), partial_mode=True)


@settings(max_examples=200)
@given(st.sampled_from(list(PARSERS)), texts)
def test_text_and_thinking_are_parts_of_what_was_written_in_its_order(name: str, text: str) -> None:
    place = 0
    for segment in parsed(name, [text], THINK):
        if isinstance(segment, TextSegment | ThinkingSegment):
            place = text.index(segment.text, place) + len(segment.text)


ENDLESS = {
    "openings and half tags": ("qwen_xml", "<tool_call>\n<" * 7_500),
    "an unterminated string": (
        "hermes",
        '<tool_call>{"name": "now", "arguments": {"a": "' + "x" * 100_000,
    ),
    "nested braces": ("hermes", '<tool_call>{"name": "now", "arguments": ' + '{"a":' * 10_000),
    "nested brackets": ("hermes", '<tool_call>{"name": "now", "arguments": {"a": ' + "[" * 100_000),
    "many members": ("hermes", '<tool_call>{"name": "now", "arguments": {' + '"a": 1, ' * 12_000),
    "no name": ("hermes", '<tool_call>{"arguments": "' + "<tool_call>{" * 8_000),
    "openings": ("hermes", "<tool_call>" * 9_000),
    "openings of objects": ("hermes", '<tool_call>{"a": ' * 6_000),
    "ends": ("hermes", "</tool_call>" * 8_000),
    "white space": ("hermes", " \n" * 50_000),
    "a long number": ("hermes", '<tool_call>{"name": "now", "arguments": {"a": ' + "9" * 100_000),
    "a broken call": ("hermes", '<tool_call>{"name": "now", x' + "{<" * 50_000),
    "a long value": ("qwen_xml", "<function=add><parameter=note>" + "</parameter" * 9_000),
    "an eager value": ("qwen_xml", "<function=write><parameter=text>" + "\n</parameter" * 8_000),
    "a long name": ("qwen_xml", "<function=" + "a" * 100_000),
    "many parameters": ("qwen_xml", "<function=add>" + "<parameter=a>1</parameter>" * 4_000),
    "lines of braces": ("json", "{\n" * 50_000),
    "fences": ("json", "```\n" * 25_000),
    "objects without a call": ("json", '{"type": "x"}\n' * 8_000),
    "thinking tags": ("hermes", "<think></think>" * 7_000),
}


@pytest.mark.parametrize("title", ENDLESS)
@pytest.mark.parametrize("size", [4, 1_000_000])
def test_a_hundred_kilobytes_take_microseconds_a_character(title: str, size: int) -> None:
    name, text = ENDLESS[title]
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    start = time.process_time()
    parsed(name, pieces, THINK)
    assert time.process_time() - start < 20e-6 * len(text)

"""The page holds a stream to the rules of protocol/grammar.py, and to no others."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from minimsg.inspector.files import page_files
from minimsg.inspector.rules import script
from minimsg.protocol.grammar import StreamGrammar

from .node import ask

Json = dict[str, Any]
ALPHABET: list[Json] = [
    {"type": "message_start"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "of_tomorrow"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_stop"},
    {"type": "message_delta", "delta": {}},
    {"type": "message_stop"},
    {"type": "ping"},
    {"type": "error"},
    {"type": "of_tomorrow"},
]
LEGAL = [ALPHABET[place] for place in (0, 1, 3, 6, 2, 8, 9)]


def by_the_grammar(events: list[Json]) -> Json:
    grammar = StreamGrammar()
    wrongs = [grammar.push(event) for event in events]
    last = grammar.flush()
    return {"wrongs": wrongs, "last": last and last.partition(": ")[2]}


def test_the_tables_on_the_page_are_made_from_the_grammar() -> None:
    assert page_files()["rules.js"].decode() == script()


def test_every_short_stream_and_every_broken_one_is_judged_alike(tmp_path: Path) -> None:
    streams = [list(each) for n in range(4) for each in itertools.product(ALPHABET, repeat=n)]
    for place, event in itertools.product(range(len(LEGAL) + 1), ALPHABET):
        streams.append([*LEGAL[:place], event, *LEGAL[place:]])  # one too many
        streams.append([*LEGAL[:place], event, *LEGAL[place + 1 :]])  # another one
    answers = ask(tmp_path, "grammar.js", "check", [[stream] for stream in streams])
    for stream, answer in zip(streams, answers, strict=True):
        assert answer == by_the_grammar(stream), stream

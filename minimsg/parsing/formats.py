"""The formats of the model's text by name, and the parser of one reply.

To add a format: a module with a `Format` (`calls.py` says what one is), a line in
`PARSERS`, rows in the table of `tests/parsing/test_every_split.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from minimsg.parsing.calls import Format, Tools
from minimsg.parsing.hermes import HERMES
from minimsg.parsing.json_call import JSON
from minimsg.parsing.llama_json import LLAMA_JSON
from minimsg.parsing.markup import MarkupParser
from minimsg.parsing.qwen_xml import QWEN_XML
from minimsg.parsing.segments import Parser, PlainParser
from minimsg.parsing.thinking import ThinkingTags

NONE: Final = Format(reader=HERMES.reader, openings=(), closings=())  # without openings, unread

PARSERS: Final[Mapping[str, Format]] = {
    "none": NONE,
    "hermes": HERMES,
    "qwen_xml": QWEN_XML,
    "llama_json": LLAMA_JSON,
    "json": JSON,
}


def parser_for(name: str, tools: Tools, thinking: ThinkingTags | None = None) -> Parser:
    """The parser of one reply to a request with `tools`, from a model that writes format `name`.

    Without tools nothing is a call. `thinking`: the tags that the model thinks between.
    """
    format = PARSERS[name] if tools else NONE
    if format is NONE and thinking is None:
        return PlainParser()
    return MarkupParser(format, tools, thinking)

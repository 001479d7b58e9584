"""Where each block of a request ends in its rendered prompt.

A block ends behind the last of its values that the template writes, less white space,
which templates trim; a tool, too, so that the brackets that close its JSON are no longer
part of it. A part of a tool's result ends where the result's text has it, unless the
template writes that text in another form. Places are those of the text of all pieces,
and of the assistant prefix behind them.

Only a block's last values are looked for: of any kind, of those that no template compares
(`values.py`), and of texts, which a tool has where the template takes no tools. Knows
readings; how many tokens lie before a place: `encode.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from minimsg.prompt.chat import ChatModel
from minimsg.prompt.conversation import gap_before
from minimsg.prompt.documents import part_ends, result_text
from minimsg.prompt.reading import Reading
from minimsg.prompt.spans import Search, Span
from minimsg.prompt.values import Kind, Value, block_of
from minimsg.protocol.content import ToolResultBlock
from minimsg.protocol.request import InputMessage


def block_ends(
    reading: Reading, messages: Sequence[InputMessage], chat: ChatModel, blocks: Collection[str]
) -> dict[str, int]:
    """Where these blocks and tools, and the parts of results among them, end, if they are shown."""
    assert chat.template is not None  # it has written the reading
    assert chat.traits is not None
    search = Search(reading, chat.template, chat.traits, blocks)
    spans = search.inner_spans(_last_values(search.values))
    ends: dict[str, int] = {}
    for span in spans:
        block = block_of(span.source.path)
        ends[block] = max(span.end, ends.get(block, 0))
    texts = {value.path: value.text for value in search.values}
    shown = {span.source.path: span for span in spans}
    for path, result in _results(messages):
        if path in shown:
            ends |= _part_ends(path, result, texts[path], shown[path], chat)
    return ends | _prefix_ends(reading)


def _last_values(values: Sequence[Value]) -> list[int]:
    """Of each block the last value, the last that no template compares, and the last text."""
    last: dict[tuple[str, Kind], int] = {}
    for number, value in enumerate(values):
        if value.path.split(".")[4:5] == ["tool_addition"]:
            continue  # a tool that a block brings stands among the tools, not where the block is
        for most in (Kind.TEXT, Kind.WORD, max(Kind)):
            if value.kind <= most:
                last[block_of(value.path), most] = number
    return sorted(set(last.values()))


def _results(messages: Sequence[InputMessage]) -> Iterator[tuple[str, ToolResultBlock]]:
    for index, message in enumerate(messages):
        for place, block in enumerate(message.content):
            if isinstance(block, ToolResultBlock) and block.content:
                yield f"messages.{index}.content.{place}", block


def _part_ends(
    path: str, result: ToolResultBlock, value: str, span: Span, chat: ChatModel
) -> dict[str, int]:
    """The ends of the parts of `result`, whose text is the end of the `value` in `span`."""
    assert chat.template is not None
    shown = chat.template.marks.shown
    text, whole = shown(result_text(result, path, chat.name)), shown(value)
    source = span.source
    is_literal = len(shown(value[source.start : source.end])) == span.end - span.begin
    if not (is_literal and whole.endswith(text)):
        return {}
    start = span.begin - source.start + len(whole) - len(text)
    return {
        f"{path}.tool_result.content.{number}": max(span.begin, min(start + end, span.end))
        for number, end in enumerate(part_ends(result, path, chat.name, shown))
    }


def _prefix_ends(reading: Reading) -> dict[str, int]:
    ends: dict[str, int] = {}
    begin = sum(len(piece.text) for piece in reading.pieces)
    for number, part in enumerate(reading.begun):
        begin += len(gap_before(reading.begun, number))
        ends[part.path] = begin + len(part.text.rstrip())
        begin += len(part.text)
    return ends

"""What a block other than a call or a thought reads as: one form for each kind, in tags.

    <document>                    <search_result>              The tool NAME is available now.
    <title>...</title>            <source>...</source>         The tool NAME is no longer available.
    <context>...</context>        <title>...</title>
    <content>                     <content>                    Error: ... (a result with is_error)
    ...                           ...
    </content>                    </content>                   <summary> ... </summary> (compaction)
    </document>                   </search_result>

A line without a value is not written. Nothing is escaped: tags are text like any other,
and no user's text is a control token (`marks.py`). The parts of a result are joined by
line breaks. Citations are for clients; the model does not read them (`minimsg/citing/`).

An image reads as its marker (`marks.py`), if the model reads images (`pictures.py`). The
content of a PDF is its pages, each between `<page number="1">` and `</page>`: its picture, if
the model sees, and its text. PDFs (`pdfs.py`), files and what lies behind addresses
(`uploads.py`) are read before; what was not is refused at its path. Blocks of tools that
another server ran are in `foreign.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from minimsg.errors import InvalidRequest
from minimsg.prompt.foreign import foreign_text, tagged
from minimsg.prompt.marks import image_mark
from minimsg.prompt.pdfs import PdfPages
from minimsg.prompt.pictures import NumberedImage
from minimsg.protocol.content import (
    BrowserStateBlock,
    ContainerUploadBlock,
    ContentBlock,
    ContentSource,
    DefinedTool,
    DocumentBlock,
    ImageBlock,
    NamedTool,
    SearchResultBlock,
    TextBlock,
    TextSource,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
    ToolResultBlock,
)
from minimsg.protocol.server_blocks import CompactionBlock
from minimsg.protocol.tools import CustomTool

AnyBlock = ContentBlock | ToolReferenceBlock | BrowserStateBlock


def text_of(block: AnyBlock, path: str, model: str) -> str | None:
    """What `model` reads of `block`; None if it is left out. Raises InvalidRequest."""
    match block:
        case TextBlock():
            return block.text
        case DocumentBlock():
            return _document(block, path, model)
        case SearchResultBlock():
            return _search_result(block, path, model)
        case ToolReferenceBlock():
            return _is_available(block.tool_name)
        case ToolAdditionBlock():
            return _added(block)
        case ToolRemovalBlock():
            return _removed(block)
        case BrowserStateBlock():
            hidden = {"type", "cache_control"}
            state = block.model_dump(mode="json", exclude=hidden, exclude_none=True)
            return tagged("browser_state", json.dumps(state, ensure_ascii=False))
        case CompactionBlock():
            return tagged("summary", block.content) if block.content else None
        case NumberedImage(number=number):
            return image_mark(number)
        case ImageBlock():
            why = f"image blocks need a model that reads images; {model} reads text only"
            raise InvalidRequest(path, why)
        case ContainerUploadBlock():
            raise InvalidRequest(path, "container_upload blocks need code execution, as hosted")
    return foreign_text(block)


def result_text(block: ToolResultBlock, path: str, model: str) -> str:
    """The content of a tool's result. Raises InvalidRequest."""
    inside = f"{path}.tool_result.content"
    text = _joined(block.content, inside, model)
    return (f"Error: {text}" if text else "Error") if block.is_error else text


def part_ends(
    block: ToolResultBlock, path: str, model: str, shown: Callable[[str], str]
) -> list[int]:
    """For each part of a result the place in `result_text`, as it is `shown`, where it ends."""
    place = len("Error: ") if block.is_error else 0
    between, ends = 0, []
    for n, part in enumerate(block.content):
        if (text := text_of(part, f"{path}.tool_result.content.{n}", model)) is not None:
            place += between + len(shown(text))
            between = len("\n")
        ends.append(place)
    return ends


def _joined(blocks: Sequence[AnyBlock], path: str, model: str) -> str:
    texts = [text_of(block, f"{path}.{n}", model) for n, block in enumerate(blocks)]
    return "\n".join(text for text in texts if text is not None)


def text_starts(block: DocumentBlock | SearchResultBlock, path: str, model: str) -> list[int]:
    """Where each text of its content begins in `text_of` it: a document's, its pages' or blocks'.

    Raises InvalidRequest.
    """
    parts = _parts(block, path, model)
    content = _content(parts)
    closing = tagged(block.type, tagged("content", "")).partition("<content>\n")[2]
    place = len(text_of(block, path, model) or "") - len(closing) - len(content)
    starts: list[int] = []
    for part in parts:
        starts.append(place + len(part.before))
        place += len("".join(part)) + len("\n")
    return starts


class _Part(NamedTuple):
    """A text of a content and what stands around it."""

    before: str
    text: str
    after: str


def _parts(block: DocumentBlock | SearchResultBlock, path: str, model: str) -> list[_Part]:
    if isinstance(block, SearchResultBlock):
        return [_Part("", text.text, "") for text in block.content]
    source = block.source
    if isinstance(source, TextSource):
        return [_Part("", source.data, "")]
    if isinstance(source, PdfPages):
        return _pages(source, path, model)
    if isinstance(source, ContentSource):
        inside = f"{path}.document.source.content.content"
        texts = [text_of(part, f"{inside}.{n}", model) for n, part in enumerate(source.content)]
        return [_Part("", text or "", "") for text in texts]
    why = f"document blocks with a source of type {source.type} are not supported"
    raise InvalidRequest(path, f"{why}; send the text itself")


def _pages(source: PdfPages, path: str, model: str) -> list[_Part]:
    texts = source.texts
    marks = [f"{text_of(picture, path, model)}\n" for picture in source.pictures]
    return [
        _Part(f'<page number="{number}">\n{mark}', text, "\n</page>")
        for number, (mark, text) in enumerate(
            zip(marks or [""] * len(texts), texts, strict=True), 1
        )
    ]


def _content(parts: Sequence[_Part]) -> str:
    return "\n".join("".join(part) for part in parts)


def _document(block: DocumentBlock, path: str, model: str) -> str:
    content = tagged("content", _content(_parts(block, path, model)))
    lines = [_line("title", block.title), _line("context", block.context)]
    return tagged("document", f"{''.join(lines)}{content}")


def _search_result(block: SearchResultBlock, path: str, model: str) -> str:
    content = tagged("content", _content(_parts(block, path, model)))
    lines = [_line("source", block.source), _line("title", block.title)]
    return tagged("search_result", f"{''.join(lines)}{content}")


def _added(block: ToolAdditionBlock) -> str | None:
    """Tools of an MCP server are none here."""
    match block.tool:
        case NamedTool(name=name) | DefinedTool(definition=CustomTool(name=name)):
            return _is_available(name)
    return None


def _removed(block: ToolRemovalBlock) -> str | None:
    tool = block.tool
    return f"The tool {tool.name} is no longer available." if isinstance(tool, NamedTool) else None


def _is_available(name: str) -> str:
    return f"The tool {name} is available now."


def _line(tag: str, text: str | None) -> str:
    return f"<{tag}>{text}</{tag}>\n" if text else ""

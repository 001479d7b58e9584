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
line breaks. Citations are for clients; the model does not read them.

An image reads as its marker (`marks.py`), if the model reads images (`pictures.py`). The
content of a PDF is its pages, each between `<page number="1">` and `</page>`: its picture, if
the model sees, and its text. PDFs (`pdfs.py`), files and what lies behind addresses
(`uploads.py`) are read before; what was not is refused at its path. Blocks of tools that
another server ran are in `foreign.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

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
            return _search_result(block)
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


def _document(block: DocumentBlock, path: str, model: str) -> str:
    source = block.source
    if isinstance(source, TextSource):
        content = source.data
    elif isinstance(source, PdfPages):
        content = _pages(source, path, model)
    elif isinstance(source, ContentSource):
        content = _joined(source.content, f"{path}.document.source.content.content", model)
    else:
        why = f"document blocks with a source of type {source.type} are not supported"
        raise InvalidRequest(path, f"{why}; send the text itself")
    lines = [_line("title", block.title), _line("context", block.context)]
    return tagged("document", f"{''.join(lines)}{tagged('content', content)}")


def _pages(source: PdfPages, path: str, model: str) -> str:
    texts = source.texts
    marks = [f"{text_of(picture, path, model)}\n" for picture in source.pictures]
    return "\n".join(
        f'<page number="{number}">\n{mark}{text}\n</page>'
        for number, (mark, text) in enumerate(
            zip(marks or [""] * len(texts), texts, strict=True), 1
        )
    )


def _search_result(block: SearchResultBlock) -> str:
    content = tagged("content", "\n".join(text.text for text in block.content))
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

"""Content blocks of a request, one class a `type`, and what a turn may consist of.

A new block is a class here (in `media.py` if it is read, in `server_blocks.py` if only the
hosted API's own tools produce it) and a member of `ContentBlock`. Knows shapes and bounds,
nothing of rules that look at more than one block (`rules/`) nor of what a block means to
the model (`prompt/`). Source: Messages API reference, request content blocks. Next:
`request.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.media import (
    Base64ImageSource,
    Base64PdfSource,
    ContentSource,
    DocumentBlock,
    FileSource,
    ImageBlock,
    Many,
    OnlyText,
    SearchResultBlock,
    TextBlock,
    TextSource,
    UrlSource,
    or_text,
)
from minimsg.protocol.server_blocks import ServerBlock
from minimsg.protocol.tool_changes import (
    DefinedTool,
    NamedMcpTool,
    NamedMcpToolset,
    NamedTool,
    ToolAdditionBlock,
    ToolReferenceBlock,
    ToolRemovalBlock,
)
from minimsg.protocol.tool_fields import Caller
from minimsg.protocol.wire import (
    CacheMark,
    Count,
    Id,
    JsonObject,
    Name,
    ShortText,
    Text,
    Wire,
    or_null,
)

__all__ = [
    "Base64ImageSource",
    "Base64PdfSource",
    "BrowserStateBlock",
    "ContainerUploadBlock",
    "ContentBlock",
    "ContentSource",
    "DefinedTool",
    "DocumentBlock",
    "FileSource",
    "ImageBlock",
    "NamedMcpTool",
    "NamedMcpToolset",
    "NamedTool",
    "RedactedThinkingBlock",
    "SearchResultBlock",
    "SystemText",
    "TextBlock",
    "TextSource",
    "ThinkingBlock",
    "ToolAdditionBlock",
    "ToolReferenceBlock",
    "ToolRemovalBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "TurnContent",
    "UrlSource",
]


class ThinkingBlock(CacheMark):
    """What the model thought; comes back as it was sent."""

    type: Literal["thinking"]
    thinking: Text
    signature: Text


class RedactedThinkingBlock(CacheMark):
    """Thinking that only the server which wrote it can read."""

    type: Literal["redacted_thinking"]
    data: Text


class ToolUseBlock(CacheMark):
    """A call of a tool by the model."""

    type: Literal["tool_use"]
    id: Id
    name: Annotated[str, Field(min_length=1, max_length=LIMITS.called_name_chars)]
    input: JsonObject
    caller: Caller | None = None
    toolset_name: Name | None = None


class BrowserTab(Wire):
    """One tab."""

    tab_id: Name
    title: ShortText
    url: Text
    active: bool | None = None


class TabOpened(Wire):
    """A tab that was not there before."""

    type: Literal["tab_opened"]
    tab_id: Name


class DownloadStarted(Wire):
    """A file that is on its way."""

    type: Literal["download_started"]
    download_id: Name
    url: Text


class DownloadCompleted(Wire):
    """A file that has arrived."""

    type: Literal["download_completed"]
    download_id: Name
    url: Text
    path: ShortText | None = None
    size_bytes: Count | None = None


class DownloadFailed(Wire):
    """A file that will not arrive."""

    type: Literal["download_failed"]
    download_id: Name
    url: Text
    error: ShortText | None = None


BrowserChange = Annotated[
    TabOpened | DownloadStarted | DownloadCompleted | DownloadFailed, Field(discriminator="type")
]


class BrowserStateBlock(CacheMark):
    """The tabs of the browser that a toolset steers, and what happened in it."""

    type: Literal["browser_state"]
    tabs: Annotated[list[BrowserTab], Many]
    state_changes: Annotated[list[BrowserChange], Many] | None = None


ResultBlock = Annotated[
    TextBlock
    | ImageBlock
    | SearchResultBlock
    | DocumentBlock
    | ToolReferenceBlock
    | BrowserStateBlock,
    Field(discriminator="type"),
]


ResultBlocks = Annotated[list[ResultBlock], Many]


class ToolResultBlock(CacheMark):
    """What came of a call."""

    type: Literal["tool_result"]
    tool_use_id: Id
    content: Annotated[ResultBlocks, or_text(ResultBlocks), or_null(str | ResultBlocks)] = Field(
        default_factory=list
    )
    is_error: bool | None = None
    toolset_name: Name | None = None


class ContainerUploadBlock(CacheMark):
    """A file for the hosted API's own code execution."""

    type: Literal["container_upload"]
    file_id: Id


ContentBlock = Annotated[
    TextBlock
    | ImageBlock
    | DocumentBlock
    | SearchResultBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ContainerUploadBlock
    | ToolAdditionBlock
    | ToolRemovalBlock
    | ServerBlock,
    Field(discriminator="type"),
]
"""What a turn may consist of, of whatever role; which role may have what is a rule."""

TurnBlocks = Annotated[list[ContentBlock], Many]
TurnContent = Annotated[TurnBlocks, or_text(TurnBlocks)]
SystemBlocks = Annotated[list[OnlyText], Many]
SystemText = Annotated[SystemBlocks, or_text(SystemBlocks), or_null(str | SystemBlocks)]

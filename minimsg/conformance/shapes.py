"""What an answer must hold at least: the fields that the official SDKs read, by name.

Looser than `protocol/`, which types what *we* send: another server may leave out what is
nullable and add what it likes. A field that is there has its type. Source: Messages API
reference; the required fields are those of the SDK's response types, which a test compares.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from minimsg.conformance.case import complaint

Count = Annotated[int, Field(ge=0, strict=True)]
Filled = Annotated[str, Field(min_length=1, strict=True)]
Text = Annotated[str, Field(strict=True)]
Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")]


class DocumentLocation(TypedDict):
    """What all places in documents have."""

    cited_text: Text
    document_index: Count
    document_title: NotRequired[str | None]
    file_id: NotRequired[str | None]


class CharLocation(DocumentLocation):
    type: Literal["char_location"]
    start_char_index: Count
    end_char_index: Count


class PageLocation(DocumentLocation):
    type: Literal["page_location"]
    start_page_number: Count
    end_page_number: Count


class BlockLocation(DocumentLocation):
    type: Literal["content_block_location"]
    start_block_index: Count
    end_block_index: Count


class SearchLocation(TypedDict):
    type: Literal["search_result_location"]
    cited_text: Text
    search_result_index: Count
    source: Text
    title: NotRequired[str | None]
    start_block_index: Count
    end_block_index: Count


class OtherLocation(TypedDict):
    """One of a kind that only some servers have."""

    type: Filled
    cited_text: Text


LOCATIONS: Final = (
    "char_location",
    "page_location",
    "content_block_location",
    "search_result_location",
)


def location_of(citation: object) -> str:
    """Which of the locations above one is, by its tag."""
    kind = citation.get("type") if isinstance(citation, dict) else None
    return kind if kind in LOCATIONS else "other"


Citation = Annotated[
    Annotated[CharLocation, Tag("char_location")]
    | Annotated[PageLocation, Tag("page_location")]
    | Annotated[BlockLocation, Tag("content_block_location")]
    | Annotated[SearchLocation, Tag("search_result_location")]
    | Annotated[OtherLocation, Tag("other")],
    Discriminator(location_of),
]


class TextBlock(TypedDict):
    type: Literal["text"]
    text: Text
    citations: NotRequired[list[Citation] | None]


class ThinkingBlock(TypedDict):
    type: Literal["thinking"]
    thinking: Text
    signature: Text


class ToolUseBlock(TypedDict):
    type: Literal["tool_use"]
    id: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]+$")]
    name: Filled
    input: dict[str, Any]


class OtherBlock(TypedDict):
    """One of a kind that only some servers have."""

    type: Filled


def kind_of(block: object) -> str:
    """Which of the blocks above one is, by its tag."""
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if kind in ("text", "thinking", "tool_use") else "other"


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[OtherBlock, Tag("other")],
    Discriminator(kind_of),
]


class CacheCreation(TypedDict):
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count


class Usage(TypedDict):
    input_tokens: Count
    output_tokens: Count
    cache_creation_input_tokens: NotRequired[Count | None]
    cache_read_input_tokens: NotRequired[Count | None]
    cache_creation: NotRequired[CacheCreation | None]


StopReason = Literal[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "compaction",
    "model_context_window_exceeded",
]


class Message(TypedDict):
    id: Filled
    type: Literal["message"]
    role: Literal["assistant"]
    model: Filled
    content: list[Block]
    stop_reason: StopReason
    stop_sequence: NotRequired[str | None]
    usage: Usage


class ErrorObject(TypedDict):
    type: Filled
    message: Filled
    details: NotRequired[dict[str, Any] | None]


class Error(TypedDict):
    type: Literal["error"]
    error: ErrorObject
    request_id: NotRequired[Filled | None]


class TokenCount(TypedDict):
    input_tokens: Count


class Model(TypedDict):
    id: Filled
    type: Literal["model"]
    display_name: Filled
    created_at: Time
    lifecycle: Literal["active", "deprecated", "retired"]


class ModelPage(TypedDict):
    data: list[Model]
    has_more: bool
    first_id: str | None
    last_id: str | None


class RequestCounts(TypedDict):
    processing: Count
    succeeded: Count
    errored: Count
    canceled: Count
    expired: Count


class Batch(TypedDict):
    id: Annotated[str, Field(pattern="^msgbatch_")]
    type: Literal["message_batch"]
    processing_status: Literal["in_progress", "canceling", "ended"]
    request_counts: RequestCounts
    created_at: Time
    expires_at: Time
    ended_at: Time | None
    cancel_initiated_at: Time | None
    archived_at: Time | None
    results_url: str | None


class BatchPage(TypedDict):
    data: list[Batch]
    has_more: bool
    first_id: str | None
    last_id: str | None


class File(TypedDict):
    id: Annotated[str, Field(pattern="^file_")]
    type: Literal["file"]
    filename: Filled
    mime_type: Filled
    size_bytes: Count
    created_at: Time
    downloadable: NotRequired[bool]


class FilePage(TypedDict):
    data: list[File]
    has_more: bool
    next_page: str | None


SHAPES: Final[dict[str, TypeAdapter[Any]]] = {
    "message": TypeAdapter(Message),
    "error": TypeAdapter(Error),
    "count": TypeAdapter(TokenCount),
    "model": TypeAdapter(Model),
    "model_page": TypeAdapter(ModelPage),
    "batch": TypeAdapter(Batch),
    "batch_page": TypeAdapter(BatchPage),
    "file": TypeAdapter(File),
    "file_page": TypeAdapter(FilePage),
}


def misfit(name: str, value: object) -> str | None:
    """The first place where `value` is not of the shape, with its path; None where it is."""
    try:
        SHAPES[name].validate_python(value)
    except ValidationError as error:
        return complaint(error, name)
    return None

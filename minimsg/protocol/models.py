"""What GET /v1/models says of a model: `ModelInfo`.

Knows the shape and which feature stands behind which capability; what the loaded model is
called, how long its window is and what it can do comes from the caller. Next: `paging.py`,
the page that lists them. Source: Messages API reference, Models.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, get_args

from pydantic import Field
from typing_extensions import TypedDict

from minimsg.protocol.dialect import Dialect
from minimsg.protocol.options import Effort
from minimsg.protocol.paging import PageQuery
from minimsg.protocol.wire import JsonObject

Lifecycle = Literal["active", "deprecated", "retired"]

NO: Final[JsonObject] = {"supported": False}


class ModelsQuery(PageQuery):
    """Which models are asked for."""

    lifecycle: list[Lifecycle] = Field(
        default=["active", "deprecated"], alias="lifecycle[]", max_length=3
    )


class ModelInfo(TypedDict):
    """One model that can be asked for."""

    id: str
    type: Literal["model"]
    display_name: str
    created_at: str  # RFC 3339
    lifecycle: Lifecycle
    deprecated_at: None
    retires_at: None
    line: None
    max_input_tokens: int
    max_tokens: int
    capabilities: JsonObject


def model_info(name: str, created_at: datetime, max_context: int, dialect: Dialect) -> ModelInfo:
    """The served model; its window, `max_context` tokens, holds prompt and reply together."""
    return {
        "id": name,
        "type": "model",
        "display_name": name,
        "created_at": created_at.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": max_context,
        "max_tokens": max_context,
        "capabilities": capabilities(dialect),
    }


def capabilities(dialect: Dialect) -> JsonObject:
    """What works here, of `dialect`'s features.

    Every key that clients know is there: they read a missing one as unknown, not as false.
    An effort is a budget of thinking, so a model that does not think supports no level of it.
    """
    edits, thinks = _if(dialect, "context-management"), _if(dialect, "thinking")
    adaptive = _if(dialect, "thinking", "adaptive-thinking")
    efforts = _if(dialect, "effort", "thinking", "adaptive-thinking")
    return {
        "batch": {"supported": True},
        "citations": _if(dialect, "citations"),
        "code_execution": NO,
        "context_management": {
            **edits,
            "clear_thinking_20251015": edits,
            "clear_tool_uses_20250919": edits,
            "compact_20260112": NO,
        },
        "effort": {**efforts, **dict.fromkeys(get_args(Effort), efforts)},
        "image_input": _if(dialect, "images"),
        "pdf_input": _if(dialect, "pdfs"),
        "server_tools": {**NO, "web_search": NO, "code_execution": NO},
        "structured_outputs": _if(dialect, "structured-outputs"),
        "thinking": {
            **thinks,
            "types": {
                "adaptive": adaptive,
                "between_tools": adaptive,
                "disabled": {"supported": True},  # what a model that cannot think always does
                "enabled": thinks,
            },
        },
    }


def _if(dialect: Dialect, *features: str) -> JsonObject:
    return {"supported": all(dialect.can(feature) for feature in features)}

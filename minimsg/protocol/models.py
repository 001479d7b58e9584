"""What GET /v1/models says of a model: `ModelInfo`.

Knows the shape and which abilities exist; what the loaded model is called and how long
its window is comes from the caller. Next: `paging.py`, the page that lists them.
Source: Messages API reference, Models.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, TypedDict

from minimsg.protocol.wire import JsonObject

YES: Final[JsonObject] = {"supported": True}
NO: Final[JsonObject] = {"supported": False}

# Every key that clients know, always: they read a missing one as unknown, not as false.
CAPABILITIES: Final[JsonObject] = {
    "batch": NO,
    "citations": NO,
    "code_execution": NO,
    "context_management": {
        "supported": False,
        "clear_thinking_20251015": NO,
        "clear_tool_uses_20250919": NO,
        "compact_20260112": NO,
    },
    "effort": {"supported": False, "low": NO, "medium": NO, "high": NO, "xhigh": NO, "max": NO},
    "image_input": NO,
    "pdf_input": NO,
    "server_tools": {"supported": False, "web_search": NO, "code_execution": NO},
    "structured_outputs": NO,
    "thinking": {
        "supported": False,  # "disabled" is what a model that cannot think always does
        "types": {"adaptive": NO, "between_tools": NO, "disabled": YES, "enabled": NO},
    },
}


class ModelInfo(TypedDict):
    """One model that can be asked for."""

    id: str
    type: Literal["model"]
    display_name: str
    created_at: str  # RFC 3339
    lifecycle: Literal["active"]
    deprecated_at: None
    retires_at: None
    line: None
    max_input_tokens: int
    max_tokens: int
    capabilities: JsonObject


def model_info(name: str, created_at: datetime, max_context: int) -> ModelInfo:
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
        "capabilities": CAPABILITIES,
    }

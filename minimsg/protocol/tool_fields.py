"""What all tools share: who may call them, when the model is told of them.

Source: Messages API reference, tools. Next: `tools.py`, `server_tools.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.wire import CacheMark, Name, Wire


class DirectCaller(Wire):
    """The model itself made the call."""

    type: Literal["direct"]


class CodeCaller(Wire):
    """Code that the model ran made the call."""

    type: Literal["code_execution_20250825", "code_execution_20260120"]
    tool_id: Name


Caller = Annotated[DirectCaller | CodeCaller, Field(discriminator="type")]
AllowedCaller = Literal[
    "direct",
    "code_execution_20250825",
    "code_execution_20260120",
    "code_execution_20260521",
]


class ToolFields(CacheMark):
    """What may be said of every tool. Deferred: told of once something names it."""

    strict: bool | None = None
    defer_loading: bool | None = None
    allowed_callers: list[AllowedCaller] | None = Field(default=None, max_length=LIMITS.short_list)

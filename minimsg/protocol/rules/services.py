"""Rules about services of the hosted API that are not here: refused by name, never ignored.

`thread` is refused with the code by which the official SDK's tool runner goes on without
it: ignored, the next request would lack all that was before. Source: Messages API
reference; `anthropic` 2.14, `lib/threads`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.protocol.rules.tools import drops_foreign

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import MessagesRequest, PromptRequest


def threads_are_not_kept(request: PromptRequest, dialect: Dialect) -> None:
    if request.thread is not None:
        raise InvalidRequest(
            "thread",
            "threads are not supported; send the whole conversation without `thread`",
            error_code="thread_unsupported_request",
        )


def mcp_servers_are_not_called(request: PromptRequest, dialect: Dialect) -> None:
    if request.mcp_servers and not drops_foreign(dialect):
        raise InvalidRequest("mcp_servers", "MCP servers are called by the hosted API only")


def code_is_not_run(request: MessagesRequest, dialect: Dialect) -> None:
    if request.container is not None and not drops_foreign(dialect):
        raise InvalidRequest("container", "containers are run by the hosted API only")


def conversations_are_not_summed_up(request: MessagesRequest, dialect: Dialect) -> None:
    """Counting takes the field and ignores it, as hosted."""
    if request.compaction is not None:
        raise InvalidRequest("compaction", "compaction is not supported for this model")

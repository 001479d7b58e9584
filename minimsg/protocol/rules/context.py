"""Rules about what is cut out of a conversation: the order of edits, the place of a summary.

Source: Messages API reference, context management and compaction; error codes of the
official SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.protocol.options import ClearThinking
from minimsg.protocol.server_blocks import CompactionBlock

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

ONE_SUMMARY = "compact-2026-09-04"


def thinking_is_cleared_first(request: PromptRequest, dialect: Dialect) -> None:
    edits = request.context_management.edits if request.context_management else []
    for index, edit in enumerate(edits):
        if index > 0 and isinstance(edit, ClearThinking):
            why = "`clear_thinking_20251015` must be the first edit"
            raise InvalidRequest(f"context_management.edits.{index}", why)


def summaries_stand_first(request: PromptRequest, dialect: Dialect) -> None:
    """All before it is not read, so it cannot stand in the middle of what somebody says."""
    for index, message in enumerate(request.messages):
        for place, block in enumerate(message.content):
            if isinstance(block, CompactionBlock) and place > 0:
                raise InvalidRequest(
                    f"messages.{index}.content.{place}",
                    "a `compaction` block must be the first block of its message",
                    error_code="compaction_block_misplaced",
                )


def there_is_one_summary(request: PromptRequest, dialect: Dialect) -> None:
    """Under the newer beta a client keeps the last one only."""
    if not dialect.has_beta(ONE_SUMMARY):
        return
    blocks = [block for message in request.messages for block in message.content]
    if sum(isinstance(block, CompactionBlock) and bool(block.content) for block in blocks) > 1:
        raise InvalidRequest(
            "messages",
            "more than one `compaction` block with content; send the last one only",
            error_code="compaction_block_ambiguous",
        )

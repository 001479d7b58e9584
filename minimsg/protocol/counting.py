"""What POST /v1/messages/count_tokens answers.

The bill is an extension: it says what the tokens are for, and adds up to `input_tokens`.
Source: Messages API reference, token counting.
"""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from minimsg.protocol.context import ContextCount


class TokenBill(TypedDict):
    """Prompt tokens by what they stand for."""

    blocks: dict[str, int]  # JSON path of a block, of messages or system -> tokens
    tools: dict[str, int]  # `tools.N` -> tokens
    template: int  # all that the chat template itself wrote


class TokenCount(TypedDict):
    """The length of a prompt in tokens, exactly that of a reply's `usage`."""

    input_tokens: int
    context_management: NotRequired[ContextCount]  # if the request had edits
    bill: NotRequired[TokenBill]  # if the request asked for it

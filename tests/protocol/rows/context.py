"""Rows: what is cut out of a conversation, and summaries of it."""

from __future__ import annotations

from typing import Final

from .row import EXTRA, HI, OK, Json, Row, assistant, talk, text, user

EDITS: Final = ("context-management-2025-06-27",)

COMPACT: Final = ("compact-2026-01-12",)

SUMMARY: Final = ("compact-2026-09-04",)

NOT_HERE: Final = "not supported for this model"

CLEAR_TOOLS: Final[Json] = {"type": "clear_tool_uses_20250919"}

CLEAR_THINKING: Final[Json] = {"type": "clear_thinking_20251015", "keep": "all"}


def edits(*each: Json) -> Json:
    return {"context_management": {"edits": list(each)}}


def summed(content: str | None = "s") -> Json:
    return {"type": "compaction", "content": content}


MISPLACED: Final = "a `compaction` block must be the first block of its message"

ROWS: Final = (
    Row(
        "edits",
        edits(CLEAR_THINKING, CLEAR_TOOLS),
        compat=OK,
        strict=f"context_management: {EXTRA}",
    ),
    Row("edits under their beta", edits(CLEAR_THINKING, CLEAR_TOOLS), OK, betas=EDITS),
    Row("no edits", edits(), OK, betas=EDITS),
    Row(
        "edits are off",
        edits(CLEAR_TOOLS),
        f"context_management: {EXTRA}",
        betas=EDITS,
        without=("context-management",),
    ),
    Row(
        "edits are off, whatever they are",
        {"context_management": 7},
        f"context_management: {EXTRA}",
        betas=EDITS,
        without=("context-management",),
    ),
    Row(
        "thinking is cleared first",
        edits(CLEAR_TOOLS, CLEAR_THINKING),
        "context_management.edits.1: `clear_thinking_20251015` must be the first edit",
        betas=EDITS,
    ),
    Row(
        "an unknown edit",
        edits({"type": "forget"}),
        "context_management.edits.0: Input tag 'forget' found using 'type' does not match any of "
        "the expected tags: 'clear_tool_uses_20250919', 'clear_thinking_20251015', "
        "'compact_20260112'",
        betas=EDITS,
    ),
    Row(
        "an edit with all its settings",
        edits(
            {
                **CLEAR_TOOLS,
                "trigger": {"type": "tool_uses", "value": 3},
                "keep": {"type": "tool_uses", "value": 0},
                "exclude_tools": ["f"],
                "clear_at_least": {"type": "input_tokens", "value": 5},
                "clear_tool_inputs": ["g"],
            }
        ),
        OK,
        betas=EDITS,
    ),
    Row(
        "thinking of one turn or more is kept",
        edits({"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 0}}),
        "context_management.edits.0.clear_thinking_20251015.keep.thinking_turns.value: "
        "Input should be greater than or equal to 1",
        betas=EDITS,
    ),
    Row(
        "a summary when it gets long",
        edits({"type": "compact_20260112"}),
        compat=OK,
        strict="context_management.edits.0: Input tag 'compact_20260112' found using 'type' does "
        "not match any of the expected tags: 'clear_tool_uses_20250919', "
        "'clear_thinking_20251015'",
        betas=(*EDITS, *COMPACT),
        unheeded=("context_management.edits.0",),
    ),
    Row(
        "a summary from 50,000 tokens on",
        edits({"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 49_999}}),
        "context_management.edits.0.compact_20260112.trigger.value: "
        "Input should be greater than or equal to 50000",
        betas=COMPACT,
    ),
    Row("a summary comes back", talk(HI, assistant(summed(), text()), HI), OK, betas=COMPACT),
    Row("a summary in front of all", talk(assistant(summed()), HI), OK, betas=SUMMARY),
    Row("a summary that failed", talk(HI, assistant(summed(None), text()), HI), OK, betas=COMPACT),
    Row(
        "a summary after text",
        talk(HI, assistant(text(), summed()), HI),
        f"messages.1.content.1: {MISPLACED}",
        betas=COMPACT,
        error_code="compaction_block_misplaced",
    ),
    Row(
        "a summary is the assistant's",
        talk(user(summed())),
        "messages.0.content.0: `compaction` blocks can only be in `assistant` messages",
        betas=COMPACT,
    ),
    Row(
        "two summaries",
        talk(HI, assistant(summed()), HI, assistant(summed()), HI),
        OK,
        betas=COMPACT,
    ),
    Row(
        "two summaries under the newer beta",
        talk(HI, assistant(summed()), HI, assistant(summed()), HI),
        "messages: more than one `compaction` block with content; send the last one only",
        betas=SUMMARY,
        error_code="compaction_block_ambiguous",
    ),
    Row(
        "a summary now",
        {"compaction": {"type": "summarize"}},
        f"compaction: compaction is {NOT_HERE}",
        betas=SUMMARY,
        count=OK,
    ),
)

"""`context_management`: old tool results and old thinking, taken out before the model reads.

- `clear_tool_uses_20250919`: once the prompt has more than `trigger` tokens (100,000) or
  tool uses, the results of all tool uses but the last `keep` (3) are replaced by
  `CLEARED_RESULT`. `keep` counts uses of every tool; what `exclude_tools` names is never
  cleared. `clear_tool_inputs` also makes the inputs of cleared uses `{}`, of all tools or
  of those it names.
- `clear_thinking_20251015`: of the assistant's turns that think, all but the last `keep`
  (1) lose their thinking. A tool loop is one turn: it ends where the user says something
  that is no tool result.
- An edit that clears less than `clear_at_least`, or makes the prompt no shorter, is not made.
- `compact_20260112` is not done here.

A pure function of turns. The tokens come from a callable that the caller gives, a full
rendering, which is called only where a number is needed. Next: `conversation.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from typing import Final

from minimsg.protocol.content import (
    ContentBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from minimsg.protocol.context import AppliedEdit
from minimsg.protocol.options import (
    ClearThinking,
    ClearToolUses,
    Edit,
    InputTokens,
    ThinkingTurns,
    ToolUses,
)
from minimsg.protocol.turns import Placed, Turn

Count = Callable[[Sequence[Turn]], int]

CLEARED_RESULT: Final = "[Old tool result cleared]"
TRIGGER: Final = InputTokens(type="input_tokens", value=100_000)  # API
KEPT_TOOL_USES: Final = 3  # API
KEPT_THINKING_TURNS: Final = 1  # API

_CLEARED_CONTENT: Final = [TextBlock(type="text", text=CLEARED_RESULT)]


@dataclass(frozen=True, slots=True)
class Edited:
    """The turns that are left to read, and what was done to them.

    `original_input_tokens`: None if nobody had to count; then nothing was cleared.
    """

    turns: Sequence[Turn]
    applied: list[AppliedEdit]
    original_input_tokens: int | None


def edit_turns(turns: Sequence[Turn], edits: Sequence[Edit], count: Count) -> Edited:
    """`turns` after `edits`, in their order; `count` gives the prompt's tokens for some turns."""
    draft = _Draft(turns, count)
    applied: list[AppliedEdit] = []
    for edit in edits:
        if isinstance(edit, ClearToolUses):
            applied += _clear_tool_uses(draft, edit)
        elif isinstance(edit, ClearThinking):
            applied += _clear_thinking(draft, edit)
    return Edited(draft.turns, applied, draft.original_tokens)


class _Draft:
    """Turns under edit. Invariant: `turns` changes only for turns with fewer tokens."""

    def __init__(self, turns: Sequence[Turn], count: Count) -> None:
        self.turns = turns
        self.original_tokens: int | None = None
        self._tokens: int | None = None
        self._count = count

    def tokens(self) -> int:
        """Of the prompt with `turns` as they are now."""
        if self._tokens is None:
            self._tokens = self.original_tokens = self._count(self.turns)
        return self._tokens

    def shorten(self, turns: Sequence[Turn], at_least: int = 1) -> int:
        """Go on with these `turns` if that saves enough; the tokens saved, else 0."""
        before, after = self.tokens(), self._count(turns)
        if before - after < max(at_least, 1):
            return 0
        self.turns, self._tokens = turns, after
        return before - after


def _clear_tool_uses(draft: _Draft, edit: ClearToolUses) -> list[AppliedEdit]:
    blocks = [placed.block for turn in draft.turns for placed in turn.blocks]
    uses = [block for block in blocks if isinstance(block, ToolUseBlock)]
    keep = edit.keep.value if edit.keep else KEPT_TOOL_USES
    old = {
        use.id: use.name
        for use in uses[: max(len(uses) - keep, 0)]
        if use.name not in (edit.exclude_tools or ())
    }
    turns = _with_blocks(draft.turns, lambda block: _cleared(block, old, edit.clear_tool_inputs))
    cleared_uses = _changed_uses(draft.turns, turns)
    if not cleared_uses or not _is_due(edit.trigger or TRIGGER, len(uses), draft):
        return []
    at_least = edit.clear_at_least.value if edit.clear_at_least else 1
    if not (cleared_tokens := draft.shorten(turns, at_least)):
        return []
    return [
        {
            "type": "clear_tool_uses_20250919",
            "cleared_input_tokens": cleared_tokens,
            "cleared_tool_uses": len(cleared_uses),
        }
    ]


def _is_due(trigger: InputTokens | ToolUses, num_uses: int, draft: _Draft) -> bool:
    seen = num_uses if isinstance(trigger, ToolUses) else draft.tokens()
    return seen > trigger.value


def _cleared(
    block: ContentBlock, old: Mapping[str, str], inputs: bool | Collection[str] | None
) -> ContentBlock:
    """`block`, or what is left of it if it belongs to one of the `old` uses (id -> tool)."""
    if isinstance(block, ToolResultBlock) and block.tool_use_id in old and block.content:
        return block.model_copy(update={"content": _CLEARED_CONTENT})
    if isinstance(block, ToolUseBlock) and block.id in old and block.input:
        is_meant = inputs is True or (inputs and block.name in inputs)
        return block.model_copy(update={"input": {}}) if is_meant else block
    return block


def _with_blocks(
    turns: Sequence[Turn], change: Callable[[ContentBlock], ContentBlock]
) -> list[Turn]:
    return [
        Turn(turn.role, turn.index, [Placed(p.path, change(p.block)) for p in turn.blocks])
        for turn in turns
    ]


def _changed_uses(before: Sequence[Turn], after: Sequence[Turn]) -> set[str]:
    """The ids of the tool uses whose input or result is no longer what it was."""
    old = chain.from_iterable(turn.blocks for turn in before)
    new = chain.from_iterable(turn.blocks for turn in after)
    changed = (b.block for a, b in zip(old, new, strict=True) if a.block is not b.block)
    return {
        block.tool_use_id if isinstance(block, ToolResultBlock) else block.id
        for block in changed
        if isinstance(block, (ToolResultBlock, ToolUseBlock))
    }


def _clear_thinking(draft: _Draft, edit: ClearThinking) -> list[AppliedEdit]:
    if edit.keep is not None and not isinstance(edit.keep, ThinkingTurns):
        return []
    keep = edit.keep.value if edit.keep else KEPT_THINKING_TURNS
    answers = list(accumulate(map(_begins_answer, draft.turns)))
    thinking = [n for turn, n in zip(draft.turns, answers, strict=True) if _thinks(turn)]
    old = set(sorted(set(thinking))[:-keep])
    if not old:
        return []
    turns = [
        _without_thinking(turn) if number in old else turn
        for turn, number in zip(draft.turns, answers, strict=True)
    ]
    if not (cleared_tokens := draft.shorten(_joined(turns))):
        return []
    return [
        {
            "type": "clear_thinking_20251015",
            "cleared_input_tokens": cleared_tokens,
            "cleared_thinking_turns": len(old),
        }
    ]


def _begins_answer(turn: Turn) -> bool:
    """Whether what the assistant says after `turn` answers it, and not a tool's result."""
    has_result = any(isinstance(placed.block, ToolResultBlock) for placed in turn.blocks)
    return turn.role == "user" and not has_result


def _is_thinking(block: ContentBlock) -> bool:
    return isinstance(block, (ThinkingBlock, RedactedThinkingBlock))


def _thinks(turn: Turn) -> bool:
    return any(_is_thinking(placed.block) for placed in turn.blocks)


def _without_thinking(turn: Turn) -> Turn:
    kept = [placed for placed in turn.blocks if not _is_thinking(placed.block)]
    return Turn(turn.role, turn.index, kept)


def _joined(turns: Sequence[Turn]) -> list[Turn]:
    """`turns` without the empty ones, and again no two of one role in a row."""
    filled = [turn for turn in turns if turn.blocks]
    runs = [list(run) for _, run in groupby(filled, key=lambda turn: turn.role)]
    return [
        Turn(run[-1].role, run[-1].index, [placed for turn in run for placed in turn.blocks])
        for run in runs
    ]

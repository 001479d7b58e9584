"""A conversation as a list of entries: what one message of a chat template holds, with paths.

    turns -> entries (here) -> entries that the template can take (`fitting.py`) -> messages

An entry is the neutral form between the API's turns and a template's messages. Blocks
keep the order in which the client wrote them:

- A user turn `[result, text, result]` gives the entries tool, user, tool.
- A template writes an assistant's thoughts, then its text, then its calls; where blocks
  stand in another order, a new assistant entry begins.
- Templates mostly show no ids of calls, so that the model takes results for those of the
  calls in their order. Results keep the order in which they were sent; one that is out of
  turn begins with a line that says what it is the result of.
- Text neighbours of one entry are joined by a line break (`fitting.py`), but for those of a
  reply that citations have cut into blocks: these are the text that the model wrote.
- Everything before the last compaction block that has content is not read; its content
  is a user's text, as a template may want a user to begin.
- A system message with `clear_at: next_user_message` is gone once a user message follows.

Every text knows the path of its block, so that errors and the token bill can name it.
What a block reads as is in `documents.py`; which tools there are in `tools.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from minimsg.prompt.documents import result_text, text_of
from minimsg.protocol.content import (
    ContentBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from minimsg.protocol.request import InputMessage
from minimsg.protocol.server_blocks import CompactionBlock
from minimsg.protocol.turns import Placed, Turn
from minimsg.protocol.wire import JsonObject

EntryRole = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Part:
    """A text that the model reads and the path of its block; "" for what we added."""

    path: str
    text: str
    goes_on: bool = False  # with the text before it: no line break parts them


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that the assistant made."""

    path: str
    id: str
    name: str
    input: JsonObject


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a template. Only an assistant's has thoughts and calls."""

    role: EntryRole
    texts: list[Part] = field(default_factory=list)
    thoughts: list[Part] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    call_id: str = ""  # what a tool's entry is the result of
    name: str = ""  # the tool's, if its call is in the conversation
    is_one_text: bool = False  # its texts are lines of one, for templates that take blocks too


@dataclass(frozen=True, slots=True)
class Conversation:
    """Entries in order, and the paths of the blocks that none of them holds."""

    entries: list[Entry]
    left_out: list[str]


def joined(parts: Sequence[Part]) -> str:
    """The texts of one message as one."""
    return "".join(f"{gap_before(parts, n)}{part.text}" for n, part in enumerate(parts))


def gap_before(parts: Sequence[Part], number: int) -> str:
    """What parts one of `parts` from the one before."""
    return "" if number == 0 or parts[number].goes_on else "\n"


def standing(messages: Sequence[InputMessage]) -> list[InputMessage]:
    """`messages` without the content of those that were to be cleared by now."""
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    last_user = users[-1] if users else -1
    return [
        message.model_copy(update={"content": []})
        if message.clear_at == "next_user_message" and index < last_user
        else message
        for index, message in enumerate(messages)
    ]


def after_compaction(turns: Sequence[Turn]) -> list[Turn]:
    """`turns` from the last summary on, which is a user turn of its own."""
    for number in range(len(turns) - 1, -1, -1):
        blocks = turns[number].blocks
        for place in range(len(blocks) - 1, -1, -1):
            block = blocks[place].block
            if isinstance(block, CompactionBlock) and block.content:
                index, rest = turns[number].index, blocks[place + 1 :]
                summary = Turn("user", index, [blocks[place]])
                following = [Turn(turns[number].role, index, rest)] if rest else []
                return [summary, *following, *turns[number + 1 :]]
    return list(turns)


def conversation_of(turns: Sequence[Turn], model: str, *, takes_reasoning: bool) -> Conversation:
    """The entries of `turns`. Raises InvalidRequest at a block that `model` cannot read."""
    writer = _Writer(model, takes_reasoning)
    for turn in turns:
        for placed in turn.blocks:
            writer.write(turn, placed)
    return Conversation(writer.entries, writer.left_out)


class _Writer:
    """Entries under construction; only the last one grows."""

    def __init__(self, model: str, takes_reasoning: bool) -> None:
        self.entries: list[Entry] = []
        self.left_out: list[str] = []
        self._model = model
        self._takes_reasoning = takes_reasoning
        self._names: dict[str, str] = {}  # id of a call -> its tool
        self._places: dict[str, int] = {}  # id of a call -> its place among those made at once
        self._num_results = 0  # of these calls, so far
        self._last_block: ContentBlock | None = None

    def write(self, turn: Turn, placed: Placed) -> None:
        """Put a block where it belongs, or on the list of what is left out."""
        path, block = placed.path, placed.block
        if isinstance(block, ToolResultBlock):
            self._write_result(path, block)
        elif isinstance(block, ToolUseBlock):
            self._write_call(path, block)
        elif isinstance(block, ThinkingBlock) and block.thinking and self._takes_reasoning:
            self._assistant("thoughts").thoughts.append(Part(path, block.thinking))
        elif (text := text_of(block, path, self._model)) is None:
            self.left_out.append(path)
        elif turn.role == "assistant":
            goes_on = _is_cut_by_citations(self._last_block, block)
            self._assistant("texts").texts.append(Part(path, text, goes_on))
        else:
            self._last(turn.role).texts.append(Part(path, text))
        self._last_block = block

    def _write_call(self, path: str, block: ToolUseBlock) -> None:
        if self._num_results:
            self._places, self._num_results = {}, 0
        self._places[block.id] = len(self._places)
        self._names[block.id] = block.name
        calls = self._assistant("calls").calls
        calls.append(Call(path, block.id, block.name, block.input))

    def _write_result(self, path: str, block: ToolResultBlock) -> None:
        id = block.tool_use_id
        name = self._names.get(id, "")
        text = f"{self._out_of_turn(id, name)}{result_text(block, path, self._model)}"
        self.entries.append(Entry("tool", [Part(path, text)], call_id=id, name=name))

    def _out_of_turn(self, id: str, name: str) -> str:
        """The line above the next result, which is of the call `id`, if it needs one."""
        place = self._places.get(id, self._num_results)
        is_in_turn = place == self._num_results
        self._num_results += 1
        return "" if is_in_turn else f"Result of call {place + 1}, {name}:\n"

    def _last(self, role: EntryRole) -> Entry:
        """The last entry if it is of this role, else a new one."""
        if not self.entries or self.entries[-1].role != role:
            self.entries.append(Entry(role))
        return self.entries[-1]

    def _assistant(self, kind: Literal["thoughts", "texts", "calls"]) -> Entry:
        """The assistant's entry that may still get a block of `kind`."""
        entry = self._last("assistant")
        is_late = entry.calls if kind != "calls" else []
        if is_late or (kind == "thoughts" and entry.texts):
            self.entries.append(Entry("assistant"))
        return self.entries[-1]


def _is_cut_by_citations(before: ContentBlock | None, block: ContentBlock) -> bool:
    if not (isinstance(before, TextBlock) and isinstance(block, TextBlock)):
        return False
    return bool(before.citations or block.citations)

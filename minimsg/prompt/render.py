"""A request as the ids that the model reads.

    request -> turns -> conversation -> messages of the template -> pieces -> ids, then
    the assistant prefix

Rules, all of which hold for `count_tokens` too, since it comes through here:

- Text blocks of a turn, and of the system prompt, are joined by a line break, unless the
  template takes blocks. System turns in front of all others join the system prompt.
- The first block of the system prompt is left out if it is a client's billing text,
  which differs from request to request (profile `strict` keeps it).
- What a template cannot take gets another form: `fitting.py` says which.
- A final assistant turn is the `assistant_prefix`: the prompt is rendered up to where the
  model would begin, and the prefix is encoded on its own after it, as if the model had
  just generated it.
- Variables of the template are those that the request may set, and `enable_thinking`,
  which is False unless the request says otherwise.
- Whatever is not rendered is listed by its path in `Prompt.left_out`.

What a user writes is never a control token: `marks.py` says why. Knows requests and
`ChatModel`; next: `conversation.py`, `template.py`, `encode.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from minimsg.errors import InvalidRequest, NotImplementedHere, TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.conversation import (
    Conversation,
    Entry,
    after_compaction,
    conversation_of,
    standing,
)
from minimsg.prompt.encode import encode_pieces, fewest_tokens
from minimsg.prompt.fitting import fit, message_of
from minimsg.prompt.marks import SURROGATE, Piece
from minimsg.prompt.template import ChatTemplate, Message
from minimsg.prompt.tools import Function, toolbox_of
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import Placed, Turn, turns_of

BILLING_HEADER: Final = "x-anthropic-billing-header:"


@dataclass(frozen=True)
class Prompt:
    """What the model reads. `continues`: it ends inside the reply, after an assistant prefix."""

    ids: list[int]
    continues: bool = False
    left_out: list[str] = field(default_factory=list)  # paths of what is not rendered


@dataclass(frozen=True)
class Reading:
    """A request as its template reads it, before it becomes ids."""

    entries: list[Entry]  # as the template took them
    functions: list[Function]
    pieces: list[Piece]  # up to where the model would begin
    prefix: str
    left_out: list[str]


def render(request: PromptRequest, chat: ChatModel, dialect: Dialect = Dialect()) -> Prompt:  # noqa: B008  # frozen
    """`request` as ids. Raises InvalidRequest, or NotImplementedHere without a template."""
    turns = after_compaction(turns_of(standing(request.messages)))
    return encoded(read_turns(request, turns, chat, dialect), chat)


def read_turns(
    request: PromptRequest, turns: Sequence[Turn], chat: ChatModel, dialect: Dialect
) -> Reading:
    """`request` with these `turns` for its messages. Raises as `render` does."""
    if chat.template is None or chat.traits is None:
        raise NotImplementedHere(f"The model {chat.name} has no chat template")
    takes_reasoning = chat.traits.takes_reasoning
    turns, last = _without_prefix([*_system_turn(request, dialect), *turns])
    conversation = conversation_of(turns, chat.name, takes_reasoning=takes_reasoning)
    begun = conversation_of(last, chat.name, takes_reasoning=False)
    toolbox = toolbox_of(request)
    entries = fit(conversation.entries, toolbox.functions, chat.traits)
    _refuse_surrogates([*entries, *begun.entries], toolbox.functions, request)
    messages = [message_of(entry, chat.traits) for entry in entries]
    has_tool_form = chat.traits.tools is not None
    tools = [function.template_form() for function in toolbox.functions] if has_tool_form else []
    pieces = _pieces(chat.template, messages, tools or None, request)
    left_out = [*toolbox.left_out, *_billing(request, dialect)]
    left_out += [*conversation.left_out, *begun.left_out]
    return Reading(entries, toolbox.functions, pieces, _prefix(begun), left_out)


def encoded(reading: Reading, chat: ChatModel) -> Prompt:
    """`reading` as ids. Raises InvalidRequest if they can be no prompt of `chat`."""
    _refuse_absurd(reading.pieces, chat)
    ids = encode_pieces(reading.pieces, chat.tokenizer)
    ids += chat.tokenizer.encode(reading.prefix, at_start=False)
    return Prompt(ids, continues=bool(reading.prefix), left_out=reading.left_out)


def check_length(prompt: Prompt, max_context: int) -> None:
    """Refuse a prompt that is longer than the window. Raises InvalidRequest."""
    if len(prompt.ids) > max_context:
        why = f"prompt is too long: {len(prompt.ids)} tokens > {max_context} maximum"
        raise InvalidRequest("", why)


def _billing(request: PromptRequest, dialect: Dialect) -> list[str]:
    """The path of the client's billing text, if it is there and not for the model."""
    is_there = request.system and request.system[0].text.startswith(BILLING_HEADER)
    return ["system.0"] if is_there and not dialect.is_strict else []


def _system_turn(request: PromptRequest, dialect: Dialect) -> list[Turn]:
    billing = _billing(request, dialect)
    placed = [Placed(f"system.{n}", block) for n, block in enumerate(request.system)]
    blocks = [block for block in placed if block.path not in billing]
    return [Turn("system", 0, blocks)] if blocks else []


def _without_prefix(turns: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    has_prefix = bool(turns) and turns[-1].role == "assistant"
    return (turns[:-1], turns[-1:]) if has_prefix else (turns, [])


def _prefix(begun: Conversation) -> str:
    """The text of the assistant's turn that the model goes on with."""
    for entry in begun.entries:
        for call in entry.calls:
            raise InvalidRequest(call.path, "the result of this tool_use is missing")
    return "\n".join(part.text for entry in begun.entries for part in entry.texts)


def _pieces(
    template: ChatTemplate,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, object]] | None,
    request: PromptRequest,
) -> list[Piece]:
    variables = {"enable_thinking": False, **request.chat_template_kwargs}
    try:
        return template.render_pieces(
            messages, tools=tools, add_generation_prompt=True, **variables
        )
    except TemplateError as error:
        raise InvalidRequest("messages", f"{error}") from error


def _refuse_surrogates(
    entries: Sequence[Entry], functions: Sequence[Function], request: PromptRequest
) -> None:
    """No value that a template gets may hold one: `marks.py` says what they are."""
    for path, text in _values(entries, functions, request):
        if SURROGATE.search(text):
            raise InvalidRequest(path, "text must not contain lone surrogates")


def _values(
    entries: Sequence[Entry], functions: Sequence[Function], request: PromptRequest
) -> Iterator[tuple[str, str]]:
    for function in functions:
        yield function.path, json.dumps(function.template_form(), ensure_ascii=False)
    for entry in entries:
        for part in [*entry.thoughts, *entry.texts]:
            yield part.path, part.text
        for call in entry.calls:
            yield call.path, json.dumps([call.id, call.name, call.input], ensure_ascii=False)
        yield "messages", f"{entry.call_id}{entry.name}"
    yield "chat_template_kwargs", json.dumps(request.chat_template_kwargs, ensure_ascii=False)


def _refuse_absurd(pieces: Sequence[Piece], chat: ChatModel) -> None:
    """Refuse what cannot fit by its bytes alone: encoding 31 MB would take minutes."""
    if sum(len(piece.text) for piece in pieces) <= chat.max_context:
        return
    fewest = fewest_tokens(pieces, chat.tokenizer)
    if fewest > chat.max_context:
        why = f"prompt is too long: {fewest} tokens > {chat.max_context} maximum"
        raise InvalidRequest("", why)

"""A request as its template reads it: entries, tools and pieces, before they become ids.

    system and turns -> conversation -> entries that fit the template -> messages -> pieces

What is not rendered is listed by its path: blocks that no model reads, tools that nobody
here runs, and a client's billing text in front of the system prompt, which differs from
request to request and would make every prompt a new one (profile `strict` keeps it).
Variables of the template are those that the request may set, and the one that switches
thinking (`thinking.py`).

Knows requests, turns and `ChatModel`; next: `conversation.py`, `fitting.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from minimsg.errors import InvalidRequest, NotImplementedHere, TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.conversation import Conversation, Entry, Part, conversation_of, joined
from minimsg.prompt.fitting import fit, message_of
from minimsg.prompt.marks import SURROGATE, Piece, without_images
from minimsg.prompt.probe import Traits
from minimsg.prompt.template import ChatTemplate
from minimsg.prompt.thinking import reads_thoughts, template_variables
from minimsg.prompt.tools import Function, toolbox_of
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import Placed, Turn

BILLING_HEADER: Final = "x-anthropic-billing-header:"


@dataclass(frozen=True)
class Given:
    """What the template is given."""

    entries: list[Entry]  # in the form in which the template takes them
    functions: list[Function]
    variables: Mapping[str, object]

    def write(self, template: ChatTemplate, traits: Traits) -> str:
        """What the template makes of it, with markers (`marks.py`). Raises TemplateError."""
        functions = self.functions if traits.tools else []
        return template.render_marked(
            [message_of(entry, traits) for entry in self.entries],
            tools=[function.template_form() for function in functions] or None,
            add_generation_prompt=True,
            **self.variables,
        )


@dataclass(frozen=True)
class Reading:
    """What the template was given and what it wrote."""

    given: Given
    written: list[Piece]  # by the template, up to where the model would begin
    pieces: list[Piece]  # the same, images with their tokens, thinking that was left open ended
    begun: list[Part]  # what the model has begun to say
    left_out: list[str]  # JSON paths

    @property
    def prefix(self) -> str:
        """The text that the reply goes on with."""
        return joined(self.begun)


def read_turns(
    request: PromptRequest,
    turns: Sequence[Turn],
    chat: ChatModel,
    dialect: Dialect,
    image_tokens: Sequence[int] = (),
) -> Reading:
    """`request` with `turns` for its messages; `image_tokens` of each of its images.

    Raises InvalidRequest, NotImplementedHere.
    """
    if chat.template is None or chat.traits is None:
        raise NotImplementedHere(f"The model {chat.name} has no chat template")
    turns, last = _without_prefix([*system_turn(request, dialect), *turns])
    takes_reasoning = chat.traits.takes_reasoning and reads_thoughts(request, dialect)
    said = conversation_of(turns, chat.name, takes_reasoning=takes_reasoning)
    begun = conversation_of(last, chat.name, takes_reasoning=False)
    toolbox = toolbox_of(request)
    _refuse_surrogates([*said.entries, *begun.entries], toolbox.functions, request)
    if not said.entries:
        raise InvalidRequest("messages", "the model reads nothing of what they hold")
    entries = fit(said.entries, toolbox.functions, chat.traits)
    variables = template_variables(request, chat.traits.thinking)
    given = Given(entries, toolbox.functions, variables)
    written = _written(given, chat.template, chat.traits)
    pieces = _with_images(written, image_tokens)
    return Reading(
        given=given,
        written=written,
        pieces=_without_open_thinking(pieces, chat) if begun.entries else pieces,
        begun=_begun(begun),
        left_out=[
            *toolbox.left_out,
            *_billing(request, dialect),
            *said.left_out,
            *begun.left_out,
        ],
    )


def _billing(request: PromptRequest, dialect: Dialect) -> list[str]:
    """The path of the client's billing text, if it is there and not for the model."""
    is_there = request.system and request.system[0].text.startswith(BILLING_HEADER)
    return ["system.0"] if is_there and not dialect.is_strict else []


def system_turn(request: PromptRequest, dialect: Dialect) -> list[Turn]:
    """The system prompt as a turn, less the client's billing text; nothing if there is none."""
    billing = _billing(request, dialect)
    placed = [Placed(f"system.{n}", block) for n, block in enumerate(request.system)]
    blocks = [block for block in placed if block.path not in billing]
    return [Turn("system", 0, blocks)] if blocks else []


def _without_prefix(turns: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    has_prefix = bool(turns) and turns[-1].role == "assistant"
    return (turns[:-1], turns[-1:]) if has_prefix else (turns, [])


def _begun(begun: Conversation) -> list[Part]:
    """The texts of the assistant's turn that the model goes on with."""
    for entry in begun.entries:
        for call in entry.calls:
            raise InvalidRequest(call.path, "the result of this tool_use is missing")
    return [part for entry in begun.entries for part in entry.texts]


def _written(given: Given, template: ChatTemplate, traits: Traits) -> list[Piece]:
    try:
        return template.marks.split(given.write(template, traits))
    except TemplateError as error:
        raise InvalidRequest("messages", f"{error}") from error


def _with_images(pieces: list[Piece], image_tokens: Sequence[int]) -> list[Piece]:
    """Each image as many times as it has tokens. Raises InvalidRequest if one was not sent."""
    shown = [piece.image for piece in pieces if piece.image is not None]
    if not shown:
        return pieces
    if len(set(shown)) < len(shown) or max(shown) >= len(image_tokens):
        raise InvalidRequest("messages", "text must not contain lone surrogates")
    return [
        piece if piece.image is None else replace(piece, count=image_tokens[piece.image])
        for piece in pieces
    ]


def _without_open_thinking(pieces: list[Piece], chat: ChatModel) -> list[Piece]:
    """A prefix is the answer's beginning, also where the template lets nobody answer at once."""
    form = chat.traits.thinking if chat.traits else None
    if form is None or not form.is_open_after(pieces):
        return pieces
    if form.closing in chat.tokenizer.control:
        return [*pieces, Piece(form.closing, True), Piece("\n\n", False)]
    return [*pieces[:-1], Piece(f"{pieces[-1].text}{form.closing}\n\n", False)]


def _refuse_surrogates(
    entries: Sequence[Entry], functions: Sequence[Function], request: PromptRequest
) -> None:
    """No value that a template gets may hold one: `marks.py` says what they are.

    Images are markers by now; what a user has written like one, `_with_images` refuses.
    """
    for path, text in _values(entries, functions, request):
        if SURROGATE.search(without_images(text)):
            raise InvalidRequest(path, "text must not contain lone surrogates")


def _values(
    entries: Sequence[Entry], functions: Sequence[Function], request: PromptRequest
) -> Iterator[tuple[str, str]]:
    """Every text that the template will get, and its path."""
    for function in functions:
        yield function.path, json.dumps(function.template_form(), ensure_ascii=False)
    for entry in entries:
        for part in [*entry.thoughts, *entry.texts]:
            yield part.path, part.text
        for call in entry.calls:
            yield call.path, json.dumps([call.id, call.name, call.input], ensure_ascii=False)
        yield "messages", f"{entry.call_id}{entry.name}"
    yield "chat_template_kwargs", json.dumps(request.chat_template_kwargs, ensure_ascii=False)

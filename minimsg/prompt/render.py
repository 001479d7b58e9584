"""A request as the ids that the model reads.

    request -> messages of the template -> pieces -> ids, then the assistant prefix

Rules, all of which hold for `count_tokens` too, since it comes through here:

- Text blocks of a turn, and of the system prompt, are joined by a line break, unless the
  template takes blocks.
- A template that refuses or ignores a system turn gets the system text at the start of
  the first user turn, followed by an empty line.
- A final assistant turn is the `assistant_prefix`: the prompt is rendered up to where the
  model would begin, and the prefix is encoded on its own after it, as if the model had
  just generated it.
- The template's variables are fixed here (`enable_thinking` is False); none comes from a
  request.

What a user writes is never a control token: `marks.py` says why. Knows requests and
`ChatModel`; next: `template.py`, `encode.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from minimsg.errors import InvalidRequest, NotImplementedHere, TemplateError
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.encode import encode_pieces, fewest_tokens
from minimsg.prompt.marks import SURROGATE, Piece, Role
from minimsg.prompt.probe import Traits
from minimsg.prompt.template import Message
from minimsg.protocol.content import TextBlock
from minimsg.protocol.request import PromptRequest
from minimsg.protocol.turns import Turn, turns_of


@dataclass(frozen=True)
class Prompt:
    """What the model reads. `continues`: it ends inside the reply, after an assistant prefix."""

    ids: list[int]
    continues: bool = False


def render(request: PromptRequest, chat: ChatModel) -> Prompt:
    """`request` as ids. Raises InvalidRequest, or NotImplementedHere without a template."""
    if chat.template is None or chat.traits is None:
        raise NotImplementedHere(f"The model {chat.name} has no chat template")
    turns, prefix = _without_prefix(turns_of(request.messages))
    messages = _messages(request.system, turns, chat.traits)
    try:
        pieces = chat.template.render_pieces(
            messages, add_generation_prompt=True, enable_thinking=False
        )
    except TemplateError as error:
        raise InvalidRequest("messages", f"{error}") from error
    _refuse_absurd(pieces, chat)
    ids = encode_pieces(pieces, chat.tokenizer)
    return Prompt(ids + chat.tokenizer.encode(prefix, at_start=False), continues=bool(prefix))


def check_length(prompt: Prompt, max_context: int) -> None:
    """Refuse a prompt that is longer than the window. Raises InvalidRequest."""
    if len(prompt.ids) > max_context:
        why = f"prompt is too long: {len(prompt.ids)} tokens > {max_context} maximum"
        raise InvalidRequest("", why)


def _refuse_absurd(pieces: Sequence[Piece], chat: ChatModel) -> None:
    """Refuse what cannot fit by its bytes alone: encoding 31 MB would take minutes."""
    if sum(len(piece.text) for piece in pieces) <= chat.max_context:
        return
    fewest = fewest_tokens(pieces, chat.tokenizer)
    if fewest > chat.max_context:
        why = f"prompt is too long: {fewest} tokens > {chat.max_context} maximum"
        raise InvalidRequest("", why)


def _without_prefix(turns: Sequence[Turn]) -> tuple[Sequence[Turn], str]:
    if not turns or turns[-1].role != "assistant":
        return turns, ""
    return turns[:-1], _text(_texts(turns[-1]))


def _messages(system: Sequence[TextBlock], turns: Sequence[Turn], traits: Traits) -> list[Message]:
    contents = [_texts(turn) for turn in turns]
    messages: list[Message] = []
    if system and traits.takes_system:
        messages.append(_message("system", system, traits))
    elif system:
        place = next((n for n, turn in enumerate(turns) if turn.role == "user"), None)
        if place is None:
            raise InvalidRequest("messages", "the model needs a user turn to read `system`")
        contents[place] = [_folded(system, contents[place])]
    for turn, content in zip(turns, contents, strict=True):
        messages.append(_message(turn.role, content, traits))
    return messages


def _texts(turn: Turn) -> list[TextBlock]:
    for placed in turn.blocks:
        if not isinstance(placed.block, TextBlock):
            raise InvalidRequest(placed.path, f"{placed.block.type} blocks are not supported")
    return [placed.block for placed in turn.blocks if isinstance(placed.block, TextBlock)]


def _folded(system: Sequence[TextBlock], content: Sequence[TextBlock]) -> TextBlock:
    return TextBlock(type="text", text=f"{_text(system)}\n\n{_text(content)}")


def _message(role: str, blocks: Sequence[TextBlock], traits: Traits) -> Message:
    """One message of the template. `Role` tells it from what a user wrote."""
    content: object = _text(blocks)
    if traits.takes_blocks and (len(blocks) > 1 or not traits.takes_text):
        content = [{"type": "text", "text": block.text} for block in blocks]
    return {"role": Role(role), "content": content}


def _text(blocks: Sequence[TextBlock]) -> str:
    text = "\n".join(block.text for block in blocks)
    if SURROGATE.search(text):
        raise InvalidRequest("messages", "text must not contain lone surrogates")
    return text

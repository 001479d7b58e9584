"""A request as the ids that the model reads.

    request -> turns -> edits -> pieces of the template -> ids, then the assistant prefix

Rules, all of which hold for `count_tokens` too, since it comes through here:

- Text blocks of a turn, and of the system prompt, are joined by a line break, unless the
  template takes blocks. System turns in front of all others join the system prompt.
- `context_management` edits the turns before they are rendered: `edits.py`.
- What a template cannot take gets another form: `fitting.py` says which.
- A final assistant turn is the `assistant_prefix`: the prompt is rendered up to where the
  model would begin, and the prefix is encoded on its own after it, as if the model had
  just generated it.
- Whatever is not rendered is listed by its path in `Prompt.left_out`.

What a user writes is never a control token: `marks.py` says why. Knows requests and
`ChatModel`; next: `reading.py`, `encode.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from minimsg.engine.types import ImageSpan
from minimsg.errors import InvalidRequest
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.conversation import after_compaction, standing
from minimsg.prompt.edits import edit_turns
from minimsg.prompt.encode import ImagePlace, Stretch, encode_pieces, fewest_tokens
from minimsg.prompt.marks import Piece
from minimsg.prompt.pictures import Picture, spans_of, with_pictures
from minimsg.prompt.reading import Reading, read_turns, system_turn
from minimsg.prompt.replay import Remembered, Replay, put_back
from minimsg.protocol.context import AppliedEdit
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import InputMessage, PromptRequest
from minimsg.protocol.turns import Turn, turns_of

EXACT_CHARS: Final = 4 << 20  # of a prompt that is encoded even if it cannot fit
MAX_COUNTED: Final = 1_000_000  # tokens before edits; the API's largest window


@dataclass(frozen=True)
class Prompt:
    """What the model reads. `continues`: it ends inside the reply, after an assistant prefix."""

    ids: list[int]
    continues: bool = False
    left_out: list[str] = field(default_factory=list)  # paths of what is not rendered
    applied_edits: list[AppliedEdit] = field(default_factory=list)
    original_input_tokens: int | None = None  # before edits, if the request asks for any
    reading: Reading | None = None  # what the ids are of,
    stretches: list[Stretch] = field(default_factory=list, compare=False)  # and their places in it
    messages: list[InputMessage] = field(default_factory=list)  # with their images numbered,
    pictures: list[Picture] = field(default_factory=list)  # these images,
    places: list[ImagePlace] = field(default_factory=list)  # and where they stand in `ids`
    is_thinking: bool = False  # it ends with thinking that the template has opened
    replay: Replay | None = None  # what was put back, if anything is remembered at all


def render(
    request: PromptRequest,
    chat: ChatModel,
    dialect: Dialect = Dialect(),  # noqa: B008  # frozen
    remembered: Remembered | None = None,
) -> Prompt:
    """`request` as ids, with what is `remembered` of its assistant's thinking.

    Raises InvalidRequest, or NotImplementedHere without a template.
    """
    vision = chat.vision
    request, pictures = with_pictures(request, vision.pictures if vision else None)
    image_tokens = [picture.num_tokens for picture in pictures]
    turns = after_compaction(turns_of(standing(request.messages)))
    replay = None
    if remembered is not None:
        replay = put_back(system_turn(request, dialect), turns, remembered)
        turns = replay.turns
    asked = request.context_management

    def count(turns: Sequence[Turn]) -> int:
        reading = read_turns(request, turns, chat, dialect, image_tokens)
        return len(encoded(reading, chat, max(MAX_COUNTED, chat.max_context)).ids)

    edited = edit_turns(turns, asked.edits if asked else [], count)
    reading = read_turns(request, edited.turns, chat, dialect, image_tokens)
    prompt = encoded(reading, chat, chat.max_context)
    prompt = replace(prompt, replay=replay, messages=request.messages, pictures=pictures)
    if asked is None:
        return prompt
    original = edited.original_input_tokens or len(prompt.ids)
    return replace(prompt, applied_edits=edited.applied, original_input_tokens=original)


def encoded(reading: Reading, chat: ChatModel, max_tokens: int) -> Prompt:
    """`reading` as ids. Raises InvalidRequest if they are certainly more than `max_tokens`."""
    _refuse_absurd([*reading.pieces, Piece(reading.prefix, False)], chat, max_tokens)
    made = encode_pieces(reading.pieces, chat.tokenizer, reading.prefix)
    continues = bool(reading.prefix)
    form = chat.traits.thinking if chat.traits else None
    is_thinking = form is not None and not continues and form.is_open_after(reading.pieces)
    return Prompt(
        made.ids,
        continues,
        reading.left_out,
        reading=reading,
        stretches=made.stretches,
        places=made.images,
        is_thinking=is_thinking,
    )


def images_of(prompt: Prompt, chat: ChatModel) -> tuple[ImageSpan, ...]:
    """The images that the model sees, decoded and scaled. Raises InvalidRequest at a broken one."""
    if chat.vision is None:
        return ()
    return spans_of(prompt.pictures, prompt.places, chat.vision.pictures)


def check_length(prompt: Prompt, max_context: int) -> None:
    """Refuse a prompt that is longer than the window. Raises InvalidRequest."""
    if len(prompt.ids) > max_context:
        why = f"prompt is too long: {len(prompt.ids)} tokens > {max_context} maximum"
        raise InvalidRequest("", why)


def _refuse_absurd(pieces: Sequence[Piece], chat: ChatModel, max_tokens: int) -> None:
    """Refuse what cannot fit by its bytes alone: encoding 31 MB would take minutes.

    What can be encoded in seconds is: then the number in the error is exact.
    """
    if sum(len(piece.text) for piece in pieces) <= max(max_tokens, EXACT_CHARS):
        return
    fewest = fewest_tokens(pieces, chat.tokenizer)
    if fewest > max_tokens:
        why = f"prompt is too long: {fewest} tokens > {chat.max_context} maximum"
        raise InvalidRequest("", why)

"""Plain answers that are wrong: the fields of a message, and its end."""

from __future__ import annotations

from typing import Any, Final

from minimsg.misbehave.mutant import Answered, Asked, mutants


def message(answered: Answered) -> dict[str, Any]:
    """The message that is answered; `{}` for any other answer."""
    value: dict[str, Any] = answered.json
    return value if value.get("type") == "message" else {}


def set_field(answered: Answered, key: str, value: object) -> None:
    """Change one field of a message; other answers stay as they are."""
    if found := message(answered):
        answered.put(found | {key: value})


def drop_field(answered: Answered, key: str) -> None:
    """Leave one field of a message out."""
    if found := message(answered):
        answered.put({name: value for name, value in found.items() if name != key})


def no_id(asked: Asked, answered: Answered) -> None:
    """A message has no id."""
    drop_field(answered, "id")


def same_id(asked: Asked, answered: Answered) -> None:
    """Every message has the same id."""
    set_field(answered, "id", "msg_01")


def foreign_id(asked: Asked, answered: Answered) -> None:
    """The id of a message is that of another API."""
    set_field(answered, "id", "chatcmpl-1")


def no_type(asked: Asked, answered: Answered) -> None:
    """A message has no type."""
    drop_field(answered, "type")


def role_user(asked: Asked, answered: Answered) -> None:
    """The message is the user's."""
    set_field(answered, "role", "user")


def no_model(asked: Asked, answered: Answered) -> None:
    """A message names no model."""
    set_field(answered, "model", "")


def content_text(asked: Asked, answered: Answered) -> None:
    """content is a text, not a list of blocks."""
    set_field(answered, "content", "Hello.")


def no_stop_reason(asked: Asked, answered: Answered) -> None:
    """A complete message has stop_reason null."""
    set_field(answered, "stop_reason", None)


def foreign_stop_reason(asked: Asked, answered: Answered) -> None:
    """stop_reason is a word of another API."""
    set_field(answered, "stop_reason", "length")


def always_end_turn(asked: Asked, answered: Answered) -> None:
    """Every message ends with end_turn."""
    set_field(answered, "stop_reason", "end_turn")


def no_stop_sequence(asked: Asked, answered: Answered) -> None:
    """stop_sequence is left out."""
    drop_field(answered, "stop_sequence")


def stop_sequence_null(asked: Asked, answered: Answered) -> None:
    """The sequence that ended the reply is not named."""
    set_field(answered, "stop_sequence", None)


def stop_text_kept(asked: Asked, answered: Answered) -> None:
    """The stop sequence stays in the text."""
    said = message(answered).get("stop_sequence")
    if said:
        blocks = message(answered)["content"] or [{"type": "text", "text": ""}]
        set_field(answered, "content", [*blocks, {"type": "text", "text": f"x{said}"}])


def not_json(asked: Asked, answered: Answered) -> None:
    """A message is sent as text/html."""
    if message(answered):
        answered.headers["content-type"] = "text/html"


def not_a_number(asked: Asked, answered: Answered) -> None:
    """A message has a number that JSON has not: NaN."""
    set_field(answered, "seconds", float("nan"))


MUTANTS: Final = mutants(
    "answer",
    {
        no_id: "message.*",
        same_id: "message.id*",
        foreign_id: "message.field*",
        no_type: "message.*",
        role_user: "message.*",
        no_model: "*model*",
        content_text: "message.*",
        no_stop_reason: "stop.known*",
        foreign_stop_reason: "stop.known*",
        always_end_turn: "stop.*",
        no_stop_sequence: "message.*",
        stop_sequence_null: "stop.sequence.named*",
        stop_text_kept: "stop.sequence.*",
        not_json: "message.field*",
        not_a_number: "message.*",
    },
)

"""The body of POST /v1/messages and of /v1/messages/count_tokens as data.

Knows every field, its type and its bounds (`limits.py`); `parse` is the way in and
raises `InvalidRequest` with the JSON path. Rules that look at several fields are in
`rules.py`, the way from pydantic's errors to the API's words in `validation.py`. Knows
nothing of HTTP, tokens or the model. Source: Messages API reference, request body.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from minimsg.limits import LIMITS
from minimsg.protocol.content import Blocks, TextBlock, Wire
from minimsg.protocol.rules import check_prompt, check_reply
from minimsg.protocol.validation import validate


class InputMessage(Wire):
    """One turn as the client sent it; a string content has become one text block."""

    role: Literal["user", "assistant"]
    content: Blocks


class Metadata(Wire):
    """Who the client's own user is. Accepted and not used: nothing here needs it."""

    user_id: str | None = Field(default=None, max_length=LIMITS.user_id_chars)


def _none_is_empty(value: object) -> object:
    return [] if value is None else value


StopSequence = Annotated[str, Field(max_length=LIMITS.stop_sequence_chars)]
StopSequences = Annotated[
    list[StopSequence], Field(max_length=LIMITS.stop_sequences), BeforeValidator(_none_is_empty)
]


class PromptRequest(Wire):
    """What both routes take: everything that decides what the model reads."""

    model: str = Field(min_length=1, max_length=LIMITS.model_name_chars)
    messages: list[InputMessage] = Field(max_length=LIMITS.messages)
    system: Annotated[Blocks, BeforeValidator(_none_is_empty)] = Field(default_factory=list)

    @classmethod
    def parse(cls, data: object) -> Self:
        """`data` (parsed JSON) as a request; unknown fields are left out. Raises InvalidRequest."""
        return validate(cls, data).request

    @model_validator(mode="after")
    def _obeys_prompt_rules(self) -> Self:
        check_prompt(self)
        return self

    @cached_property
    def turns(self) -> list[InputMessage]:
        """`messages` with neighbours of the same role merged into one, empty ones left out."""
        filled = [message for message in self.messages if message.content]
        return [
            InputMessage.model_construct(role=role, content=_all_blocks(list(run)))
            for role, run in groupby(filled, key=lambda message: message.role)
        ]


def _all_blocks(messages: list[InputMessage]) -> list[TextBlock]:
    return [block for message in messages for block in message.content]


class CountTokensRequest(PromptRequest):
    """The body of POST /v1/messages/count_tokens: a prompt and nothing else."""


class MessagesRequest(PromptRequest):
    """The body of POST /v1/messages. `None` means absent: the server's default holds."""

    max_tokens: int | None = Field(default=None, ge=0)
    stop_sequences: StopSequences = Field(default_factory=list)
    stream: bool = False
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, le=LIMITS.top_k)
    metadata: Metadata | None = None
    seed: int | None = Field(default=None, ge=0, le=LIMITS.seed)  # extension: same seed, same draws

    @model_validator(mode="after")
    def _obeys_reply_rules(self) -> Self:
        check_reply(self)
        return self

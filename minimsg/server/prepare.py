"""A body of bytes to what the engine needs: parse, check, render, tokenize, measure.

The heavy half of a request: it never runs on the event loop, but in a thread or, for a
big body, in a process (`pool.py`), so it knows neither aiohttp nor the engine and
imports no torch. Pure functions of the body and of what is served.
Next: `protocol/validation.py`, `prompt/render.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeVar

from minimsg.engine.types import SamplingParams
from minimsg.errors import NotFound
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt, check_length, render
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import CountTokensRequest, MessagesRequest, PromptRequest
from minimsg.protocol.validation import parse_json, validate

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Served:
    """What is served: the model, its window in tokens, the length limit of a reply."""

    chat: ChatModel
    max_context: int
    default_max_tokens: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for a reply, checked and tokenized; `ignored` are JSON paths nobody reads.

    `continues`: the reply goes on with text that the prompt ends with.
    """

    prompt_ids: list[int]
    continues: bool
    max_tokens: int
    stream: bool
    stop_sequences: list[str]
    sampling: SamplingParams
    ignored: list[str]


@dataclass(frozen=True, slots=True)
class Counted:
    """A prompt's length in tokens."""

    input_tokens: int
    ignored: list[str]


def prepare_message(body: bytes, served: Served) -> Prepared:
    """The body of POST /v1/messages. Raises RequestError."""
    checked = validate(MessagesRequest, parse_json(body), Dialect())
    request = checked.request
    prompt = _prompt(request, served)
    check_length(prompt, served.max_context)
    return Prepared(
        prompt_ids=prompt.ids,
        continues=prompt.continues,
        max_tokens=_given(request.max_tokens, served.default_max_tokens),
        stream=request.stream,
        stop_sequences=request.stop_sequences,
        sampling=_sampling(request, served.chat.sampling),
        ignored=checked.ignored,
    )


def count_prompt(body: bytes, served: Served) -> Counted:
    """The body of POST /v1/messages/count_tokens. Raises RequestError."""
    checked = validate(CountTokensRequest, parse_json(body), Dialect())
    return Counted(len(_prompt(checked.request, served).ids), checked.ignored)


WORK: Final = {function.__name__: function for function in (prepare_message, count_prompt)}


def _prompt(request: PromptRequest, served: Served) -> Prompt:
    if request.model != served.chat.name:
        raise NotFound(f"model: {request.model}")
    request.check(Dialect())
    return render(request, served.chat)


def _sampling(request: MessagesRequest, default: SamplingParams) -> SamplingParams:
    """What the request says, and the model's own defaults for the rest."""
    return replace(
        default,
        temperature=_given(request.temperature, default.temperature),
        top_p=_given(request.top_p, default.top_p),
        top_k=_given(request.top_k, default.top_k),
        seed=_given(request.seed, default.seed),
    )


def _given(value: T | None, default: T) -> T:
    return default if value is None else value

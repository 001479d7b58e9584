"""POST /minimsg/logits and /minimsg/lens: what the model computes at a place of a recorded request.

For the tenant of the record only, and paid from its tokens: the prompt is computed once more as
far as that place, like any other request, mostly from the cache. What is asked and answered is
made in `inspector/lens.py`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar

from aiohttp import web
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from minimsg.engine.types import FinishReason, GenerationRequest
from minimsg.errors import InvalidRequest, Overloaded
from minimsg.server.auth import TENANT
from minimsg.server.body import read_body
from minimsg.server.recording import Recording
from minimsg.server.respond import json_response
from minimsg.server.state import SERVER, Server

if TYPE_CHECKING:
    from minimsg.inspector.lens import Answer, Lens, Question

T = TypeVar("T")
CLOSED: Final = ConfigDict(extra="forbid", strict=True)
Place = Annotated[int, Field(ge=0)]


@dataclass(config=CLOSED)
class LogitsQuestion:
    """Which token of the reply."""

    trace: str
    token: Place


@dataclass(config=CLOSED)
class LensQuestion:
    """Which token of prompt and reply together, and for attention which layer."""

    trace: str
    what: Literal["attention", "logit_lens"]
    position: Place
    layer: Place = 0


LOGITS: Final = TypeAdapter(LogitsQuestion)
LENS: Final = TypeAdapter(LensQuestion)


async def get_logits(request: web.Request) -> web.Response:
    """What a token of a reply was drawn from. Raises RequestError, GenerationFailed."""
    asked = await _read(request, LOGITS)
    recording = _recording(request, asked.trace)
    if asked.token >= len(recording.tokens):
        raise InvalidRequest("token", f"the reply has {len(recording.tokens)} tokens")
    position = len(recording.prepared.prompt_ids) + asked.token
    lens = _lens(request.app[SERVER], recording)
    return json_response(await _answer(request, lens.choice(position)))


async def get_lens(request: web.Request) -> web.Response:
    """Attention, or each layer's guess, at a position. Raises RequestError, GenerationFailed."""
    asked = await _read(request, LENS)
    lens = _lens(request.app[SERVER], _recording(request, asked.trace))
    if asked.what == "attention":
        question = lens.attention(asked.position, asked.layer)
    else:
        question = lens.guesses(asked.position)
    return json_response(await _answer(request, question))


async def _read(request: web.Request, adapter: TypeAdapter[T]) -> T:
    """The question of a body. Raises RequestError."""
    body = await read_body(request)
    try:
        return adapter.validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise InvalidRequest(".".join(map(str, first["loc"])), first["msg"]) from None


def _recording(request: web.Request, id: str) -> Recording:
    """The tenant's own. Raises NotFound."""
    return request.app[SERVER].records.find(request[TENANT], id)


def _lens(server: Server, recording: Recording) -> Lens:
    """Raises InvalidRequest where there is nothing to see, or the engine is held."""
    from minimsg.inspector.lens import Lens

    if server.worker.pause_left_s:
        raise InvalidRequest("", "the engine is paused: resume it first")
    return Lens(server.worker.engine, server.chat.tokenizer, _whole(recording))


def _whole(recording: Recording) -> GenerationRequest:
    """Prompt and reply."""
    reply = [token.id for _, token, _ in recording.tokens]
    ids = [*recording.prepared.prompt_ids, *reply]
    return replace(recording.generation, prompt_ids=ids, is_traced=False)


async def _answer(request: web.Request, question: Question) -> Answer:
    """Compute what is asked. Raises RequestError, GenerationFailed."""
    server, asked = request.app[SERVER], question.request
    server.check_can_answer()
    server.rates.admit_prompt(request[TENANT], len(asked.prompt_ids))
    hooks = server.worker.engine.hooks
    hooks.add(asked.id, question.reading.hooks, first=question.position)
    try:
        tokens = await server.worker.submit(asked)
    finally:
        hooks.take(asked.id)  # if it was not taken up
    async with tokens:
        async for _ in tokens:
            pass
        assert tokens.finish is not None  # it was read to its end
        if tokens.finish.reason is FinishReason.CANCELLED:  # and nothing was seen
            raise Overloaded("The server is shutting down.")
    return await asyncio.to_thread(question.answer)

"""POST /v1/messages: the path of one request, from HTTP bytes to HTTP bytes.

Down: read the body (`body.py`), check and tokenize it (`prepare.py`), submit it to the
engine (`engine/worker.py`). Up: `reply` turns token ids into events (`stages.py`); a
streamed answer writes them as they come (`stream.py`), any other is their fold. Whoever
leaves, leaves through the `finally` of `reply`, which frees the sequence.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from time import monotonic
from typing import Final

from aiohttp import web

from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import Finish, FinishReason, GenerationRequest, Priority
from minimsg.errors import Overloaded
from minimsg.protocol.build import fold
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.events import Event
from minimsg.protocol.message import STOP_REASONS, StopReason
from minimsg.server.auth import TENANT
from minimsg.server.body import read_body
from minimsg.server.dialect import dialect_of
from minimsg.server.metrics import note_stop_reason
from minimsg.server.prepare import Prepared, prepare_message
from minimsg.server.recording import Recording
from minimsg.server.respond import ignored_header, json_response
from minimsg.server.stages import Stages
from minimsg.server.state import REQUEST_ID, SERVER, Server
from minimsg.server.stream import stream_response

REUSED: Final = "minimsg-reused-tokens"


async def create_message(request: web.Request) -> web.StreamResponse:
    """Answer one request, streaming or plain. Raises RequestError, GenerationFailed."""
    server, arrived = request.app[SERVER], monotonic()
    server.check_can_answer()
    dialect, body = dialect_of(request), await read_body(request)
    fetched = await server.fetch(await server.urls_of(body, dialect))
    known = await server.known_of(request[TENANT], body, fetched)
    prepared = await server.pool.run(prepare_message, body, dialect, known)
    generation = await server.generation(request[REQUEST_ID], prepared, request[TENANT])
    recording = None
    if server.records.wants(request.headers, dialect):
        recording = Recording(server.records, body, dialect, known, prepared, generation, arrived)
        generation = recording.generation
    server.rates.admit_prompt(generation.tenant, len(generation.prompt_ids))
    tokens = await server.worker.submit(generation)
    note = partial(note_stop_reason, request)
    events = reply(server, tokens, generation, prepared, note, recording)
    headers = ignored_header(prepared.ignored)
    async with tokens, aclosing(events):
        if prepared.stream:
            headers |= reused_header(tokens, dialect)
            return await stream_response(request, events, headers)
        message = fold([event async for event in events])
    return json_response(message, headers=headers | reused_header(tokens, dialect))


def reply(
    server: Server,
    tokens: TokenStream,
    generation: GenerationRequest,
    prepared: Prepared,
    note: Callable[[StopReason], None] | None = None,
    recording: Recording | None = None,
) -> AsyncGenerator[Event, None]:
    """The events of one reply; the first comes before the engine begins.

    `note` is told why it stopped, before the last events; `recording` all that happens.

    Iteration raises Overloaded, GenerationFailed.
    """
    events = _reply(server, tokens, generation, prepared, note, recording)
    return events if recording is None else recording.watch(events, tokens)


async def _reply(
    server: Server,
    tokens: TokenStream,
    generation: GenerationRequest,
    prepared: Prepared,
    note: Callable[[StopReason], None] | None,
    recording: Recording | None,
) -> AsyncGenerator[Event, None]:
    stages = Stages(server, generation, prepared, recording)
    try:
        for event in stages.start(tokens.counts):
            yield event
        async for token in tokens:
            if recording is not None:
                recording.push_token(token, len(tokens.steps))
            for event in stages.push(token.id, token.attended):
                yield event
            if stages.hit is not None:
                break
    finally:
        await tokens.aclose()
        if generation.priority is Priority.INTERACTIVE:  # batches have no part in a minute
            server.rates.spend(generation.tenant, stages.num_tokens)
    is_cut = tokens.finish is not None and tokens.finish.reason is not FinishReason.END
    for event in stages.flush(is_cut=is_cut):
        yield event
    reason = _stop_reason(tokens.finish, stages.hit)
    server.remember(generation.tenant, prepared, stages.listener)
    for event in stages.finish(reason, tokens.counts):
        if note is not None and event["type"] == "message_delta":
            note(event["delta"]["stop_reason"])
        yield event


def reused_header(tokens: TokenStream, dialect: Dialect) -> dict[str, str]:
    """How many tokens of the prompt need not be computed, as far as it is known by now."""
    return {} if dialect.is_strict else {REUSED: str(tokens.counts.reused)}


def _stop_reason(finish: Finish | None, stop_sequence: str | None) -> StopReason:
    if stop_sequence is not None:
        return "stop_sequence"
    assert finish is not None  # the stream was read to its end
    if finish.reason is FinishReason.CANCELLED:  # not by the client, who would not read this
        raise Overloaded("The server is shutting down.")
    return STOP_REASONS[finish.reason]

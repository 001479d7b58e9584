"""POST /v1/messages: the path of one request, from HTTP bytes to HTTP bytes.

Down: read the body (`body.py`), check and tokenize it (`prepare.py`), submit it to the
engine (`engine/worker.py`). Up: `reply` turns token ids into events; a streamed answer
writes them as they come (`stream.py`), any other is their fold. Every stage from
ids to segments has the verbs `push` and `flush`. Whoever leaves, leaves through the `finally` of
`reply`, which frees the sequence.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from aiohttp import web

from minimsg.engine.types import Finish, FinishReason, GenerationRequest
from minimsg.errors import Overloaded
from minimsg.parsing.formats import parser_for
from minimsg.parsing.segments import Segment
from minimsg.protocol.build import EventBuilder, fold
from minimsg.protocol.events import Event
from minimsg.protocol.message import STOP_REASONS, Message, StopReason, new_message
from minimsg.server.auth import TENANT
from minimsg.server.body import read_body
from minimsg.server.dialect import dialect_of
from minimsg.server.prepare import Prepared, prepare_message
from minimsg.server.respond import ignored_header, json_response
from minimsg.server.state import REQUEST_ID, SERVER, Server
from minimsg.server.stream import stream_response
from minimsg.text.detokenize import Detokenizer
from minimsg.text.stops import StopMatcher


async def create_message(request: web.Request) -> web.StreamResponse:
    """Answer one request, streaming or plain. Raises RequestError, GenerationFailed."""
    server = request.app[SERVER]
    server.check_can_answer()
    dialect = dialect_of(request)
    prepared = await server.pool.run(prepare_message, await read_body(request), dialect)
    generation = server.generation(request[REQUEST_ID], prepared, request[TENANT])
    server.rates.admit_prompt(generation.tenant, len(generation.prompt_ids))
    headers = ignored_header(prepared.ignored)
    events = reply(server, generation, prepared)
    async with aclosing(events):
        if prepared.stream:
            return await stream_response(request, events, headers)
        message = fold([event async for event in events])
    return json_response(message, headers=headers)


async def reply(
    server: Server, generation: GenerationRequest, prepared: Prepared
) -> AsyncGenerator[Event, None]:
    """The events of one reply; the first comes once the engine has taken the request.

    Raises Overloaded, GenerationFailed.
    """
    builder = EventBuilder(_new_message(server, generation, prepared))
    detokenizer = Detokenizer(server.chat.tokenizer, continues=prepared.continues)
    parser = parser_for(server.tool_format, prepared.tools)
    stops = StopMatcher(prepared.stop_sequences)

    def show(segments: Iterable[Segment]) -> list[Event]:
        shown = [part for segment in segments for part in stops.push(segment)]
        return [event for part in shown for event in builder.push(part)]

    tokens = await server.worker.submit(generation)
    output_tokens = 0  # every id of the turn, the one that ended it included
    try:
        for event in builder.start():
            yield event
        async for token in tokens:
            output_tokens += 1
            text = "" if token.id in generation.end_ids else detokenizer.push(token.id)
            for event in show(parser.push(text)):
                yield event
            if stops.hit is not None:
                break
    finally:
        await tokens.aclose()
        server.rates.spend(generation.tenant, output_tokens)
    is_cut = tokens.finish is not None and tokens.finish.reason is not FinishReason.END
    rest = show(parser.push(detokenizer.flush())) + show(parser.flush(is_cut=is_cut))
    rest += [event for part in stops.flush() for event in builder.push(part)]
    reason = _stop_reason(tokens.finish, stops.hit)
    for event in rest + builder.finish(reason, stops.hit, output_tokens):
        yield event


def _new_message(server: Server, generation: GenerationRequest, prepared: Prepared) -> Message:
    message = new_message(server.chat.name, len(generation.prompt_ids))
    message["diagnostics"] = prepared.diagnostics
    if prepared.context_management is not None:
        message["context_management"] = prepared.context_management
    return message


def _stop_reason(finish: Finish | None, stop_sequence: str | None) -> StopReason:
    if stop_sequence is not None:
        return "stop_sequence"
    assert finish is not None  # the stream was read to its end
    if finish.reason is FinishReason.CANCELLED:  # not by the client, who would not read this
        raise Overloaded("The server is shutting down.")
    return STOP_REASONS[finish.reason]

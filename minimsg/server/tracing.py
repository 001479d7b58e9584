"""From what was noted of a request to its record: the side that takes its time.

The prompt is rendered once more, where every body is read, to find who wrote each token; where
that no longer gives the same ids, they are told without sources. Knows recordings and `Trace`;
who may read one: `trace_routes.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from pydantic import TypeAdapter

from minimsg.engine.types import FinishReason, Stepped, Token
from minimsg.errors import RequestError
from minimsg.parsing.segments import (
    CitedSegment,
    Segment,
    TextSegment,
    ThinkingSegment,
    ToolCallEnd,
    ToolCallInput,
    ToolCallStart,
)
from minimsg.prompt.spans import Source
from minimsg.protocol.events import Event
from minimsg.protocol.sse import encode
from minimsg.protocol.validation import parse_json
from minimsg.server.explain import Explained, explain_prompt
from minimsg.server.facts import engine_facts
from minimsg.server.prepare import Known
from minimsg.server.recording import Recording
from minimsg.server.state import Server
from minimsg.trace import (
    VERSION,
    JsonObject,
    PromptToken,
    TokenSource,
    Trace,
    TracedCache,
    TracedEvent,
    TracedFinish,
    TracedImage,
    TracedMark,
    TracedPrompt,
    TracedSampling,
    TracedSegment,
    TracedSettings,
    TracedStep,
    TracedToken,
    TraceLine,
    finite,
)

KNOWN: Final[TypeAdapter[Known]] = TypeAdapter(Known)
OBJECT: Final[TypeAdapter[JsonObject]] = TypeAdapter(JsonObject)


def line_of(recording: Recording, model: str) -> TraceLine:
    """`recording` in the list of records."""
    id, num_tokens = recording.generation.id, len(recording.tokens)
    return TraceLine(id, _time(recording), model, num_tokens, _stop_reason(recording))


async def trace_of(server: Server, recording: Recording) -> Trace:
    """The whole record. Raises RequestError only if the server is too busy to make it."""
    explained = await _explained(server, recording)
    return await asyncio.to_thread(_Writer(server, recording).trace, explained)


async def _explained(server: Server, recording: Recording) -> Explained | None:
    """The prompt with its sources; None if it is not the same any more."""
    body, dialect, known = recording.body, recording.dialect, recording.known
    try:
        explained = await server.pool.run(explain_prompt, body, dialect, known)
    except RequestError as error:
        if error.status == 529:
            raise
        return None
    return explained if explained.ids == list(recording.prepared.prompt_ids) else None


class _Writer:
    """One recording and the server that made it."""

    def __init__(self, server: Server, recording: Recording) -> None:
        self._server = server
        self._recording = recording
        self._tokenizer = server.chat.tokenizer

    def trace(self, explained: Explained | None) -> Trace:
        made, server = self._recording, self._server
        return Trace(
            version=VERSION,
            id=made.generation.id,
            model=server.chat.name,
            created_at=_time(made),
            profile=made.dialect.profile,
            version_header=made.dialect.version,
            betas=sorted(made.dialect.betas),
            request=OBJECT.validate_python(parse_json(made.body)),
            known=_known(made.known),
            settings=self._settings(),
            engine=engine_facts(server.worker.engine, server.chat.folder),
            prompt=self._prompt(explained),
            sampling=self._sampling(),
            steps=[self._step(step) for step in made.stream.steps],
            tokens=[self._token(*noted) for noted in made.tokens],
            segments=[_segment(self._since(at), segment) for at, segment in made.segments],
            events=[_event(self._since(at), event) for at, event in made.events],
            finish=self._finish(),
            usage=_usage([event for _, event in made.events]),
        )

    def _since(self, at: float) -> float:
        return round(at - self._recording.arrived, 6)

    def _settings(self) -> TracedSettings:
        dialect, parsers = self._recording.dialect, self._server.chat.parsers
        return TracedSettings(
            without=sorted(dialect.without),
            drop_server_tools=dialect.drops_server_tools,
            in_batch=dialect.is_in_batch,
            tool_call_parser=parsers.tool_call_parser,
            reasoning_parser=parsers.reasoning_parser,
        )

    def _prompt(self, explained: Explained | None) -> TracedPrompt:
        made = self._recording
        ids = made.prepared.prompt_ids
        sources: Sequence[Source | None] = explained.sources if explained else [None] * len(ids)
        counts = made.stream.counts
        raw = [self._tokenizer.token_bytes(id) for id in ids]
        return TracedPrompt(
            text=explained.text if explained else b"".join(raw).decode(errors="replace"),
            tokens=[
                PromptToken(id, piece.decode(errors="replace"), piece.hex(), _source(source))
                for id, piece, source in zip(ids, raw, sources, strict=True)
            ],
            marks=[TracedMark(mark.num_tokens, mark.ttl_s) for mark in made.prepared.marks],
            cache=TracedCache(counts.read, counts.written_5m, counts.written_1h, counts.reused),
            bill=explained.bill if explained else None,
            images=[
                TracedImage(image.start, image.stop, image.digest.hex())
                for image in made.prepared.images
            ],
        )

    def _sampling(self) -> TracedSampling:
        generation = self._recording.generation
        sampling = generation.sampling
        assert sampling.seed is not None  # the recording has seen to it
        return TracedSampling(
            temperature=sampling.temperature,
            top_k=sampling.top_k,
            top_p=sampling.top_p,
            repetition_penalty=sampling.repetition_penalty,
            seed=sampling.seed,
            max_tokens=generation.max_tokens,
            stop_sequences=self._recording.prepared.stop_sequences,
        )

    def _step(self, step: Stepped) -> TracedStep:
        return TracedStep(
            number=step.number,
            at_s=self._since(step.started),
            took_s=round(step.took_s, 6),
            start=step.start,
            stop=step.stop,
            num_sequences=step.num_sequences,
            num_tokens=step.num_tokens,
            pages=step.pages,
            event=step.change,
            layer_errors=None if step.layer_errors is None else finite(step.layer_errors),
        )

    def _token(self, at: float, token: Token, num_steps: int) -> TracedToken:
        assert token.choice is not None  # the request was traced
        step = self._recording.stream.steps[num_steps - 1]  # that it came behind
        return TracedToken(
            id=token.id,
            text=self._tokenizer.token_text(token.id),
            logprob=token.logprob,
            top=[(id, self._tokenizer.token_text(id), logprob) for id, logprob in token.top],
            entropy=token.choice.entropy,
            allowed=token.choice.allowed,
            forced_by=token.choice.forced_by,
            step=step.number,
            at_s=self._since(at),
        )

    def _finish(self) -> TracedFinish:
        made = self._recording
        finish = made.stream.finish
        reason = finish.reason if finish else FinishReason.CANCELLED
        return TracedFinish(reason.value, _stop_reason(made), made.error)


def _time(recording: Recording) -> str:
    return recording.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _known(known: Known) -> JsonObject:
    """Without the key of the server's signatures."""
    return OBJECT.validate_python(KNOWN.dump_python(known, mode="json", exclude={"seal"}))


def _source(source: Source | None) -> TokenSource | None:
    return TokenSource(source.path, source.start, source.end) if source else None


def _segment(at_s: float, segment: Segment) -> TracedSegment:
    match segment:
        case TextSegment(text):
            return TracedSegment("text", text, at_s)
        case CitedSegment(text):
            return TracedSegment("cited", text, at_s)
        case ThinkingSegment(text):
            return TracedSegment("thinking", text, at_s)
        case ToolCallStart(name):
            return TracedSegment("call_start", name, at_s)
        case ToolCallInput(fragment):
            return TracedSegment("call_input", fragment, at_s)
        case ToolCallEnd():
            return TracedSegment("call_end", "", at_s)


def _event(at_s: float, event: Event) -> TracedEvent:
    return TracedEvent(at_s, len(encode(event)), OBJECT.validate_python(event))


def _stop_reason(recording: Recording) -> str | None:
    for _, event in reversed(recording.events):
        if event["type"] == "message_delta":
            return event["delta"]["stop_reason"]
    return None


def _usage(events: Sequence[Event]) -> JsonObject | None:
    """As far as it was told."""
    usage: JsonObject | None = None
    for event in events:
        if event["type"] == "message_start":
            usage = OBJECT.validate_python(event["message"]["usage"])
        elif event["type"] == "message_delta" and usage is not None:
            usage |= OBJECT.validate_python(event["usage"])
    return usage

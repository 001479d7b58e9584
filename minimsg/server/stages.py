"""The way of one reply from token ids to events, stage by stage.

    id -> text -> segments -> those before a stop sequence -> sentences, if cited -> events

Every stage has the verbs `push` and `flush`; here they are joined, and what passes is
counted and, for clients that drop thinking, listened to. Knows nothing of HTTP and of
where ids come from (`messages.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from minimsg.citing.citer import Citer
from minimsg.engine.types import CacheCounts, GenerationRequest
from minimsg.parsing.formats import parser_for
from minimsg.parsing.segments import Parser, Segment, TextSegment
from minimsg.parsing.spoken import SpokenCalls
from minimsg.parsing.thinking import ThinkingMeter
from minimsg.protocol.build import EventBuilder
from minimsg.protocol.events import Event
from minimsg.protocol.message import Message, StopReason, new_message
from minimsg.protocol.usage import input_usage
from minimsg.server.prepare import Prepared
from minimsg.server.recording import Recording
from minimsg.server.remembered import Listener
from minimsg.server.state import Server
from minimsg.text.detokenize import Detokenizer
from minimsg.text.stops import StopMatcher


class Stages:
    """The stages of one reply. After `hit` nothing more is to be pushed."""

    def __init__(
        self,
        server: Server,
        generation: GenerationRequest,
        prepared: Prepared,
        recording: Recording | None = None,
    ) -> None:
        self.num_tokens = 0  # every id of the turn, the one that ended it included
        self.listener = Listener()
        self._recording = recording
        self._end_ids = generation.end_ids
        self._usage = partial(
            input_usage,
            len(generation.prompt_ids),
            reports_all_hits=server.config.report_all_hits,
        )
        self._thinks = prepared.tags is not None
        self._is_only_calls = bool(prepared.constraint.must_call)  # a cut call is no text
        self._parser = _parser(server.chat.tool_format, prepared)
        self._detokenizer = Detokenizer(
            server.chat.tokenizer, continues=prepared.continues, tags=self._parser.tags
        )
        self._meter = ThinkingMeter(self._parser)
        self._stops = StopMatcher(prepared.stop_sequences)
        citing = prepared.citing
        self._citer = Citer(citing.index) if citing else None
        self._builder = EventBuilder(
            _new_message(server, generation, prepared),
            display=prepared.thinking.display,
            sign=server.seal(generation.tenant).sign,
            is_cited=citing is not None,
        )

    def start(self, counts: CacheCounts) -> list[Event]:
        """The first event, before any id; `counts`: what the cache has of the prompt."""
        self._builder.count(self._usage(counts))
        return self._builder.start()

    def push(self, id: int, attended: Sequence[float] = ()) -> list[Event]:
        """What is certain after `id`, which has `attended` to what may be cited."""
        self.num_tokens += 1
        if self._citer is not None:
            self._citer.attend(attended)
        if id in self._end_ids:
            return []
        events = self._show(self._parser.push(self._detokenizer.push(id)))
        self._meter.push()
        if self._stops.completes_in(self._parser.held_space):  # no tag will claim it any more
            events += self._show(self._parser.flush(is_cut=True))
        return events

    @property
    def hit(self) -> str | None:
        """The stop sequence that ended the reply, or None so far."""
        return self._stops.hit

    def flush(self, *, is_cut: bool) -> list[Event]:
        """What was held back; `is_cut`: something other than the model ended the reply."""
        events = self._show(self._parser.push(self._detokenizer.flush()))
        events += self._show(self._parser.flush(is_cut=is_cut))
        events += self._tell(self._stops.flush())
        return events + (self._say(self._citer.flush()) if self._citer else [])

    def finish(self, reason: StopReason, counts: CacheCounts) -> list[Event]:
        """The last events of a reply that succeeded; `counts` as they were in the end."""
        self._builder.count(self._usage(counts))
        thinking_tokens = self._meter.num_tokens if self._thinks else None
        return self._builder.finish(reason, self.hit, self.num_tokens, thinking_tokens)

    def _show(self, segments: Iterable[Segment]) -> list[Event]:
        return self._tell(part for segment in segments for part in self._stops.push(segment))

    def _tell(self, segments: Iterable[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            if self._recording is not None:
                self._recording.push_segment(segment)
            if self._is_only_calls and isinstance(segment, TextSegment):
                continue
            events += self._say(self._citer.push(segment) if self._citer else [segment])
        return events

    def _say(self, segments: Iterable[Segment]) -> list[Event]:
        events: list[Event] = []
        for segment in segments:
            self.listener.push(segment)
            events += self._builder.push(segment)
        return events


def _parser(format: str, prepared: Prepared) -> Parser:
    if prepared.forbidden:
        return SpokenCalls(parser_for(format, prepared.forbidden, prepared.tags))
    return parser_for(format, prepared.tools, prepared.tags)


def _new_message(server: Server, generation: GenerationRequest, prepared: Prepared) -> Message:
    message = new_message(server.chat.name, len(generation.prompt_ids))
    message["diagnostics"] = server.diagnosis(generation.tenant, prepared, message["id"])
    if prepared.citing and prepared.citing.attribution:
        message["attribution"] = prepared.citing.attribution
    if prepared.context_management is not None:
        message["context_management"] = prepared.context_management
    return message

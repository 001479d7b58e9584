"""What is noted of a request while it is answered, if it is traced.

Only appends: whatever takes time is done when somebody reads the record (`tracing.py`). It is
kept once the reply has ended, however it did (`records.py`).
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from time import monotonic
from typing import Final

from minimsg.engine.token_stream import TokenStream
from minimsg.engine.types import GenerationRequest, Token
from minimsg.errors import MinimsgError
from minimsg.parsing.segments import Segment
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.events import Event
from minimsg.server.prepare import Known, Prepared
from minimsg.server.records import Records

TOP: Final = 8  # alternatives of each token
SEED_BITS: Final = 53  # a number that every reader of JSON keeps whole
# About what each takes in memory.
ID_BYTES, TOKEN_BYTES, SEGMENT_BYTES, EVENT_BYTES, STEP_BYTES = 36, 1_800, 200, 1_000, 400


@dataclass
class Recording:
    """One request: what was sent, what was made of it, and what came, with times."""

    records: Records
    body: bytes
    dialect: Dialect
    known: Known
    prepared: Prepared
    generation: GenerationRequest
    arrived: float  # time.monotonic
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    tokens: list[tuple[float, Token, int]] = field(default_factory=list)
    segments: list[tuple[float, Segment]] = field(default_factory=list)
    events: list[tuple[float, Event]] = field(default_factory=list)
    stream: TokenStream = field(init=False)  # there once it is kept
    error: str | None = None

    def __post_init__(self) -> None:
        """The engine is asked for more, and by a seed that can be asked for again."""
        sampling = self.generation.sampling
        seed = secrets.randbits(SEED_BITS) if sampling.seed is None else sampling.seed
        sampling = replace(sampling, seed=seed, top_logprobs=TOP)
        self.generation = replace(self.generation, sampling=sampling, is_traced=True)
        if self.known.remembered is not None:  # of all that the tenant may have back
            recalled = {each: self.known.remembered[each] for each in self.prepared.recalled}
            self.known = replace(self.known, remembered=recalled)

    def push_token(self, token: Token, num_steps: int) -> None:
        """A token has come, and before it `num_steps` steps were told."""
        self.tokens.append((monotonic(), token, num_steps))

    def push_segment(self, segment: Segment) -> None:
        """The parser has made this of it."""
        self.segments.append((monotonic(), segment))

    async def watch(
        self, events: AsyncGenerator[Event, None], stream: TokenStream
    ) -> AsyncGenerator[Event, None]:
        """The same events; once they have ended, or their reader has left, all is kept."""
        try:
            async with aclosing(events):
                async for event in events:
                    self.events.append((monotonic(), event))
                    yield event
        except Exception as error:
            self.error = str(error) if isinstance(error, MinimsgError) else type(error).__name__
            raise
        finally:
            self.stream = stream
            self.records.keep(self)

    @property
    def tenant(self) -> str:
        """Who may read it."""
        return self.generation.tenant

    @cached_property
    def num_bytes(self) -> int:
        """About what it takes in memory, once it has ended."""
        steps = self.stream.steps
        in_steps = sum(len(step.pages) + len(step.layer_errors or ()) for step in steps)
        images = sum(len(image.pixels) for image in self.prepared.images)
        return (
            len(self.body)
            + self.known.num_chars
            + images
            + ID_BYTES * (len(self.prepared.prompt_ids) + in_steps)
            + TOKEN_BYTES * len(self.tokens)
            + SEGMENT_BYTES * len(self.segments)
            + EVENT_BYTES * len(self.events)
            + STEP_BYTES * len(steps)
        )

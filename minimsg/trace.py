"""One request as it went through the server: what was sent, read, computed and said.

A `Trace` is a record of plain data: the server makes one of a request that is watched
(`server/recording.py`), the inspector and notebooks show it, and `minimsg replay` computes
it again (`replay/`). It is whole: what a bug report needs, and so what was said in private.
`to_json` writes it, `from_json` reads what anybody may have written. Times are seconds since
the request arrived.

Knows no torch, no HTTP and no model; next: `server/recording.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from minimsg.errors import InvalidTrace
from minimsg.limits import LIMITS
from minimsg.protocol.counting import TokenBill
from minimsg.protocol.dialect import Profile, Version

VERSION: Final = 1
JsonObject = dict[str, JsonValue]
Count = Annotated[int, Field(ge=0, le=LIMITS.count)]
Seed = Annotated[int, Field(ge=-LIMITS.seed, le=LIMITS.seed)]
Change = Literal["admitted", "preempted", "retried"]


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Characters `start` to `end` of the request's value at `path`, as `messages.2.content.0`.

    `0, 0`: what stands around the values there, such as the braces of a tool's JSON.
    """

    path: str
    start: Count
    end: Count


@dataclass(frozen=True, slots=True)
class PromptToken:
    """A token of the prompt and who wrote it."""

    id: Count
    text: str  # of its bytes alone: of half a character, a replacement character
    bytes: str  # in hex
    source: TokenSource | None  # None: the chat template


@dataclass(frozen=True, slots=True)
class TracedMark:
    """What is before it was to be kept: `engine/types.py`, CacheMark."""

    num_tokens: Count
    ttl_s: Count


@dataclass(frozen=True, slots=True)
class TracedCache:
    """The tokens of the prompt by what the cache did with them: `engine/types.py`, CacheCounts."""

    read: Count
    written_5m: Count
    written_1h: Count
    reused: Count


@dataclass(frozen=True, slots=True)
class TracedImage:
    """An image stands at `tokens[start:stop]`; its pixels are the request's."""

    start: Count
    stop: Count
    digest: str  # in hex


@dataclass(frozen=True, slots=True)
class TracedPrompt:
    """What the model read. Its tokens are those of `usage`, and those of the bill, to the token."""

    text: str
    tokens: list[PromptToken]
    marks: list[TracedMark]
    cache: TracedCache
    bill: TokenBill | None  # None, and no token with a source: it could not be rendered again
    images: list[TracedImage]


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What computed it. Where two of these differ, their numbers may."""

    minimsg: str
    torch: str
    cpu: str
    device: str
    kernel: str
    dtype: str  # of the weights
    weights: str  # SHA-256 of the model's files, in hex
    threads: Annotated[int, Field(ge=1, le=LIMITS.count)]
    page_size: Count
    max_context: Count
    deterministic: bool
    speculate: Count
    is_batch_invariant: bool  # the kernel: a row's numbers are the same whatever else is computed


@dataclass(frozen=True, slots=True)
class TracedSettings:
    """How the server read the request, besides its headers."""

    without: list[str]
    drop_server_tools: bool
    in_batch: bool  # it was one of a message batch
    tool_call_parser: str
    reasoning_parser: str


@dataclass(frozen=True, slots=True)
class TracedSampling:
    """How ids were drawn; the seed is that of the request, or was drawn for it."""

    temperature: float
    top_k: Count
    top_p: float
    repetition_penalty: float
    seed: Seed
    max_tokens: Count
    stop_sequences: list[str]


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step of the engine that computed positions `start` to `stop` of this request."""

    number: Count  # of the engine's steps
    at_s: float
    took_s: float
    start: Count
    stop: Count
    num_sequences: Count  # of the whole batch
    num_tokens: Count
    pages: list[Count]  # where these positions lie; with an event, where all before `stop` lie
    event: Change | None  # "admitted" is the first, the others began anew from `start`
    # Against the reference kernel, if it ran beside; of a layer None: no finite number.
    layer_errors: list[float | None] | None = None


@dataclass(frozen=True, slots=True)
class TracedToken:
    """A token of the reply. Log probabilities and entropy are the model's own: nothing is masked,
    temperature 1."""

    id: Count
    text: str
    logprob: float
    top: list[tuple[Count, str, float]]  # the likeliest: id, text, logprob
    entropy: float  # nats
    allowed: float | None  # share of the ids that a hook left; None: no hook, or it left all
    forced_by: str | None  # the hook that left no choice
    step: Count
    at_s: float


@dataclass(frozen=True, slots=True)
class TracedSegment:
    """What a parser made of the text: `parsing/segments.py`."""

    kind: Literal["text", "cited", "thinking", "call_start", "call_input", "call_end"]
    text: str  # the tool's name of "call_start"
    at_s: float


@dataclass(frozen=True, slots=True)
class TracedEvent:
    """An event of the reply, and how many bytes it has on the wire if it is streamed."""

    at_s: float
    bytes: Count
    event: JsonObject


@dataclass(frozen=True, slots=True)
class TracedFinish:
    """Why it ended."""

    reason: str  # the engine's
    stop_reason: str | None  # the API's; None: nobody was told
    error: str | None


@dataclass(frozen=True, slots=True)
class Trace:
    """The record of one request."""

    version: Literal[1]
    id: str  # the header `request-id` of its answer
    model: str
    created_at: str
    profile: Profile
    version_header: Version
    betas: list[str]
    request: JsonObject  # the body as it was sent
    known: JsonObject  # files and thinking that were read into it
    settings: TracedSettings
    engine: EngineFacts
    prompt: TracedPrompt
    sampling: TracedSampling
    steps: list[TracedStep]
    tokens: list[TracedToken]
    segments: list[TracedSegment]
    events: list[TracedEvent]
    finish: TracedFinish
    usage: JsonObject | None = field(default=None)


@dataclass(frozen=True, slots=True)
class TraceLine:
    """A record in the list of records."""

    id: str
    created_at: str
    model: str
    num_tokens: Count  # of the reply
    stop_reason: str | None


@dataclass(frozen=True, slots=True)
class TracePage:
    """What was traced, the latest first."""

    data: list[TraceLine]


LIST: Final[TypeAdapter[TracePage]] = TypeAdapter(TracePage)
TRACE: Final[TypeAdapter[Trace]] = TypeAdapter(Trace)


def finite(errors: Iterable[float]) -> list[float | None]:
    """Errors of layers as JSON can hold them."""
    return [error if isfinite(error) else None for error in errors]


def to_json(trace: Trace) -> bytes:
    """`trace` as JSON."""
    return TRACE.dump_json(trace)


def from_json(data: bytes) -> Trace:
    """The record that `data` holds. Raises InvalidTrace."""
    if len(data) > LIMITS.trace_bytes:
        raise InvalidTrace(f"{len(data):,} bytes; a record has at most {LIMITS.trace_bytes:,}")
    try:
        return TRACE.validate_json(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise InvalidTrace(f"{path}: {first['msg']}" if path else first["msg"]) from None

"""A recorded request computed again, alone: the same ids by the same plan, if it can be.

What the model reads are the ids of the record; its body is read again for what holds the
reply: tools, grammars, thinking. The prompt is computed in the chunks of the record, which
matters where a kernel's numbers depend on them. Knows how to compute; what the outcome means is
in `compared.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.engine.types import (
    Finish,
    FinishReason,
    GenerationRequest,
    SamplingParams,
    Token,
)
from minimsg.errors import ConfigError, InvalidTrace, KernelUnavailable, RequestError
from minimsg.machine import usable_cores
from minimsg.protocol.dialect import Dialect
from minimsg.server.auth import LOCAL
from minimsg.server.facts import engine_facts
from minimsg.server.loading import Loaded, load_model
from minimsg.server.prepare import NOTHING, Known, Prepared, prepare_message
from minimsg.server.state import Server
from minimsg.trace import EngineFacts, Trace, TracedSampling, TracedStep

if TYPE_CHECKING:
    from minimsg.engine.engine import Engine

KNOWN: Final[TypeAdapter[Known]] = TypeAdapter(Known)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of a record when it was computed again."""

    tokens: list[Token]
    finish: Finish | None  # None: the record ends before the model would have
    facts: EngineFacts
    differing_prompt: int | None  # the first token that the request is rendered to otherwise now


def load(trace: Trace, name: str, folder: Path) -> tuple[Loaded, str | None]:
    """The model in `folder` as the record's was loaded, or why not, and then as near as can be.

    Raises what `load_model` raises, and InvalidTrace.
    """
    settings, facts = trace.settings, trace.engine
    parsers = _checked(ParserConfig(settings.tool_call_parser, settings.reasoning_parser))
    config = EngineConfig(
        dtype=facts.dtype,
        device=facts.device,
        kernel=facts.kernel,
        threads=min(facts.threads, usable_cores()),
        max_context=facts.max_context,
        deterministic=facts.deterministic,
    )
    passed_over: str | None = None
    for nearest in (config, replace(config, kernel=None, device="auto")):
        try:
            return load_model(name, folder, nearest, 1, parsers), passed_over
        except (ConfigError, KernelUnavailable) as error:
            passed_over = passed_over or str(error)
    return load_model(name, folder, EngineConfig(), 1, parsers), passed_over


def replay(trace: Trace, loaded: Loaded) -> Replayed:
    """Compute the record's tokens. Raises InvalidTrace, InvalidRequest."""
    config = ServerConfig(
        any_model=True, no_store=True, default_max_tokens=trace.sampling.max_tokens
    )
    server = Server(loaded.chat, loaded.worker, config)
    server.check_can_answer()
    request, differing = asyncio.run(_asked(trace, server))
    tokens, finish = compute(loaded.worker.engine, request, trace)
    facts = engine_facts(loaded.worker.engine, loaded.chat.folder)
    return Replayed(tokens, finish, facts, differing)


def compute(
    engine: Engine, request: GenerationRequest, trace: Trace
) -> tuple[list[Token], Finish | None]:
    """The tokens of `request`, no more than the record has if it was ended from outside."""
    ends = iter(chunk_ends(trace.steps, len(request.prompt_ids)))
    most = len(trace.tokens) if trace.finish.reason == FinishReason.CANCELLED else None
    tokens: list[Token] = []
    finish: Finish | None = None
    engine.add(request)
    place = 0
    try:
        while finish is None and (most is None or len(tokens) < most):
            if (end := next(ends, None)) is not None:
                engine.scheduler.max_step_tokens, place = end - place, end
            said = engine.step()
            tokens += [each for each in said if isinstance(each, Token)]
            finish = next((each for each in said if isinstance(each, Finish)), None)
    finally:
        engine.cancel(request.id)
    return tokens, finish


def chunk_ends(steps: Sequence[TracedStep], num_tokens: int) -> list[int]:
    """Where the chunks of a prompt end, as they stood when its last token was computed.

    What was taken from the cache is one chunk: how others had computed it is not known.
    """
    ends: list[int] = []
    for step in steps:
        ends = [end for end in ends if end < step.start]
        ends += [end for end in (step.start, step.stop) if end > 0]
        if step.stop >= num_tokens:
            break
    return [end for end in ends if end < num_tokens] + [num_tokens]


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Where two lists first differ; None if they are equal."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


async def _asked(trace: Trace, server: Server) -> tuple[GenerationRequest, int | None]:
    """What the engine was asked for, and where its prompt is rendered otherwise now.

    Raises InvalidTrace.
    """
    ids = [token.id for token in trace.prompt.tokens]
    try:
        prepared = await _prepared(trace, server)
        differing = first_difference(ids, prepared.prompt_ids)
        if differing is not None and prepared.images:
            why = f"the pictures cannot be placed: it is rendered otherwise from token {differing}"
            raise InvalidTrace(f"prompt: {why}")
        prepared = replace(prepared, prompt_ids=ids)
        request = await server.generation(trace.id, prepared, LOCAL)
    except RequestError as error:
        raise InvalidTrace(f"request: {error}") from None
    finally:
        server.grammars.close()
        await server.pool.close()
    return _as_recorded(request, trace.sampling), differing


async def _prepared(trace: Trace, server: Server) -> Prepared:
    """The request read again, where every body is. Raises InvalidTrace, RequestError."""
    settings = trace.settings
    dialect = Dialect(  # what strict refuses was not in it, or is not for us to judge: signatures
        version=trace.version_header,
        betas=frozenset(trace.betas),
        lacking=server.lacking,
        without=frozenset(settings.without),
        drops_server_tools=settings.drop_server_tools,
        is_in_batch=settings.in_batch,
    )
    try:
        known = KNOWN.validate_python({**trace.known, "seal": asdict(NOTHING.seal)})
    except ValidationError as error:
        raise InvalidTrace(f"known: {error.errors(include_input=False)[0]['msg']}") from None
    return await server.pool.run(prepare_message, to_json(trace.request), dialect, known)


def _as_recorded(request: GenerationRequest, asked: TracedSampling) -> GenerationRequest:
    """`request` with the draws of the record, which the model's defaults may have decided."""
    sampling = SamplingParams(
        temperature=asked.temperature,
        top_k=asked.top_k,
        top_p=asked.top_p,
        repetition_penalty=asked.repetition_penalty,
        seed=asked.seed,
    )
    return replace(
        request, max_tokens=asked.max_tokens, sampling=sampling, marks=(), is_traced=True
    )


def _checked(config: ParserConfig) -> ParserConfig:
    """`config`, which a record has set. Raises InvalidTrace."""
    for each in fields(config):
        value, choices = getattr(config, each.name), each.metadata["choices"]
        if value not in choices:
            raise InvalidTrace(f"settings.{each.name}: {value!r:.60}; there are {choices}")
    return config

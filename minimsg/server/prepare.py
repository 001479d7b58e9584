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
from minimsg.parsing.calls import CallableTool
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import Prompt, check_length, render
from minimsg.prompt.tools import toolbox_of
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import CountTokensRequest, MessagesRequest, PromptRequest
from minimsg.protocol.rules import unheeded
from minimsg.protocol.tools import CustomTool, NoneChoice
from minimsg.protocol.validation import Validated, parse_json, validate
from minimsg.server.catalog import Catalog

T = TypeVar("T")
R = TypeVar("R", bound=PromptRequest)


@dataclass(frozen=True, slots=True)
class Settings:
    """What of the server's settings decides how a request is read."""

    catalog: Catalog
    max_context: int  # tokens, prompt and reply together
    default_max_tokens: int
    drop_server_tools: bool


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, and how."""

    chat: ChatModel
    settings: Settings


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for a reply, checked and tokenized; `ignored` are JSON paths nobody reads.

    `continues`: the reply goes on with text that the prompt ends with. `tools` are those
    that the model may call.
    """

    prompt_ids: list[int]
    continues: bool
    max_tokens: int
    stream: bool
    stop_sequences: list[str]
    tools: dict[str, CallableTool]
    sampling: SamplingParams
    ignored: list[str]


@dataclass(frozen=True, slots=True)
class Counted:
    """A prompt's length in tokens."""

    input_tokens: int
    ignored: list[str]


def prepare_message(body: bytes, served: Served, dialect: Dialect) -> Prepared:
    """The body of POST /v1/messages. Raises RequestError."""
    checked = _checked(MessagesRequest, body, served, dialect)
    request, settings = checked.request, served.settings
    prompt = render(request, served.chat)
    check_length(prompt, settings.max_context)
    return Prepared(
        prompt_ids=prompt.ids,
        continues=prompt.continues,
        max_tokens=_given(request.max_tokens, settings.default_max_tokens),
        stream=request.stream,
        stop_sequences=request.stop_sequences,
        tools=_callable_tools(request),
        sampling=_sampling(request, served.chat.sampling),
        ignored=_ignored(checked, prompt, dialect),
    )


def count_prompt(body: bytes, served: Served, dialect: Dialect) -> Counted:
    """The body of POST /v1/messages/count_tokens. Raises RequestError."""
    checked = _checked(CountTokensRequest, body, served, dialect)
    prompt = render(checked.request, served.chat)
    return Counted(len(prompt.ids), _ignored(checked, prompt, dialect))


WORK: Final = {function.__name__: function for function in (prepare_message, count_prompt)}


def _checked(kind: type[R], body: bytes, served: Served, dialect: Dialect) -> Validated[R]:
    """JSON, types, model, rules: in the order in which the hosted API looks at them."""
    checked = validate(kind, parse_json(body), dialect)
    served.settings.catalog.find(checked.request.model)
    checked.request.check(dialect)
    return checked


def _ignored(checked: Validated[R], prompt: Prompt, dialect: Dialect) -> list[str]:
    """All that was sent and changes nothing, by its path."""
    return [*checked.ignored, *unheeded(checked.request, dialect)]


def _callable_tools(request: MessagesRequest) -> dict[str, CallableTool]:
    """What the model was told of and may call, by name."""
    if isinstance(request.tool_choice, NoneChoice):
        return {}
    custom = [tool for tool in request.tools if isinstance(tool, CustomTool)]
    eager = {tool.name for tool in custom if tool.eager_input_streaming}
    return {
        function.name: CallableTool(function.parameters, is_eager=function.name in eager)
        for function in toolbox_of(request).functions
    }


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

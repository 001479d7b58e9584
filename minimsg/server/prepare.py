"""A body of bytes to what the engine needs: parse, check, render, tokenize, measure.

The heavy half of a request: it never runs on the event loop, but in a thread or, for a
big body, in a process (`pool.py`), so it knows neither aiohttp nor the engine and
imports no torch. Pure functions of the body and of what is served.
Next: `protocol/validation.py`, `prompt/render.py`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from minimsg.citing.citing import Citing, citing_of
from minimsg.config import BY_TEMPLATE, ParserConfig
from minimsg.constrain.constraint import Constraint, check_strictly, constraint_of
from minimsg.engine.types import CacheMark, ImageSpan, SamplingParams
from minimsg.parsing.calls import CallableTool
from minimsg.parsing.thinking import ThinkingTags
from minimsg.prompt.bill import bill_of
from minimsg.prompt.caching import cache_marks
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.fingerprint import fingerprint_of
from minimsg.prompt.pdfs import PathGuard, with_pdfs
from minimsg.prompt.probe_thinking import ThinkingForm
from minimsg.prompt.render import Prompt, check_length, images_of, render
from minimsg.prompt.replay import Remembered
from minimsg.prompt.thinking import ThinkingPlan, plan_thinking
from minimsg.prompt.tools import toolbox_of
from minimsg.prompt.uploads import Named, Upload, urls_in, with_uploads
from minimsg.protocol.context import ContextEdits
from minimsg.protocol.counting import TokenCount
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.request import CountTokensRequest, MessagesRequest, PromptRequest
from minimsg.protocol.rules import unheeded
from minimsg.protocol.rules.tools import client_tools
from minimsg.protocol.tools import AnyChoice, CustomTool, NamedChoice, NoneChoice
from minimsg.protocol.validation import Validated, parse_json, validate
from minimsg.server.catalog import Catalog
from minimsg.server.past_prompts import Asking
from minimsg.server.signatures import KEY_BYTES, Seal, unsealed

T = TypeVar("T")
R = TypeVar("R", bound=PromptRequest)


@dataclass(frozen=True, slots=True)
class Settings:
    """What of the server's settings decides how a request is read."""

    catalog: Catalog
    max_context: int  # tokens, prompt and reply together
    default_max_tokens: int
    parsers: ParserConfig = BY_TEMPLATE
    min_cache_tokens: int = 0
    citations: str = "overlap"  # or attention, off


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, and how."""

    chat: ChatModel
    settings: Settings
    guard: PathGuard | None = None  # around what reads PDFs; None: there are none here


@dataclass(frozen=True, slots=True)
class Known:
    """What the server knows of a tenant: earlier replies, and files that a request names."""

    seal: Seal
    remembered: Remembered | None  # None: nothing is put back
    uploads: Mapping[str, Upload] | None = None  # by id; None: files are not read here
    fetched: Mapping[str, Upload] = field(default_factory=dict)  # by URL

    @property
    def num_chars(self) -> int:
        """Of the files that a body grows by."""
        return sum(upload.num_chars for upload in self._files)

    @property
    def has_pdfs(self) -> bool:
        """Whether any of them is a PDF."""
        return any(upload.pdf is not None for upload in self._files)

    @property
    def _files(self) -> list[Upload]:
        return [*(self.uploads or {}).values(), *self.fetched.values()]


NOTHING: Final = Known(Seal.of("", secrets.token_bytes(KEY_BYTES)), None)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request for a reply, checked and tokenized."""

    prompt_ids: list[int]
    images: tuple[ImageSpan, ...]
    continues: bool  # the reply goes on with text that the prompt ends with
    max_tokens: int
    stream: bool
    stop_sequences: list[str]
    tools: dict[str, CallableTool]  # what the model may call
    forbidden: dict[str, CallableTool]  # what it was told of and may not call
    constraint: Constraint  # what the form of the reply must be
    thinking: ThinkingPlan
    tags: ThinkingTags | None  # None: the model does not think
    digest: str | None  # of the conversation (`replay.py`); None: nothing is to be remembered
    recalled: list[str]  # the digests by which thinking was put back
    sampling: SamplingParams
    context_management: ContextEdits | None  # what was edited, if edits were asked for
    marks: tuple[CacheMark, ...]  # places in the prompt, by length
    asking: Asking | None  # for what has changed since an earlier message
    citing: Citing | None  # None: nothing of the request can be cited
    ignored: list[str]  # JSON paths of what changes nothing


@dataclass(frozen=True, slots=True)
class Counted:
    """A prompt's length in tokens."""

    answer: TokenCount
    ignored: list[str]  # JSON paths of what changes nothing


@dataclass(frozen=True, slots=True)
class NamedUrls:
    """What has to be fetched before a body can be prepared."""

    sources: tuple[Named, ...]


def prepare_message(
    body: bytes, served: Served, dialect: Dialect, known: Known = NOTHING
) -> Prepared:
    """The body of POST /v1/messages. Raises RequestError."""
    checked = check_body(MessagesRequest, body, served, dialect, known)
    request, settings = checked.request, served.settings
    prompt = render_prompt(request, served, dialect, known)
    check_length(prompt, settings.max_context)
    max_tokens = _given(request.max_tokens, settings.default_max_tokens)
    form = _thinking_form(served.chat)
    plan = plan_thinking(request, form, max_tokens, is_open=prompt.is_thinking)
    told = _told_tools(request)
    tools = {} if isinstance(request.tool_choice, NoneChoice) else told
    replay = None if prompt.continues else prompt.replay
    return Prepared(
        prompt_ids=prompt.ids,
        images=images_of(prompt, served.chat),
        continues=prompt.continues,
        max_tokens=max_tokens,
        stream=request.stream,
        stop_sequences=request.stop_sequences,
        tools=tools,
        forbidden={} if tools else told,
        constraint=constraint_of(request, tools, plan.budget_tokens),
        thinking=plan,
        tags=_tags(prompt, served.chat),
        digest=replay.digest if replay else None,
        recalled=replay.recalled if replay else [],
        sampling=_sampling(request, served.chat.sampling),
        context_management=_context_edits(request, prompt),
        marks=cache_marks(prompt, request, served.chat, settings.min_cache_tokens),
        asking=_asking(request, prompt, dialect),
        citing=citing_of(prompt, served.chat, dialect, settings.citations),
        ignored=_ignored(checked, prompt, dialect),
    )


def count_prompt(body: bytes, served: Served, dialect: Dialect, known: Known = NOTHING) -> Counted:
    """The body of POST /v1/messages/count_tokens. Raises RequestError."""
    checked = check_body(CountTokensRequest, body, served, dialect, known)
    request = checked.request
    prompt = render_prompt(request, served, dialect, known)
    answer: TokenCount = {"input_tokens": len(prompt.ids)}
    if prompt.original_input_tokens is not None:
        answer["context_management"] = {"original_input_tokens": prompt.original_input_tokens}
    if request.bill:
        answer["bill"] = bill_of(prompt, request, served.chat)
    return Counted(answer, _ignored(checked, prompt, dialect))


def named_urls(body: bytes, served: Served, dialect: Dialect, known: Known = NOTHING) -> NamedUrls:
    """What the body of POST /v1/messages names by URL, before it is read. Raises RequestError."""
    request = validate(MessagesRequest, parse_json(body, dialect), dialect).request
    served.settings.catalog.find(request.model)
    return NamedUrls(urls_in(request, sees=dialect.can("images")))


def check_body(
    kind: type[R], body: bytes, served: Served, dialect: Dialect, known: Known
) -> Validated[R]:
    """JSON, types, model, rules: in the order in which the hosted API looks at them; then PDFs."""
    checked = validate(kind, parse_json(body, dialect), dialect)
    served.settings.catalog.find(checked.request.model)
    sees = served.chat.vision is not None
    if known.uploads is not None:
        request = with_uploads(checked.request, known.uploads, known.fetched, sees=sees)
        checked = replace(checked, request=request)
    checked.request.check(dialect)
    if dialect.is_strict:
        check_strictly(checked.request)
    request = with_pdfs(checked.request, served.guard, sees=sees)
    return replace(checked, request=unsealed(request, known.seal, dialect))


def render_prompt(request: PromptRequest, served: Served, dialect: Dialect, known: Known) -> Prompt:
    """With a seed nothing but the request decides what the model reads."""
    remembered = known.remembered if request.seed is None else None
    return render(request, served.chat, dialect, remembered)


def _thinking_form(chat: ChatModel) -> ThinkingForm | None:
    return chat.traits.thinking if chat.traits else None


def _tags(prompt: Prompt, chat: ChatModel) -> ThinkingTags | None:
    form = _thinking_form(chat)
    return ThinkingTags(form.opening, form.closing, prompt.is_thinking) if form else None


def _ignored(checked: Validated[R], prompt: Prompt, dialect: Dialect) -> list[str]:
    """All that was sent and changes nothing, by its path."""
    return [*checked.ignored, *unheeded(checked.request, dialect), *prompt.left_out]


def _context_edits(request: MessagesRequest, prompt: Prompt) -> ContextEdits | None:
    return {"applied_edits": prompt.applied_edits} if request.context_management else None


def _asking(request: MessagesRequest, prompt: Prompt, dialect: Dialect) -> Asking | None:
    if request.diagnostics is None:
        return None
    assert prompt.reading is not None  # `render` has made it
    fingerprint = fingerprint_of(request, prompt.reading, dialect)
    return Asking(request.diagnostics.previous_message_id, fingerprint)


def _told_tools(request: MessagesRequest) -> dict[str, CallableTool]:
    """What the model was told of, by name."""
    custom = [tool for tool in request.tools if isinstance(tool, CustomTool)]
    eager = {tool.name for tool in custom if tool.eager_input_streaming}
    strict = {tool.name for _, tool in client_tools(request) if tool.strict}
    is_forced = isinstance(request.tool_choice, AnyChoice | NamedChoice)
    return {
        function.name: CallableTool(
            function.parameters,
            is_eager=function.name in eager,
            is_held=is_forced or function.name in strict,
        )
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

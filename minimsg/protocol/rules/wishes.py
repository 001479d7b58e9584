"""What a request may ask for in vain: one table.

In profile `compat` a wish that is not granted is no error: its path is reported
(`unheeded`, the header `minimsg-ignored`). Profile `strict`, and a configuration that
switches the feature off, answer with the refusal. A wish without a refusal changes
nothing that a client could rely on. Source: Messages API reference, request body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import DocumentBlock, SearchResultBlock
from minimsg.protocol.options import (
    AdaptiveThinking,
    BetweenToolsThinking,
    Compact,
    DisabledThinking,
)
from minimsg.protocol.rules.tools import is_foreign
from minimsg.protocol.turns import blocks_of

if TYPE_CHECKING:
    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.request import PromptRequest

Paths = Callable[["PromptRequest"], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Wish:
    """Where it is asked for, which feature grants it (None: nothing here does), the refusal."""

    paths: Paths
    feature: str | None = None
    refusal: str | None = None


def field(name: str, *vain: object) -> Paths:
    """The top-level field `name`, if it has a value, or one of those that are asked in vain."""

    def paths(request: PromptRequest) -> Iterator[str]:
        value = getattr(request, name, None)
        if value in vain if vain else value:
            yield name

    return paths


def _thinking(request: PromptRequest) -> Iterator[str]:
    if request.thinking and not isinstance(request.thinking, DisabledThinking):
        yield "thinking"


def _thinking_before_prefix(request: PromptRequest) -> Iterator[str]:
    """The model goes on with its answer: it is too late to think."""
    if request.messages and request.messages[-1].role == "assistant":
        yield from _thinking(request)


def _effort(request: PromptRequest) -> Iterator[str]:
    if request.output_config and request.output_config.effort:
        yield "output_config.effort"


def _effort_of_turns(request: PromptRequest) -> Iterator[str]:
    for index, message in enumerate(request.messages):
        if message.role == "system" and message.output_config and message.output_config.effort:
            yield f"messages.{index}.output_config.effort"


def _idle_effort(request: PromptRequest) -> Iterator[str]:
    """An effort is the budget of thinking that has no other."""
    if not isinstance(request.thinking, (AdaptiveThinking, BetweenToolsThinking)):
        yield from _effort(request)
        yield from _effort_of_turns(request)


def _settings_of_other_turns(request: PromptRequest) -> Iterator[str]:
    for index, message in enumerate(request.messages):
        if message.role != "system" and message.output_config:
            yield f"messages.{index}.output_config"
        if message.role != "system" and message.clear_at:
            yield f"messages.{index}.clear_at"


def _task_budget(request: PromptRequest) -> Iterator[str]:
    if request.output_config and request.output_config.task_budget:
        yield "output_config.task_budget"


def _compact(request: PromptRequest) -> Iterator[str]:
    edits = request.context_management.edits if request.context_management else []
    for index, edit in enumerate(edits):
        if isinstance(edit, Compact):
            yield f"context_management.edits.{index}"


def _citations(request: PromptRequest) -> Iterator[str]:
    for path, block in blocks_of(request.messages, DocumentBlock, SearchResultBlock, inside=True):
        if block.citations and block.citations.enabled:
            yield f"{path}.{block.type}.citations"


def _other_callers(request: PromptRequest) -> Iterator[str]:
    for index, tool in enumerate(request.tools):
        if not is_foreign(tool) and tool.allowed_callers and "direct" not in tool.allowed_callers:
            yield f"tools.{index}.allowed_callers"


NOT_HERE: Final = "not supported for this model"
NO_EFFORT: Final = "This model does not support the effort parameter."
NO_TURN_EFFORT: Final = (
    "output_config.effort requires a model that supports per-turn effort; this model does not"
)
NO_COMPACT: Final = (
    "Input tag 'compact_20260112' found using 'type' does not match any of the expected tags: "
    "'clear_tool_uses_20250919', 'clear_thinking_20251015'"
)

WISHES: Final = (
    Wish(_thinking, "thinking"),  # refused by its type: gates.py, thinking.py
    Wish(_thinking_before_prefix),
    Wish(_effort, "effort", NO_EFFORT),
    Wish(_effort_of_turns, "effort", NO_TURN_EFFORT),
    Wish(_idle_effort),
    Wish(_settings_of_other_turns),  # refused in turns.py
    Wish(_task_budget, None, NOT_HERE),
    Wish(field("speed", "fast"), None, "'fast' is not supported for this model"),
    Wish(field("inference_geo"), None, NOT_HERE),
    Wish(field("fallbacks"), None, NOT_HERE),
    Wish(field("fallback_credit_token"), None, NOT_HERE),
    Wish(field("billing_policy"), None, NOT_HERE),
    Wish(_citations, "citations", NOT_HERE),
    Wish(_compact, None, NO_COMPACT),
    Wish(_other_callers, None, "no tool here runs code that could call it"),
    Wish(field("compaction")),  # of count_tokens, which ignores it as hosted
    Wish(field("mcp_servers")),  # left out with the server's tools
    Wish(field("container")),
)


def unheeded(request: PromptRequest, dialect: Dialect) -> list[str]:
    """The paths of what `request` asks for and what does not happen here."""
    wishes = (wish for wish in WISHES if not _is_granted(wish, dialect))
    return list(dict.fromkeys(path for wish in wishes for path in wish.paths(request)))


def wishes_are_granted(request: PromptRequest, dialect: Dialect) -> None:
    for wish in WISHES:
        is_refused = not dialect.takes(wish.feature) if wish.feature else dialect.is_strict
        if is_refused and wish.refusal:
            for path in wish.paths(request):
                raise InvalidRequest(path, wish.refusal)


def _is_granted(wish: Wish, dialect: Dialect) -> bool:
    return wish.feature is not None and dialect.can(wish.feature)

"""How a request wants its model to think: whether, how much, and what of it is shown.

| `thinking` | thinks | at most |
| --- | --- | --- |
| absent, `disabled` | no; a model that cannot do otherwise thinks, and nothing of it is shown | \
the budget of `low` |
| `enabled` | yes | `budget_tokens` |
| `adaptive` | yes | the budget of the effort |
| `between_tools` | after the results of tools | the budget of the effort |

The effort is that of the last system turn which sets one, else `output_config.effort`,
else `DEFAULT_EFFORT`. Its budget leaves `ANSWER_SHARE` of `max_tokens` to the answer,
unless the effort is `max`, which has no budget. A variable in `chat_template_kwargs` that
switches thinking is followed; on its own it also asks for the thinking to be shown.
Nobody thinks before going on with an assistant prefix.

Knows requests and what the model can do (`probe_thinking.py`); the budget is kept by
a hook of the engine, the tags are read by `parsing/thinking.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from minimsg.prompt.probe_thinking import ThinkingForm
from minimsg.protocol.content import ToolResultBlock
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.message import Display
from minimsg.protocol.options import (
    AdaptiveThinking,
    BetweenToolsThinking,
    DisabledThinking,
    Effort,
    EnabledThinking,
)
from minimsg.protocol.request import MessagesRequest, PromptRequest

BUDGETS: Final[dict[Effort, int | None]] = {  # tokens
    "low": 1_024,
    "medium": 4_096,
    "high": 16_384,
    "xhigh": 32_768,
    "max": None,
}
DEFAULT_EFFORT: Final[Effort] = "high"  # API
ANSWER_SHARE: Final = 0.25  # of max_tokens, which also counts what is thought


@dataclass(frozen=True, slots=True)
class ThinkingPlan:
    """What becomes of the thinking of one reply."""

    display: Display
    budget_tokens: int | None = None  # None: `max_tokens` is the only bound


def is_asked_to_think(request: PromptRequest) -> bool:
    """Whether the field `thinking` wants thoughts before this reply."""
    match request.thinking:
        case EnabledThinking() | AdaptiveThinking():
            return True
        case BetweenToolsThinking():
            return _answers_results(request)
        case _:
            return False


def reads_thoughts(request: PromptRequest, dialect: Dialect) -> bool:
    """Whether the model reads the thoughts of earlier turns; the hosted API skips them when off."""
    is_off = request.thinking is None or isinstance(request.thinking, DisabledThinking)
    return not (is_off and dialect.is_strict)


def template_variables(request: PromptRequest, form: ThinkingForm | None) -> dict[str, object]:
    """What the chat template is told besides messages and tools."""
    switch = form.switch if form and form.switch else "enable_thinking"
    return {switch: is_thinking_on(request, form), **request.chat_template_kwargs}


def is_thinking_on(request: PromptRequest, form: ThinkingForm | None) -> bool:
    """Whether the model is to think before this reply."""
    if form is None or (request.messages and request.messages[-1].role == "assistant"):
        return False
    given = request.chat_template_kwargs.get(form.switch or "")
    return given if isinstance(given, bool) else is_asked_to_think(request)


def plan_thinking(
    request: MessagesRequest, form: ThinkingForm | None, max_tokens: int, *, is_open: bool
) -> ThinkingPlan:
    """What becomes of the thinking of the reply to `request`; `is_open`: its prompt begins it."""
    is_on = is_thinking_on(request, form)
    if not is_on or isinstance(request.thinking, DisabledThinking):
        return ThinkingPlan("none", _share(BUDGETS["low"], max_tokens) if is_open else None)
    is_omitted = getattr(request.thinking, "display", None) == "omitted"
    return ThinkingPlan("omitted" if is_omitted else "shown", _budget(request, max_tokens))


def effort_of(request: PromptRequest) -> Effort:
    """How hard the model is to think, where it decides by itself."""
    for message in reversed(request.messages):
        if message.role == "system" and message.output_config and message.output_config.effort:
            return message.output_config.effort
    return (request.output_config and request.output_config.effort) or DEFAULT_EFFORT


def heeds_effort(request: PromptRequest) -> bool:
    """Whether an effort changes anything about the reply."""
    return isinstance(request.thinking, (AdaptiveThinking, BetweenToolsThinking))


def _budget(request: PromptRequest, max_tokens: int) -> int | None:
    if isinstance(request.thinking, EnabledThinking):
        return request.thinking.budget_tokens
    return _share(BUDGETS[effort_of(request)], max_tokens) if heeds_effort(request) else None


def _share(budget: int | None, max_tokens: int) -> int | None:
    """A budget that leaves room for an answer."""
    return None if budget is None else min(budget, int(max_tokens * (1 - ANSWER_SHARE)))


def _answers_results(request: PromptRequest) -> bool:
    """Whether what is answered is the results of tools, perhaps with a system turn behind them."""
    spoken = [message for message in request.messages if message.role != "system"]
    return bool(spoken) and any(isinstance(b, ToolResultBlock) for b in spoken[-1].content)

"""What a request may ask for besides a prompt: thinking, output, context edits, services.

Knows shapes and bounds; which of them exist in which version or beta is in `gates.py`,
how they exclude each other in `rules/`. Source: Messages API reference, request body.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from minimsg.limits import LIMITS
from minimsg.protocol.wire import Count, JsonObject, Name, Positive, Text, Wire, or_null

Display = Literal["summarized", "omitted", "updates"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]


class BlockBinding(Wire):
    """What to do with thinking that comes back after another conversation than before."""

    prefix_mismatch_behavior: Literal["error", "drop_block"] | None = None


class EnabledThinking(Wire):
    """Think, at most so many tokens."""

    type: Literal["enabled"]
    budget_tokens: int = Field(ge=1024, le=LIMITS.max_tokens)
    display: Display | None = None
    block_binding: BlockBinding | None = None


class AdaptiveThinking(Wire):
    """Think as much as the model finds right."""

    type: Literal["adaptive"]
    display: Display | None = None
    block_binding: BlockBinding | None = None


class DisabledThinking(Wire):
    """Do not think."""

    type: Literal["disabled"]


class BetweenToolsThinking(Wire):
    """Think after the results of tools only."""

    type: Literal["between_tools"]


Thinking = Annotated[
    EnabledThinking | AdaptiveThinking | DisabledThinking | BetweenToolsThinking,
    Field(discriminator="type"),
]


class JsonSchemaFormat(Wire):
    """The reply is one JSON value that conforms to `schema`."""

    type: Literal["json_schema"]
    schema_: JsonObject = Field(alias="schema")


class TaskBudget(Wire):
    """How many tokens the task, of several requests, may take."""

    type: Literal["tokens"]
    total: Positive
    remaining: Count | None = None


class OutputConfig(Wire):
    """How the reply should be."""

    effort: Effort | None = None
    format: JsonSchemaFormat | None = None
    task_budget: TaskBudget | None = None


class TurnOutputConfig(Wire):
    """How replies should be from this turn on."""

    effort: Effort | None = None


class InputTokens(Wire):
    """A number of prompt tokens."""

    type: Literal["input_tokens"]
    value: Count


class ToolUses(Wire):
    """A number of tool calls."""

    type: Literal["tool_uses"]
    value: Count


class ThinkingTurns(Wire):
    """A number of assistant turns that think."""

    type: Literal["thinking_turns"]
    value: int = Field(ge=1, le=LIMITS.count)


class AllTurns(Wire):
    """Every assistant turn."""

    type: Literal["all"]


ToolNames = Annotated[list[Name], Field(max_length=LIMITS.tools)]


class ClearToolUses(Wire):
    """Take the results of old tool calls out of a long prompt."""

    type: Literal["clear_tool_uses_20250919"]
    trigger: Annotated[InputTokens | ToolUses, Field(discriminator="type")] | None = None
    keep: ToolUses | None = None
    clear_at_least: InputTokens | None = None
    exclude_tools: ToolNames | None = None
    clear_tool_inputs: bool | ToolNames | None = None


class ClearThinking(Wire):
    """Take the thinking of old turns out."""

    type: Literal["clear_thinking_20251015"]
    keep: (
        Literal["all"] | Annotated[ThinkingTurns | AllTurns, Field(discriminator="type")] | None
    ) = None


class MinimumTokens(Wire):
    """A number of prompt tokens that makes summing up worth it."""

    type: Literal["input_tokens"]
    value: int = Field(ge=50_000, le=LIMITS.count)


class Compact(Wire):
    """Sum a long conversation up."""

    type: Literal["compact_20260112"]
    trigger: MinimumTokens | None = None
    pause_after_compaction: bool | None = None
    instructions: Text | None = None


Edit = Annotated[ClearToolUses | ClearThinking | Compact, Field(discriminator="type")]


class ContextManagement(Wire):
    """Edits of the conversation before the model reads it, in this order."""

    edits: list[Edit] = Field(default_factory=list, max_length=LIMITS.short_list)


class Metadata(Wire):
    """Who the client's own user is. Accepted and not used: nothing here needs it."""

    user_id: Annotated[str, Field(max_length=LIMITS.user_id_chars)] | None = None


class Skill(Wire):
    """A skill of the hosted API's container."""

    skill_id: Name
    type: Literal["anthropic", "custom"]
    version: Name | None = None


class Container(Wire):
    """Where the hosted API runs code."""

    id: Name | None = None
    skills: list[Skill] | None = Field(default=None, max_length=LIMITS.skills)


class Diagnostics(Wire):
    """Asks why the cache was missed, compared to an earlier message."""

    previous_message_id: Name | None = None


class McpToolConfiguration(Wire):
    """Which tools of an MCP server may be used."""

    allowed_tools: ToolNames | None = None
    enabled: bool | None = None


class McpServer(Wire):
    """An MCP server that the hosted API talks to."""

    type: Literal["url"]
    name: Name
    url: Text
    authorization_token: Text | None = None
    tool_configuration: McpToolConfiguration | None = None


McpServerList = Annotated[list[McpServer], Field(max_length=LIMITS.mcp_servers)]
McpServers = Annotated[McpServerList, or_null(McpServerList)]


class Fallback(Wire):
    """A model to ask when the first one refuses."""

    model: Name
    max_tokens: Count | None = None
    output_config: OutputConfig | None = None
    speed: Literal["standard", "fast"] | None = None
    thinking: Thinking | None = None


class Compaction(Wire):
    """Sum the conversation up now."""

    type: Literal["summarize"]
    instructions: Text | None = None


class CreditToken(Wire):
    """A receipt of an earlier fallback."""

    token: Text
    mode: Literal["strict", "best_effort"] | None = None


class BillingPolicy(Wire):
    """Who pays."""

    type: Literal["billing_policy"]
    bill_to: Literal["self", "user_profile"] | None = None

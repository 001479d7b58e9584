"""The body of POST /v1/messages and of /v1/messages/count_tokens as data.

Every field of both API versions, its type and its bounds (`limits.py`). What exists only
under a version or beta is in `gates.py`, rules that look at several fields in `rules/`,
the way in and pydantic's errors in the API's words in `validation.py`. Knows nothing of
HTTP, tokens or the model. Source: Messages API reference, request body.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from minimsg.limits import LIMITS
from minimsg.protocol.content import SystemText, TurnContent
from minimsg.protocol.dialect import PLAIN, Dialect
from minimsg.protocol.options import (
    BillingPolicy,
    Compaction,
    Container,
    ContextManagement,
    CreditToken,
    Diagnostics,
    Fallback,
    JsonSchemaFormat,
    McpServers,
    Metadata,
    OutputConfig,
    Thinking,
    TurnOutputConfig,
)
from minimsg.protocol.rules import check_prompt, check_reply
from minimsg.protocol.tools import ToolChoice, Tools
from minimsg.protocol.validation import validate
from minimsg.protocol.wire import CacheMark, JsonObject, Name, ShortText, Text, Wire, or_null


def _printable(name: str) -> str:
    """A name goes into answers and log lines, so it has none of what moves a terminal's cursor."""
    if not name.isprintable():
        raise PydanticCustomError(
            "not_printable", "String should contain printable characters only"
        )
    return name


class InputMessage(Wire):
    """One turn as the client sent it; a string content has become one text block."""

    role: Literal["user", "assistant", "system"]
    content: TurnContent = Field(default_factory=list)  # only a system turn may lack it
    output_config: TurnOutputConfig | None = None  # of a system turn
    clear_at: Literal["never", "next_user_message"] | None = None  # of a system turn


class PromptRequest(CacheMark):
    """What both routes take: everything that decides what the model reads."""

    model: Annotated[
        str, Field(min_length=1, max_length=LIMITS.model_name_chars), AfterValidator(_printable)
    ]
    messages: list[InputMessage] = Field(max_length=LIMITS.messages)
    system: SystemText = Field(default_factory=list)
    tools: Tools = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    output_format: JsonSchemaFormat | None = None  # older name of output_config.format
    speed: Literal["standard", "fast"] | None = None
    context_management: ContextManagement | None = None
    compaction: Compaction | None = None
    mcp_servers: McpServers = Field(default_factory=list)
    billing_policy: BillingPolicy | None = None
    thread: JsonObject | None = None  # known so that it is refused and never ignored
    chat_template_kwargs: JsonObject = Field(default_factory=dict)  # extension
    seed: int | None = Field(default=None, ge=0, le=LIMITS.seed)  # extension: same prompt and draws

    @classmethod
    def parse(cls, data: object, dialect: Dialect = PLAIN) -> Self:
        """`data` (parsed JSON) as a request that obeys every rule. Raises InvalidRequest."""
        request = validate(cls, data, dialect).request
        request.check(dialect)
        return request

    def check(self, dialect: Dialect) -> None:
        """Ask every rule that types cannot say. Raises InvalidRequest."""
        check_prompt(self, dialect)


class CountTokensRequest(PromptRequest):
    """The body of POST /v1/messages/count_tokens: a prompt and nothing else."""

    bill: bool = False  # extension: say what the tokens are for


StopSequence = Annotated[str, Field(max_length=LIMITS.stop_sequence_chars)]
StopSequences = Annotated[list[StopSequence], Field(max_length=LIMITS.stop_sequences)]


class MessagesRequest(PromptRequest):
    """The body of POST /v1/messages. `None` means absent: the server's default holds."""

    max_tokens: int | None = Field(default=None, ge=0)
    stop_sequences: Annotated[StopSequences, or_null(StopSequences)] = Field(default_factory=list)
    stream: bool = False
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    top_k: int | None = Field(default=None, ge=0, le=LIMITS.top_k)
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: ShortText | None = None
    container: Name | Container | None = None
    diagnostics: Diagnostics | None = None
    fallbacks: (
        Literal["default"] | Annotated[list[Fallback], Field(max_length=LIMITS.short_list)] | None
    ) = None
    fallback_credit_token: Text | CreditToken | None = None

    def check(self, dialect: Dialect) -> None:
        super().check(dialect)
        check_reply(self, dialect)

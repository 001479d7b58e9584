"""Content blocks of a request, and `Wire`, the rules that every piece of the API's JSON obeys.

Knows shapes and bounds, one class a `type`; a new block is a class here and a row in
`ContentBlock`. Knows nothing of rules that look at more than one block
(`rules.py`) and nothing of what a block means to the model (`prompt/render.py`).
Source: Messages API reference, request content blocks. Next: `request.py`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    JsonValue,
)
from pydantic_core import CoreSchema, core_schema

from minimsg.limits import LIMITS

JsonObject = dict[str, JsonValue]


class Wire(BaseModel):
    """A JSON object of the API: exact types, immutable, no unknown keys, no NaN.

    Strict means JSON's own types: `true` and `16.0` are no integers, `"1"` is no number.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class CacheControl(Wire):
    """A mark up to which the prompt is worth keeping in the cache."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


class TextBlock(Wire):
    """Text that a turn, or the system prompt, consists of.

    `citations` come back with assistant turns; they are for the client and the model
    does not read them.
    """

    type: Literal["text"]
    text: str = Field(max_length=LIMITS.body_bytes)
    cache_control: CacheControl | None = None
    citations: list[JsonObject] | None = Field(default=None, max_length=LIMITS.blocks_per_message)


def _by_type(block: type[TextBlock], handler: GetCoreSchemaHandler) -> CoreSchema:
    """A union with one member, told by `type`: pydantic's own `discriminator` wants two."""
    return core_schema.tagged_union_schema({"text": handler(block)}, discriminator="type")


ContentBlock = Annotated[TextBlock, GetPydanticSchema(_by_type)]


def _blocks(value: object) -> object:
    """A string is short for one text block, and an empty one for no block."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}] if value else []
    return value


Blocks = Annotated[
    list[ContentBlock], Field(max_length=LIMITS.blocks_per_message), BeforeValidator(_blocks)
]

"""`Wire`, the rules that every piece of the API's JSON obeys, and the words its types share.

Knows pydantic and bounds; nothing of what an object means. Next: `content.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

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


class CacheMark(Wire):
    """What may carry a cache mark."""

    cache_control: CacheControl | None = None


def or_null(kind: Any) -> BeforeValidator:
    """For a list of type `kind`: null stands for an empty one."""
    return BeforeValidator(_null_as_empty, json_schema_input_type=kind | None)


def _null_as_empty(value: object) -> object:
    return [] if value is None else value


Text = Annotated[str, Field(max_length=LIMITS.body_bytes)]
ShortText = Annotated[str, Field(max_length=LIMITS.short_text_chars)]
Name = Annotated[str, Field(min_length=1, max_length=LIMITS.name_chars)]
Count = Annotated[int, Field(ge=0, le=LIMITS.count)]
Positive = Annotated[int, Field(ge=1, le=LIMITS.count)]

ID_PATTERN: Final = r"^[a-zA-Z0-9_-]+$"
Id = Annotated[str, Field(max_length=LIMITS.id_chars, pattern=ID_PATTERN)]

"""Pages of a list that is walked by id: the way of /v1/models.

Knows `limit`, `after_id`, `before_id` and the page around the items; nothing of what the
items are. Source: Messages API reference, pagination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Self, TypeVar

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from minimsg.errors import InvalidRequest
from minimsg.limits import LIMITS
from minimsg.protocol.wire import Wire


class PageQuery(Wire):
    """Which page is asked for; comes from a query string, so numbers are text."""

    limit: int = Field(default=20, ge=1, le=LIMITS.page_items, strict=False)
    after_id: str | None = None
    before_id: str | None = None

    @model_validator(mode="after")
    def _has_one_direction(self) -> Self:
        if self.after_id is not None and self.before_id is not None:
            raise InvalidRequest("before_id", "cannot be combined with after_id")
        return self


T = TypeVar("T", bound=Mapping[str, object])  # an object with an `id`


class Page(TypedDict, Generic[T]):
    """A part of a list, newest first; `last_id` asks for the next one."""

    data: list[T]
    has_more: bool
    first_id: str | None
    last_id: str | None


def page(items: Sequence[T], query: PageQuery) -> Page[T]:
    """The part of `items` that `query` asks for. Raises InvalidRequest for an unknown id."""
    ids = [str(item["id"]) for item in items]
    start = 0 if query.after_id is None else _place(ids, "after_id", query.after_id) + 1
    end = len(items) if query.before_id is None else _place(ids, "before_id", query.before_id)
    rest = list(items[start:end])
    part = rest[: query.limit] if query.before_id is None else rest[-query.limit :]
    return {
        "data": part,
        "has_more": len(part) < len(rest),
        "first_id": str(part[0]["id"]) if part else None,
        "last_id": str(part[-1]["id"]) if part else None,
    }


def _place(ids: list[str], field: str, id: str) -> int:
    if id not in ids:
        raise InvalidRequest(field, "no item of this list has that id")
    return ids.index(id)

"""ModelInfo against the official SDK's types, and pages of a list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypedDict

import anthropic.types
import pytest
from pydantic import JsonValue

from minimsg.errors import InvalidRequest
from minimsg.features import FEATURES
from minimsg.protocol.dialect import PLAIN, Dialect
from minimsg.protocol.models import capabilities, model_info
from minimsg.protocol.paging import PageQuery, page
from minimsg.protocol.validation import validate


class Item(TypedDict):
    id: str


ITEMS: list[Item] = [{"id": "d"}, {"id": "c"}, {"id": "b"}, {"id": "a"}]


def test_the_official_types_find_every_field_of_a_model() -> None:
    info = model_info("tiny", datetime(2026, 11, 29, tzinfo=UTC), 512, PLAIN)
    read = anthropic.types.ModelInfo.model_validate(info, strict=False)
    assert set(anthropic.types.ModelInfo.model_fields) == set(info)
    assert read.capabilities is not None
    assert set(info["capabilities"]) == set(type(read.capabilities).model_fields)
    assert read.created_at == datetime(2026, 11, 29, tzinfo=UTC)
    assert read.max_input_tokens == 512


def supported(dialect: Dialect) -> set[str]:
    """The paths of what is supported."""

    def walk(tree: JsonValue, path: str) -> Iterator[str]:
        assert isinstance(tree, dict)
        for name, value in tree.items():
            if name == "supported":
                assert isinstance(value, bool)
                yield from [path] if value else []
            else:
                yield from walk(value, f"{path}.{name}".lstrip("."))

    return set(walk(capabilities(dialect), ""))


CONTEXT = {
    "context_management",
    "context_management.clear_thinking_20251015",
    "context_management.clear_tool_uses_20250919",
}
THINKING = {"thinking", "thinking.types.enabled"}
ADAPTIVE = THINKING | {"thinking.types.adaptive", "thinking.types.between_tools"}
EFFORT = {"effort", *(f"effort.{level}" for level in ("low", "medium", "high", "xhigh", "max"))}
ALWAYS = {"batch", "thinking.types.disabled"}


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ([], set()),
        (["citations"], {"citations"}),
        (["context-management"], CONTEXT),
        (["images"], {"image_input"}),
        (["pdfs"], {"pdf_input"}),
        (["structured-outputs"], {"structured_outputs"}),
        (["thinking"], THINKING),
        (["adaptive-thinking"], set()),
        (["thinking", "adaptive-thinking"], ADAPTIVE),
        (["effort"], set()),  # a budget of thinking
        (["thinking", "effort"], THINKING),  # which has one of its own
        (["thinking", "adaptive-thinking", "effort"], ADAPTIVE | EFFORT),
    ],
)
def test_a_capability_is_said_to_be_there_exactly_when_its_feature_is(
    features: list[str], names: set[str]
) -> None:
    others = frozenset(FEATURES) - set(features)
    assert supported(Dialect(lacking=others)) == ALWAYS | names
    assert supported(Dialect(without=others)) == ALWAYS | names


@pytest.mark.parametrize(
    ("query", "ids", "has_more"),
    [
        (PageQuery(), "dcba", False),
        (PageQuery(limit=2), "dc", True),
        (PageQuery(limit=2, after_id="c"), "ba", False),
        (PageQuery(limit=1, after_id="d"), "c", True),
        (PageQuery(after_id="a"), "", False),
        (PageQuery(limit=2, before_id="a"), "cb", True),
        (PageQuery(limit=2, before_id="b"), "dc", False),
        (PageQuery(before_id="d"), "", False),
    ],
)
def test_a_page_is_a_window_of_the_list(query: PageQuery, ids: str, has_more: bool) -> None:
    result = page(ITEMS, query)
    assert "".join(item["id"] for item in result["data"]) == ids
    assert result["has_more"] is has_more
    assert result["first_id"] == (ids[0] if ids else None)
    assert result["last_id"] == (ids[-1] if ids else None)


@pytest.mark.parametrize(
    "query",
    [
        {"after_id": "x"},
        {"before_id": "x"},
        {"after_id": "a", "before_id": "d"},
        {"limit": "0"},
        {"limit": "1001"},
        {"limit": "many"},
    ],
)
def test_a_page_that_cannot_be_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        page(ITEMS, validate(PageQuery, query, Dialect()).request)

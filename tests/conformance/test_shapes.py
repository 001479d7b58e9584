"""What an answer must hold is what the official SDK requires of it, and nothing that it has not."""

from __future__ import annotations

import anthropic.types as sdk
import pytest
from anthropic.types import messages
from pydantic import BaseModel, TypeAdapter

from minimsg.conformance import shapes

TYPES: dict[type, type[BaseModel]] = {
    shapes.Message: sdk.Message,
    shapes.TextBlock: sdk.TextBlock,
    shapes.CharLocation: sdk.CitationCharLocation,
    shapes.PageLocation: sdk.CitationPageLocation,
    shapes.BlockLocation: sdk.CitationContentBlockLocation,
    shapes.SearchLocation: sdk.CitationsSearchResultLocation,
    shapes.ThinkingBlock: sdk.ThinkingBlock,
    shapes.ToolUseBlock: sdk.ToolUseBlock,
    shapes.Usage: sdk.Usage,
    shapes.CacheCreation: sdk.CacheCreation,
    shapes.Error: sdk.ErrorResponse,
    shapes.TokenCount: sdk.MessageTokensCount,
    shapes.Model: sdk.ModelInfo,
    shapes.Batch: messages.MessageBatch,
    shapes.RequestCounts: messages.MessageBatchRequestCounts,
}
# A message that is whole says why it ended; of a batch null is due where there is nothing to say.
STRICTER: dict[type, set[str]] = {
    shapes.Message: {"stop_reason"},
    shapes.Batch: {"ended_at", "cancel_initiated_at", "archived_at", "results_url"},
}


@pytest.mark.parametrize("shape", TYPES, ids=lambda shape: shape.__name__)
def test_a_shape_requires_what_the_sdk_requires(shape: type) -> None:
    schema, fields = TypeAdapter(shape).json_schema(), TYPES[shape].model_fields
    required = {name for name, field in fields.items() if field.is_required()}
    assert set(schema["required"]) - STRICTER.get(shape, set()) == required
    assert schema["properties"].keys() <= fields.keys()

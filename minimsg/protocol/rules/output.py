"""Rules about the form of the reply: `output_config.format` and its older name.

A server that cannot hold a model to a schema says so in the words of a field that does not
exist: by them Claude Code 2.1.332 knows that it must do without. Source: Messages API
reference, structured outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from minimsg.errors import InvalidRequest
from minimsg.protocol.content import DocumentBlock, SearchResultBlock
from minimsg.protocol.rules.schemas import check_schema
from minimsg.protocol.turns import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minimsg.protocol.dialect import Dialect
    from minimsg.protocol.options import JsonSchemaFormat
    from minimsg.protocol.request import PromptRequest


def formats_of(request: PromptRequest) -> Iterator[tuple[str, JsonSchemaFormat]]:
    """The formats that are asked for, by their path; one at most is allowed."""
    if request.output_config and request.output_config.format:
        yield "output_config.format", request.output_config.format
    if request.output_format:
        yield "output_format", request.output_format


def a_format_is_supported(request: PromptRequest, dialect: Dialect) -> None:
    for path, _ in formats_of(request):
        if not dialect.can("structured-outputs"):
            raise InvalidRequest(path, "Extra inputs are not permitted")


def there_is_one_format(request: PromptRequest, dialect: Dialect) -> None:
    if len(list(formats_of(request))) > 1:
        why = "cannot be given together with output_config.format; leave output_format out"
        raise InvalidRequest("output_format", why)


def a_format_has_a_valid_schema(request: PromptRequest, dialect: Dialect) -> None:
    for path, output_format in formats_of(request):
        check_schema(f"{path}.schema", output_format.schema_)


def a_format_has_no_citations(request: PromptRequest, dialect: Dialect) -> None:
    """A reply that is one JSON value has no place for them."""
    kinds = (DocumentBlock, SearchResultBlock)
    for path, _ in formats_of(request):
        for cited, block in blocks_of(request.messages, *kinds, inside=True):
            if block.citations and block.citations.enabled:
                raise InvalidRequest(path, f"cannot be combined with citations, as of {cited}")

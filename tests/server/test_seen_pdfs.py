"""PDFs over HTTP to a model that sees: counted exactly, and cached by what their pages show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..models.seeing_checkpoints import save_chatting  # noqa: TID252
from ..prompt.pdf_files import (  # noqa: TID252
    document,
    file_of,
    ink_of,
    page_objects,
    red_square,
)
from .conftest import WRITERS, Start
from .running import Json, Running
from .test_sdk import sdk

NAME = "seeing pdfs"


def write(folder: Path) -> None:
    save_chatting(folder)


WRITERS[NAME] = write
BOX = "0 0 150 100"


def square_at(x: int) -> bytes:
    """Two pages with the same text whatever `x` is, and a square on the second."""
    inks = (ink_of("one"), red_square(x, 20) + ink_of("two"))
    return file_of(page_objects(*inks, box=BOX))


def ask(data: bytes) -> dict[str, Any]:
    mark = {"type": "ephemeral"}
    content: list[Json] = [
        document(data, cache_control=mark),
        {"type": "text", "text": "Where is the square?"},
    ]
    return {"model": NAME, "messages": [{"role": "user", "content": content}]}


@pytest.fixture
async def seeing(start: Start) -> Running:
    return await start(NAME)


async def test_a_pdf_is_counted_exactly_and_read_from_the_cache_if_all_its_pages_are_the_same(
    seeing: Running,
) -> None:
    """The same PDF is; one that differs in the picture of its second page only up to there."""
    async with sdk(seeing) as client:

        async def usage(data: bytes) -> tuple[int, int, int]:
            """How much is read from the cache, written to it, and neither."""
            counted = await client.messages.count_tokens(**ask(data))
            found = (await client.messages.create(**ask(data), max_tokens=4)).usage
            read, written = found.cache_read_input_tokens, found.cache_creation_input_tokens
            assert read is not None
            assert written is not None
            assert counted.input_tokens == found.input_tokens + read + written
            return read, written, found.input_tokens

        read, written, rest = await usage(square_at(0))
        assert (read, written > 0) == (0, True)
        assert await usage(square_at(0)) == (written, 0, rest)
        other_read, other_written, other_rest = await usage(square_at(80))
        assert (other_read + other_written, other_rest) == (written, rest)
        assert other_read < written / 2 + 16
        assert await usage(square_at(80)) == (written, 0, rest)
        body: Any = ask(square_at(0)) | {"max_tokens": 4}
        async with client.messages.stream(**body) as stream:
            streamed = (await stream.get_final_message()).usage
        assert streamed.cache_read_input_tokens == written

"""Streams that the official Python SDK adds up are the plain answer, whatever is in them."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import WRITERS, Start
from .reply_shapes import MODEL, TITLES, body_of, is_as_written, without_ids, write_shapes
from .test_sdk import sdk

WRITERS[MODEL] = write_shapes


@pytest.mark.parametrize("title", TITLES)
async def test_a_stream_that_the_sdk_adds_up_is_the_plain_answer(start: Start, title: str) -> None:
    running, body = await start(MODEL), body_of(title)
    async with sdk(running) as client:
        resources: list[Any] = [client.messages, client.beta.messages]
        for messages in resources:
            plain = (await messages.create(**body)).to_dict(mode="json")
            async with messages.stream(**body) as stream:
                streamed = (await stream.get_final_message()).to_dict(mode="json")
            assert is_as_written(plain, title), plain
            assert without_ids(streamed) == without_ids(plain)

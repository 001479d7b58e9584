"""Stores in folders of their own, with a clock that stands until a test moves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from minimsg.store import NewItem, Store

Open = Callable[..., Awaitable[Store]]


class Clock:
    """Seconds since 1970, as a test says."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def items(*custom_ids: str) -> list[NewItem]:
    return [NewItem(custom_id, f"params of {custom_id}".encode()) for custom_id in custom_ids]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def open_store(tmp_path: Path, clock: Clock) -> AsyncIterator[Open]:
    """Opens a store in `folder`, and closes it when the test ends."""
    async with AsyncExitStack() as stack:

        async def open_one(folder: Path | None = tmp_path / "store") -> Store:
            store = Store(folder, clock)
            await store.open()
            stack.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def store(open_store: Open) -> Store:
    return await open_store()

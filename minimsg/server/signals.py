"""SIGTERM and Ctrl-C as items of a queue, for who wants to end in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def signals() -> Iterator[asyncio.Queue[int]]:
    """The numbers of the signals that come during the block."""
    received: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def receive(number: int, frame: object) -> None:
        loop.call_soon_threadsafe(received.put_nowait, number)

    before = {number: signal.signal(number, receive) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""From the engine's thread into event loops: where the outputs of each request go.

The only call from one into the other. The reader's end is `token_stream.py`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from minimsg.engine.meter import Progress
from minimsg.engine.types import Output


@dataclass(frozen=True, slots=True)
class Channel:
    """Where the outputs of one request go. The thread's end; the other is a `TokenStream`."""

    loop: asyncio.AbstractEventLoop
    queue: asyncio.Queue[Output]
    progress: Progress


Posts = dict[asyncio.AbstractEventLoop, list[tuple[Channel, Output]]]


def deliver(posts: Posts) -> list[str]:
    """Give each event loop what is for it; the requests of those that are closed."""
    unread: list[str] = []
    for loop, post in posts.items():
        try:
            loop.call_soon_threadsafe(_put, post)
        except RuntimeError:  # the loop is closed: nobody will read these
            unread += [output.request_id for _, output in post]
    return unread


def _put(post: list[tuple[Channel, Output]]) -> None:
    """In the event loop: each output to the queue of its request."""
    for channel, output in post:
        channel.queue.put_nowait(output)

"""The tokens of one request as its reader sees them: the event loop's end of the worker.

Knows a queue and how to cancel; the other end is `worker.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from minimsg.engine.types import CacheCounts, Finish, FinishReason, Output, Stepped, Token
from minimsg.errors import GenerationFailed


class TokenStream:
    """The tokens of one request, as an async iterator; who leaves it early cancels the request.

    Iteration raises `GenerationFailed` where the engine gave up. `counts` is what the cache
    has of the prompt, as far as it is known by now; `finish` is set at the end; `steps` are told
    only of a request that is traced.
    """

    def __init__(
        self,
        request_id: str,
        queue: asyncio.Queue[Output],
        cancel: Callable[[str], None],
        counts: CacheCounts,
    ) -> None:
        self.request_id = request_id
        self.counts = counts
        self.finish: Finish | None = None
        self.steps: list[Stepped] = []
        self._queue = queue
        self._cancel = cancel

    def __aiter__(self) -> TokenStream:
        return self

    async def __anext__(self) -> Token:
        while self.finish is None:
            await asyncio.sleep(0)  # a reader who is behind never waits, and could not be cancelled
            output = await self._queue.get()
            if isinstance(output, Token):
                return output
            if isinstance(output, Finish):
                self.finish = output
            elif isinstance(output, Stepped):
                self.steps.append(output)
            else:
                self.counts = output.counts
        if self.finish.reason is FinishReason.ERROR:
            raise GenerationFailed(self.finish.error)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Cancel what is not finished; the pages are free within one step."""
        self._abandon()

    async def __aenter__(self) -> TokenStream:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._abandon()

    def __del__(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if self.finish is None:
            self.finish = Finish(self.request_id, FinishReason.CANCELLED)
            self._cancel(self.request_id)

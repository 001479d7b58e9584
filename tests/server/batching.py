"""Message batches as tests make them, and how to hold up who runs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse

from minimsg.server.batch_runner import NUM_AT_ONCE

from .running import PLAIN, Running, ask, eventually

ROUTE = "/v1/messages/batches"


def requests(*custom_ids: str, tape: int = PLAIN, **fields: Any) -> Any:
    """The requests of a batch, all alike."""
    return [{"custom_id": each, "params": ask(tape, **fields)} for each in custom_ids]


async def take(running: Running, data: bytes, **headers: str) -> tuple[int, Any]:
    """Status and JSON of the answer to a body that may be no batch."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with running.session.post(
        running.url + ROUTE, data=data, headers={"content-type": "application/json"} | named
    ) as response:
        return response.status, await response.json()


async def ended(client: AsyncAnthropic, id: str, within_s: float = 60) -> MessageBatch:
    """The batch, once it has ended."""
    async with asyncio.timeout(within_s):
        while True:
            batch = await client.messages.batches.retrieve(id)
            counts = batch.request_counts
            if batch.processing_status == "ended":
                return batch
            assert (counts.succeeded, counts.errored, counts.canceled, counts.expired) == (0,) * 4
            await asyncio.sleep(0.01)


async def results_of(
    client: AsyncAnthropic, id: str
) -> AsyncIterator[MessageBatchIndividualResponse]:
    """The lines of a batch that has ended."""
    return await client.messages.batches.results(id)


@asynccontextmanager
async def hold(running: Running) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Let requests of batches begin and not end; waits for as many as run at once."""
    server, gate, begun = running.server, asyncio.Event(), list[str]()
    submit = server.worker.submit

    async def held(request: Any) -> Any:
        begun.append(request.id)
        if request.priority:
            await gate.wait()
        return await submit(request)

    async def running_now() -> None:
        await eventually(lambda: len(begun) == NUM_AT_ONCE)

    server.worker.submit = held  # type: ignore[method-assign]
    try:
        yield running_now
    finally:
        server.worker.submit = submit  # type: ignore[method-assign]
        gate.set()

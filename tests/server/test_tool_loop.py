"""Tool loops by the official SDK: the model calls, the SDK runs and sends results back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from anthropic import AsyncAnthropic, beta_async_tool

from minimsg.builtin import write_scripted

from .conftest import WRITERS, Start
from .running import Running
from .test_sdk import sdk

TAPES = [
    'First the time.\n<tool_call>\n{"name": "now", "arguments": {"zone": "UTC"}}\n</tool_call>',
    '<tool_call>\n{"name": "add", "arguments": {"a": 12, "b": 30}}\n</tool_call>\n'
    '<tool_call>\n{"name": "now", "arguments": {"zone": "CET"}}\n</tool_call>',
    "It is noon, and the sum is 42.",
]
WRITERS["loop"] = lambda folder: write_scripted(folder, TAPES)


@pytest.fixture
async def client(start: Start) -> AsyncIterator[AsyncAnthropic]:
    running: Running = await start("loop")
    async with sdk(running) as made:
        yield made


@pytest.mark.parametrize("streams", [False, True])
async def test_the_tool_runner_of_the_sdk_completes_a_loop(
    client: AsyncAnthropic, streams: bool
) -> None:
    ran: list[str] = []

    @beta_async_tool
    async def now(zone: str) -> str:
        """The time in a zone."""
        ran.append(f"now {zone}")
        return "12:00"

    @beta_async_tool
    async def add(a: int, b: int) -> str:
        """The sum of two numbers."""
        ran.append(f"add {a} {b}")
        return str(a + b)

    runner = client.beta.messages.tool_runner(
        model="loop",
        max_tokens=500,
        messages=[{"role": "user", "content": "What time is it?"}],
        tools=[now, add],
        stream=streams,
    )
    last = await runner.until_done()
    assert ran == ["now UTC", "add 12 30", "now CET"]
    assert [block.text for block in last.content if block.type == "text"] == [TAPES[2]]
    assert last.stop_reason == "end_turn"

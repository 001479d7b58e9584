"""`messages.parse` of the official SDK: values of pydantic models, from any model of language."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
from anthropic import AsyncAnthropic
from pydantic import BaseModel

from minimsg.builtin import write_scripted

from .conftest import WRITERS, Start
from .running import Running
from .test_sdk import sdk

ASK: Any = [{"role": "user", "content": "How is the weather in Rome?"}]


class Day(BaseModel):
    name: Literal["today", "tomorrow"]
    degrees: int


class Weather(BaseModel):
    city: Literal["Paris", "Rome"]
    days: list[Day]
    note: str | None


SAID = '{"city":"Rome","days":[{"name":"today","degrees":-3}],"note":null}'
MEANT = Weather(city="Rome", days=[Day(name="today", degrees=-3)], note=None)
WRITERS["weather"] = lambda folder: write_scripted(folder, [SAID])


@pytest.fixture
async def client(start: Start) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(await start("weather")) as made:
        yield made


async def test_a_reply_is_parsed_plain_and_streamed(client: AsyncAnthropic) -> None:
    asked: Any = {"model": "weather", "max_tokens": 200, "messages": ASK}
    resources: list[Any] = [client.messages, client.beta.messages]
    for messages in resources:
        parsed = await messages.parse(**asked, output_format=Weather)
        async with messages.stream(**asked, output_format=Weather) as stream:
            streamed = await stream.get_final_message()
        assert parsed.parsed_output == streamed.parsed_output == MEANT
        assert parsed.stop_reason == "end_turn"


async def test_the_older_name_of_the_format_holds_as_well(client: AsyncAnthropic) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    }
    message = await client.beta.messages.create(
        model="weather",
        max_tokens=200,
        messages=ASK,
        betas=["structured-outputs-2025-11-13"],
        extra_body={"output_format": {"type": "json_schema", "schema": schema}},
    )
    assert [block.text for block in message.content if block.type == "text"] == ['{"city":"Rome"}']


@pytest.mark.parametrize("seed", range(2))
async def test_random_weights_say_a_value_of_the_model(tiny: Running, seed: int) -> None:
    async with sdk(tiny) as client:
        parsed = await client.messages.parse(
            model="tiny",
            max_tokens=1_500,
            messages=ASK,
            output_format=Day,
            extra_body={"seed": seed},
        )
    assert isinstance(parsed.parsed_output, Day)

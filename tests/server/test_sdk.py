"""The official SDK as the client: every call, and every error as the class it should be."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anthropic
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import TextBlock

from minimsg.config import ServerConfig

from .conftest import Start
from .running import EMOJI, LONG, PLAIN, STOPS, TAPES, Running, ask
from .test_disconnect import ONE_AT_A_TIME, connect, until


@pytest.fixture
async def client(scripted: Running) -> AsyncIterator[AsyncAnthropic]:
    async with sdk(scripted) as made:
        yield made


def sdk(running: Running) -> AsyncAnthropic:
    return AsyncAnthropic(
        base_url=running.url,
        api_key="any",
        max_retries=0,
        _strict_response_validation=True,
    )


def text_of(message: anthropic.types.Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


@pytest.mark.parametrize("tape", [PLAIN, STOPS, EMOJI])
async def test_a_streamed_message_is_the_plain_one(client: AsyncAnthropic, tape: int) -> None:
    messages = ask(tape)["messages"]
    plain = await client.messages.create(model="scripted", max_tokens=99, messages=messages)  # type: ignore[arg-type]
    async with client.messages.stream(
        model="scripted",
        max_tokens=99,
        messages=messages,  # type: ignore[arg-type]
    ) as stream:
        pieces = [text async for text in stream.text_stream]
        streamed = await stream.get_final_message()
    assert "".join(pieces) == text_of(plain) == TAPES[tape]
    assert streamed.model_dump(exclude={"id"}) == plain.model_dump(exclude={"id"})
    assert plain._request_id is not None
    assert plain._request_id.startswith("req_")


async def test_counted_tokens_are_the_input_tokens(client: AsyncAnthropic) -> None:
    messages: list[anthropic.types.MessageParam] = [
        {"role": "user", "content": "How many?"},
        {"role": "user", "content": [{"type": "text", "text": "Two blocks"}]},
    ]
    counted = await client.messages.count_tokens(
        model="scripted", system=[{"type": "text", "text": "Count."}], messages=messages
    )
    message = await client.messages.create(
        model="scripted",
        system=[{"type": "text", "text": "Count."}],
        messages=messages,
        max_tokens=5,
    )
    assert counted.input_tokens == message.usage.input_tokens


async def test_stop_sequence_and_its_reason(client: AsyncAnthropic) -> None:
    message = await client.messages.create(
        model="scripted",
        max_tokens=99,
        stop_sequences=["STOP"],
        messages=ask(STOPS)["messages"],  # type: ignore[arg-type]
    )
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "STOP")
    assert text_of(message) == "one two "


async def test_models_are_listed_and_retrieved(client: AsyncAnthropic) -> None:
    models = [model async for model in client.models.list(limit=1)]
    assert [model.id for model in models] == ["scripted"]
    assert await client.models.retrieve("scripted") == models[0]
    assert models[0].lifecycle == "active"
    assert models[0].capabilities is not None
    assert not models[0].capabilities.image_input.supported


async def test_failures_are_the_classes_of_the_sdk(client: AsyncAnthropic) -> None:
    hello: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hi"}]
    with pytest.raises(anthropic.NotFoundError) as missing:
        await client.messages.create(model="other", max_tokens=1, messages=hello)
    assert missing.value.type == "not_found_error"
    assert missing.value.request_id is not None
    with pytest.raises(anthropic.BadRequestError, match="messages: at least one"):
        await client.messages.create(model="scripted", max_tokens=1, messages=[])
    with pytest.raises(anthropic.NotFoundError):
        await client.models.retrieve("other")
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: "):
        await client.messages.create(
            model="scripted", max_tokens=1, messages=[{"role": "user", "content": "x" * 9_000}]
        )


async def test_a_full_queue_is_the_sdks_overloaded_error(start: Start) -> None:
    running = await start(engine=ONE_AT_A_TIME, config=ServerConfig(max_queue=0))
    writer = await connect(running, ask(LONG, stream=True))
    await until(running, running_now=1)
    async with sdk(running) as client:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await client.messages.create(
                model="scripted", max_tokens=1, messages=[{"role": "user", "content": "x"}]
            )
    assert caught.value.status_code == 529
    assert type(caught.value).__name__ == "OverloadedError"
    writer.close()
    await running.until_free()

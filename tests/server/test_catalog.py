"""Which names a model answers to, in the table and over HTTP."""

from __future__ import annotations

import anthropic
import pytest

from minimsg.config import ServerConfig
from minimsg.errors import NotFound
from minimsg.server.catalog import Catalog

from .conftest import Start
from .running import PLAIN, ask
from .test_sdk import sdk

ALIASED = Catalog("tiny", ("claude-*", "gpt-?", "[x]"))


@pytest.mark.parametrize("name", ["tiny", "claude-opus-5", "claude-", "gpt-4", "x"])
def test_the_id_and_every_alias_lead_to_the_served_model(name: str) -> None:
    assert ALIASED.find(name) == "tiny"


@pytest.mark.parametrize(
    "name", ["", "Tiny", "tiny ", "Claude-opus", "my-claude-1", "gpt-41", "[x]", "../tiny", "\0"]
)
def test_any_other_name_is_not_found_in_the_words_of_the_hosted_api(name: str) -> None:
    with pytest.raises(NotFound) as caught:
        ALIASED.find(name)
    assert caught.value.message == f"model: {name}"


def test_a_server_for_any_model_knows_every_name() -> None:
    assert Catalog("tiny", any_model=True).find("evil.com/a/b") == "tiny"


async def test_an_alias_answers_with_the_served_id_on_every_route(start: Start) -> None:
    running = await start(config=ServerConfig(alias=("claude-*",)))
    async with sdk(running) as client:
        message = await client.messages.create(
            model="claude-opus-5", max_tokens=5, messages=[{"role": "user", "content": "go"}]
        )
        counted = await client.messages.count_tokens(
            model="claude-opus-5", messages=[{"role": "user", "content": "go"}]
        )
        found = await client.models.retrieve("claude-opus-5")
        listed = [model.id async for model in client.models.list()]
    assert message.model == "scripted"
    assert counted.input_tokens == message.usage.input_tokens
    assert (found.id, listed) == ("scripted", ["scripted"])


async def test_a_model_that_is_not_served_is_the_sdks_not_found_error(start: Start) -> None:
    running = await start(config=ServerConfig(alias=("claude-*",)))
    async with sdk(running) as client:
        with pytest.raises(anthropic.NotFoundError, match="model: gpt-9"):
            await client.models.retrieve("gpt-9")
    answer, _ = await running.post(ask(PLAIN) | {"model": "gpt-9"}, status=404)
    assert answer["error"] == {"type": "not_found_error", "message": "model: gpt-9"}

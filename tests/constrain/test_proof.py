"""The proof with trained weights: twenty forced tools and ten formats, of 512 tokens each.

Of the tools 18 have to be complete, of the formats nine, at temperature 0 and as clients send
it; and none that is complete may be invalid, by jsonschema.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import jsonschema
import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from minimsg import hub
from minimsg.config import EngineConfig, ServerConfig
from minimsg.engine.worker import EngineWorker
from minimsg.errors import ModelNotFound
from minimsg.loading import load_engine
from minimsg.prompt.chat import ChatModel
from minimsg.server.app import make_app
from tests.constrain.real_cases import FORMATS, TOOLS, Case

pytestmark = [pytest.mark.proof, pytest.mark.timeout(3600)]
UNFINISHED = object()

Client = TestClient[web.Request, web.Application]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def client() -> AsyncIterator[Client]:
    try:
        folder = hub.resolve("smollm2")
    except ModelNotFound as error:
        pytest.skip(str(error))
    engine = load_engine(folder, EngineConfig(dtype="float32", num_pages=1024))
    worker, config = EngineWorker(engine, max_queue=100), ServerConfig(no_store=True)
    app = make_app(ChatModel.open(folder, "smollm2"), worker, config)
    async with TestClient(TestServer(app)) as client:
        yield client


async def answer(client: Client, case: Case, fields: dict[str, Any]) -> Any:
    """The value of a reply that is complete, else UNFINISHED."""
    asked = {"role": "user", "content": case.question}
    body = {"model": "smollm2", "max_tokens": 512, "seed": 0, "messages": [asked], **fields}
    async with client.post("/v1/messages", json=body) as response:
        reply = await response.json()
    assert response.status == 200, reply
    if reply["stop_reason"] == "max_tokens":
        return UNFINISHED
    (block,) = reply["content"]
    return block["input"] if block["type"] == "tool_use" else json.loads(block["text"])


def asking_for(kind: str, name: str, case: Case) -> dict[str, Any]:
    if kind == "format":
        return {"output_config": {"format": {"type": "json_schema", "schema": case.schema}}}
    choice = {"type": "tool", "name": name}
    return {"tools": [{"name": name, "input_schema": case.schema}], "tool_choice": choice}


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {}], ids=["greedy", "as it comes"])
@pytest.mark.parametrize(
    ("kind", "cases", "least"),
    [("tool", TOOLS, 18), ("format", FORMATS, 9)],
    ids=["tool", "format"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_replies_are_complete_and_valid(
    client: Client, kind: str, cases: dict[str, Case], least: int, sampling: dict[str, Any]
) -> None:
    values = await asyncio.gather(
        *(answer(client, case, asking_for(kind, name, case) | sampling)
            for name, case in cases.items())
    )  # fmt: skip
    for case, value in zip(cases.values(), values, strict=True):
        if value is not UNFINISHED:
            jsonschema.Draft202012Validator(
                case.schema, format_checker=jsonschema.FormatChecker()
            ).validate(value)
    assert len(values) - values.count(UNFINISHED) >= least

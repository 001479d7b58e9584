"""One timed request to a Messages server, whoever wrote it.

Contacts the given base URL and nothing else: no proxy from the environment, no
redirect followed, no cookie kept. The loop that sends many is in `load.py`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from time import perf_counter

import aiohttp

from minimsg.bench.sample import JsonObject, RequestFailed, Sample, SampleBuilder, error_type
from minimsg.protocol import sse

ERROR_BODY_BYTES = 64 * 1024  # of an error response, that much is read

# What a request can end with that is the server's or the network's doing.
FAILURES = (aiohttp.ClientError, TimeoutError, ValueError)


class Target:
    """The server under test: one base URL, one session. `model` may be filled in later."""

    def __init__(self, session: aiohttp.ClientSession, url: str, model: str) -> None:
        self.session = session
        self.url = url.rstrip("/")
        self.model = model

    async def first_model(self) -> str:
        """The first id of GET /v1/models. Raises one of FAILURES."""
        async with self.session.get(self.url + "/v1/models", allow_redirects=False) as response:
            answer = await _json_object(response)
        models = answer.get("data")
        if not (isinstance(models, list) and models and isinstance(models[0], dict)):
            raise RequestFailed("no model in the list of models")
        return str(models[0].get("id"))

    async def count_tokens(self, text: str) -> int:
        """Tokens of a prompt that is only `text`. Raises one of FAILURES."""
        async with self._post("/v1/messages/count_tokens", self._body(text)) as response:
            count = (await _json_object(response)).get("input_tokens")
        if not isinstance(count, int):
            raise RequestFailed("no input_tokens in the count")
        return count

    async def ask(self, text: str, max_tokens: int) -> Sample:
        """Stream one reply and time it. Raises one of FAILURES."""
        body = self._body(text) | {"max_tokens": max_tokens, "stream": True, "temperature": 0}
        start = perf_counter()
        reply = SampleBuilder()
        async with self._post("/v1/messages", body) as response:
            await _raise_for_status(response)
            async for event in _events(response):
                reply.push(event, perf_counter() - start)
        return reply.sample()

    def _body(self, text: str) -> JsonObject:
        return {"model": self.model, "messages": [{"role": "user", "content": text}]}

    def _post(self, path: str, body: JsonObject) -> aiohttp.client._RequestContextManager:
        return self.session.post(self.url + path, json=body, allow_redirects=False)


def failure_kind(failure: Exception) -> str:
    """What a report counts a failure under; nothing that a server sent is shown as it came."""
    if isinstance(failure, RequestFailed):
        return str(failure)
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ClientConnectorError):
        return "no connection"
    return "malformed reply" if isinstance(failure, ValueError) else type(failure).__name__


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[JsonObject]:
    """The events of a stream, as they arrive."""
    decoder = sse.Decoder()
    async for piece in response.content.iter_any():
        for frame in decoder.push(piece):
            event = frame.json()
            if isinstance(event, dict):
                yield dict(event)


async def _json_object(response: aiohttp.ClientResponse) -> JsonObject:
    await _raise_for_status(response)
    answer = await response.json(content_type=None)
    if not isinstance(answer, dict):
        raise RequestFailed("an answer that is no JSON object")
    return answer


async def _raise_for_status(response: aiohttp.ClientResponse) -> None:
    if response.status == 200:
        return
    body = await response.content.read(ERROR_BODY_BYTES)
    try:
        kind = error_type(json.loads(body))
    except ValueError:
        kind = "without an error envelope"
    raise RequestFailed(f"HTTP {response.status} {kind}")

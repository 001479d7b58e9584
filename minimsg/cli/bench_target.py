"""One timed request to a Messages server, whoever wrote it.

Contacts the given base URL and nothing else: no proxy from the environment, no
redirect followed, no cookie kept. The loop that sends many is in `bench_http.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from time import perf_counter

import aiohttp

from minimsg.cli.bench_report import Sample
from minimsg.protocol import sse

ERROR_BODY_BYTES = 64 * 1024  # of an error response, that much is read
JsonObject = dict[str, object]

# What a request can end with that is the server's or the network's doing.
FAILURES = (aiohttp.ClientError, TimeoutError, ValueError)


class RequestFailed(ValueError):
    """A request that got no whole reply; the message is the kind that a report counts."""


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
        reply = _Reply()
        async with self._post("/v1/messages", body) as response:
            await _raise_for_status(response)
            async for event in _events(response):
                reply.push(event, perf_counter() - start)
        return reply.sample()

    def _body(self, text: str) -> JsonObject:
        return {"model": self.model, "messages": [{"role": "user", "content": text}]}

    def _post(self, path: str, body: JsonObject) -> aiohttp.client._RequestContextManager:
        return self.session.post(self.url + path, json=body, allow_redirects=False)


class _Reply:
    """Folds the events of one reply into a `Sample`."""

    def __init__(self) -> None:
        self.delta_times_s: list[float] = []
        self.usage: dict[str, int] = {}
        self.total_s: float | None = None

    def push(self, event: JsonObject, at_s: float) -> None:
        match event:
            case {"type": "message_start", "message": {"usage": usage}}:
                self._count(usage)
            case {"type": "content_block_delta"}:
                self.delta_times_s.append(at_s)
            case {"type": "message_delta", "usage": usage}:
                self._count(usage)
            case {"type": "message_stop"}:
                self.total_s = at_s
            case {"type": "error"}:
                raise RequestFailed(f"error event: {_error_type(event)}")

    def _count(self, usage: object) -> None:
        """Later counts replace earlier ones; absent and null ones do not."""
        if isinstance(usage, dict):
            self.usage |= {name: n for name, n in usage.items() if isinstance(n, int)}

    def sample(self) -> Sample:
        if self.total_s is None:
            raise RequestFailed("stream ended without message_stop")
        prompt = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        return Sample(
            delta_times_s=self.delta_times_s,
            total_s=self.total_s,
            input_tokens=sum(self.usage.get(name, 0) for name in prompt),
            output_tokens=self.usage.get("output_tokens", 0),
        )


def failure_kind(failure: Exception) -> str:
    """What a report counts a failure under; nothing that a server sent is shown as it came."""
    if isinstance(failure, RequestFailed):
        return str(failure)
    if isinstance(failure, TimeoutError):
        return "timeout"
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
        kind = _error_type(json.loads(body))
    except ValueError:
        kind = "without an error envelope"
    raise RequestFailed(f"HTTP {response.status} {kind}")


def _error_type(envelope: object) -> str:
    """The type in an error envelope, if it looks like one."""
    match envelope:
        case {"error": {"type": str(kind)}} if re.fullmatch(r"\w{1,40}", kind, re.ASCII):
            return kind
    return "of unknown type"

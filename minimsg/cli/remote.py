"""Any server of message batches, asked over HTTP, and what to do when it does not answer.

Contacts the base URL and nothing else, as `bench/target.py` does: no proxy, no redirect, no
cookie. Knows routes, keys and failures; what is shown of the answers is in `batch.py`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import aiohttp

from minimsg.cli.remote_settings import RemoteSettings
from minimsg.errors import ConfigError
from minimsg.text.control import escape

ROUTE: Final = "/v1/messages/batches"
CONNECT_S: Final = 10.0
SILENCE_S: Final = 300.0  # a server may need a while to keep a hundred thousand requests
MAX_ERROR_BYTES: Final = 64 * 1024
MAX_SHOWN_CHARS: Final = 500

Json = dict[str, Any]


class Unreachable(ConfigError):
    """Nobody answers, or nobody who is well; it may pass."""


class Invalid(ConfigError):
    """The server takes no such request."""


@dataclass(frozen=True)
class Refusal:
    """An answer that is an error."""

    status: int
    message: str | None  # None: without the API's envelope


class Remote:
    """A server at a base URL. Every call raises ConfigError, which says what to do."""

    def __init__(self, settings: RemoteSettings, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._has_key = bool(settings.api_key or settings.auth_token)
        self.url = settings.base_url.rstrip("/").removesuffix("/v1")

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: RemoteSettings) -> AsyncIterator[Remote]:
        """A session, closed with the block."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
        async with aiohttp.ClientSession(
            headers=settings.headers(), timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            yield cls(settings, session)

    async def batch(self, id: str) -> Json:
        """One batch."""
        return await self._ask("GET", _path(id), id=id)

    async def batches(self, **query: str) -> Json:
        """A page of the list."""
        return await self._ask("GET", ROUTE, params=query)

    async def create(
        self, body: AsyncIterator[bytes], num_bytes: int, headers: dict[str, str]
    ) -> Json:
        """A new batch of `body`, which has `num_bytes`."""
        await self.batches(limit="1")  # a wrong key is told before the upload, not amid it
        sent = {"content-type": "application/json", "content-length": str(num_bytes)}
        return await self._ask("POST", ROUTE, data=body, headers=sent | headers)

    async def cancel(self, id: str) -> Json:
        """Cancel it; as it is then."""
        return await self._ask("POST", _path(id) + "/cancel", id=id)

    async def delete(self, id: str) -> Json:
        """Forget it."""
        return await self._ask("DELETE", _path(id), id=id)

    async def results(self, id: str) -> AsyncIterator[bytes]:
        """The bytes of its results, as they come."""
        async with self._answer("GET", _path(id) + "/results", id) as response:
            async for piece in response.content.iter_any():
                yield piece

    async def _ask(self, method: str, path: str, id: str | None = None, **sent: Any) -> Json:
        async with self._answer(method, path, id, **sent) as response:
            try:
                answer = json.loads(await response.read())
            except ValueError:
                answer = None
        if not isinstance(answer, dict):
            raise ConfigError(f"{self.url}{path}: no JSON object; is this a Messages server?")
        return answer

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, id: str | None, **sent: Any
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._session.request(
                method, self.url + path, allow_redirects=False, **sent
            ) as response:
                if response.status != 200:
                    raise await self._refused(response, id)
                yield response
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL, TimeoutError) as error:
            raise Unreachable(
                f"no server answers at {self.url}: {_why(error)}; start one with `minimsg serve`, "
                "or name another with --base-url or ANTHROPIC_BASE_URL"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error.__cause__, ConfigError):  # of the body
                raise error.__cause__ from None
            raise Unreachable(f"the connection to {self.url} broke: {_why(error)}") from None

    async def _refused(self, response: aiohttp.ClientResponse, id: str | None) -> ConfigError:
        """What to do about an answer that is an error."""
        refusal = await _refusal(response)
        said = f"{self.url}: HTTP {refusal.status}, {refusal.message or 'without a reason'}"
        if refusal.status in (401, 403):
            which = "another key" if self._has_key else "a key"
            return ConfigError(
                f"{said}; name {which} with --api-key or ANTHROPIC_API_KEY, or a bearer token "
                "with ANTHROPIC_AUTH_TOKEN"
            )
        if refusal.status == 404 and id is not None and await self._has_batches():
            return ConfigError(f"{said} ({escape(id)}; `minimsg batch list` shows those there)")
        if refusal.status in (404, 405, 501):
            return ConfigError(
                f"{said}; this server has no message batches: `minimsg serve` has, and "
                "`minimsg batch run` needs no server"
            )
        if refusal.status == 429 or refusal.status >= 500:
            return Unreachable(f"{said}; try again")
        return Invalid(said)

    async def _has_batches(self) -> bool:
        async with self._session.get(
            self.url + ROUTE, params={"limit": "1"}, allow_redirects=False
        ) as response:
            return response.status == 200


def _why(error: Exception) -> str:
    return escape(str(error) or type(error).__name__)


def _path(id: str) -> str:
    return f"{ROUTE}/{quote(id, safe='')}"


async def _refusal(response: aiohttp.ClientResponse) -> Refusal:
    try:
        answer = json.loads(await response.content.read(MAX_ERROR_BYTES))
        message = str(answer["error"]["message"])[:MAX_SHOWN_CHARS]
    except (ValueError, TypeError, KeyError):
        return Refusal(response.status, None)
    return Refusal(response.status, escape(message))

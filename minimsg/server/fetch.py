"""What lies at the URLs that a request names: the one way in which the server fetches anything.

All addresses of a name must be public (`resolve.py`), and the sockets go to nothing else;
each redirect is a URL like the first. No proxy, no cookie, no credential, no
compression. Count, bytes and time are bounded for each URL and each request; whoever leaves
takes the fetches along. Used by new messages and by those of batches, never to count tokens.
What becomes of the bytes is in `prompt/uploads.py`.
"""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import AddrInfoType

from minimsg import __version__
from minimsg.config import ServerConfig
from minimsg.errors import ConfigError, InvalidRequest, Overloaded
from minimsg.limits import LIMITS
from minimsg.prompt.picture import MEDIA_TYPES
from minimsg.prompt.uploads import Named, Upload
from minimsg.server.addresses import checked_url, is_public
from minimsg.server.resolve import NotPublic, PublicResolver, SystemResolver

AT_ONCE: Final = 4  # URLs of one request
MAX_REQUESTS: Final = 16  # that fetch at once; half a gigabyte
MAX_REDIRECTS: Final = 3
REDIRECTS: Final = (301, 302, 303, 307, 308)
TAKEN: Final = {
    "image": tuple(MEDIA_TYPES.values()),
    "document": ("application/pdf", "text/plain"),
}

OpenSocket = Callable[[AddrInfoType], socket.socket]


class Refused(Exception):
    """Why nothing was fetched, in words for the client."""


class Fetcher:
    """Fetches for one server. `open_socket` is told where each socket will be connected to."""

    def __init__(
        self,
        *,
        allows_http: bool = False,
        resolver: AbstractResolver | None = None,
        open_socket: OpenSocket | None = None,
    ) -> None:
        self._allows_http = allows_http
        self._resolver = resolver or SystemResolver()
        self._open_socket = open_socket or _open_socket
        self._num_requests = 0

    @classmethod
    def of(cls, config: ServerConfig) -> Fetcher | None:
        """None if the server may not fetch anything. Raises ConfigError."""
        if config.allow_http_urls and not config.allow_urls:
            raise ConfigError("--allow-http-urls needs --allow-urls")
        return cls(allows_http=config.allow_http_urls) if config.allow_urls else None

    async def fetch(self, sources: Sequence[Named]) -> dict[str, Upload]:
        """What lies at the URLs of one request, each fetched once. Raises RequestError."""
        wanted = {source.url: source for source in reversed(sources)}  # the first one of each
        if len(wanted) > LIMITS.urls:
            why = f"too many URLs: {len(wanted)} > {LIMITS.urls} maximum"
            raise InvalidRequest("messages", why)
        if not wanted:
            return {}
        if self._num_requests >= MAX_REQUESTS:
            raise Overloaded("Too many requests with URLs are being read; try again.")
        self._num_requests += 1
        try:
            async with self._session() as session:
                return await Errands(session, self._allows_http).run(list(wanted.values()))
        finally:
            self._num_requests -= 1

    async def close(self) -> None:
        """Fetch no more."""
        await self._resolver.close()

    def _session(self) -> aiohttp.ClientSession:
        def open_socket(place: AddrInfoType) -> socket.socket:
            if not is_public(str(place[4][0])):  # whoever has resolved it
                raise NotPublic
            return self._open_socket(place)

        connector = aiohttp.TCPConnector(
            resolver=PublicResolver(self._resolver),
            use_dns_cache=False,
            force_close=True,
            socket_factory=open_socket,
        )
        agent = {"User-Agent": f"minimsg/{__version__}", "Accept-Encoding": "identity"}
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=agent,
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),  # `Errands` has one for all redirects
        )


class Errands:
    """The fetches of one request, which share its bytes."""

    def __init__(self, session: aiohttp.ClientSession, allows_http: bool) -> None:
        self._session = session
        self._allows_http = allows_http
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._room = LIMITS.body_bytes

    async def run(self, sources: Sequence[Named]) -> dict[str, Upload]:
        """By URL. The first that fails ends the others. Raises InvalidRequest."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {source.url: group.create_task(self._attempt(source)) for source in sources}
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return {url: task.result() for url, task in tasks.items()}

    async def _attempt(self, source: Named) -> Upload:
        async with self._slots:
            try:
                async with asyncio.timeout(LIMITS.url_timeout_s):
                    return await self._follow(source)
            except TimeoutError:
                why = f"it took longer than {LIMITS.url_timeout_s:g} s"
            except (Refused, ValueError) as error:
                why = str(error)
            except (aiohttp.ClientError, OSError) as error:
                why = _words(error)
        words = f"Unable to download the file. Please verify the URL and try again: {why}"
        raise InvalidRequest(f"{source.path}.url", words) from None

    async def _follow(self, source: Named) -> Upload:
        url = checked_url(source.url, allows_http=self._allows_http)
        for _ in range(MAX_REDIRECTS + 1):
            headers = {"Accept": ", ".join(TAKEN[source.kind])}
            async with self._session.get(url, headers=headers, allow_redirects=False) as response:
                if response.status not in REDIRECTS:
                    return await self._read(response, source.kind)
                target = response.headers.get("Location", "")
            url = checked_url(target, base=url, allows_http=self._allows_http)
        raise Refused(f"it redirects more than {MAX_REDIRECTS} times")

    async def _read(self, response: aiohttp.ClientResponse, kind: str) -> Upload:
        if response.status != 200:
            raise Refused(f"its server answers {response.status}")
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise Refused("its server sends it compressed, although asked not to")
        if response.content_type not in TAKEN[kind]:
            raise Refused(f"it is {response.content_type}, not {' or '.join(TAKEN[kind])}")
        most = LIMITS.image_bytes if kind == "image" else LIMITS.body_bytes
        return _upload(await self._body(response, most), response.content_type)

    async def _body(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        """Counted as it comes: what a header says of its length may be a lie."""
        body = bytearray()
        if (response.content_length or 0) > min(most, self._room):
            raise Refused(f"it exceeds {most} bytes, or the request {LIMITS.body_bytes}")
        async for chunk in response.content.iter_any():
            self._room -= len(chunk)
            if len(body) + len(chunk) > most or self._room < 0:
                raise Refused(f"it exceeds {most} bytes, or the request {LIMITS.body_bytes}")
            body += chunk
        return bytes(body)


def _open_socket(place: AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = place
    return socket.socket(family, kind, protocol)


def _words(error: Exception) -> str:
    """Nothing that tells whether a name exists in the server's own network."""
    if isinstance(error, NotPublic | aiohttp.ClientConnectorDNSError):
        return "its host has no public address"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "its server cannot be reached"
    return "its server breaks off or speaks no HTTP"


def _upload(body: bytes, kind: str) -> Upload:
    if kind == "text/plain":
        try:
            return Upload(text=body.decode("utf-8-sig"), media_type=kind)
        except UnicodeDecodeError:
            raise Refused("it is not text in UTF-8") from None
    data = b64encode(body).decode()
    if kind == "application/pdf":
        return Upload(pdf=data, media_type=kind)
    return Upload(image=data, media_type=kind)

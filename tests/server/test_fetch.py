"""URL sources: what is fetched, where sockets go, and what a slow or lying server costs.

No test leaves this machine: names are resolved by a table, every socket is `Diverted` to a
server on loopback and notes where it was meant to go, and any other connection fails.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.connector import AddrInfoType

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError, InvalidRequest, Overloaded
from minimsg.limits import LIMITS
from minimsg.prompt.uploads import Named, Upload
from minimsg.server import fetch
from minimsg.server.fetch import Fetcher
from minimsg.server.resolve import result_of

from ..prompt.pdf_files import pdf  # noqa: TID252
from .bystander import bystander
from .conftest import Start
from .running import Json, Running, eventually
from .test_batch_runner import run
from .test_disconnect import connect, reset

PUBLIC, OTHER = "93.184.215.14", "1.1.1.1"
SITE = "http://a.example.com"
COUNT = "/v1/messages/count_tokens"


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(self: socket.socket, address: Any) -> None:
        assert self.family == socket.AF_UNIX or address[0] == "127.0.0.1", address
        super(socket.socket, self).connect(address)

    monkeypatch.setattr(socket.socket, "connect", connect, raising=False)


@dataclass
class Site(AbstractResolver):
    """A server, the names that lead to it, and where sockets were meant to go."""

    port: int = 0
    names: dict[str, list[list[str]]] = field(default_factory=dict)  # the answers in turn
    dialled: list[str] = field(default_factory=list)
    seen: list[web.Request] = field(default_factory=list)
    is_waiting: asyncio.Event = field(default_factory=asyncio.Event)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        answers = self.names.get(host, [[PUBLIC]])
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        if not addresses:
            raise OSError("no such name")
        kinds = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [
            result_of(host, port, kind, address)
            for kind, address in zip(kinds, addresses, strict=True)
        ]

    async def close(self) -> None:
        pass

    def open_socket(self, place: AddrInfoType) -> socket.socket:
        site = self

        class Diverted(socket.socket):
            def connect(self, address: Any) -> None:
                site.dialled.append(f"{address[0]}:{address[1]}")
                super().connect(("127.0.0.1", site.port))

        return Diverted(socket.AF_INET, socket.SOCK_STREAM)

    def fetcher(self, *, allows_http: bool = True) -> Fetcher:
        return Fetcher(allows_http=allows_http, resolver=self, open_socket=self.open_socket)

    async def get(self, path: str = "", kind: Any = "document", **options: Any) -> Upload:
        url = SITE + path if path.startswith("/") else path
        found = await self.fetcher(**options).fetch([Named(url, kind, "messages.0.source.url")])
        return found[url]

    async def refusal(self, path: str, kind: Any = "document", **options: Any) -> str:
        with pytest.raises(InvalidRequest) as caught:
            await self.get(path, kind, **options)
        assert caught.value.message.startswith("messages.0.source.url.url: Unable to download")
        return caught.value.message.partition("again: ")[2]


TEXT: dict[str, str] = {
    "type": "text",
    "media_type": "text/plain",
    "data": "The code is 7421.",
}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def answers(site: Site) -> dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]:
    def fixed(body: bytes, kind: str = "text/plain", **headers: str) -> Any:
        async def answer(_: web.Request) -> web.Response:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(body=body, headers={"Content-Type": kind, **given})

        return answer

    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": request.query["to"]})

    async def loop(request: web.Request) -> web.Response:
        left = int(request.query["n"])
        to = f"/loop?n={left - 1}" if left else "/text"
        return web.Response(status=307, headers={"Location": to, "Set-Cookie": "a=b"})

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        site.is_waiting.set()
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.02)

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": request.query["kind"]})
        await response.prepare(request)
        while True:
            await response.write(bytes(65_536))

    async def short(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "text/plain", "Content-Length": "100"}
        )
        await response.prepare(request)
        await response.write(b"x")
        assert request.transport is not None
        request.transport.close()
        return response

    return {
        "/text": fixed("\ufeffThe code is 7421.".encode()),
        "/pdf": fixed(b"%PDF-1.4", "application/pdf"),
        "/code": fixed(pdf(TEXT["data"]), "application/pdf"),
        "/png": fixed(PNG, "image/png"),
        "/html": fixed(b"<html>", "text/html"),
        "/latin": fixed(b"\xe9"),
        "/gzip": fixed(gzip.compress(bytes(10_000_000)), Content_Encoding="gzip"),
        "/redirect": redirect,
        "/loop": loop,
        "/drip": drip,
        "/endless": endless,
        "/short": short,
    }


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    routes = answers(site)

    async def handle(request: web.Request) -> web.StreamResponse:
        site.seen.append(request)
        if request.path not in routes:
            raise web.HTTPNotFound
        return await routes[request.path](request)

    runner = web.AppRunner(_app(handle), shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    site.port = listening.getsockname()[1]
    await web.SockSite(runner, listening).start()
    yield site
    await runner.cleanup()


def _app(handle: Any) -> web.Application:
    app = web.Application()
    app.router.add_get("/{path:.*}", handle)
    return app


async def test_what_is_fetched_is_text_a_pdf_or_an_image(site: Site) -> None:
    assert (await site.get("/text")).text == "The code is 7421."
    assert (await site.get("/pdf")).pdf == b64encode(b"%PDF-1.4").decode()
    assert (await site.get("/png", "image")).image == b64encode(PNG).decode()
    assert site.dialled == [f"{PUBLIC}:80"] * 3


async def test_a_request_carries_nothing_of_the_servers(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    await site.get("/loop?n=1")
    assert [set(request.headers) for request in site.seen] == [
        {"Host", "Accept", "Accept-Encoding", "Connection", "User-Agent"}
    ] * 3
    assert {request.headers["Accept-Encoding"] for request in site.seen} == {"identity"}
    assert {request.headers["Host"] for request in site.seen} == {"a.example.com"}


@pytest.mark.parametrize(
    "addresses",
    [
        *(["127.0.0.1"], ["10.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], []),
        *(["2002:7f00:1::"], ["169.254.169.254"], [PUBLIC, "127.0.0.1"], ["0.0.0.0"]),
    ],
)
async def test_a_name_that_leads_inside_is_never_dialled(site: Site, addresses: list[str]) -> None:
    site.names["a.example.com"] = [addresses]
    assert await site.refusal("/text") == "its host has no public address"
    assert site.dialled == []


async def test_a_name_that_changes_is_dialled_only_where_it_was_checked(site: Site) -> None:
    site.names["a.example.com"] = [[PUBLIC], ["127.0.0.1"]]
    assert await site.refusal("/loop?n=1") == "its host has no public address"
    assert site.dialled == [f"{PUBLIC}:80"]


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://127.0.0.1:{port}/", "http://localhost./", "http://0x7f.1/"),
        *("http://2130706433/", "http://[::ffff:127.0.0.1]/", "http://1.1.1.1\\@127.0.0.1/"),
        *("file:///etc/passwd", "http://a.example.com:8080/text", "http://u@a.example.com/text"),
    ],
)
async def test_an_odd_url_is_never_dialled_nor_is_a_redirect_to_it(site: Site, url: str) -> None:
    url = url.format(port=site.port)
    await site.refusal(url)
    assert site.dialled == []
    path = f"/redirect?to={url.replace(chr(92), '%5C')}"
    await site.refusal(path)
    assert site.dialled == [f"{PUBLIC}:80"]


async def test_sockets_are_checked_although_names_were(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "PublicResolver", lambda resolver: resolver)
    site.names["a.example.com"] = [["127.0.0.1"]]
    await site.refusal("/text")
    assert site.dialled == []


async def test_a_few_redirects_are_followed_each_to_its_own_address(site: Site) -> None:
    site.names["b.example.com"] = [[OTHER]]
    assert (await site.get("/redirect?to=http://b.example.com/text")).text
    assert site.dialled == [f"{PUBLIC}:80", f"{OTHER}:80"]
    assert (await site.get("/loop?n=2")).text
    assert await site.refusal("/loop?n=3") == "it redirects more than 3 times"


async def test_https_alone_is_the_rule(site: Site) -> None:
    assert await site.refusal("/text", allows_http=False) == "it must begin with https://"
    assert site.dialled == []
    words = await site.refusal("https://a.example.com/text", allows_http=False)
    assert words == "its server cannot be reached"  # it speaks no TLS
    assert site.dialled == [f"{PUBLIC}:443"]


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        ("/none", "document", "its server answers 404"),
        ("/html", "document", "it is text/html, not application/pdf or text/plain"),
        ("/png", "document", "it is image/png, not application/pdf or text/plain"),
        ("/pdf", "image", "it is application/pdf, not image/"),
        ("/gzip", "document", "its server sends it compressed, although asked not to"),
        ("/latin", "document", "it is not text in UTF-8"),
        ("/short", "document", "its server breaks off or speaks no HTTP"),
        ("/endless?kind=image/png", "image", "it exceeds 100000 bytes"),
        ("/endless?kind=text/plain", "document", "it exceeds 300000 bytes"),
    ],
)
async def test_what_cannot_be_read_is_refused_in_words(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, kind: str, words: str
) -> None:
    limit(monkeypatch, image_bytes=100_000, body_bytes=300_000)
    assert (await site.refusal(path, kind)).startswith(words)


def limit(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    monkeypatch.setattr(fetch, "LIMITS", replace(LIMITS, **values))


async def test_a_server_that_drips_is_left_in_time(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, url_timeout_s=0.2)
    assert await site.refusal("/drip") == "it took longer than 0.2 s"


async def test_urls_of_a_request_are_few_and_share_its_bytes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [Named(f"{SITE}/text?{n}", "document", "p") for n in range(LIMITS.urls + 1)]
    with pytest.raises(InvalidRequest, match="too many URLs: 21 > 20 maximum"):
        await site.fetcher().fetch(named)
    assert site.dialled == []
    same = [replace(named[0], path=f"p{n}") for n in range(50)]
    assert set(await site.fetcher().fetch(same)) == {named[0].url}
    assert len(site.dialled) == 1
    limit(monkeypatch, body_bytes=50)  # two of 20 bytes
    await site.fetcher().fetch(named[:2])
    with pytest.raises(InvalidRequest, match="or the request 50"):
        await site.fetcher().fetch(named[:3])


async def test_requests_that_fetch_at_once_are_few(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_REQUESTS", 1)
    fetcher, named = site.fetcher(), [Named(SITE + "/drip", "document", "p")]
    task = asyncio.create_task(fetcher.fetch(named))
    await site.is_waiting.wait()
    with pytest.raises(Overloaded):
        await fetcher.fetch(named)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await fetcher.fetch([Named(SITE + "/text", "document", "p")]))[SITE + "/text"].text


# Over HTTP


def document(source: Json) -> Json:
    return {"type": "document", "source": source}


def url(path: str) -> Json:
    return {"type": "url", "url": SITE + path}


def asking(source: Json, model: str = "tiny", *, in_result: bool = False) -> Json:
    turns: list[Any] = [{"role": "user", "content": [document(source)]}]
    if in_result:
        call = {"type": "tool_use", "id": "t", "name": "f", "input": {"type": "url", "url": "x"}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": [document(source)]}
        turns = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": model, "max_tokens": 4, "seed": 1, "messages": turns}


async def fetching(start: Start, site: Site, name: str = "tiny") -> Running:
    running = await start(name, config=ServerConfig(allow_urls=True, allow_http_urls=True))
    running.server.fetcher = site.fetcher()
    return running


@pytest.mark.parametrize("in_result", [False, True])
async def test_a_url_reads_as_its_text_would(start: Start, site: Site, in_result: bool) -> None:
    running = await fetching(start, site)
    named = await running.post(asking(url("/text"), in_result=in_result))
    said = await running.post(asking(dict(TEXT), in_result=in_result))
    assert named[0]["content"] == said[0]["content"]
    assert site.dialled == [f"{PUBLIC}:80"]  # the call's own input is no source


async def test_a_pdf_behind_a_url_reads_as_its_page(start: Start, site: Site) -> None:
    running = await fetching(start, site)
    page = f'<page number="1">\n{TEXT["data"]}\n</page>'
    named, _ = await running.post(asking(url("/code")))
    said, _ = await running.post(asking({**TEXT, "data": page}))
    assert (named["content"], named["usage"]) == (said["content"], said["usage"])


async def test_a_batch_fetches_by_the_same_rules(start: Start, site: Site) -> None:
    running = await fetching(start, site)
    paths = {"good": "/text", "inner": "/redirect?to=http://127.0.0.1/"}
    items = [
        {"custom_id": name, "params": asking(url(path), "tiny")} for name, path in paths.items()
    ]
    found: Any = await run(running, items)
    assert found["good"]["type"] == "succeeded"
    message = found["inner"]["error"]["error"]["message"]
    assert message.startswith("messages.0.content.0.document.source.url.url: Unable to download")
    assert set(site.dialled) == {f"{PUBLIC}:80"}


async def test_counting_fetches_nothing(start: Start, site: Site) -> None:
    running = await fetching(start, site)
    body = {key: asking(url("/text"))[key] for key in ("model", "messages")}
    error, _ = await running.post(body, COUNT, status=400)
    assert error["error"]["type"] == "invalid_request_error"  # type: ignore[index, call-overload]
    assert site.dialled == []


async def test_a_model_that_sees_nothing_has_no_image_fetched(start: Start, site: Site) -> None:
    running = await fetching(start, site)
    body = asking(url("/png"))
    content: Any = body["messages"]
    content[0]["content"] = [{"type": "image", "source": url("/png")}]
    error: Any = (await running.post(body, status=400))[0]
    assert "does not support image input" in error["error"]["message"]
    assert site.dialled == []


async def test_without_the_switch_nothing_is_fetched(start: Start) -> None:
    running = await start("tiny")
    assert running.server.fetcher is None
    error, _ = await running.post(asking(url("/text")), status=400)
    assert "--allow-urls" in str(error)
    with pytest.raises(ConfigError):
        Fetcher.of(ServerConfig(allow_http_urls=True))


async def test_a_slow_url_holds_up_nobody_else_and_ends_with_its_client(
    start: Start, site: Site
) -> None:
    running = await fetching(start, site, "scripted")
    async with bystander(running):
        writer = await connect(running, asking(url("/drip"), "scripted"))
        await site.is_waiting.wait()
        answer, _ = await running.post(asking(url("/text"), "scripted"))
        assert answer["type"] == "message"
        reset(writer)
        fetcher = running.server.fetcher
        assert fetcher is not None
        await eventually(lambda: fetcher._num_requests == 0, within_s=5)

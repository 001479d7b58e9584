"""Links in answers lead back to where the client called from, or where the server says it is."""

from __future__ import annotations

import json

import pytest

from minimsg.config import ServerConfig
from minimsg.errors import ConfigError
from minimsg.server.links import check_public_url

from .batching import ROUTE, ended, requests, take
from .conftest import Start
from .raw import read_answer, say
from .running import Running
from .test_sdk import sdk


async def a_batch(running: Running) -> str:
    """The id of one that has ended."""
    _, made = await take(running, json.dumps({"requests": requests("a")}).encode())
    async with sdk(running) as client:
        await ended(client, made["id"])
    id: str = made["id"]
    return id


async def link_of(running: Running, id: str, head: str, version: str = "1.1") -> str:
    """Where the results are, for whoever sends the lines of `head`."""
    sent = f"GET {ROUTE}/{id} HTTP/{version}\r\n{head}Connection: close\r\n\r\n"
    answer = read_answer(await say(running, sent.encode()))
    assert answer.status == 200, answer.body
    return str(answer.json["results_url"]).removesuffix(f"{ROUTE}/{id}/results")


async def test_a_link_has_the_name_that_the_client_used(scripted: Running) -> None:
    id = await a_batch(scripted)
    port = scripted.url.rsplit(":", 1)[1]
    for head, url in (
        (f"Host: localhost:{port}\r\n", f"http://localhost:{port}"),
        ("Host: 127.0.0.1\r\n", "http://127.0.0.1"),
        (
            "Host: localhost\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n"
            "Forwarded: proto=https;host=evil.example\r\n",
            "http://localhost",
        ),
    ):
        assert await link_of(scripted, id, head) == url
    assert await link_of(scripted, id, "", version="1.0") == scripted.url


async def test_a_host_that_is_none_is_in_no_link(start: Start) -> None:
    running = await start(config=ServerConfig(host="0.0.0.0", insecure=True))
    id = await a_batch(running)
    assert await link_of(running, id, "Host: box.lan\r\n") == "http://box.lan"
    for host in ("x/?", "a@evil.example", "evil.example/#", "a b"):
        assert await link_of(running, id, f"Host: {host}\r\n") == running.url


async def test_behind_a_proxy_links_are_what_the_server_was_told(start: Start) -> None:
    told = ServerConfig(public_url="https://llm.example.org/api/")
    running = await start(config=told)
    head = "Host: localhost\r\nX-Forwarded-Proto: http\r\n"
    link = await link_of(running, await a_batch(running), head)
    assert link == "https://llm.example.org/api"


@pytest.mark.parametrize(
    "url", ["llm.example.org", "ftp://x", "https://a@b", "https://x/?q", "https://", 'https://"']
)
def test_a_public_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--public-url"):
        check_public_url(ServerConfig(public_url=url))

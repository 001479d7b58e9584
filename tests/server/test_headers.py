"""What stands around an answer: ids, hints for a retry, probes, and paths that are nearly right."""

from __future__ import annotations

import asyncio

import anthropic
import pytest

from minimsg.errors import (
    InvalidRequest,
    NotImplementedHere,
    Overloaded,
    RateLimited,
    RequestError,
)
from minimsg.protocol.envelope import envelope
from minimsg.server.respond import error_response
from minimsg.server.state import Server

from .running import PLAIN, Running, ask
from .test_errors import fail
from .test_sdk import sdk


async def probe(running: Running, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
    async with running.session.request(method, running.url + path) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return response.status, headers, await response.read()


@pytest.mark.parametrize(
    ("path", "status", "allow"),
    [
        ("/", 200, None),
        ("/v1/models", 200, None),
        ("/models/scripted", 200, None),
        ("/health/ready", 200, None),
        ("/v1/messages", 405, "OPTIONS, POST"),
        ("/v1/messages/count_tokens", 405, "OPTIONS, POST"),
        ("/v1/complete", 404, None),
    ],
)
async def test_a_probe_is_answered_at_once_and_without_a_body(
    scripted: Running, path: str, status: int, allow: str | None
) -> None:
    seen, headers, body = await probe(scripted, "HEAD", path)
    assert (seen, headers.get("allow"), body) == (status, allow, b"")
    assert headers["request-id"].startswith("req_")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "PROPFIND", "TRACE", "PURGE"])
async def test_a_method_that_a_route_does_not_take_is_405_with_those_it_takes(
    scripted: Running, method: str
) -> None:
    for prefix in ("/v1", ""):
        status, error, headers = await fail(scripted, method, f"{prefix}/messages?beta=true")
        assert (status, error["type"]) == (405, "invalid_request_error")
        assert error["message"] == "Method Not Allowed"
        assert headers["Allow"] == "OPTIONS, POST"


@pytest.mark.parametrize("method", ["Zq81", "GETS", "X-Y"])
async def test_a_method_that_nobody_knows_is_405_too(scripted: Running, method: str) -> None:
    host, port = scripted.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{method} /v1/messages HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    assert answer.startswith("HTTP/1.1 405 ")
    assert "\r\nallow: DELETE, GET, HEAD, OPTIONS, POST\r\n" in answer
    assert '"invalid_request_error"' in answer


@pytest.mark.parametrize(
    "path",
    ["//v1/messages", "/v1//messages", "/v1/messages/", "/V1/messages", "/v1/messages/x", "/v1"],
)
async def test_a_path_that_is_nearly_right_is_not_found_and_the_root_lists_the_right_ones(
    scripted: Running, path: str
) -> None:
    status, error, _ = await fail(scripted, path=path, json=ask(PLAIN))
    assert (status, error["type"]) == (404, "not_found_error")
    assert "GET /" in error["message"]


@pytest.mark.parametrize("query", ["beta=true", "beta=false&x=1", "beta"])
async def test_a_query_changes_nothing(scripted: Running, query: str) -> None:
    answer, _ = await scripted.post(ask(PLAIN), f"/v1/messages?{query}")
    assert answer["type"] == "message"
    counted, _ = await scripted.post(
        {"model": "scripted", "messages": ask(PLAIN)["messages"]},
        f"/v1/messages/count_tokens?{query}",
    )
    assert counted["input_tokens"] == len("<user\ngo>\n<assistant\n")  # marks are one token


async def test_every_kind_of_answer_has_a_request_id(scripted: Running) -> None:
    ids = set[str]()
    for method, path in (("GET", "/"), ("OPTIONS", "/"), ("GET", "/health"), ("PUT", "/nowhere")):
        _, headers, _ = await probe(scripted, method, path)
        ids.add(headers["request-id"])
    _, response = await scripted.post(ask(PLAIN))
    ids.add(response.headers["request-id"])
    assert len(ids) == 5


@pytest.mark.parametrize(
    ("error", "headers"),
    [
        (NotImplementedHere("no"), {"x-should-retry": "false"}),
        (Overloaded("later"), {"retry-after": "1"}),
        (Overloaded("later", headers={"retry-after": "9"}), {"retry-after": "9"}),
        (RateLimited("later", headers={"retry-after": "30"}), {"retry-after": "30"}),
        (InvalidRequest("model", "no"), {}),
    ],
)
def test_an_error_says_whether_and_when_to_try_again(
    error: RequestError, headers: dict[str, str]
) -> None:
    sent = error_response(error, "req_1").headers
    assert {
        name: sent[name] for name in ("x-should-retry", "retry-after") if name in sent
    } == headers


async def test_the_sdk_does_not_retry_what_stays_as_it_is(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refuse(self: Server) -> None:
        asked.append(self)
        raise NotImplementedHere("This model has no chat template.")

    monkeypatch.setattr(Server, "check_can_answer", refuse)
    async with sdk(scripted) as client:
        with pytest.raises(anthropic.InternalServerError, match="no chat template"):
            await client.with_options(max_retries=3).messages.create(
                model="scripted", max_tokens=1, messages=[{"role": "user", "content": "go"}]
            )
    assert len(asked) == 1


def test_an_error_code_and_its_details_stand_together_in_the_envelope() -> None:
    error = InvalidRequest("thread", "no", error_code="a_code", details={"positions": [1, 2]})
    assert envelope(error, "req_1")["error"] == {
        "type": "invalid_request_error",
        "message": "thread: no",
        "details": {"error_code": "a_code", "positions": [1, 2]},
    }
    assert "details" not in envelope(InvalidRequest("thread", "no"), "req_1")["error"]

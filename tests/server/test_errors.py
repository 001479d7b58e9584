"""Every failure comes in the envelope, with its status, its type and its request id."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from minimsg.prompt.chat import ChatModel
from minimsg.server.state import Server

from .conftest import Start
from .running import PLAIN, Json, Running, ask

JSON = {"content-type": "application/json"}


async def fail(
    running: Running,
    method: str = "POST",
    path: str = "/v1/messages",
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    json: object = None,
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, error object and headers of a request that must fail."""
    async with running.session.request(
        method, running.url + path, data=data, headers=headers, json=json
    ) as response:
        envelope = await response.json()
    assert set(envelope) == {"type", "error", "request_id"}
    assert envelope["type"] == "error"
    assert envelope["request_id"] == response.headers["request-id"]
    assert response.headers["content-type"] == "application/json"
    return response.status, envelope["error"], dict(response.headers)


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"{",
            "The request body is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (b"[]", "The request body is not valid JSON: it must be an object"),
        (b'{"model":"scripted","messages":"x"}', "messages: Input should be a valid list"),
        (b'{"messages":[{"role":"user","content":"x"}]}', "model: Field required"),
        (b'{"temperature":NaN}', "temperature: Input should be a finite number"),
    ],
)
async def test_a_bad_body_is_named(scripted: Running, path: str, body: bytes, message: str) -> None:
    status, error, _ = await fail(scripted, path=path, data=body, headers=JSON)
    assert (status, error) == (400, {"type": "invalid_request_error", "message": message})


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
@pytest.mark.parametrize("model", ["gpt-9", "../../etc/passwd", "/root", "hf://x/y", "Scripted"])
async def test_a_model_that_is_not_served_is_not_found(
    scripted: Running, path: str, model: str
) -> None:
    status, error, _ = await fail(scripted, path=path, json=ask(PLAIN) | {"model": model})
    assert (status, error) == (404, {"type": "not_found_error", "message": f"model: {model}"})


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_over_the_window_is_refused_in_the_words_clients_know(
    scripted: Running, stream: bool
) -> None:
    window = scripted.server.max_context
    over = ask(PLAIN, stream=stream, messages=[{"role": "user", "content": "x" * window}])
    status, error, _ = await fail(scripted, json=over)
    assert (status, error["type"]) == (400, "invalid_request_error")
    turn = len("user\n") + len("\n") + 2  # and <|im_start|>, <|im_end|>
    tokens = turn + window + len("assistant\n") + 1
    assert error["message"] == f"prompt is too long: {tokens} tokens > {window} maximum"


async def test_a_prompt_that_fills_the_window_to_the_last_token_is_answered(
    scripted: Running,
) -> None:
    def body(chars: int) -> Json:
        return {"model": "scripted", "messages": [{"role": "user", "content": "x" * chars}]}

    counted, _ = await scripted.post(body(1), "/v1/messages/count_tokens")
    around = int(str(counted["input_tokens"])) - 1
    answer, _ = await scripted.post(body(scripted.server.max_context - around))
    assert answer["stop_reason"] == "model_context_window_exceeded"


@pytest.mark.parametrize(
    ("method", "path", "status", "type"),
    [
        ("GET", "/v1/complete", 404, "not_found_error"),
        ("POST", "/v1/v1/messages", 404, "not_found_error"),
        ("GET", "/v1/models/unknown", 404, "not_found_error"),
        ("GET", "/v1/messages", 405, "invalid_request_error"),
        ("DELETE", "/v1/models", 405, "invalid_request_error"),
        ("PROPFIND", "/v1/messages", 405, "invalid_request_error"),
    ],
)
async def test_a_route_or_method_that_does_not_exist_is_told_in_the_envelope(
    scripted: Running, method: str, path: str, status: int, type: str
) -> None:
    seen, error, headers = await fail(scripted, method, path)
    assert (seen, error["type"]) == (status, type)
    if status == 405:
        allowed = "OPTIONS, POST" if path == "/v1/messages" else "GET, HEAD, OPTIONS"
        assert headers["Allow"] == allowed


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
async def test_what_a_web_page_can_send_unasked_starts_no_generation(
    scripted: Running, content_type: str
) -> None:
    data = b'{"model":"scripted","messages":[{"role":"user","content":"x"}]}'
    headers = {"content-type": content_type}
    status, error, _ = await fail(scripted, data=data, headers=headers)
    assert (status, error["type"]) == (415, "invalid_request_error")
    assert error["message"].startswith("content-type: must be application/json, not ")
    page = headers | {"origin": "https://evil.example"}
    status, error, _ = await fail(scripted, data=data, headers=page)
    assert (status, error["type"]) == (403, "permission_error")
    assert scripted.server.worker.stats().steps == 0


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
async def test_a_model_without_a_chat_template_answers_501(
    start: Start, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    from dataclasses import replace

    running = await start()
    chat: ChatModel = replace(running.server.chat, template=None)
    monkeypatch.setattr(running.server, "chat", chat)
    status, error, _ = await fail(running, path=path, json=ask(PLAIN))
    assert (status, error["type"]) == (501, "api_error")


async def test_a_failure_nobody_planned_is_500_without_its_text_and_logged_without_it(
    scripted: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: Server) -> None:
        raise LookupError(" ".join(("secret", "prompt")))

    monkeypatch.setattr(Server, "check_can_answer", broken)
    status, error, headers = await fail(scripted, json=ask(PLAIN))
    assert (status, error) == (500, {"type": "api_error", "message": "Internal server error"})
    assert headers["request-id"] in caplog.text
    assert "LookupError" in caplog.text
    assert "secret prompt" not in caplog.text


async def test_ids_of_requests_are_the_servers_and_differ(scripted: Running) -> None:
    sent = {"request-id": "req_mine", "x-request-id": "req_mine"}
    ids = set[str]()
    for _ in range(3):
        _, _, headers = await fail(scripted, "GET", "/nowhere", headers=sent)
        ids.add(headers["request-id"])
    assert len(ids) == 3
    assert "req_mine" not in ids


async def test_logs_hold_no_word_of_the_prompt(
    scripted: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    secret: JsonValue = [{"role": "user", "content": "hush-hush"}]
    await scripted.post(ask(PLAIN, messages=secret))
    await fail(scripted, json=ask(PLAIN, messages=[{"role": "hush-hush", "content": "x"}]))
    await fail(scripted, "GET", "/hush-hush")
    assert "hush-hush" not in caplog.text
    assert "/v1/messages 200" in caplog.text


@pytest.mark.parametrize(("path", "status"), [("/v1/messages", 400), ("/nowhere", 417)])
async def test_an_unknown_expectation_gets_an_answer(
    scripted: Running, path: str, status: int
) -> None:
    headers = {"expect": "a miracle", "content-type": "application/json"}
    async with scripted.session.post(f"{scripted.url}{path}", data=b"{}", headers=headers) as got:
        assert got.status == status
        assert got.headers["request-id"].startswith("req_")

"""A file's id in the place of a document: the model reads the file's text, all else is the same."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from minimsg.config import ServerConfig

from .conftest import Start
from .running import Json, Running
from .test_errors import fail
from .test_files import form, upload
from .test_sdk import sdk

COUNT = "/v1/messages/count_tokens"


def asking(*sources: Json, in_result: bool = False) -> Json:
    """A request with a document of each source, in a turn or in the result of a tool."""
    documents: list[JsonValue] = [{"type": "document", "title": "T", "source": s} for s in sources]
    turns: list[JsonValue] = [
        {"role": "user", "content": [*documents, {"type": "text", "text": "?"}]}
    ]
    if in_result:
        turns = [
            {"role": "user", "content": "?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": documents}],
            },
        ]
    return {"model": "tiny", "max_tokens": 4, "messages": turns, "seed": 1}


def text(data: str) -> Json:
    return {"type": "text", "media_type": "text/plain", "data": data}


def file(id: JsonValue) -> Json:
    return {"type": "file", "file_id": id}


@pytest.mark.parametrize("in_result", [False, True])
@pytest.mark.parametrize("size", [1, 3_000])
async def test_a_file_reads_as_its_text_would(tiny: Running, in_result: bool, size: int) -> None:
    words = "The code is 7421, é. " * size  # the longer one is prepared in a process
    made = await upload(tiny, form(data=("\ufeff" + words).encode()))
    other = await upload(tiny, form("b.json", b"{}", "application/json"))
    named = asking(file(made["id"]), file(other["id"]), in_result=in_result)
    said = asking(text(words), text("{}"), in_result=in_result)
    counted = [(await tiny.post(body, COUNT))[0]["input_tokens"] for body in (named, said)]
    assert counted[0] == counted[1]
    if size == 1:
        answers = [(await tiny.post(body))[0] for body in (named, said)]
        assert answers[0]["content"] == answers[1]["content"]
        assert answers[0]["usage"]["input_tokens"] == counted[0]  # type: ignore[index, call-overload]


async def test_the_sdk_uploads_a_document_and_asks_about_it(tiny: Running) -> None:
    async with sdk(tiny) as client:
        made = await client.files.upload(file=("a.txt", b"The code is 7421."))
        message = await client.messages.create(
            model="tiny",
            max_tokens=2,
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "document", "source": {"type": "file", "file_id": made.id}},
                        {"type": "text", "text": "Which code?"},
                    ],
                }
            ],
        )
    assert message.usage.output_tokens > 0


PATH = "messages.0.content.0.document.source.file.file_id"


async def test_a_file_that_is_not_there_is_404_at_its_path(tiny: Running) -> None:
    for id in ("file_01unknown00000", "x", "../../etc/passwd".replace("/", "_").replace(".", "-")):
        status, error, _ = await fail(tiny, json=asking(file(id)))
        assert (status, error["message"]) == (404, f"{PATH}: no file has that id")


async def test_a_file_that_has_expired_says_so(
    tiny: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await upload(tiny, form(expires_in_seconds="3600"))
    later = tiny.server.store.clock() + 3_601
    monkeypatch.setattr(tiny.server.store, "clock", lambda: later)
    status, error, _ = await fail(tiny, json=asking(file(made["id"])))
    assert (status, error["details"]["error_code"]) == (404, "file_expired")


@pytest.mark.parametrize(
    ("data", "mime_type", "why"),
    [
        (b"%PDF-1.7", "application/pdf", "The PDF specified was not valid."),
        (b"\x89PNG", "image/png", "cannot read a file of type image/png"),
        (b"\xff\xfe\x00", "text/plain", "not text in UTF-8"),
    ],
)
async def test_a_file_that_is_no_text_is_refused_at_its_path(
    tiny: Running, data: bytes, mime_type: str, why: str
) -> None:
    made = await upload(tiny, form(data=data, mime_type=mime_type))
    status, error, _ = await fail(tiny, json=asking(file(made["id"])))
    assert (status, why in error["message"]) == (400, True)
    assert error["message"].startswith(PATH)


async def test_strict_counts_no_files_and_answers_with_them(start: Start) -> None:
    running = await start("tiny", config=ServerConfig(profile="strict"))
    version = {"anthropic-version": "2023-06-01"}
    made = await upload(running, form(), anthropic_version="2023-06-01")
    body = asking(file(made["id"]))
    del body["seed"]
    async with running.session.post(
        f"{running.url}/v1/messages", json=body, headers=version
    ) as response:
        assert response.status == 200, await response.text()
    del body["max_tokens"]
    status, error, _ = await fail(running, path=COUNT, json=body, headers=version)
    assert (status, "type 'file' is not supported" in error["message"]) == (400, True)

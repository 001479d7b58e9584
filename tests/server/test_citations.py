"""Citations over HTTP: what the scripted model says is found again in what it was given."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import anthropic
import pytest

from minimsg.builtin import write_scripted
from minimsg.config import ServerConfig
from minimsg.protocol.build import fold

from .conftest import WRITERS, Start
from .running import Json, Running
from .test_sdk import sdk

MILL = "The mill was built in 1871 by Ada Holt.  Its wheel turned until the flood of 1924."
TAPE = (
    "Let me see. Ada Holt built the mill in 1871. The flood of 1924 stopped its wheel! Is that all?"
)
FIRST, SECOND = (0, 39), (41, len(MILL))
ON = {"enabled": True}


@pytest.fixture
async def citing(start: Start, monkeypatch: pytest.MonkeyPatch) -> Running:
    return await serve(start, monkeypatch)


async def serve(
    start: Start, monkeypatch: pytest.MonkeyPatch, tape: str = TAPE, **settings: Any
) -> Running:
    def write(folder: Path) -> None:
        write_scripted(folder, [tape])

    name = f"citing-{sha256(tape.encode()).hexdigest()[:8]}"
    monkeypatch.setitem(WRITERS, name, write)
    return await start(name, config=ServerConfig(any_model=True, **settings))


def document(text: str = MILL, **more: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "citations": ON, **more}


def ask(*blocks: Json, **more: Any) -> Json:
    content = [*blocks, {"type": "text", "text": "What of the mill?"}]
    return {
        "model": "m",
        "max_tokens": 400,
        "messages": [{"role": "user", "content": content}],
        **more,
    }


def char_location(begin: int, end: int, index: int = 0, title: str | None = None) -> Json:
    return {
        "type": "char_location",
        "cited_text": MILL[begin:end],
        "document_index": index,
        "document_title": title,
        "file_id": None,
        "start_char_index": begin,
        "end_char_index": end,
    }


async def test_cited_sentences_are_blocks_of_their_own(citing: Running) -> None:
    reply, response = await citing.post(ask(document(title="Mill")))
    assert reply["content"] == [
        {"type": "text", "text": "Let me see. ", "citations": None},
        {
            "type": "text",
            "text": "Ada Holt built the mill in 1871. ",
            "citations": [char_location(*FIRST, title="Mill")],
        },
        {
            "type": "text",
            "text": "The flood of 1924 stopped its wheel! ",
            "citations": [char_location(*SECOND, title="Mill")],
        },
        {"type": "text", "text": "Is that all?", "citations": None},
    ]
    assert reply["attribution"] == "overlap"
    assert "minimsg-ignored" not in response.headers


async def test_a_streamed_reply_is_the_plain_one(citing: Running) -> None:
    body = ask(document())
    events = await citing.stream(body)
    given: list[Any] = [each for each in events if each["type"] == "content_block_delta"]
    deltas = [each["delta"]["type"] for each in given]
    cited = ["text_delta", "citations_delta"]
    assert deltas == ["text_delta", *cited, *cited, "text_delta"]
    plain, _ = await citing.post(body)
    assert fold(events)["content"] == plain["content"]  # type: ignore[arg-type]


async def test_the_sdk_adds_the_stream_up_to_the_plain_message(citing: Running) -> None:
    body: Any = ask(document())
    async with sdk(citing) as client:
        plain = await client.messages.create(**body)
        async with client.messages.stream(**body) as stream:
            seen = [event.citation async for event in stream if event.type == "citation"]
            streamed = await stream.get_final_message()
    assert [block.to_dict() for block in streamed.content] == [
        block.to_dict() for block in plain.content
    ]
    assert [type(citation) for citation in seen] == [anthropic.types.CitationCharLocation] * 2
    assert plain.content[1].citations == [seen[0]]


async def test_a_cited_reply_reads_as_it_was_written_when_it_comes_back(citing: Running) -> None:
    first, _ = await citing.post(ask(document()))
    asked: Any = ask(document())
    question = asked["messages"][0]
    counts = []
    for content in (first["content"], TAPE):
        turns = [
            question,
            {"role": "assistant", "content": content},
            {"role": "user", "content": "x"},
        ]
        counted, _ = await citing.post(
            {"model": "m", "messages": turns}, "/v1/messages/count_tokens"
        )
        counts.append(counted["input_tokens"])
    assert counts[0] == counts[1]


async def test_without_a_wish_nothing_is_different(citing: Running) -> None:
    plain, _ = await citing.post(ask(document(citations={"enabled": False})))
    assert plain["content"] == [{"type": "text", "text": TAPE}]
    assert "attribution" not in plain


async def test_a_stop_sequence_and_a_cut_end_a_sentence_too(citing: Running) -> None:
    stopped, _ = await citing.post(ask(document(), stop_sequences=[" of 1924"]))
    assert stopped["stop_sequence"] == " of 1924"
    texts = [block["text"] for block in stopped["content"]]  # type: ignore[union-attr, index, call-overload]
    assert texts == ["Let me see. ", "Ada Holt built the mill in 1871. ", "The flood"]
    cut, _ = await citing.post(
        ask(document(), max_tokens=len("Let me see. Ada Holt built the mill"))
    )
    assert cut["stop_reason"] == "max_tokens"
    content: Any = cut["content"]
    _, block = content
    assert block == {
        "type": "text",
        "text": "Ada Holt built the mill",
        "citations": [char_location(*FIRST)],
    }


async def test_what_a_tool_found_is_cited_and_the_call_after_it_is_whole(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>'
    running = await serve(start, monkeypatch, f"The flood of 1924.\n{call}")
    result = {"type": "tool_result", "tool_use_id": "t", "content": [document("Else."), document()]}
    used = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    turns = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    tool = {"name": "look", "input_schema": {"type": "object"}}
    reply, _ = await running.post(
        {"model": "m", "max_tokens": 400, "messages": turns, "tools": [tool]}
    )
    content: Any = reply["content"]
    text, called = content
    assert text["citations"] == [char_location(*SECOND, index=1)]
    assert called["type"] == "tool_use"
    assert reply["stop_reason"] == "tool_use"


async def test_strict_gives_citations_and_no_field_of_ours(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve(start, monkeypatch, profile="strict")
    headers = {"anthropic-version": "2026-10-21"}
    url = f"{running.url}/v1/messages"
    async with running.session.post(url, json=ask(document()), headers=headers) as response:
        reply = await response.json()
    assert reply["content"][1]["citations"] == [char_location(*FIRST)]
    assert "attribution" not in reply


async def test_a_server_without_citations_says_so(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = await serve(start, monkeypatch, citations="off")
    reply, response = await running.post(ask(document()))
    assert response.headers["minimsg-ignored"] == "messages.0.content.0.document.citations"
    assert reply["content"] == [{"type": "text", "text": TAPE}]

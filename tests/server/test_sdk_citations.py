"""Citations as the official SDK reads them: plain, in streams and in message batches, by kind."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import anthropic.types as types
import pytest

from ..prompt.pdf_files import document as pdf_document  # noqa: TID252
from ..prompt.pdf_files import pdf  # noqa: TID252
from .batching import ended
from .conftest import Start
from .running import Json, Running
from .test_batch_runner import create
from .test_citations import ON, ask, document, serve
from .test_sdk import sdk

SENTENCES = ("The mill was built in 1871 by Ada Holt.", "Its wheel turned until the flood of 1924.")
SAID = (
    "Well. ",
    "Ada Holt built the mill in 1871, whose wheel turned until the flood of 1924. ",
    "Floods of 1924!",
)
CITED = ((), (0, 1), (1,))  # which sentences each of these is taken from
PARTS: Any = [{"type": "text", "text": sentence} for sentence in SENTENCES]
SOURCES: dict[str, Any] = {
    "char_location": document(" ".join(SENTENCES), title="Mill"),
    "page_location": pdf_document(pdf(*SENTENCES), citations=ON, title="Mill"),
    "content_block_location": document(title="Mill", source={"type": "content", "content": PARTS}),
    "search_result_location": {
        "type": "search_result",
        "source": "mill.html",
        "title": "Mill",
        "content": PARTS,
        "citations": ON,
    },
}
TYPES = {
    "char_location": types.CitationCharLocation,
    "page_location": types.CitationPageLocation,
    "content_block_location": types.CitationContentBlockLocation,
    "search_result_location": types.CitationsSearchResultLocation,
}
# The names of a place in one kind of source, and the places of the two sentences.
PLACES = {
    "char_location": ("char_index", (0, 39), (40, 81)),
    "page_location": ("page_number", (1, 2), (2, 3)),
    "content_block_location": ("block_index", (0, 1), (1, 2)),
    "search_result_location": ("block_index", (0, 1), (1, 2)),
}


@pytest.fixture
async def citing(start: Start, monkeypatch: pytest.MonkeyPatch) -> Running:
    return await serve(start, monkeypatch, "".join(SAID))


def citation(kind: str, sentence: int) -> Json:
    """Of the sentence with this number, in a source of one kind."""
    unit, *places = PLACES[kind]
    begin, end = places[sentence]
    of_document: Json = {"document_index": 0, "document_title": "Mill", "file_id": None}
    of_result: Json = {"search_result_index": 0, "source": "mill.html", "title": "Mill"}
    named = of_result if kind == "search_result_location" else of_document
    place: Json = {f"start_{unit}": begin, f"end_{unit}": end}
    return {"type": kind, "cited_text": SENTENCES[sentence], **named, **place}


def blocks(kind: str) -> list[Json]:
    """The reply to a question about a source of one kind."""
    return [
        {"type": "text", "text": text, "citations": [citation(kind, n) for n in cited] or None}
        for text, cited in zip(SAID, CITED, strict=True)
    ]


def as_json(message: types.Message) -> list[object]:
    return [block.to_dict() for block in message.content]


async def test_citations_are_the_same_plain_and_streamed(citing: Running) -> None:
    async with sdk(citing) as client:
        for kind in ("page_location", "search_result_location"):
            body: Any = ask(SOURCES[kind])
            plain = await client.messages.create(**body)
            assert as_json(plain) == blocks(kind)
            async with client.messages.stream(**body) as stream:
                seen = [event.citation async for event in stream if event.type == "citation"]
                streamed = await stream.get_final_message()
            assert as_json(streamed) == blocks(kind)
            assert [type(each) for each in seen] == [TYPES[kind]] * 3
            assert streamed.usage == plain.usage


async def test_a_block_opens_empty_then_comes_its_text_then_what_it_is_taken_from(
    citing: Running,
) -> None:
    """No block is empty, none opens with text or citations, and none has text after them."""
    events: list[Any] = await citing.stream(ask(SOURCES["page_location"]))
    opened = [each["content_block"] for each in events if each["type"] == "content_block_start"]
    assert opened == [{"type": "text", "text": "", "citations": None}] * len(SAID)
    deltas = [
        (each["index"], each["delta"]) for each in events if each["type"] == "content_block_delta"
    ]
    for index, of_block in groupby(deltas, key=lambda pair: pair[0]):
        kinds = [delta["type"] for _, delta in of_block]
        num_texts = kinds.count("text_delta")
        assert num_texts >= 1
        assert kinds == ["text_delta"] * num_texts + ["citations_delta"] * len(CITED[index])
    assert all(delta.get("text") != "" for _, delta in deltas)


async def test_a_message_batch_cites_and_refuses_as_its_requests_alone_do(citing: Running) -> None:
    of_text = SOURCES["char_location"]
    mixed = ask(of_text, document("Else.", citations=None))
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    formatted = ask(of_text, output_config={"format": {"type": "json_schema", "schema": schema}})
    wanted = {kind: ask(source) for kind, source in SOURCES.items()}
    wanted |= {"mixed": mixed, "formatted": formatted}
    id = await create(citing, [{"custom_id": k, "params": body} for k, body in wanted.items()])
    async with sdk(citing) as client:
        await ended(client, id)
        found = await client.messages.batches.results(id)
        lines: dict[str, Any] = {line.custom_id: line.result async for line in found}
    for kind in SOURCES:
        assert lines[kind].type == "succeeded"
        message = lines[kind].message
        assert as_json(message) == blocks(kind)
        assert [type(each) for each in message.content[1].citations] == [TYPES[kind]] * 2
    for name in ("mixed", "formatted"):
        alone, _ = await citing.post(wanted[name], status=400)
        assert lines[name].error.to_dict()["error"] == alone["error"]

"""What can be cited, by the kind of block, and the ids of a prompt that say it."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minimsg.citing.passages import Passage, passages_of
from minimsg.citing.places import spans_of_ids
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.pdfs import PdfPages
from minimsg.prompt.render import Prompt, render
from minimsg.protocol.content import DocumentBlock, TextBlock
from minimsg.protocol.request import CountTokensRequest

from ..models.seeing_checkpoints import picture, save_chatting  # noqa: TID252

ON = {"enabled": True}


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> ChatModel:
    """A model that sees, with a token for each byte."""
    folder = tmp_path_factory.mktemp("seeing")
    save_chatting(folder)
    return ChatModel.open(folder, "seeing")


def document(text: str, **more: Any) -> dict[str, Any]:
    source = {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "document", "source": source, "citations": ON, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image() -> dict[str, Any]:
    stream = BytesIO()
    picture(64, 64).save(stream, "PNG")
    data = base64.b64encode(stream.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def of_blocks(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    source = {"type": "content", "content": list(blocks)}
    return {"type": "document", "source": source, "citations": ON, **more}


def search_result(*words: str, **more: Any) -> dict[str, Any]:
    content = [text(each) for each in words]
    found = {"type": "search_result", "source": "s://x", "title": "Found", "content": content}
    return {**found, "citations": ON, **more}


def asked(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": list(blocks)}], **more}


def in_result(*blocks: dict[str, Any]) -> dict[str, Any]:
    """The second of two results, which come in the other order than their calls."""
    calls = [{"type": "tool_use", "id": id, "name": "read", "input": {}} for id in "ab"]
    results = [
        {"type": "tool_result", "tool_use_id": "b", "content": "x", "is_error": True},
        {"type": "tool_result", "tool_use_id": "a", "content": list(blocks), "is_error": True},
    ]
    turns = [{"role": "user", "content": "q"}, {"role": "assistant", "content": calls}]
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    return {
        "model": "m",
        "messages": [*turns, {"role": "user", "content": results}],
        "tools": tools,
    }


def found_in(body: dict[str, Any], chat: ChatModel) -> tuple[Prompt, list[Passage]]:
    prompt = render(CountTokensRequest.parse(body), chat)
    assert prompt.reading is not None
    return prompt, passages_of(prompt.messages, prompt.reading, chat.name)


def said_by(prompt: Prompt, passages: list[Passage], chat: ChatModel) -> list[str]:
    """What the ids of each passage say."""
    assert prompt.reading is not None
    spans = spans_of_ids(passages, prompt.reading, chat)
    said = [prompt.ids[start:stop] for start, stop in spans]
    return [b"".join(map(chat.tokenizer.token_bytes, ids)).decode() for ids in said]


def citation(kind: str, cited: str, title: str | None, **place: Any) -> dict[str, Any]:
    of = {"document_index": 0, "document_title": title, "file_id": None}
    return {"type": kind, "cited_text": cited, **of, **place}


KINDS: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
    (
        document("One é. \n Two?", title="T", context="One é."),
        [
            citation("char_location", "One é.", "T", start_char_index=0, end_char_index=6),
            citation("char_location", "Two?", "T", start_char_index=9, end_char_index=13),
        ],
    ),
    (
        of_blocks(text("One. Two."), image(), text(" \n"), text("Three")),
        [
            citation(
                "content_block_location", "One. Two.", None, start_block_index=0, end_block_index=1
            ),
            citation(
                "content_block_location", "Three", None, start_block_index=3, end_block_index=4
            ),
        ],
    ),
    (
        search_result("One. Two."),
        [
            {
                "type": "search_result_location",
                "cited_text": "One. Two.",
                "search_result_index": 0,
                "source": "s://x",
                "title": "Found",
                "start_block_index": 0,
                "end_block_index": 1,
            }
        ],
    ),
]


@pytest.mark.parametrize("place", [asked, in_result])
@pytest.mark.parametrize(("block", "expected"), KINDS)
def test_a_block_is_cited_by_its_kind_and_its_passages_are_found_among_the_ids(
    chat: ChatModel, place: Any, block: dict[str, Any], expected: list[dict[str, Any]]
) -> None:
    prompt, passages = found_in(place(image(), block, text("One é. Two?")), chat)
    assert [passage.citation for passage in passages] == expected
    assert said_by(prompt, passages, chat) == [each["cited_text"] for each in expected]


def test_a_pdf_is_cited_by_page(chat: ChatModel) -> None:
    request = CountTokensRequest.parse(asked(of_blocks(text("x"), title="T"), text("q")))
    block = request.messages[0].content[0]
    assert isinstance(block, DocumentBlock)
    texts = [TextBlock.model_construct(type="text", text=each) for each in ("A b. C d.", "", "E.")]
    pages = PdfPages.model_construct(type="content", content=texts, file_id="file_1")
    content = [block.model_copy(update={"source": pages}), *request.messages[0].content[1:]]
    message = request.messages[0].model_copy(update={"content": content})
    prompt = render(request.model_copy(update={"messages": [message]}), chat)
    assert prompt.reading is not None
    passages = passages_of(prompt.messages, prompt.reading, chat.name)
    assert said_by(prompt, passages, chat) == ["A b.", "C d.", "E."]
    expected = [
        citation("page_location", cited, "T", start_page_number=page, end_page_number=page + 1)
        for cited, page in [("A b.", 1), ("C d.", 1), ("E.", 3)]
    ]
    assert [passage.citation for passage in passages] == [
        each | {"file_id": "file_1"} for each in expected
    ]


def test_indices_count_all_blocks_of_a_kind_and_only_those_that_may_be_are_cited(
    chat: ChatModel,
) -> None:
    plain = search_result("A.", citations=None)
    body = asked(plain, document("B."), search_result("C.", citations=None), document("D."))
    _, passages = found_in(body, chat)
    assert [passage.citation.get("document_index") for passage in passages] == [0, 1]


def test_what_the_model_does_not_read_any_more_is_not_cited(chat: ChatModel) -> None:
    edits = [{"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 1}}]
    edits[0]["keep"] = {"type": "tool_uses", "value": 0}
    body = in_result(document("One. Two.")) | {"context_management": {"edits": edits}}
    assert len(found_in(in_result(document("One. Two.")), chat)[1]) == 2
    assert found_in(body, chat)[1] == []


@given(st.text("aB. \n!é。-1", max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_cited_text_is_the_document_between_its_indices(chat: ChatModel, words: str) -> None:
    prompt, passages = found_in(asked(document(f"{words}x"), text("q")), chat)
    for passage in passages:
        cited: Any = passage.citation
        place = slice(cited["start_char_index"], cited["end_char_index"])
        assert cited["cited_text"] == f"{words}x"[place]
    assert said_by(prompt, passages, chat) == [passage.text for passage in passages]

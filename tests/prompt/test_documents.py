"""What blocks other than text read as, and which are refused where they stand."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from minimsg.errors import InvalidRequest
from minimsg.prompt.chat import ChatModel

from .conftest import OpenModel, prompt_of, shown
from .templates import TOOLED

Block = dict[str, Any]

PNG: Final = {"type": "base64", "media_type": "image/png", "data": "aGk="}
IMAGE: Final = {"type": "image", "source": PNG}
PDF: Final = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
TEXT: Final = {"type": "text", "media_type": "text/plain", "data": "The code is 7421."}


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def document(source: Block, **more: Any) -> Block:
    return {"type": "document", "source": source, **more}


def of_content(*blocks: Block) -> Block:
    return document({"type": "content", "content": list(blocks)})


def in_result(*blocks: Block) -> list[Block]:
    """Messages in which a tool's result holds `blocks`."""
    call = {"type": "tool_use", "id": "a", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": list(blocks)}
    return [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]


def in_reply(*blocks: Block) -> list[Block]:
    """Messages in which an assistant's turn holds `blocks`."""
    return [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": list(blocks)},
        {"role": "user", "content": "r"},
    ]


@pytest.fixture
def tooled(open_model: OpenModel) -> ChatModel:
    return open_model(TOOLED)


def last_turn(chat: ChatModel, messages: list[Block], role: str) -> str:
    """What the prompt holds in the last turn of `role` that is complete."""
    whole = shown(chat, prompt_of(chat, messages=messages))
    turns: list[str] = re.findall(rf"<\|im_start\|>{role}\n(.*?)<\|im_end\|>", whole, re.DOTALL)
    return turns[-1]


READABLE: Final[list[tuple[Block, str]]] = [
    (document(TEXT), "<document>\n<content>\nThe code is 7421.\n</content>\n</document>"),
    (
        document(TEXT, title="Codes", context="of 1999", citations={"enabled": True}),
        "<document>\n<title>Codes</title>\n<context>of 1999</context>\n"
        "<content>\nThe code is 7421.\n</content>\n</document>",
    ),
    (
        of_content(text("a"), text("b")),
        "<document>\n<content>\na\nb\n</content>\n</document>",
    ),
    (
        {"type": "search_result", "source": "s://x", "title": "T", "content": [text("a")]},
        "<search_result>\n<source>s://x</source>\n<title>T</title>\n"
        "<content>\na\n</content>\n</search_result>",
    ),
]


@pytest.mark.parametrize(("block", "expected"), READABLE)
def test_documents_and_search_results_are_text_with_their_titles(
    tooled: ChatModel, block: Block, expected: str
) -> None:
    asked = [{"role": "user", "content": [block, text("Which code?")]}]
    assert last_turn(tooled, asked, "user") == f"{expected}\nWhich code?"
    assert last_turn(tooled, in_result(text("see"), block), "tool") == f"see\n{expected}"


def test_a_browser_in_a_result_is_shown_as_it_came(tooled: ChatModel) -> None:
    tabs = [{"tab_id": "t", "title": "é", "url": "u"}]
    state = {"type": "browser_state", "tabs": tabs, "state_changes": None}
    shown_tabs = '{"tabs": [{"tab_id": "t", "title": "é", "url": "u"}]}'
    expected = f"<browser_state>\n{shown_tabs}\n</browser_state>"
    assert last_turn(tooled, in_result(state), "tool") == expected


UNREADABLE: Final[list[tuple[str, Block]]] = [
    ("image blocks need a model that reads images; written reads text only", IMAGE),
    (
        "image blocks need a model that reads images",
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
    ),
    (
        "image blocks need a model that reads images",
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    ),
    ("document blocks with a source of type base64 are not supported", document(PDF)),
    (
        "document blocks with a source of type url are not supported; send the text itself",
        document({"type": "url", "url": "https://x/y.pdf"}),
    ),
    (
        "document blocks with a source of type file are not supported",
        document({"type": "file", "file_id": "file_1"}),
    ),
]


@pytest.mark.parametrize(("why", "block"), UNREADABLE)
def test_what_a_text_model_cannot_read_is_refused_where_it_stands(
    tooled: ChatModel, why: str, block: Block
) -> None:
    asked = [{"role": "user", "content": [text("see"), block]}]
    with pytest.raises(InvalidRequest, match=rf"^messages\.0\.content\.1: {why}"):
        prompt_of(tooled, messages=asked)
    inside = r"^messages\.2\.content\.0\.tool_result\.content\.1: "
    with pytest.raises(InvalidRequest, match=inside + why):
        prompt_of(tooled, messages=in_result(text("see"), block))


def test_an_image_inside_a_document_is_refused_where_it_stands(tooled: ChatModel) -> None:
    asked = [{"role": "user", "content": [of_content(text("a"), IMAGE)]}]
    path = r"^messages\.0\.content\.0\.document\.source\.content\.content\.1: image blocks need"
    with pytest.raises(InvalidRequest, match=path):
        prompt_of(tooled, messages=asked)


def test_a_file_for_code_execution_is_refused(tooled: ChatModel) -> None:
    asked = [{"role": "user", "content": [{"type": "container_upload", "file_id": "file_1"}]}]
    with pytest.raises(InvalidRequest, match=r"^messages\.0\.content\.0: container_upload"):
        prompt_of(tooled, messages=asked)


SEARCH: Final = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "é"},
}


BASH: Final = {
    "type": "bash_code_execution_result",
    "stdout": "1",
    "stderr": "",
    "return_code": 0,
    "content": [],
}


def server_result(type: str, content: object) -> Block:
    return {"type": type, "tool_use_id": "srvtoolu_1", "content": content}


def page(title: str, url: str) -> Block:
    found = {"type": "web_search_result", "title": title, "url": url}
    return {**found, "encrypted_content": "x"}


FOREIGN: Final[list[tuple[Block, str]]] = [
    (SEARCH, '<name>web_search</name>\n<input>{"query": "é"}</input>'),
    (
        server_result("web_search_tool_result", [page("A", "s://a"), page("B", "s://b")]),
        "A\ns://a\nB\ns://b",
    ),
    (
        server_result(
            "web_search_tool_result",
            {"type": "web_search_tool_result_error", "error_code": "unavailable"},
        ),
        "Error: unavailable",
    ),
    (
        server_result(
            "web_fetch_tool_result",
            {"type": "web_fetch_result", "url": "s://a", "content": document(TEXT)},
        ),
        "s://a\nThe code is 7421.",
    ),
    (
        server_result(
            "web_fetch_tool_result",
            {"type": "web_fetch_result", "url": "s://a", "content": document(PDF)},
        ),
        "s://a",
    ),
    (
        server_result(
            "web_fetch_tool_result",
            {"type": "web_fetch_tool_result_error", "error_code": "url_too_long"},
        ),
        "Error: url_too_long",
    ),
    (
        server_result("bash_code_execution_tool_result", BASH),
        json.dumps(BASH),
    ),
    (
        {"type": "mcp_tool_use", "id": "m", "name": "n", "server_name": "s", "input": {}},
        "<name>s/n</name>\n<input>{}</input>",
    ),
    (
        {"type": "mcp_tool_result", "tool_use_id": "m", "content": [text("a"), text("b")]},
        "a\nb",
    ),
    (
        {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"},
        "Error: no",
    ),
]


@pytest.mark.parametrize(("block", "expected"), FOREIGN)
def test_what_another_servers_tools_left_behind_is_text(
    tooled: ChatModel, block: Block, expected: str
) -> None:
    tagged = f"<{block['type']}>\n{expected}\n</{block['type']}>"
    assert last_turn(tooled, in_reply(block, text("So.")), "assistant") == f"{tagged}\nSo."


@pytest.mark.parametrize(
    "block",
    [
        server_result(
            "code_execution_tool_result",
            {
                "type": "encrypted_code_execution_result",
                "encrypted_stdout": "x",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        ),
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}},
        {"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []},
    ],
)
def test_what_no_model_can_read_is_left_out_and_listed(tooled: ChatModel, block: Block) -> None:
    messages = in_reply(text("a"), block)
    assert prompt_of(tooled, messages=messages).left_out == ["messages.1.content.1"]
    assert last_turn(tooled, messages, "assistant") == "a"


def test_a_search_on_another_server_may_be_what_the_model_goes_on_with(tooled: ChatModel) -> None:
    prompt = prompt_of(tooled, messages=in_reply(SEARCH)[:2])
    assert shown(tooled, prompt).endswith("</server_tool_use>")
    assert prompt.continues

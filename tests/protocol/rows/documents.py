"""Rows: documents and citations, by version."""

from __future__ import annotations

from typing import Final

from .row import (
    CITED,
    HI,
    OK,
    Json,
    Row,
    after_call,
    ask,
    assistant,
    document,
    image,
    result,
    search_result,
    talk,
    text,
)

NO_CITATIONS: Final = "citations are not allowed on text blocks of `user` messages"

ON: Final[Json] = {"enabled": True}

OFF: Final[Json] = {"enabled": False}

ROWS: Final = (
    # documents and citations, by version
    Row(
        "a document of the assistant",
        talk(HI, assistant(document(), text()), HI),
        compat=OK,
        old=OK,
        new="messages: `document` blocks cannot be in `assistant` messages; "
        "found at messages.1.content.0",
    ),
    Row(
        "documents of the assistant are all named",
        talk(HI, assistant(document(), text(), document()), HI, assistant(document()), HI),
        compat=OK,
        old=OK,
        new="messages: `document` blocks cannot be in `assistant` messages; found at "
        "messages.1.content.0, messages.1.content.2, messages.3.content.0",
    ),
    Row("a document in a result", after_call(result("t1", document())), OK),
    Row(
        "a user cites",
        ask(text(citations=[CITED])),
        compat=OK,
        old=OK,
        new=f"messages.0.content.0.text.citations: {NO_CITATIONS}",
    ),
    Row(
        "a user cites in a result",
        after_call(result("t1", text(citations=[CITED]))),
        compat=OK,
        old=OK,
        new=f"messages.2.content.0.tool_result.content.0.text.citations: {NO_CITATIONS}",
    ),
    Row(
        "a user cites in a search result",
        ask(search_result(content=[text(citations=[CITED])])),
        compat=OK,
        old=OK,
        new=f"messages.0.content.0.search_result.content.0.text.citations: {NO_CITATIONS}",
    ),
    Row("an empty list cites nothing", ask(text(citations=[])), OK),
    Row("citations may be null", ask(text(citations=None)), OK),
    Row("citations for all documents", ask(document(citations=ON), document(citations=ON)), OK),
    Row("citations for all search results", ask(search_result(citations=ON), document()), OK),
    Row(
        "citations from a server that gives none",
        ask(document(citations=ON), document(citations=ON)),
        lacking=("citations",),
        compat=OK,
        strict="messages.0.content.0.document.citations: not supported for this model",
        unheeded=(
            "messages.0.content.0.document.citations",
            "messages.0.content.1.document.citations",
        ),
    ),
    Row(
        "citations from a server that has them switched off",
        ask(document(citations=ON)),
        "messages.0.content.0.document.citations: not supported for this model",
        without=("citations",),
    ),
    Row("citations for no document", ask(document(citations=OFF), document()), OK),
    Row(
        "citations for some documents",
        ask(document(citations=ON), document()),
        "messages.0.content.1.document.citations: citations must be enabled for all `document` "
        "blocks or for none",
    ),
    Row(
        "citations for some search results",
        after_call(result("t1", search_result(), search_result(citations=ON))),
        "messages.2.content.0.tool_result.content.1.search_result.citations: citations must be "
        "enabled for all `search_result` blocks or for none",
    ),
    Row(
        "citations and a format",
        {
            **ask(document(citations=ON)),
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
        },
        "output_config.format: cannot be combined with citations, as of messages.0.content.0",
    ),
    # documents
    Row("a document of text", ask(document(title="t", context="c")), OK),
    Row(
        "a document of blocks", ask(document({"type": "content", "content": [text(), text()]})), OK
    ),
    Row("a document of a string", ask(document({"type": "content", "content": "x"})), OK),
    Row(
        "a title has a character",
        ask(document(title="")),
        "messages.0.content.0.document.title: String should have at least 1 character",
    ),
    Row(
        "a title has 500 characters at most",
        ask(document(title="t" * 501)),
        "messages.0.content.0.document.title: String should have at most 500 characters",
    ),
    Row(
        "a context has a character",
        ask(document(context="")),
        "messages.0.content.0.document.context: String should have at least 1 character",
    ),
    Row("a title may be null", ask(document(title=None, context=None, citations=None)), OK),
    Row(
        "a document of text is plain",
        ask(document({"type": "text", "media_type": "text/html", "data": "d"})),
        "messages.0.content.0.document.source.text.media_type: Input should be 'text/plain'",
    ),
    Row(
        "text in a document is not empty",
        ask(document({"type": "content", "content": [text("")]})),
        "messages: text content blocks must be non-empty",
    ),
    Row(
        "text in a search result is not empty",
        ask(search_result(content=[text("")])),
        "messages: text content blocks must be non-empty",
    ),
    Row(
        "a search result has a title",
        ask({"type": "search_result", "source": "s", "content": [text()]}),
        "messages.0.content.0.search_result.title: Field required",
    ),
    Row(
        "a search result of text only",
        ask(search_result(content=[image()])),
        "messages.0.content.0.search_result.content.0: Input tag 'image' found using 'type' "
        "does not match any of the expected tags: 'text'",
    ),
)

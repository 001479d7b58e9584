"""Rows: calls of the client's tools and their results."""

from __future__ import annotations

from typing import Final

from .row import (
    HI,
    OK,
    Row,
    after_call,
    ask,
    assistant,
    call,
    image,
    result,
    search_result,
    system,
    talk,
    text,
    user,
)


def missing(message: int, *ids: str) -> str:
    return (
        f"messages.{message}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )


def unexpected(path: str, id: str) -> str:
    return (
        f"{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message."
    )


def twice(path: str, id: str) -> str:
    return (
        f"{path}: each tool_use must have a single result. Found multiple `tool_result` blocks "
        f"with id: {id}"
    )


TWO: Final = assistant(call("t1"), call("t2"))

ROWS: Final = (
    Row("a call and its result", after_call(result()), OK),
    Row("a history of calls without tools", talk(HI, assistant(call()), user(result())), OK),
    Row(
        "a call of a tool that is not there",
        {**talk(HI, assistant(call(name="gone")), user(result())), "tools": []},
        OK,
    ),
    Row("text after the results", after_call(result(), text()), OK),
    Row("text before a call", talk(HI, assistant(text(), call()), user(result())), OK),
    Row("results in any order", talk(HI, TWO, user(result("t2"), result("t1"))), OK),
    Row("results in two messages", talk(HI, TWO, user(result("t1")), user(result("t2"))), OK),
    Row(
        "calls in two messages",
        talk(HI, assistant(call("t1")), assistant(call("t2")), user(result("t1"), result("t2"))),
        OK,
    ),
    Row(
        "a result may be a string",
        after_call({"type": "tool_result", "tool_use_id": "t1", "content": "x"}),
        OK,
    ),
    Row(
        "a result may be an empty string",
        after_call({"type": "tool_result", "tool_use_id": "t1", "content": ""}),
        OK,
    ),
    Row("a result may be absent", after_call({"type": "tool_result", "tool_use_id": "t1"}), OK),
    Row("a result may be an empty list", after_call(result()), OK),
    Row("a result may be an error", after_call(result("t1", text(), is_error=True)), OK),
    Row("a result may be blank", after_call(result("t1", text(" \n"))), OK),
    Row(
        "a result of several kinds", after_call(result("t1", text(), image(), search_result())), OK
    ),
    Row(
        "the text of a result is not empty",
        after_call(result("t1", text(""))),
        "messages: text content blocks must be non-empty",
    ),
    Row(
        "a result holds no call",
        after_call(result("t1", call("t2"))),
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' does "
        "not match any of the expected tags: 'text', 'image', 'search_result', 'document', "
        "'tool_reference', 'browser_state'",
    ),
    Row(
        "a tab of a browser",
        after_call(
            result(
                "t1", {"type": "browser_state", "tabs": [{"tab_id": "1", "title": "t", "url": "u"}]}
            )
        ),
        OK,
    ),
    Row(
        "a result without its id",
        after_call({"type": "tool_result"}),
        "messages.2.content.0.tool_result.tool_use_id: Field required",
    ),
    # missing
    Row("a call at the end", talk(HI, assistant(call())), missing(1, "t1")),
    Row("a call that nobody answers", talk(HI, assistant(call()), HI), missing(1, "t1")),
    Row("one call of two answered", talk(HI, TWO, user(result("t2"))), missing(1, "t1")),
    Row("two calls unanswered", talk(HI, TWO, HI), missing(1, "t1", "t2")),
    Row(
        "the message of the call is named",
        talk(HI, assistant(text()), assistant(call()), HI),
        missing(2, "t1"),
    ),
    Row("text before the result", after_call(text(), result()), missing(1, "t1")),
    Row(
        "a message of text before that of the result",
        talk(HI, assistant(call()), HI, user(result())),
        missing(1, "t1"),
    ),
    Row(
        "text between results",
        talk(HI, TWO, user(result("t1"), text(), result("t2"))),
        compat=OK,
        strict=missing(1, "t2"),
    ),
    Row(
        "the answer comes a turn late",
        talk(HI, assistant(call()), HI, assistant(text()), user(result())),
        missing(1, "t1"),
    ),
    Row(
        "a system turn among results",
        talk(HI, TWO, user(result("t1")), system(text()), user(result("t2"))),
        compat=OK,
        strict="messages.3: role 'system' must precede an assistant message or be the last message",
    ),
    # unexpected, doubled
    Row("a result of nothing", ask(result("t9")), unexpected("messages.0.content.0", "t9")),
    Row(
        "a result of another id",
        after_call(result("t1"), result("t9")),
        unexpected("messages.2.content.1", "t9"),
    ),
    Row(
        "a result of an earlier call",
        talk(HI, assistant(call()), user(result()), assistant(text()), user(result())),
        unexpected("messages.4.content.0", "t1"),
    ),
    Row(
        "two results of one call",
        after_call(result("t1", text("a")), result("t1", text("b"))),
        twice("messages.2.content.1", "t1"),
    ),
    Row(
        "two calls of one id",
        talk(HI, assistant(call(), call()), user(result())),
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    Row(
        "two calls of one id in different turns",
        talk(HI, assistant(call()), user(result()), assistant(call()), user(result())),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
)

"""Rows: who begins, what may be empty, how a conversation may end."""

from __future__ import annotations

from typing import Final

from .row import (
    CITED,
    HI,
    OK,
    Row,
    ask,
    assistant,
    call,
    result,
    server_call,
    system,
    talk,
    text,
    user,
)

FIRST: Final = 'messages: first message must use the "user" role'

EMPTY: Final = (
    "all messages must have non-empty content except for the optional final assistant message"
)

FOLLOW: Final = "role 'system' must follow a user message"

NO_PREFILL: Final = "Prefilling assistant messages is not supported for this model."

ROWS: Final = (
    Row("there is a message", {"messages": []}, "messages: at least one message is required"),
    Row("the user begins", talk(assistant(text())), FIRST),
    Row(
        "neighbours of one role are one turn",
        talk(HI, HI, assistant(text()), assistant(text())),
        OK,
    ),
    # emptiness
    Row("a user says something", talk({"role": "user", "content": ""}), f"messages.0: {EMPTY}"),
    Row("a user sends a block", ask(), f"messages.0: {EMPTY}"),
    Row(
        "an assistant in the middle says something",
        talk(HI, assistant(), HI),
        f"messages.1: {EMPTY}",
    ),
    Row("the final assistant message may be empty", talk(HI, assistant()), OK),
    Row("or an empty string", talk(HI, {"role": "assistant", "content": ""}), OK),
    Row("text is not empty", ask(text("")), "messages: text content blocks must be non-empty"),
    Row(
        "text is not blank",
        ask(text(" \n")),
        "messages: text content blocks must contain non-whitespace text",
    ),
    Row(
        "an assistant's text is not empty",
        talk(HI, assistant(text(""), call()), user(result())),
        "messages: text content blocks must be non-empty",
    ),
    Row(
        "system text is not empty",
        {"system": [text("")]},
        "system: text content blocks must be non-empty",
    ),
    Row(
        "system text is not blank",
        {"system": [text("\t")]},
        "system: text content blocks must contain non-whitespace text",
    ),
    Row("an empty string is no system prompt", {"system": ""}, OK),
    # the end
    Row("the model continues a final assistant turn", talk(HI, assistant(text("{"))), OK),
    Row(
        "which ends in white space",
        talk(HI, assistant(text("{ "))),
        compat=OK,
        strict="messages: final assistant content cannot end with trailing whitespace",
    ),
    Row(
        "also as a string",
        talk(HI, {"role": "assistant", "content": "x\n"}),
        compat=OK,
        strict="messages: final assistant content cannot end with trailing whitespace",
    ),
    Row("an assistant turn in the middle may", talk(HI, assistant(text("{ ")), HI), OK),
    Row(
        "a model that continues nothing",
        talk(HI, assistant(text("{"))),
        NO_PREFILL,
        lacking=("prefill",),
    ),
    Row("continuing is off", talk(HI, assistant(text("{"))), NO_PREFILL, without=("prefill",)),
    Row("an empty final turn continues nothing", talk(HI, assistant()), OK, without=("prefill",)),
    Row(
        "a paused turn is not continued",
        talk(HI, assistant(server_call())),
        OK,
        without=("prefill",),
    ),
    Row(
        "a system turn after it ends the matter",
        talk(HI, assistant(text()), system(text())),
        compat=OK,
        strict=f"messages.2: {FOLLOW}",
        without=("prefill",),
    ),
    Row(
        "thinking comes before what is continued",
        {
            **talk(HI, assistant(text("{"))),
            "max_tokens": 2048,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        "messages: a final assistant message cannot be combined with thinking",
    ),
    Row(
        "a format leaves nothing to continue",
        {
            **talk(HI, assistant(text("{"))),
            "output_config": {"format": {"type": "json_schema", "schema": {}}},
        },
        "messages: a final assistant message cannot be combined with output_config.format",
    ),
    Row(
        "what the assistant has cited comes back",
        talk(HI, assistant(text(citations=[CITED])), HI),
        OK,
    ),
)

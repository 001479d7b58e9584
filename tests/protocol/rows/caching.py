"""Rows: how many cache marks there may be, in which order, and where none may be."""

from __future__ import annotations

from typing import Final

from .row import (
    CITED,
    EXTRA,
    HI,
    LONG,
    MARK,
    OK,
    SHORT,
    SIGNED,
    Row,
    after_call,
    ask,
    assistant,
    call,
    document,
    result,
    talk,
    text,
    tool,
    user,
)

FIVE: Final = "A maximum of 4 blocks with cache_control may be provided. Found 5."
ORDER: Final = (
    "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that "
    "blocks are processed in the following order: tools, system, messages."
)
MARKED: Final = text(cache_control=MARK)
BRIEF: Final = text(cache_control=SHORT)
LASTING: Final = text(cache_control=LONG)

ROWS: Final = (
    Row("a mark on a text", ask(MARKED), OK),
    Row("a mark for an hour", ask(LASTING), OK),
    Row("a mark on the system prompt", {"system": [MARKED]}, OK),
    Row("a mark on a tool", {"tools": [tool(cache_control=MARK)]}, OK),
    Row(
        "a mark on a call and its result",
        {**talk(HI, assistant(call(cache_control=MARK)), user(result(cache_control=MARK)))},
        OK,
    ),
    Row("a mark inside a result", after_call(result("t1", MARKED)), OK),
    Row("a mark on a document", ask(document(cache_control=MARK)), OK),
    Row("four marks", ask(MARKED, MARKED, MARKED, MARKED), OK),
    Row("five marks", ask(MARKED, MARKED, MARKED, MARKED, MARKED), FIVE),
    Row(
        "five marks in three places",
        {
            **talk(user(MARKED), assistant(MARKED), user(text())),
            "system": [MARKED, MARKED],
            "tools": [tool(cache_control=MARK)],
        },
        FIVE,
    ),
    Row(
        "five marks, one of them inside a result",
        {
            **after_call(result("t1", MARKED, cache_control=MARK)),
            "system": [MARKED, MARKED],
            "tools": [tool(cache_control=MARK)],
        },
        FIVE,
    ),
    # the automatic mark
    Row("an automatic mark", {"cache_control": MARK}, OK),
    Row("an automatic mark for an hour", {"cache_control": LONG}, OK),
    Row("no automatic mark", {"cache_control": None}, OK),
    Row(
        "three marks and the automatic one",
        {**ask(MARKED, MARKED, MARKED, text()), "cache_control": MARK},
        OK,
    ),
    Row(
        "four marks and the automatic one",
        {**ask(MARKED, MARKED, MARKED, MARKED, text()), "cache_control": MARK},
        FIVE,
    ),
    Row("the automatic mark where the same one is", {**ask(MARKED), "cache_control": MARK}, OK),
    Row("5 minutes is what no ttl means", {**ask(MARKED), "cache_control": SHORT}, OK),
    Row(
        "the automatic mark where another one is",
        {**ask(BRIEF), "cache_control": LONG},
        "cache_control.ttl: the last block already has cache_control with ttl='5m', which differs "
        "from ttl='1h'",
    ),
    Row(
        "the automatic mark skips thinking",
        {**talk(HI, assistant(SIGNED)), "cache_control": MARK},
        OK,
    ),
    # order
    Row("long before short", ask(LASTING, BRIEF), OK),
    Row(
        "short before long", ask(BRIEF, LASTING), f"messages.0.content.1.cache_control.ttl: {ORDER}"
    ),
    Row(
        "a mark without ttl before a long one",
        ask(MARKED, LASTING),
        f"messages.0.content.1.cache_control.ttl: {ORDER}",
    ),
    Row(
        "the parts of a result come before its end",
        after_call(result("t1", LASTING, cache_control=SHORT)),
        OK,
    ),
    Row(
        "a part of a result for less than the whole of it",
        after_call(result("t1", BRIEF, cache_control=LONG)),
        f"messages.2.content.0.cache_control.ttl: {ORDER}",
    ),
    Row(
        "tools come before the system prompt",
        {"tools": [tool(cache_control=SHORT)], "system": [LASTING]},
        f"system.0.cache_control.ttl: {ORDER}",
    ),
    Row(
        "the system prompt comes before messages",
        {**ask(LASTING), "system": [BRIEF]},
        f"messages.0.content.0.cache_control.ttl: {ORDER}",
    ),
    Row(
        "the automatic mark comes last",
        {**ask(BRIEF, text()), "cache_control": LONG},
        f"cache_control.ttl: {ORDER}",
    ),
    # places
    Row(
        "no mark on thinking",
        talk(HI, assistant({**SIGNED, "cache_control": MARK}, text()), HI),
        f"messages.1.content.0.thinking.cache_control: {EXTRA}",
    ),
    Row(
        "no mark on hidden thinking",
        talk(
            HI,
            assistant({"type": "redacted_thinking", "data": "x", "cache_control": MARK}, text()),
            HI,
        ),
        f"messages.1.content.0.redacted_thinking.cache_control: {EXTRA}",
    ),
    Row(
        "no mark on empty text",
        ask(text(), text("", cache_control=MARK)),
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    ),
    Row(
        "nor in the system prompt",
        {"system": [text("", cache_control=MARK)]},
        "system.0.text: cache_control cannot be set for empty text blocks",
    ),
    Row(
        "no mark on a citation",
        talk(HI, assistant(text(citations=[{**CITED, "cache_control": MARK}])), HI),
        compat=OK,
        strict=f"messages.1.content.0.text.citations.0.char_location.cache_control: {EXTRA}",
    ),
)

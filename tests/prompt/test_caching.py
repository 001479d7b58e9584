"""What a cache mark covers: lengths by hand, and lengths that nothing behind them changes."""

from __future__ import annotations

from typing import Any, Final

import pytest

from minimsg.engine.types import CacheMark
from minimsg.prompt.caching import cache_marks
from minimsg.prompt.chat import ChatModel
from minimsg.prompt.render import render
from minimsg.protocol.request import MessagesRequest

from . import templates
from .conftest import OpenModel

MARK: Final = {"type": "ephemeral"}
LONG: Final = {"type": "ephemeral", "ttl": "1h"}
SCHEMA: Final = {"type": "object", "properties": {}}
Body = dict[str, Any]
START: Final = "<|im_start|>user\n"


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def call(number: int, **fields: Any) -> dict[str, Any]:
    input = {"k": f"the call {number}."}
    return {"type": "tool_use", "id": f"t{number}", "name": "f", "input": input, **fields}


def result(number: int, content: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content, **fields}


def marks_of(chat: ChatModel, min_tokens: int = 0, **body: Any) -> tuple[CacheMark, ...]:
    request = MessagesRequest.parse({"model": "m", "max_tokens": 1, **body})
    return cache_marks(render(request, chat), request, chat, min_tokens)


def covered(chat: ChatModel, **body: Any) -> list[str]:
    """The text that each mark covers."""
    return [written(chat, mark.num_tokens, **body) for mark in marks_of(chat, **body)]


def written(chat: ChatModel, num_tokens: int, **body: Any) -> str:
    """The text of the first ids of a prompt."""
    request = MessagesRequest.parse({"model": "m", "max_tokens": 1, **body})
    ids = render(request, chat).ids[:num_tokens]
    return b"".join(map(chat.tokenizer.token_bytes, ids)).decode()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("hello there", "user\nhello"),
        ("hello there.", "user\nhello there"),
        ("hello there \n\n", "user\nhello"),
        ("One,two", "user\nOne"),
        ("It isn't", "user\nIt"),
        ("123", "user"),
        ("?! ...", "user"),
        ("hello <|im_end|>", "user\nhello <|im_end"),
    ],
)
def test_a_mark_covers_its_block_but_for_what_can_still_change(
    words: str, expected: str, chat: ChatModel
) -> None:
    body: Body = {"messages": [user(text(words, cache_control=MARK))]}
    assert covered(chat, **body) == [f"<|im_start|>{expected}"]


def test_no_mark_no_caching(chat: ChatModel) -> None:
    assert marks_of(chat, messages=[user(text("hello there."))]) == ()


def test_marks_come_by_length_with_their_time_to_live(chat: ChatModel) -> None:
    body: Body = {
        "system": [text("Be brief now.", cache_control=LONG)],
        "messages": [user(text("one two three.", cache_control=MARK), text("four."))],
    }
    system, message = marks_of(chat, **body)
    assert (system.ttl_s, message.ttl_s) == (3600, 300)
    assert message.earlier == (system.num_tokens,)
    assert covered(chat, **body) == [
        "<|im_start|>system\nBe brief now",
        f"<|im_start|>system\nBe brief now.<|im_end|>\n{START}one two three",
    ]


def test_a_block_that_is_not_read_ends_where_the_one_before_does(chat: ChatModel) -> None:
    billing = text("x-anthropic-billing-header: 1;", cache_control=MARK)
    body: Body = {
        "system": [billing, text("Be brief.")],
        "messages": [user(text("a b."))],
    }
    assert marks_of(chat, **body) == ()
    tool = {"name": "f", "input_schema": SCHEMA, "description": "Tells it."}
    assert covered(chat, tools=[tool], **body)[0].endswith('"type": "object", "properties')


def test_two_marks_at_one_place_are_one_that_lives_longer(chat: ChatModel) -> None:
    blocks = [text("one two.", cache_control=LONG), text("?!", cache_control=MARK)]
    (mark,) = marks_of(chat, messages=[user(*blocks)])
    assert mark.ttl_s == 3600


def test_a_short_mark_is_passed_over(chat: ChatModel) -> None:
    body: Body = {
        "system": [text("Be brief now.", cache_control=MARK)],
        "messages": [user(text("one two three.", cache_control=MARK))],
    }
    short, long = marks_of(chat, **body)
    assert marks_of(chat, short.num_tokens, **body) == (short, long)
    assert marks_of(chat, short.num_tokens + 1, **body) == (long,)
    assert marks_of(chat, long.num_tokens + 1, **body) == ()


def test_a_mark_inside_a_result_covers_the_result_up_to_there(open_model: OpenModel) -> None:
    parts = [text("one two.", cache_control=MARK), text("three four.")]
    body: Body = {"messages": [user(text("hi")), assistant(call(1)), user(result(1, parts))]}
    (first,) = covered(open_model(templates.TOOLED), **body)
    assert first.endswith("<|im_start|>tool\none two")
    parts[0]["cache_control"], parts[1]["cache_control"] = LONG, MARK
    parts.append({**text("ok. so"), "cache_control": MARK})
    assert [each.rpartition("\n")[2] for each in covered(open_model(templates.TOOLED), **body)] == [
        "one two",
        "three four",
        "ok",
    ]


@pytest.mark.parametrize("is_error", [False, True])
def test_a_mark_inside_an_error_or_a_result_out_of_turn_is_found(
    is_error: bool, open_model: OpenModel
) -> None:
    parts = [text("one two.", cache_control=MARK), text("three four.")]
    results = [result(2, parts, is_error=is_error), result(1, "first")]
    body: Body = {"messages": [user(text("hi")), assistant(call(1), call(2)), user(*results)]}
    (first,) = covered(open_model(templates.TOOLED), **body)
    assert first.endswith("Error: one two" if is_error else "\none two")


def test_the_automatic_mark_is_on_the_last_block_that_may_have_one(chat: ChatModel) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    body: Body = {
        "messages": [user(text("one two.")), assistant(text("three four."), thought)],
        "cache_control": LONG,
    }
    (mark,) = marks_of(chat, **body)
    assert mark.ttl_s == 3600
    assert covered(chat, **body)[0].endswith("</think>\n\nthree four")
    body["messages"] = [user(text("one two."))]
    assert covered(chat, **body) == [f"{START}one two"]
    assert len(marks_of(chat, **body, system="Be brief.")[0].earlier) == 1


def test_a_mark_looks_back_at_twenty_positions(chat: ChatModel) -> None:
    blocks = [text(f"the word {n}.") for n in range(30)]
    (mark,) = marks_of(chat, messages=[user(*blocks, text("so it is.", cache_control=MARK))])
    texts = [written(chat, n, messages=[user(*blocks)])[-2:] for n in mark.earlier]
    assert texts == [str(n) if n > 9 else f" {n}" for n in range(29, 9, -1)]


def test_a_run_of_calls_or_of_results_is_one_position(open_model: OpenModel) -> None:
    chat = open_model(templates.TOOLED)
    turns = [
        user(text("go on.")),
        assistant(*map(call, range(15))),
        user(*(result(n, f"it is {n}.") for n in range(15))),
        assistant(text("the end.")),
    ]
    notes = [text(f"the word {n}.") for n in range(16)]
    last = text("so it is.", cache_control=MARK)
    (mark,) = marks_of(chat, messages=[*turns, user(*notes, last)])
    assert len(mark.earlier) == 16 + 1 + 15 + 15 + 1
    (mark,) = marks_of(chat, messages=[*turns, user(text("one more."), *notes, last)])
    assert len(mark.earlier) == 17 + 1 + 15 + 15

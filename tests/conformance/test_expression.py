"""The language of cases: what it can say, what it refuses, how it explains itself."""

from __future__ import annotations

import pytest

from minimsg.conformance.expression import evaluate, holds, why_not
from minimsg.conformance.request import fill
from minimsg.errors import ConfigError

BODY = {
    "type": "message",
    "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "input": {"a": 1}}],
    "usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "cache_creation_input_tokens": None},
    "stop_sequence": None,
}
NAMES: dict[str, object] = {"body": BODY, "texts": ["a", "b"], "n": 3}


@pytest.mark.parametrize(
    "true",
    [
        "body.type == 'message'",
        "total(body.usage) == 10",
        "kinds(body.content) == ['text', 'tool_use']",
        "body.content[-1].input.a + 1 == 2",
        "body.stop_sequence == null",
        "not has(body.nothing.deeper[3])",
        "1 < n <= 3",
        "body.nothing == missing and 'b' in texts",
        "n - 4 == -1",
        "matches(body.content[0].text, 'h.')",
        "unique(texts) and not unique(['a', 'a'])",
    ],
)
def test_these_hold(true: str) -> None:
    assert holds(true, NAMES)


@pytest.mark.parametrize(
    "false",
    [
        "body.nothing == null",  # a missing key is not a null one
        "body.stop_sequence < 1",
        "body.nothing > 0",
        "len(body.nothing) == 0",
        "body.content[5].type == 'text'",
        "is_integer(true)",
        "is_json('{')",
    ],
)
def test_what_cannot_be_compared_does_not_hold(false: str) -> None:
    assert not holds(false, NAMES)


@pytest.mark.parametrize(
    "refused",
    ["__import__('os')", "(lambda: 1)()", "[x for x in texts]", "nobody.body", "n ** 9", "1 +", ""],
)
def test_only_the_language_is_evaluated(refused: str) -> None:
    with pytest.raises(ConfigError):
        evaluate(refused, NAMES)


def test_a_python_attribute_is_not_reached() -> None:
    assert not holds("has(body.__class__)", NAMES)
    assert not holds("has(texts.append)", NAMES)


def test_a_failure_shows_both_sides_and_the_first_difference() -> None:
    assert why_not("total(body.usage) == n", NAMES) == "total(body.usage) is 10; n is 3"
    seen = why_not("body.content[0] == body.content[1]", NAMES)
    assert '"tool_use"' in seen
    assert seen.endswith("; text is missing on the right")
    assert why_not("texts == ['a', 'c']", NAMES).endswith(
        '; at 1: from character 0 on: ..."b" and ..."c"'
    )


@pytest.mark.parametrize(
    ("false", "seen"),
    [
        ("n == 4 or body.type == 'error'", 'n is 3; body.type is "message"'),
        ("n == 3 and body.type == 'error'", 'body.type is "message"'),
        ("not contains_any(body.content[0].text, ['hi'])", 'body.content[0].text is "hi"'),
        ("has(body.id)", "body.id is missing"),
        ("body.stop_sequence in ['a', 'b']", "body.stop_sequence is null"),
    ],
)
def test_a_failure_tells_values_and_not_what_stands_in_the_rule(false: str, seen: str) -> None:
    assert not holds(false, NAMES)
    assert why_not(false, NAMES).startswith(seen)
    assert "is false" not in why_not(false, NAMES)


def test_half_a_character_is_shown_so_that_it_can_be_written() -> None:
    seen = why_not("half == 'x'", {"half": "\ud83d"})
    assert seen.encode().startswith(rb'half is "\ud83d"')


def test_holes_are_filled_with_values_or_into_text() -> None:
    sent = {"a": "${null}", "b": ["${n}"], "c": "n is ${n}, twice ${n + n}", "d": 5}
    assert fill(sent, NAMES) == {"a": None, "b": [3], "c": "n is 3, twice 6", "d": 5}

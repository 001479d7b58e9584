"""A conversation: what is sent, what /commands change, how several lines are typed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minimsg.cli.chat import HELP, NAMES, Conversation, Quit, ReplySettings, read_question
from minimsg.errors import InvalidRequest
from minimsg.protocol.request import MessagesRequest


@pytest.fixture
def conversation() -> Conversation:
    return Conversation("some-model", ReplySettings())


def typed(*lines: str) -> Callable[[str], str]:
    """A terminal at which `lines` are typed, then Ctrl-D."""
    rest = list(lines)

    def read(prompt: str) -> str:
        if not rest:
            raise EOFError
        return rest.pop(0)

    return read


def test_a_question_is_sent_with_all_that_was_said_before(conversation: Conversation) -> None:
    conversation.add("One?", "Two.")
    assert conversation.request("Three?") == {
        "model": "some-model",
        "messages": [
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            {"role": "user", "content": "Three?"},
        ],
        "stream": True,
    }


def test_a_question_without_a_reply_is_forgotten(conversation: Conversation) -> None:
    conversation.add("One?", "")
    assert conversation.messages == []


def test_flags_become_fields_of_the_request() -> None:
    settings = ReplySettings(system="Be brief.", temperature=0.0, seed=7, stop="END")
    body = Conversation("some-model", settings).request("?")
    assert body["system"] == "Be brief."
    assert (body["temperature"], body["seed"]) == (0.0, 7)
    assert body["stop_sequences"] == ["END"]
    MessagesRequest.parse(body)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("/set temperature 0.5", "temperature", 0.5),
        ("/set top_p 1", "top_p", 1),
        ("/set top_k 40", "top_k", 40),
        ("/set max_tokens 12", "max_tokens", 12),
        ("/set seed 7", "seed", 7),
        ("/set system You are a pirate.", "system", "You are a pirate."),
        ("/set system 12", "system", "12"),
        (r'/set system "two\nlines"', "system", "two\nlines"),
        ("/set stop END", "stop_sequences", ["END"]),
        (r'/set stop "\n###"', "stop_sequences", ["\n###"]),
    ],
)
def test_set_changes_the_next_request(
    conversation: Conversation, line: str, field: str, value: object
) -> None:
    conversation.command(line)
    assert conversation.request("?")[field] == value


def test_a_second_stop_is_added_to_the_first(conversation: Conversation) -> None:
    conversation.command("/set stop A")
    conversation.command("/set stop B")
    assert conversation.settings == {"stop_sequences": ["A", "B"]}


@pytest.mark.parametrize("name", NAMES)
def test_set_without_a_value_goes_back_to_the_default(
    conversation: Conversation, name: str
) -> None:
    conversation.command(f"/set {name} 1")
    assert conversation.settings
    conversation.command(f"/set {name}")
    assert conversation.settings == {}
    assert conversation.command("/set") == "nothing is set"


@pytest.mark.parametrize("line", ["/set temperature hot", "/set temperature 9", "/set seed -1"])
def test_a_value_that_a_request_may_not_hold_is_refused_and_changes_nothing(
    conversation: Conversation, line: str
) -> None:
    with pytest.raises(InvalidRequest):
        conversation.command(line)
    assert conversation.settings == {}


def test_set_shows_what_is_set(conversation: Conversation) -> None:
    conversation.command("/set seed 7")
    assert conversation.command("/set") == "seed = 7"


def test_clear_forgets_what_was_said_and_keeps_what_is_set(conversation: Conversation) -> None:
    conversation.command("/set seed 7")
    conversation.add("One?", "Two.")
    conversation.command("/clear")
    assert conversation.messages == []
    assert conversation.settings == {"seed": 7}


def test_help_names_every_setting(conversation: Conversation) -> None:
    assert conversation.command("/help") == HELP
    for name in NAMES:
        assert name in HELP


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/sing", "there is no command /sing; /help lists them"),
        ("/set volume 11", "volume cannot be set; these can: system, max_tokens"),
    ],
)
def test_what_is_not_known_is_said_to_be_so(
    conversation: Conversation, line: str, answer: str
) -> None:
    assert conversation.command(line).startswith(answer)
    assert conversation.settings == {}


def test_quit_leaves(conversation: Conversation) -> None:
    with pytest.raises(Quit):
        conversation.command("/quit")


def test_a_question_is_one_line() -> None:
    read = typed("  One?  ", "Two?")
    assert read_question(read) == "One?"
    assert read_question(read) == "Two?"


def test_triple_quotes_hold_several_lines() -> None:
    read = typed('"""One', "", "  two", 'three"""', "next")
    assert read_question(read) == "One\n\n  two\nthree"
    assert read_question(read) == "next"


def test_triple_quotes_may_open_and_close_on_one_line() -> None:
    assert read_question(typed('"""One"""')) == "One"


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (['/set system """be', 'brief"""'], "/set system be\nbrief"),
        (['/set system """be brief"""'], "/set system be brief"),
        (['What is """ in Python?'], 'What is """ in Python?'),
    ],
)
def test_triple_quotes_may_hold_the_value_of_a_setting(lines: list[str], line: str) -> None:
    assert read_question(typed(*lines)) == line


def test_the_input_ends_even_inside_triple_quotes() -> None:
    with pytest.raises(EOFError):
        read_question(typed('"""One', "two"))

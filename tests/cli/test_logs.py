"""One record is one line, whatever a client put into it."""

from __future__ import annotations

import logging

import pytest

from minimsg.cli.logs import OneLine


def line(message: str, *args: object) -> str:
    record = logging.LogRecord("minimsg", logging.INFO, "file", 1, message, args, None)
    return OneLine().format(record)


@pytest.mark.parametrize(
    ("control", "shown"),
    [
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b", "\\x9b"),
        ("\u2028", "\\u2028"),
        ("\u202e", "\\u202e"),
        ("\x00", "\\x00"),
    ],
)
def test_a_control_character_is_shown_not_obeyed(control: str, shown: str) -> None:
    assert line("model %s", f"a{control}b").endswith(f"model a{shown}b")


def test_other_text_is_left_as_it_is() -> None:
    assert line("%s", "Grüße, 世界").endswith("minimsg: Grüße, 世界")

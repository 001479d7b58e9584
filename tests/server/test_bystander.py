"""The bystander itself: it lets a harmless client pass and reports every kind of disturbance."""

from __future__ import annotations

import socket
import time

import pytest

from . import bystander as module
from .bystander import bystander
from .running import PLAIN, STOPS, TAPES, Running, ask


async def test_requests_that_are_answered_disturb_nobody(watched: Running) -> None:
    for tape in (PLAIN, STOPS):
        answer, _ = await watched.post(ask(tape))
        assert answer["content"] == [{"type": "text", "text": TAPES[tape]}]


async def test_a_loop_that_stands_still_is_reported(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORST_GAP_S", 0.2)
    with pytest.raises(AssertionError):
        async with bystander(scripted):
            time.sleep(0.3)  # noqa: ASYNC251 - this is the disturbance


async def test_a_changed_word_is_reported(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TAPES", ["other words"] * len(TAPES))
    with pytest.raises(AssertionError):
        async with bystander(scripted):
            pass


async def test_what_is_left_behind_is_reported(
    scripted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    left: list[socket.socket] = []

    async def forget() -> None:
        async with bystander(scripted):
            left.append(socket.socket())

    with pytest.raises(AssertionError, match=r"left behind: \['1 descriptors'\]"):
        await forget()
    left.pop().close()

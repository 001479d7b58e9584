"""Calls as JSON objects inside an envelope: a tag, a code fence, or nothing.

One object, or several, also in a list: small models write both. What such an object looks
like stands in `call_object.py`. Used by `hermes.py`, `llama_json.py`, `json_call.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from minimsg.parsing.call_object import CallObject
from minimsg.parsing.calls import Outcome, Tools
from minimsg.parsing.hold import WHITE_SPACE
from minimsg.parsing.segments import Segment

FENCE: Final = "```"
BETWEEN: Final = WHITE_SPACE + ",;"
BEFORE: Final = WHITE_SPACE + "[\ufeff\xa0"  # with what editors put there
AFTER: Final = BETWEEN + "}]"  # a bracket too many is the commonest slip of small models


class JsonCalls:
    """The calls of one envelope.

    `is_tagged`: a tag said that a call follows. Without one an object must look like a
    call from its first key on.
    """

    def __init__(self, tools: Tools, *, is_tagged: bool, is_fenced: bool = False) -> None:
        self._tools = tools
        self._is_tagged = is_tagged
        self._ticks_left = len(FENCE) if is_fenced else 0  # of the closing fence
        self._step: Callable[[str], Outcome] = self._at_language if is_fenced else self._at_object
        self._call = CallObject(tools, needs_input=not is_tagged)
        self._done: list[Segment] = []  # of the calls before

    def push(self, character: str) -> Outcome:
        return self._step(character)

    def take(self) -> list[Segment]:
        taken, self._done = [*self._done, *self._call.take()], []
        return taken

    def flush(self, *, is_cut: bool) -> list[Segment]:
        return [*self.take(), *self._call.flush(is_cut=is_cut)]

    def _at_language(self, character: str) -> Outcome:
        """After the opening fence: the word that may stand there."""
        if character == "\n" or character in "{[":
            self._step = self._at_object
            return self._at_object(character)
        is_word = character.isalnum() or character in "_- \t\r"
        return Outcome.MAYBE if is_word else Outcome.DONE

    def _at_object(self, character: str) -> Outcome:
        if character == "{":
            self._step = self._in_object
            return self._in_object(character)
        if character == "`" and self._is_tagged:
            self._step = self._at_fence
            return self._at_fence(character)
        return Outcome.MAYBE if character in BEFORE else Outcome.DONE

    def _at_fence(self, character: str) -> Outcome:
        """A code fence between the tag and the object."""
        if character != "`":
            return Outcome.DONE
        self._ticks_left += 1
        if self._ticks_left == len(FENCE):
            self._step = self._at_language
        return Outcome.MAYBE

    def _in_object(self, character: str) -> Outcome:
        outcome = self._call.push(character)
        if self._call.is_complete:
            self._step = self._after_object
        return outcome

    def _after_object(self, character: str) -> Outcome:
        if character == "{":
            self._done += self._call.take()
            self._call = CallObject(self._tools, needs_input=not self._is_tagged)
            self._step = self._in_object
            return self._in_object(character)
        if character == "`" and self._ticks_left:
            self._ticks_left -= 1
            return Outcome.CALL
        return Outcome.CALL if character in AFTER else Outcome.DONE

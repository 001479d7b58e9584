"""Calls that the model begins by itself are held well-formed, and the rest is left to it.

The hook allows everything until the parser says that a call has begun: its tag and a known
name are complete. From then on a grammar holds the call, up to its end. The turn may end
inside a call all the same, which the parser then closes with what is whole; unless its tool
is strict, whose input is never of another form than promised: a call of it that began in a
way which no grammar here holds ends its request. Goes forward only, as its reading does
(`hooks.py`, Restarting).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from minimsg.constrain.calls import Body
from minimsg.constrain.matcher import Matcher
from minimsg.constrain.reading import Call, Reading
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.engine.types import BitMask
from minimsg.errors import GenerationFailed


class LazyGrammarHook:
    """Holds each call while it is open.

    `matchers`: the grammar of a held call by its tool's name. `strict`: names of tools
    whose calls must be held. `is_one_call`: the first call ends the turn.
    """

    name = "call"

    def __init__(
        self,
        reading: Reading,
        matchers: Mapping[str, Matcher],
        body: Body,
        vocabulary: Vocabulary,
        *,
        strict: Collection[str] = (),
        is_one_call: bool = False,
    ) -> None:
        self._reading = reading
        self._matchers = matchers
        self._body = body
        self._vocabulary = vocabulary
        self._strict = strict
        self._is_one_call = is_one_call
        self._num_seen = 0  # calls that were held or let go
        self._held: Matcher | None = None

    def mask(self) -> BitMask | None:
        if self._held is None:
            return None
        is_strict = self._reading.calls[-1].name in self._strict
        try:
            mask = self._held.mask()
        except GenerationFailed:
            if is_strict:
                raise
            self._held = None
            return None
        return mask if is_strict else mask | self._vocabulary.ends

    def forced(self) -> int | None:
        is_over = self._is_one_call and any(not call.is_open for call in self._reading.calls)
        return self._vocabulary.end_id if is_over else None

    def advance(self, id: int) -> None:
        if id in self._vocabulary.end_ids:
            return
        if self._held:
            self._held.advance(id)
        self._reading.push(id)
        self._follow()

    def _follow(self) -> None:
        calls = self._reading.calls
        for call in calls[self._num_seen :]:
            self._held = self._hold(call)
        self._num_seen = len(calls)
        if calls and not calls[-1].is_open:
            self._held = None

    def _hold(self, call: Call) -> Matcher | None:
        """What may follow in `call`; None: anything, since no grammar has it so far."""
        matcher = self._matchers[call.name].copy()
        beginning = self._body.beginning(call)
        encode = self._vocabulary.tokenizer.encode
        if beginning is not None and matcher.takes(encode(beginning, at_start=False)):
            return matcher
        if call.name in self._strict:
            raise GenerationFailed(f"a call of {call.name!r} began in a way that cannot be held")
        return None

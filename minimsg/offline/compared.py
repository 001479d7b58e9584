"""What was recorded beside what was computed again: where they part, and why they may have.

Knows records and tokens, no terminal: `cli/replay.py` shows the lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest

from minimsg.engine.types import Token
from minimsg.offline.replay import Replayed, first_difference
from minimsg.text.control import escape
from minimsg.text.tokenizer import Tokenizer
from minimsg.trace import Trace, TracedToken

HASH_CHARS = 16  # of a digest that is shown


@dataclass(frozen=True)
class Compared:
    """A record and what came of it now."""

    trace: Trace
    replayed: Replayed
    tokenizer: Tokenizer
    passed_over: str | None = None  # why it could not be loaded as it was

    @property
    def is_same(self) -> bool:
        """Whether every id is the same, and the end."""
        return self._place is None and self._end is None

    def verdict(self) -> str:
        """In a line, or two."""
        number = len(self.trace.tokens)
        if self._place is not None:
            recorded, now = self._at(self._place)
            return f"token {self._place} differs: recorded {recorded}, now {now}"
        if self._end is not None:
            return f"{number} tokens are the same, the end is not: {self._end}"
        place = self._logprob_place
        if place is None:
            return f"{number} tokens are the same, bit for bit"
        return f"{number} tokens are the same; log probabilities differ from token {place} on"

    def reasons(self) -> list[str]:
        """What is not as it was, and may be why."""
        here, there = asdict(self.replayed.facts), asdict(self.trace.engine)
        lines = [self.passed_over] if self.passed_over else []
        lines += [
            f"{name}: recorded {_short(there[name])}, here {_short(here[name])}"
            for name in here
            if here[name] != there[name]
        ]
        if (place := self.replayed.differing_prompt) is not None:
            lines.append(f"the request is rendered otherwise here, from token {place} on")
        if not self.trace.engine.is_batch_invariant:
            lines.append(_dependence(self.trace))
        return lines

    def diff(self) -> Iterator[str]:
        """Token by token: place, id and text, log probability; `!` where they are not the same."""
        pairs = zip_longest(self.trace.tokens, self.replayed.tokens)
        for place, (recorded, now) in enumerate(pairs):
            one, other = self._recorded(recorded), self._now(now)
            is_same = recorded is not None and now is not None and recorded.id == now.id
            if is_same and recorded.logprob == now.logprob:
                yield f"  {place:>5}  {one}"
            elif is_same:
                yield f"~ {place:>5}  {one}  {now.logprob - recorded.logprob:+.3g}"
            else:
                yield f"! {place:>5}  {one}  now {other}"

    @property
    def _place(self) -> int | None:
        """The first token that differs; one that is missing does."""
        recorded = [token.id for token in self.trace.tokens]
        return first_difference(recorded, [token.id for token in self.replayed.tokens])

    @property
    def _logprob_place(self) -> int | None:
        pairs = zip(self.trace.tokens, self.replayed.tokens, strict=True)
        differing = (place for place, (a, b) in enumerate(pairs) if a.logprob != b.logprob)
        return next(differing, None)

    @property
    def _end(self) -> str | None:
        finish, recorded = self.replayed.finish, self.trace.finish
        if finish is None or finish.reason == recorded.reason or recorded.reason == "cancelled":
            return None
        was = f"{recorded.reason} {recorded.error or ''}".strip()
        return f"recorded {escape(was)}, now {finish.reason} {finish.error or ''}".strip()

    def _at(self, place: int) -> tuple[str, str]:
        recorded, now = self.trace.tokens, self.replayed.tokens
        return (
            self._recorded(recorded[place] if place < len(recorded) else None),
            self._now(now[place] if place < len(now) else None),
        )

    def _recorded(self, token: TracedToken | None) -> str:
        return _words(token.id, token.text, token.logprob) if token else "nothing"

    def _now(self, token: Token | None) -> str:
        if token is None:
            return "nothing"
        return _words(token.id, self.tokenizer.token_text(token.id), token.logprob)


def _words(id: int, text: str, logprob: float) -> str:
    return f"{id} {escape(json.dumps(text, ensure_ascii=False))} {logprob:.6f}"


def _short(value: object) -> str:
    """A value of the facts; a record may hold anything."""
    text = escape(str(value))
    is_digest = len(text) == 64 and " " not in text
    return f"{text[:HASH_CHARS]}..." if is_digest else repr(text[:200])


def _dependence(trace: Trace) -> str:
    most = max((step.num_sequences for step in trace.steps), default=1)
    beside = f"; {most} sequences were computed together at most" if most > 1 else ""
    return (
        f"the numbers of this kernel depend on what else a step computes{beside}: record with "
        "--deterministic, or with kernel cpu_native, for replies that always come out again"
    )

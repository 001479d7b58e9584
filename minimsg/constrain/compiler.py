"""Grammars compiled once and kept, and what the engine says of one that it cannot take.

Bounded on every side: the engine's own limits on the work of a step and on the states of a
lexer, a cache with a limit in bytes, and a process for grammars that may take for ever
(`risk.py` says which those are; 15 KB of patterns take two minutes). Blocks for
milliseconds, so not for the event loop (`grammars.py`). Safe in any thread.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Final

from minimsg.constrain.matcher import Matcher
from minimsg.constrain.trial import dead_end
from minimsg.constrain.vocabulary import Vocabulary
from minimsg.errors import InvalidRequest

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

CACHE_BYTES: Final = 64 << 20
# A compiled grammar holds 50 KB, and about 25 bytes for each of its text (measured).
FIXED_BYTES, BYTES_PER_CHARACTER = 50_000, 25
TOO_COMPLEX: Final = "Schema is too complex for compilation."  # the hosted API's words
TOO_LARGE: Final = re.compile(r"too (large|complex|many|big|long)|limit exceeded|fuel")
MAX_CHARACTERS: Final = 1 << 19  # of one grammar: seconds of work, beside the event loop
MAX_LEXER_STATES: Final = 100_000  # of 450 bytes each, in the grammar of one reply
MAX_GRAMMAR_SYMBOLS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A grammar that was compiled, or why it was not."""

    problem: str
    compiled: LLMatcher | None = None  # never advanced, only copied
    num_bytes: int = 1_000


class Compiler:
    """The grammars of one vocabulary. `num_bytes` is what the cache holds, as far as is known."""

    def __init__(self, vocabulary: Vocabulary, *, cache_bytes: int = CACHE_BYTES) -> None:
        self._vocabulary = vocabulary
        self._cache_bytes = cache_bytes
        self._lock = Lock()
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()  # the latest asked for last
        self.num_bytes = 0

    def verdict(self, text: str) -> str | None:
        """What is known of the grammar `text`: why it cannot be taken, "" if it can; or None."""
        verdict = self._find(text)
        return None if verdict is None else verdict.problem

    def problem(self, text: str) -> str:
        """Why the grammar `text` cannot be taken; "" if it can."""
        return self._verdict(text).problem

    def refuse(self, text: str, problem: str) -> None:
        """Remember that `text` cannot be taken."""
        self._keep(text, Verdict(problem))

    def matcher(self, texts: Sequence[str], *, is_strict: bool = True) -> Matcher:
        """The start of a reply in all of these grammars (`matcher.py`).

        Raises InvalidRequest if one is not taken: the schemas in it may be too large together.
        """
        parts = []
        for text in texts:
            verdict = self._verdict(text)
            if verdict.compiled is None and is_too_large(verdict.problem):
                raise InvalidRequest("", TOO_COMPLEX)
            if verdict.compiled is None:
                why = f"the schemas cannot be enforced together: {verdict.problem:.200}"
                raise InvalidRequest("", why)
            with self._lock:
                parts.append(verdict.compiled.deep_copy())
        return Matcher(parts, is_strict=is_strict)

    def _verdict(self, text: str) -> Verdict:
        verdict = self._find(text)
        if verdict is None:
            verdict = self._compile(text)
            self._keep(text, verdict)
        return verdict

    def _find(self, text: str) -> Verdict | None:
        with self._lock:
            if (key := _key(text)) not in self._verdicts:
                return None
            self._verdicts.move_to_end(key)
            return self._verdicts[key]

    def _compile(self, text: str) -> Verdict:
        from llguidance import LLMatcher

        if len(text) > MAX_CHARACTERS:
            return Verdict(f"too large: {len(text):,} characters")
        tokens = self._vocabulary.engine_form()
        compiled = LLMatcher(tokens, text, limits=limits(), log_level=0)
        if compiled.is_error():
            return Verdict(said(compiled.get_error()))
        if problem := dead_end(compiled.deep_copy(), self._vocabulary):
            return Verdict(said(problem))
        return Verdict("", compiled, FIXED_BYTES + BYTES_PER_CHARACTER * len(text))

    def _keep(self, text: str, verdict: Verdict) -> None:
        with self._lock:
            replaced = self._verdicts.pop(_key(text), None)
            self._verdicts[_key(text)] = verdict
            self.num_bytes += verdict.num_bytes - (replaced.num_bytes if replaced else 0)
            while self.num_bytes > self._cache_bytes:
                _, dropped = self._verdicts.popitem(last=False)
                self.num_bytes -= dropped.num_bytes


def is_too_large(problem: str) -> bool:
    """Whether a grammar was refused for its size, and not for what it says."""
    return TOO_LARGE.search(problem) is not None


def limits() -> LLParserLimits:
    """What the grammar of one reply may cost."""
    from llguidance import LLParserLimits

    return LLParserLimits(
        max_lexer_states=MAX_LEXER_STATES,
        max_grammar_size=MAX_GRAMMAR_SYMBOLS,
        verbose_errors=False,
    )


def said(error: str) -> str:
    """What the engine says is wrong, in a line, without the grammar that it quotes."""
    lines = [line.strip() for line in error.split("\n   1 | ", 1)[0].splitlines()]
    first = re.sub(r"^at \d+\(\d+\): (failed to compile JSON schema: )?", "", lines[0])
    if first == "regex parse error:" and len(lines) > 2:
        return f"pattern {lines[1]!r}: {lines[-1].removeprefix('error: ')}"
    return first


def _key(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()

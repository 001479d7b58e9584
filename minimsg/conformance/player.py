"""One case against a server: send a step, hold what came back against it, go on.

What comes of the model's words, or of a server that is busy, makes a case inconclusive;
everything else that is not as expected breaks the rule. Knows one case, or one feature;
`runner.py` has them all.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from time import perf_counter
from typing import Final

from minimsg.conformance.asserts import Fault, answered, first_fault, status, statuses
from minimsg.conformance.case import Case, Json, Step
from minimsg.conformance.catalog import merge
from minimsg.conformance.explain import wire
from minimsg.conformance.expression import holds
from minimsg.conformance.feature import Feature, State, state_of
from minimsg.conformance.reply import Reply
from minimsg.conformance.request import PLAIN, Asking, NothingToSend, Request, build, fill
from minimsg.conformance.verdict import Failure, Result, Verdict
from minimsg.conformance.wire import exchange
from minimsg.errors import ConfigError

BUSY: Final = (429, 529)
TRIES: Final = 3
WAIT_S: Final = 1.0  # before a busy server is asked again, unless it says how long
MOST_WAIT_S: Final = 10.0
POLL_S: Final = 0.1
POLLING_S: Final = 30.0  # `until` is given up after that
TOO_LONG: Final = re.compile(r"too long|context (size|length|window)", re.I)


class Inconclusive(Exception):
    """The rule could not be looked at; the message says why."""


@dataclass(frozen=True)
class Sent:
    """A request and what came back."""

    request: Request
    reply: Reply


class Broken(Exception):
    """The rule is broken, and `sent` shows it."""

    def __init__(self, step: Step, fault: Fault, sent: Sent) -> None:
        super().__init__(fault.seen)
        self.step, self.fault, self.sent = step, fault, sent


class Player:
    """Plays cases against one server."""

    def __init__(self, asking: Asking, model: str, *, timeout_s: float) -> None:
        self.asking = asking
        self.model = model
        self._timeout_s = timeout_s
        self._shared: dict[bytes, deque[Sent]] = {}  # by the bytes of the request

    async def play(self, case: Case) -> Result:
        """Run `case`. Raises ConfigError for what it says, nothing for what a server does."""
        started = perf_counter()
        verdict, reason, failure = Verdict.PASS, "", None
        try:
            await self._play(case)
        except (Inconclusive, NothingToSend) as why:
            verdict, reason = Verdict.INCONCLUSIVE, str(why)
        except Broken as broken:
            verdict, failure = Verdict.FAIL, self._explain(broken)
        except ConfigError as error:
            raise ConfigError(f"{case.id}: {error}") from error
        return result(case, verdict, reason, failure, perf_counter() - started)

    async def probe(self, feature: Feature) -> State:
        """How the server takes the request of `feature`."""
        return state_of(feature, await self.ask(feature))

    async def first(self, case: Case, nonce: str, over: Json) -> Reply:
        """The answer to the first request of `case`, whatever it is worth; `over` is laid on it."""
        step, names = case.steps[0], self._names(case.id) | {"nonce": nonce}
        request = build(step, merge(step.variants[0], over), names, self.asking.at(case.version))
        return (await self._ask(step, request)).reply

    async def ask(self, feature: Feature) -> Reply:
        """The answer to the request of `feature`."""
        names = self._names(feature.name)
        (sent,) = await self._send(feature.step, names, self.asking.at(feature.version))
        return sent.reply

    async def _play(self, case: Case) -> None:
        names = self._names(case.id)
        for step in case.steps:
            for sent in await self._send(step, names, self.asking.at(case.version)):
                self._hold(step, sent, names)

    async def _send(self, step: Step, names: dict[str, object], asking: Asking) -> Sequence[Sent]:
        """Send a step, again while its `until` does not hold; its replies get its name."""
        deadline = perf_counter() + POLLING_S
        while True:
            requests = [build(step, over, names, asking) for over in step.variants]
            ask = self._ask_once if step.shared else self._ask
            all_sent = await asyncio.gather(*(ask(step, request) for request in requests))
            replies = [sent.reply for sent in all_sent]
            names[step.name] = replies if step.together else replies[0]
            if step.until is None or holds(step.until, names) or perf_counter() > deadline:
                return all_sent
            await asyncio.sleep(POLL_S)

    async def _ask_once(self, step: Step, request: Request) -> Sent:
        """One of the few answers to `request` that cases share, in turn."""
        kept = self._shared.setdefault(b"".join(request.pieces), deque())
        sent = kept.popleft() if len(kept) >= step.shared else await self._ask(step, request)
        kept.append(sent)
        return sent

    async def _ask(self, step: Step, request: Request) -> Sent:
        """One request; a server that is busy is asked again."""
        for attempt in range(1, TRIES + 1):
            done = await exchange(
                self.asking.address,
                request.pieces,
                is_head=step.method == "HEAD",
                leave_after_bytes=step.leave_after_bytes,
                timeout_s=self._timeout_s,
            )
            reply = Reply(done)
            if not _is_busy(step, reply):
                break
            if attempt < TRIES:
                await asyncio.sleep(_wait(reply))
        return Sent(request, reply)

    def _hold(self, step: Step, sent: Sent, names: dict[str, object]) -> None:
        """Raise what the reply deserves. A rule about the answer comes before its premises."""
        reply = sent.reply
        if _is_busy(step, reply):
            raise Inconclusive(f"the server is busy: {TRIES} times HTTP {reply.status}")
        if reply.exchange.was_flowing:
            raise Inconclusive(f"{reply.exchange.fault}, but it was still being written: --timeout")
        due = statuses(step.expect)
        if reply.status == 400 and 400 not in due and TOO_LONG.search(reply.source):
            raise Inconclusive("the window of the model is too short for this prompt")
        if not reply.exchange.left:
            for check in (answered, status):
                if fault := next(check(step.expect, reply, names), None):
                    raise Broken(step, fault, sent)
        for premise, reason in step.provided.items():
            if not holds(premise, names):
                raise Inconclusive(reason)
        if reply.exchange.left:
            return
        if step.until is not None and not holds(step.until, names):
            raise Broken(step, Fault(f"{step.until} within {POLLING_S:g} s", "it was not"), sent)
        if fault := first_fault(step.expect, reply, names):
            raise Broken(step, fault, sent)

    def _explain(self, broken: Broken) -> Failure:
        sent, fault = broken.sent, broken.fault
        return Failure(
            step=broken.step.name,
            expected=fault.expected,
            seen=fault.seen,
            curl=sent.request.curl(self.asking.address),
            wire=wire(sent.reply.exchange, self.asking.key),
        )

    def _names(self, salt: str) -> dict[str, object]:
        return first_names(salt, self.model, self.asking)


CONSTANT_NAMES: Final[dict[str, object]] = {
    "long": " ".join(f"Rule {n}: answer number {n} politely and in order." for n in range(24)),
    "letters": [*"etaoinshrdlucmfwypvbgkjqxz"],
    "small_tool": {"name": "tool", "input_schema": {"type": "object"}},
    "facts": "Grüße 👩‍🚀 aus Köln! The mill was built in 1871. Its wheel turned until 1924.",
    "repeat": {"type": "text", "text": "Repeat what you were given, word for word."},
    "turn": {"role": "user", "content": "Say hello."},
    "long_turn": {"role": "user", "content": "Say hello, and then say it again, a little louder."},
}


def first_names(salt: str, model: str, asking: Asking) -> dict[str, object]:
    """What the expressions of a case know before its first step."""
    return CONSTANT_NAMES | {
        "model": model,
        "key": asking.key or "",
        "host": asking.address.authority,
        "version": asking.version,
        "nonce": f"{salt} {token_hex(4)}",  # no run finds what another has left in a cache
        "body": json.dumps(fill(PLAIN, {"model": model})),  # the plainest request
    }


def first_request(case: Case, asking: Asking, model: str) -> Request:
    """The request that `case` begins with."""
    step, names = case.steps[0], first_names(case.id, model, asking)
    return build(step, step.variants[0], names, asking.at(case.version))


def result(
    case: Case,
    verdict: Verdict,
    reason: str = "",
    failure: Failure | None = None,
    seconds: float = 0.0,
) -> Result:
    """What came of `case`."""
    return Result(
        id=case.id,
        title=case.title,
        level=case.level,
        rule=case.rule,
        where=case.where,
        verdict=verdict,
        seconds=round(seconds, 3),
        reason=reason,
        failure=failure,
    )


def _is_busy(step: Step, reply: Reply) -> bool:
    """Whether the server had no time for the step, which did not ask for that."""
    is_due = step.expect.status != "any" and reply.status in statuses(step.expect)
    return reply.status in BUSY and not is_due


def _wait(reply: Reply) -> float:
    """Seconds until a busy server wants to be asked again, within reason."""
    said = reply.headers.get("retry-after", "")
    return min(float(said), MOST_WAIT_S) if said.replace(".", "", 1).isdigit() else WAIT_S

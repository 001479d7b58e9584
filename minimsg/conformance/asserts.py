"""An expectation held against a reply: what was expected and what was seen instead, or None.

In the order in which a reader would look: is there an answer, its status, its error, its
headers, its shape, its stream, and what the case says beyond. The first that fails is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from minimsg.conformance.case import Expect
from minimsg.conformance.expression import Names, holds, show, why_not
from minimsg.conformance.reply import Reply
from minimsg.conformance.shapes import misfit
from minimsg.conformance.streams import CHECKS

STATUS_OF: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}


@dataclass(frozen=True)
class Fault:
    """A broken expectation."""

    expected: str
    seen: str


def first_fault(expect: Expect, reply: Reply, names: Names) -> Fault | None:
    """The first expectation that `reply` breaks."""
    for check in (answered, status, error, headers, shape, stream, relations):
        found = next(check(expect, reply, names), None)
        if found:
            return found
    return None


def answered(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    if reply.exchange.fault:
        yield Fault("a complete HTTP answer", reply.exchange.fault)


def status(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    due = statuses(expect)
    if reply.status not in due:
        words = reply.source if reply.body is None else reply.body
        said = f" with {show(words)}" if reply.status >= 400 else ""
        yield Fault(f"HTTP {' or '.join(map(str, due))}", f"HTTP {reply.status}{said}")


def statuses(expect: Expect) -> Sequence[int]:
    """The statuses that are right."""
    if expect.status == "any":
        return range(200, 600)
    if expect.status is not None:
        return expect.status if isinstance(expect.status, list) else [expect.status]
    return [STATUS_OF[expect.error]] if expect.error else [200]


def error(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    said = reply.error if isinstance(reply.error, dict) else {}
    if expect.error and said.get("type") != expect.error:
        yield Fault(f"an error of type {expect.error}", f"type {show(said.get('type'))}")
    message = str(said.get("message", ""))
    for words in expect.says:
        if words.lower() not in message.lower():
            yield Fault(f"{words!r} in the error's message", show(message))


def headers(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    for name, pattern in expect.headers.items():
        value = reply.headers.get(name.lower())
        if value is None or not fnmatchcase(value, pattern):
            yield Fault(f"the header {name}: {pattern}", f"{name}: {value or 'is not there'}")
    for name in expect.lacks:
        if name.lower() in reply.headers:
            yield Fault(f"no header {name}", f"{name}: {reply.headers[name.lower()]}")


def shape(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    if expect.shape and (found := misfit(expect.shape, reply.body)):
        yield Fault(f"the shape of {expect.shape}", found)


def stream(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    if expect.stream and not reply.is_stream:
        seen = reply.headers.get("content-type", "none")
        yield Fault("content-type: text/event-stream", f"content-type: {seen}")
        return
    for name in expect.stream:
        check: Callable[[Reply], str | None] = CHECKS[name]
        if found := check(reply):
            yield Fault((check.__doc__ or name).split("\n")[0], found)


def relations(expect: Expect, reply: Reply, names: Names) -> Iterator[Fault]:
    for expression in expect.holds:
        if not holds(expression, names):
            yield Fault(expression, why_not(expression, names))

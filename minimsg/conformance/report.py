"""A run for the terminal: features, failures with all that explains them, the counts.

Lines of text without colour or width, so that they can be piped; the command adds colour.
Whatever a server sent may stand in them: it is escaped.
Knows verdicts only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from minimsg.conformance.case import Case
from minimsg.conformance.explain import repeat_command
from minimsg.conformance.verdict import Failure, Line, Result, Run, Verdict
from minimsg.text.control import escape

ARROWS: Final = {True: ">", False: "<"}
SHOWN_LINES: Final = 60  # of the bytes of one failure; the JSON report has more
MANY: Final = 5  # failures that saw the same
SHOWN_CAUSES: Final = 5
ORDER: Final = (
    Verdict.FAIL,
    Verdict.STALE,
    Verdict.EXPECTED,
    Verdict.INCONCLUSIVE,
    Verdict.SKIP,
    Verdict.PASS,
)


def report(run: Run, *, verbose: bool = False) -> Iterator[str]:
    """Everything worth reading, the gravest last. `verbose`: what was not looked at, too."""
    return map(escape, _report(run, verbose))


def _report(run: Run, verbose: bool) -> Iterator[str]:
    yield from features(run)
    if verbose:
        for result in run.results:
            if result.reason:
                yield f"{result.verdict:<13} {result.id}: {result.reason}"
        yield ""
    for result in run.results:
        if result.verdict == Verdict.FAIL and not result.breaks_the_run:
            yield from _short(result)
    for result in reversed(run.broken):
        yield from explanation(run, result)
    yield from _causes(run)
    yield summary(run)


def _causes(run: Run) -> Iterator[str]:
    """What many failures have in common: one thing to mend first."""
    seen = Counter(result.failure.seen for result in run.broken if result.failure)
    shared = [(text, times) for text, times in seen.most_common() if times >= MANY]
    for text, times in shared[:SHOWN_CAUSES]:
        yield f"{times} of the failures have seen the same: {text}"
    if shared:
        yield ""


def features(run: Run) -> Iterator[str]:
    """What the server can do, a line for each feature that was looked for."""
    server = f" ({run.server})" if run.server else ""
    yield f"{run.url}{server}, model {run.model}, profile {run.profile}, version {run.version}"
    yield ""
    width = max(map(len, run.features), default=0)
    for name, state in run.features.items():
        yield f"  {name:<{width}}  {state}"
    if run.features:
        yield ""


def explanation(run: Run, result: Result) -> Iterator[str]:
    """One failure, so that nobody has to ask: rule, expected, seen, command, bytes."""
    return map(escape, _explanation(run, result))


def _explanation(run: Run, result: Result) -> Iterator[str]:
    yield f"{result.verdict.upper()} {result.id}  {result.level}  {result.title}"
    yield f"  rule      {result.rule}"
    yield f"  stands in {result.where}"
    if result.reason:
        yield f"  reason    {result.reason}"
    if result.failure:
        yield from _told(result.failure)
    yield f"  repeat    {repeat_command(run, result)}"
    yield ""


def summary(run: Run) -> str:
    """The counts, and how long it took."""
    counts = run.counts()
    parts = [f"{counts[verdict]} {verdict}" for verdict in ORDER if counts[verdict]]
    return f"{len(run.results)} cases in {run.seconds:g} s: {', '.join(parts)}"


def listing(cases: list[Case]) -> Iterator[str]:
    """One case a line, its id first."""
    width = max((len(case.id) for case in cases), default=0)
    for case in cases:
        yield f"{case.id:<{width}}  {case.level:<6}  {case.title}"


def _short(result: Result) -> Iterator[str]:
    seen = result.failure.seen if result.failure else ""
    yield f"{result.level.lower()} {result.id}: {result.title}: {seen}"


def _told(failure: Failure) -> Iterator[str]:
    yield f"  expected  {failure.expected}"
    yield f"  seen      {failure.seen}"
    yield f"  curl      {failure.curl}"
    shown = [text for line in failure.wire for text in wire_lines(line)]
    yield from (f"  {text}" for text in shown[:SHOWN_LINES])
    if len(shown) > SHOWN_LINES:
        yield f"    ... {len(shown) - SHOWN_LINES} more lines (--json, --html)"


def wire_lines(line: Line) -> Iterator[str]:
    """The lines of one piece; the first has its time, escapes show what is no text."""
    for number, text in enumerate(line.text.split("\n")):
        time = f"{line.at_s:8.3f}" if number == 0 else " " * 8
        yield f"{time} {ARROWS[line.is_sent]} {escape(text)}"

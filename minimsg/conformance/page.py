"""A run as one HTML page that fetches nothing: features, themes, and each case to unfold.

Every word of a report is escaped: it holds what a foreign server sent. Knows verdicts only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Final

from minimsg.conformance.explain import repeat_command
from minimsg.conformance.feature import State
from minimsg.conformance.report import ORDER, summary, wire_lines
from minimsg.conformance.verdict import Failure, Result, Run
from minimsg.document import document, table

STYLE: Final = """
details { border-left: 4px solid #ddd; margin: .3em 0; padding-left: .8em }
details.fail, details.stale { border-color: #cf222e }
details.inconclusive { border-color: #c69026 }
details.pass { border-color: #2ea44f }
summary { cursor: pointer }
code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; white-space: pre-wrap }
.quiet { color: #666 }
"""
# Of the states of features.
COLOURS: Final[dict[str, str]] = {
    State.OK: "#1a7f37",
    State.IGNORED: "#9a6700",
    State.WRONG: "#cf222e",
}


def page(run: Run) -> str:
    """The whole page."""
    body = (*_head(run), *_themes(run), *_cases(run))
    return document(f"Conformance of {run.url}", STYLE, body)


def _head(run: Run) -> Iterator[str]:
    server = f"{run.server}, " if run.server else ""
    facts = f"{server}model {run.model}, profile {run.profile}, version {run.version}"
    yield f"<p>{escape(facts)}</p>\n<p><b>{escape(summary(run))}</b></p>"
    yield "<h2>What the server can do</h2>"
    yield table(["feature", "state"], run.features.items(), COLOURS)


def _themes(run: Run) -> Iterator[str]:
    """A row for each theme: how many cases ended how."""
    shown = [verdict for verdict in ORDER if run.counts()[verdict]]
    rows = []
    for theme, results in groupby(run.results, key=lambda result: result.theme):
        counts = Counter(result.verdict for result in results)
        rows.append([theme, *(str(counts[verdict] or "") for verdict in shown)])
    yield "<h2>Themes</h2>"
    yield table(["theme", *shown], rows)


def _cases(run: Run) -> Iterator[str]:
    for verdict in ORDER:
        found = [result for result in run.results if result.verdict == verdict]
        if found:
            yield f'<h2 id="{verdict}">{verdict.capitalize()}: {len(found)}</h2>'
            yield from (_case(run, result) for result in found)


def _case(run: Run, result: Result) -> str:
    """One case, folded; open where it breaks the run."""
    is_open = " open" if result.breaks_the_run else ""
    head = f"<code>{result.id}</code> {escape(result.title)}"
    parts = [f"<p>{escape(result.rule)} <span class=quiet>({escape(result.where)})</span></p>"]
    if result.reason:
        parts.append(f"<p>{escape(result.reason)}</p>")
    if result.failure:
        parts.append(_failure(result.failure))
        parts.append(f"<pre>{escape(repeat_command(run, result))}</pre>")
    level = f"<span class=quiet>{result.level}</span>"
    return (
        f'<details class="{result.verdict}"{is_open}><summary>{head} {level}</summary>'
        + "\n".join(parts)
        + "</details>"
    )


def _failure(failure: Failure) -> str:
    said = {"expected": failure.expected, "seen": failure.seen}
    words = [f"<span class=quiet>{name}</span> {escape(text)}" for name, text in said.items()]
    wire = "\n".join(text for line in failure.wire for text in wire_lines(line))
    return f"<p>{'<br>'.join(words)}</p><pre>{escape(failure.curl)}</pre><pre>{escape(wire)}</pre>"

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
from minimsg.conformance.report import ARROWS, ORDER, summary
from minimsg.conformance.verdict import Failure, Result, Run

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em;
  color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .15em .8em; text-align: right; border-bottom: 1px solid #ddd }
th:first-child, td:first-child, td.text { text-align: left }
details { border-left: 4px solid #ddd; margin: .3em 0; padding-left: .8em }
details.fail, details.stale { border-color: #cf222e }
details.inconclusive { border-color: #c69026 }
details.pass { border-color: #2ea44f }
summary { cursor: pointer }
code, pre { font: 13px/1.4 ui-monospace, monospace }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; white-space: pre-wrap }
.fail { color: #cf222e } .pass { color: #1a7f37 } .quiet { color: #666 }
summary.fail, summary.pass { color: inherit }
"""


def page(run: Run) -> str:
    """The whole page."""
    title = escape(f"Conformance of {run.url}")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>",
            *_head(run),
            *_themes(run),
            *_cases(run),
            "</html>\n",
        ]
    )


def _head(run: Run) -> Iterator[str]:
    server = f"{run.server}, " if run.server else ""
    facts = f"{server}model {run.model}, profile {run.profile}, version {run.version}"
    yield f"<p>{escape(facts)}</p>\n<p><b>{escape(summary(run))}</b></p>"
    yield "<h2>What the server can do</h2>"
    yield _table(["feature", "state"], [[name, state] for name, state in run.features.items()])


def _themes(run: Run) -> Iterator[str]:
    """A row for each theme: how many cases ended how."""
    shown = [verdict for verdict in ORDER if run.counts()[verdict]]
    rows = []
    for theme, results in groupby(run.results, key=lambda result: result.theme):
        counts = Counter(result.verdict for result in results)
        rows.append([theme, *(str(counts[verdict] or "") for verdict in shown)])
    yield "<h2>Themes</h2>"
    yield _table(["theme", *shown], rows)


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
    rows = [["expected", failure.expected], ["seen", failure.seen]]
    wire = "\n".join(
        f"{line.at_s:8.3f} {ARROWS[line.is_sent]} {line.text}" for line in failure.wire
    )
    return (
        _table(["", ""], rows, css="text")
        + f"<pre>{escape(failure.curl)}</pre><pre>{escape(wire)}</pre>"
    )


def _table(headings: list[str], rows: list[list[str]], css: str = "") -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = (
        "".join(f'<td class="{_css(cell) or css}">{escape(cell)}</td>' for cell in row)
        for row in rows
    )
    lines = "\n".join(f"<tr>{row}</tr>" for row in body)
    return f"<table>\n<tr>{head}</tr>\n{lines}\n</table>"


def _css(cell: str) -> str:
    """The colour of a feature's state."""
    return {"ok": "pass", "wrong": "fail", "silently ignored": "fail"}.get(cell, "")

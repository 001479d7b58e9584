"""A run as JUnit XML, which every CI reads: a suite for each theme, a case for each case.

What is inconclusive is skipped there, with its reason: JUnit has no word for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from xml.etree import ElementTree

from minimsg.conformance.explain import repeat_command
from minimsg.conformance.verdict import Result, Run, Verdict

NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(run: Run) -> str:
    """The report as XML."""
    root = ElementTree.Element("testsuites", name="minimsg conform", time=f"{run.seconds:g}")
    for theme, results in groupby(run.results, key=lambda result: result.theme):
        _add_suite(root, run, theme, list(results))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_suite(root: ElementTree.Element, run: Run, theme: str, results: list[Result]) -> None:
    failures = sum(result.breaks_the_run for result in results)
    skipped = sum(_is_skipped(result) for result in results)
    counts = {"tests": len(results), "failures": failures, "skipped": skipped, "errors": 0}
    attributes = {"name": theme} | {key: str(number) for key, number in counts.items()}
    suite = ElementTree.SubElement(root, "testsuite", attributes)
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=theme, name=result.id, time=f"{result.seconds:g}"
        )
        if result.breaks_the_run:
            seen = result.failure.seen if result.failure else result.reason
            failure = ElementTree.SubElement(case, "failure", message=_clean(seen))
            failure.text = _clean("\n".join(_words(run, result)))
        elif _is_skipped(result):
            ElementTree.SubElement(case, "skipped", message=_clean(result.reason))


def _is_skipped(result: Result) -> bool:
    return not result.breaks_the_run and result.verdict != Verdict.PASS


def _words(run: Run, result: Result) -> Iterable[str]:
    yield f"{result.level}: {result.rule} ({result.where})"
    if result.failure:
        yield f"expected: {result.failure.expected}"
        yield f"seen: {result.failure.seen}"
        yield result.failure.curl
    yield repeat_command(run, result)


def _clean(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return NOT_XML.sub("\ufffd", text)

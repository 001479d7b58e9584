"""Reports say what happened, whoever reads them, and whatever a foreign server sent."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from minimsg.cli.conform import EXIT_UNREACHABLE
from minimsg.cli.main import main
from minimsg.cli.verdicts import EXIT_BROKEN, EXIT_STALE, exit_code
from minimsg.conformance.badge import badge
from minimsg.conformance.baseline import apply, read_baseline
from minimsg.conformance.case import Level
from minimsg.conformance.explain import repeat_command
from minimsg.conformance.junit import junit
from minimsg.conformance.matrix import matrix
from minimsg.conformance.page import page
from minimsg.conformance.report import report
from minimsg.conformance.verdict import Failure, Line, Result, Run, Verdict
from minimsg.errors import ConfigError

EVIL = "<script>alert(1)</script>\x00\x1b[31m"
FAILURE = Failure(
    step="reply",
    expected="HTTP 400",
    seen=EVIL,
    curl="curl http://a",
    wire=[Line(0.0, True, "GET / HTTP/1.1\r\n"), Line(0.1, False, EVIL)],
)


def result(id: str, verdict: Verdict, level: Level = Level.MUST, **more: object) -> Result:
    made = Result(id, f"Title of {id}", level, "The rule.", "The page.", verdict)
    return replace(made, **more)  # type: ignore[arg-type]


PASS = result("a.pass", Verdict.PASS)
FAIL = result("a.fail", Verdict.FAIL, failure=FAILURE)
MAY = result("b.may", Verdict.FAIL, Level.MAY, failure=FAILURE)
SKIP = result("b.skip", Verdict.SKIP, reason="images: refused cleanly")
RUN = Run(
    url="http://a",
    model="m",
    server="s",
    profile="compat",
    version="2023-06-01",
    seed=0,
    seconds=1.0,
    suite="1",
    features={"images": "refused cleanly"},
    results=[PASS, FAIL, MAY, SKIP],
)


class Scripts(HTMLParser):
    """Counts what would run or be fetched."""

    num_found = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        self.num_found += tag in ("script", "link", "img") or bool(names & {"src", "href"})


def test_the_page_runs_and_fetches_nothing_whatever_a_server_sent() -> None:
    reader = Scripts()
    reader.feed(page(RUN))
    assert reader.num_found == 0
    assert "&lt;script&gt;" in page(RUN)
    assert "a.fail" in page(RUN)


def test_the_terminal_is_told_everything_and_no_escape_reaches_it() -> None:
    text = "\n".join(report(replace(RUN, server=EVIL)))
    for words in ("The rule.", "The page.", "HTTP 400", "curl http://a", "--case a.fail"):
        assert words in text
    assert not {*text} & {"\x00", "\x1b"}
    assert "4 cases in 1 s: 2 fail, 1 skip, 1 pass" in text


def test_what_many_failures_have_in_common_is_told_once_at_the_end() -> None:
    many = [replace(FAIL, id=f"a.{number}") for number in range(5)]
    *_, told, _, summary = report(replace(RUN, results=many))
    assert told.startswith("5 of the failures have seen the same: <script>")
    assert "5 fail" in summary
    assert not any("the same" in line for line in report(replace(RUN, results=many[1:])))


def test_the_command_that_repeats_a_failure_asks_the_same_model_with_the_same_rights() -> None:
    run = replace(RUN, model="a model", has_key=True)
    command = repeat_command(run, FAIL)
    words = ("--case a.fail", "--model 'a model'", "--profile compat", '--key "$KEY"')
    assert [each for each in words if each not in command] == []
    assert "--key" not in repeat_command(RUN, FAIL)


def test_junit_counts_what_breaks_the_run_as_failures() -> None:
    root = ElementTree.fromstring(junit(RUN))
    suites = {suite.get("name"): suite for suite in root}
    assert (suites["a"].get("tests"), suites["a"].get("failures")) == ("2", "1")
    assert (suites["b"].get("failures"), suites["b"].get("skipped")) == ("0", "2")


def test_a_badge_is_xml_and_says_how_many_rules_hold() -> None:
    ElementTree.fromstring(badge(RUN))
    assert "1/2 compat" in badge(RUN)


def test_a_report_comes_back_from_json() -> None:
    assert Run.from_json(json.loads(json.dumps(RUN.to_json()))) == RUN


def test_the_matrix_shows_where_a_server_fails() -> None:
    better = replace(RUN, results=[PASS, replace(FAIL, verdict=Verdict.PASS, failure=None)])
    rows = matrix({"one": RUN, "two": better})
    assert rows == [("a.fail", ["FAIL", "ok"]), ("b.may", ["FAIL", ""])]


def baseline(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "known.toml"
    path.write_text(text)
    return path


def test_the_baseline_has_four_ways(tmp_path: Path) -> None:
    path = baseline(
        tmp_path,
        '[[known]]\ncase = "a.fail"\nreason = "later"\n[[known]]\ncase = "a.pass"\nreason = "?"\n',
    )
    other = result("c.fail", Verdict.FAIL)
    fine = result("c.pass", Verdict.PASS)
    seen = apply(read_baseline(path), [FAIL, PASS, other, fine])
    assert [each.verdict for each in seen] == ["expected-fail", "stale", "fail", "pass"]
    assert [each.breaks_the_run for each in seen] == [False, True, True, False]


@pytest.mark.parametrize("text", ["[[known]\n", '[[known]]\ncase = "a"\n', "known = 5\n"])
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"known\.toml"):
        read_baseline(baseline(tmp_path, text))


def test_exit_codes_tell_what_is_wrong() -> None:
    stale = result("a.stale", Verdict.STALE)
    assert exit_code(replace(RUN, results=[PASS, MAY, SKIP])) == 0
    assert exit_code(RUN) == EXIT_BROKEN
    assert exit_code(replace(RUN, results=[PASS, stale])) == EXIT_STALE
    nobody = CliRunner().invoke(main, ["conform", "http://127.0.0.1:9"])
    assert nobody.exit_code == EXIT_UNREACHABLE
    assert CliRunner().invoke(main, ["conform"]).exit_code == 2
    assert CliRunner().invoke(main, ["conform", "http://a", "--case", "no.such"]).exit_code == 2


def test_cases_are_listed_one_a_line_and_shown_without_being_sent() -> None:
    listed = CliRunner().invoke(main, ["conform", "--list", "--case", "stop.zero*"])
    assert [line.split()[0] for line in listed.output.splitlines()] == [
        "stop.zero",
        "stop.zero-stream",
    ]
    shown = CliRunner().invoke(main, ["conform", "http://a", "--dry-run", "--case", "stop.zero"])
    assert "curl" in shown.output
    assert '"max_tokens": 0' in shown.output

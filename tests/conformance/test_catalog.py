"""Cases are checked as they are read; those of the suite are what the suite promises."""

from __future__ import annotations

import ast
import re
from collections import Counter

import pytest

from minimsg.conformance.asserts import STATUS_OF
from minimsg.conformance.case import Case
from minimsg.conformance.catalog import load_cases, load_features, read_cases, select
from minimsg.conformance.expression import CONSTANTS
from minimsg.conformance.functions import FUNCTIONS
from minimsg.conformance.player import Player, first_names
from minimsg.conformance.request import Asking
from minimsg.conformance.shapes import SHAPES
from minimsg.conformance.streams import CHECKS
from minimsg.conformance.wire import Address
from minimsg.errors import ConfigError

ASKING = Asking(Address.of("http://a"), "2023-06-01")
PLAIN = """
[defaults]
where = "here"
[[case]]
id = "theme.one"
title = "One"
rule = "One is one."
"""


def read(text: str) -> list[Case]:
    return read_cases({"theme.toml": text})


def names_in(expression: str) -> set[str]:
    """The names that an expression uses, functions and constants aside."""
    nodes = ast.walk(ast.parse(expression))
    found = {node.id for node in nodes if isinstance(node, ast.Name)}
    return found - FUNCTIONS.keys() - CONSTANTS.keys()


def test_keys_of_a_step_in_the_case_are_its_only_step() -> None:
    (case,) = read(PLAIN + "send.max_tokens = 5\nexpect.status = 400\n")
    (step,) = case.steps
    assert (step.send, step.expect.status, case.where) == ({"max_tokens": 5}, 400, "here")


def test_each_entry_is_a_case_with_its_keys_laid_over() -> None:
    text = PLAIN + "send.a = 1\n[case.each]\nx = {}\ny-z.send.b = 2\n"
    first, second = read(text)
    assert (first.id, first.steps[0].send) == ("theme.one.x", {"a": 1})
    assert (second.id, second.steps[0].send) == ("theme.one.y-z", {"a": 1, "b": 2})
    assert second.title == "One: y z"


def test_cases_share_a_group() -> None:
    text = PLAIN.replace("[[case]]", "[groups.g]\nx.send.a = 1\n[[case]]") + 'each = "g"\n'
    assert [case.id for case in read(text)] == ["theme.one.x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLAIN + "sned.max_tokens = 5\n", "theme.one: sned"),
        (PLAIN + "expect.stauts = 5\n", "expect.stauts"),
        (PLAIN.replace("theme.one", "Theme One"), "id"),
        (PLAIN.replace("theme.one", "other.one"), "belongs into other.toml"),
        (PLAIN + PLAIN.partition("[[case]]")[2].join(["[[case]]", ""]), "two cases"),
        (PLAIN.replace('rule = "One is one."', ""), "rule"),
        (PLAIN + "level = 'WANT'\n", "level"),
        ("[[case]\n", "theme.toml"),
    ],
)
def test_a_faulty_file_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        read(text)


async def test_a_case_that_names_what_is_not_there_is_told_by_its_id() -> None:
    (case,) = read(PLAIN + 'path = "${nobody}"\n')
    with pytest.raises(ConfigError, match=r"theme\.one: no step and no value is called 'nobody'"):
        await Player(ASKING, "tiny", timeout_s=1).play(case)


def test_a_pattern_that_fits_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="no case fits"):
        select(load_cases(), ["no.such"])


def test_every_theme_has_cases() -> None:
    themes = Counter(case.theme for case in load_cases())
    assert len(load_cases()) >= 880  # "some nine hundred", as the README says
    assert min(themes.values()) >= 5


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
def test_a_case_names_only_what_there_is(case: Case) -> None:
    features = {feature.name for feature in load_features()}
    assert set(case.needs) <= features
    known = {*first_names("", "", ASKING)}
    for step in case.steps:
        known |= {step.name}
        expect = step.expect
        assert expect.shape is None or expect.shape in SHAPES
        assert set(expect.stream) <= CHECKS.keys()
        assert expect.error is None or expect.error in STATUS_OF
        for expression in (*expect.holds, *step.provided, *filter(None, [step.until])):
            assert names_in(expression) <= known, expression

"""API.md says what is true: its tables name what the code has."""

from __future__ import annotations

import re
from pathlib import Path

from minimsg.features import FEATURES
from minimsg.prompt.thinking import BUDGETS
from minimsg.protocol.betas import KNOWN
from minimsg.protocol.dialect import Dialect
from minimsg.protocol.gates import FIELDS

PAGE = (Path(__file__).parent.parent / "API.md").read_text()
ALL_THAT_STRICT_KNOWS = Dialect(profile="strict", betas=KNOWN)


def first_column(table: str) -> list[str]:
    """The first cell of every row under `<!-- table: NAME -->`, without its head."""
    found = re.search(rf"<!-- table: {table} -->\n((?:\|.*\n)+)", PAGE)
    assert found, f"no table {table!r} in API.md"
    return [row.split("|")[1].strip().strip("`") for row in found.group(1).splitlines()[2:]]


def test_the_extensions_are_those_that_strict_does_not_know() -> None:
    documented = {name for name in first_column("extensions") if not name.startswith("minimsg-")}
    closed = {field for field, is_open in FIELDS.items() if not is_open(ALL_THAT_STRICT_KNOWS)}
    assert documented == closed


def test_the_budgets_of_efforts_are_those_that_are_kept() -> None:
    for effort, budget in BUDGETS.items():
        assert (f"`{effort}` {budget:,}" if budget else f"`{effort}` has none") in PAGE


def test_every_feature_that_can_be_switched_off_is_named() -> None:
    assert all(f"`{feature}`" in PAGE for feature in FEATURES)

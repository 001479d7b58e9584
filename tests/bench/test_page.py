"""A stored report as Markdown and as a page; expected lines by hand."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from minimsg.bench.markdown import markdown_table
from minimsg.bench.page import page
from minimsg.bench.plot import HEIGHT, MARGIN, TOP, WIDTH, plot
from minimsg.bench.stored import Stored
from minimsg.errors import ConfigError
from minimsg.machine import machine

ROUND = {"read_gb_per_s": 20.0, "load_average": 0.1}
REPORT: dict[str, object] = {
    "kind": "llama-bench",
    "model": "smollm2",
    "ratios": {"decode_1": 2.0},
    "spreads": {"decode_1": {"min": 1.5, "median": 2.0, "max": 4.0}},
    "rounds": {
        "decode_1": [
            ROUND | {"ours": 15.0, "theirs": 10.0, "ratio": 1.5},
            ROUND | {"ours": 20.0, "theirs": 10.0, "ratio": 2.0},
            ROUND | {"ours": 40.0, "theirs": 10.0, "ratio": 4.0},
        ]
    },
    "noise": [],
    "accuracy": {
        "ours": {
            "tokens": 4000, "kl": 0.00941, "mean_difference": 0.3,
            "max_difference": 2.3, "agreement": 0.9703,
        }
    },
    "limits": {
        "read_gb_per_s": 20.0, "matmul_gflops": {"float32": 50.0}, "decode_bytes": 143_000_000,
        "figures": {"decode_1": {"tokens_per_s": 40.0, "share": 0.5}},
    },
    "peer": {"model_type": "llama 256M Q8_0", "build_commit": "<b>&"},
    "settings": {"dtype": "int8"},
    "machine": machine().as_dict(),
    "versions": {"torch": "2.13.0"},
}  # fmt: skip


def test_a_line_of_the_table_has_speed_ratio_limit_and_error() -> None:
    lines = markdown_table([Stored.of(REPORT)]).splitlines()
    assert lines[2] == (
        "| smollm2 int8 beside llama-bench llama 256M Q8_0 | decode_1 | 20.0 | 10.0 "
        "| 2.00 (1.50 to 4.00) | 50% | KL 0.0094, 97.0% |"
    )
    assert "medians of 3 rounds" in lines[4]


def test_what_a_busy_machine_gave_is_marked() -> None:
    busy = REPORT | {"noise": ["load average 3.0 before the start (limit 0.5)"]}
    table = markdown_table([Stored.of(busy)])
    assert "| decode_1\\* |" in table
    assert "no verdict" in table
    assert '<p class="warning">no verdict: load average 3.0' in page(busy)


def test_reports_without_accuracy_or_limits_have_empty_cells() -> None:
    plain = {key: value for key, value in REPORT.items() if key not in ("accuracy", "limits")}
    assert markdown_table([Stored.of(plain)]).splitlines()[2].endswith("|  |  |")


@pytest.mark.parametrize("text", ["{}", "[]", "no json", json.dumps({"kind": "server"})])
def test_a_file_that_is_no_comparison_is_refused_by_name(text: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"other\.json"):
        Stored.read(file)


class Tags(HTMLParser):
    """The tags of a page, and every attribute that could fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetches: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetches += [name for name, _ in attrs if name in ("src", "href", "srcset", "data")]


def test_a_page_fetches_nothing_and_shows_words_as_words() -> None:
    made = page(REPORT)
    tags = Tags()
    tags.feed(made)
    assert tags.fetches == []
    assert not {"script", "link", "iframe", "img", "b"} & set(tags.tags)
    assert not re.search(r"@import|url\(", made)
    assert "&lt;b&gt;&amp;" in made
    assert tags.tags.count("svg") == 1


def test_other_reports_are_pages_of_tables() -> None:
    steps = [{"streams": 1, "stages_ms": {"model": 7.25}}, {"streams": 16}]
    made = page({"kind": "profile", "model": "tiny", "steps": steps, "load_average_before": 0.25})
    assert '<th scope="col">streams</th><th scope="col">stages ms model</th>' in made
    assert "<td>1</td><td>7.25</td>" in made
    assert "<td>16</td><td></td>" in made
    assert "<td>0.25</td>" in made


def test_a_plot_reaches_from_zero_to_the_highest_value() -> None:
    svg = plot("decode_1", {"minimsg": [10.0, 20.0], "other": [0.0, 5.0]})
    ElementTree.fromstring(svg)
    ours, theirs = re.findall(r'points="(.*?)"', svg)
    left, right, bottom = MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN
    assert ours == f"{left:.1f},{(TOP + bottom) / 2:.1f} {right:.1f},{TOP:.1f}"
    assert theirs.startswith(f"{left:.1f},{bottom:.1f} ")

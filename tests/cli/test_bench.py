"""`minimsg bench` as a command: tables for a person, JSON for a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from minimsg.cli.main import main
from minimsg.machine import usable_cores

from .process import Serving

FIGURES = ["decode_1", "decode_8", "decode_16", "prefill_512", "prefill_4096"]


def test_a_running_server_is_measured_with_exact_counts(serving: Serving) -> None:
    flags = ["--streams", "1,4", "--requests", "4", "--prompt-tokens", "300", "--max-tokens", "8"]
    result = CliRunner().invoke(main, ["bench", "--url", serving.url, *flags, "--json", "-"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["settings"]["model"] == "scripted"
    assert report["prompt_length"] == "calibrated with count_tokens"
    assert [level["streams"] for level in report["levels"]] == [1, 4]
    for level in report["levels"]:
        assert (level["requests"], level["errors"]) == (4, {})
        assert level["output_tokens"] == 4 * 8
        assert level["input_tokens"] == pytest.approx(4 * 300, rel=0.1)
        assert 0 < level["ttft_ms"]["p50"] <= level["ttft_ms"]["p99"]
    assert "TTFT" in result.stderr, "the table gives way to the JSON"


def test_a_key_is_never_in_the_report(serving: Serving, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    flags = ["--streams", "1", "--requests", "1", "--max-tokens", "2", "--api-key", "sk-secret"]
    result = CliRunner().invoke(main, ["bench", "--url", serving.url, *flags, "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "sk-secret" not in file.read_text() + result.output


@pytest.mark.parametrize("streams", ["0", "1,", "many", "1,2000"])
def test_a_number_of_streams_that_is_none_is_refused(streams: str) -> None:
    result = CliRunner().invoke(main, ["bench", "--streams", streams, "--model", "x"])
    assert result.exit_code == 2
    assert "1,8,16" in result.output


@pytest.mark.parametrize(("asked", "threads"), [("1", 1), (None, usable_cores())])
def test_both_sides_use_every_core_unless_the_environment_says_otherwise(
    asked: str | None, threads: int
) -> None:
    others = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    script = "from minimsg.bench.versus import default_threads; print(default_threads())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env=others | ({"OMP_NUM_THREADS": asked} if asked else {}),
    )
    assert done.stdout == f"{threads}\n", done.stderr


@pytest.mark.parametrize(
    ("vs", "names"),
    [
        ("transformers", FIGURES),
        ("ordinary", FIGURES),
        ("no-prefix-cache", ["warm_prompt", "shared_prompt"]),
    ],
)
def test_a_quick_comparison_has_the_shape_of_a_real_one(
    vs: str, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path))
    flags = ["--vs", vs, "--quick", "--dtype", "float32", "--threads", "1"]
    result = CliRunner().invoke(main, ["bench", *flags, "--json", "-"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert list(report["ratios"]) == names
    assert list(report["rounds"]) == names
    for rounds in report["rounds"].values():
        assert len(rounds) == 2
        for one in rounds:
            assert one["read_gb_per_s"] > 0
            assert one["ratio"] == pytest.approx(one["ours"] / one["theirs"])
    assert report["agreement"] == {"tokens": 4 * 32, "same": 4 * 32}, "float32 agrees exactly"
    assert report["settings"]["dtype"] == "float32"
    assert report["versions"]["transformers"]
    assert "no verdict" in result.stderr or "minimsg is" in result.stderr

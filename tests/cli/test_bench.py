"""`minimsg bench` as a command: tables for a person, JSON for a program."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest
from click.testing import CliRunner, Result

from minimsg.bench.serving import Served
from minimsg.bench.traced import TRACED
from minimsg.cli.bench import bench
from minimsg.cli.main import main
from minimsg.machine import usable_cores

from .process import Serving

FIGURES = ["decode_1", "decode_8", "decode_16", "prefill_512", "prefill_4096"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for the programs of llama.cpp, and a file for them."""
    folder = tmp_path_factory.mktemp("llama")
    root = Path(__file__).parent.parent.parent
    for name, module in (
        ("llama-bench", 'llama_bench "$0"'),
        ("llama-batched-bench", 'llama_bench "$0"'),
        ("llama-server", "llama_server"),
    ):
        run = f"cd {root} && exec {sys.executable} -m tests.bench.{module}"
        (folder / name).write_text(f'#!/bin/sh\n{run} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "model.gguf").write_bytes(b"GGUF")
    return folder


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


def test_a_side_that_is_traced_asks_for_a_record_each_time(serving: Serving) -> None:
    def num_records() -> int:
        opener = build_opener(ProxyHandler({}))
        with opener.open(serving.url + "/minimsg/traces") as answer:
            return len(json.load(answer)["data"])

    with closing(Served(serving.url)) as plain, closing(Served(serving.url, TRACED)) as traced:
        before = num_records()
        assert len(list(plain.prefilling(["one"]))) == 1
        assert num_records() == before
        assert len(list(traced.prefilling(["two", "three"]))) == 2
        assert num_records() == before + 2


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
    script = "from minimsg.bench.contests import default_threads; print(default_threads())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env=others | ({"OMP_NUM_THREADS": asked} if asked else {}),
    )
    assert done.stdout == f"{threads}\n", done.stderr


def quick(monkeypatch: pytest.MonkeyPatch, folder: Path, *flags: str) -> Result:
    """`minimsg bench --quick` with the tiny model; the report is on the standard output."""
    monkeypatch.setenv("MINIMSG_DATA_DIR", str(folder))
    common = ["--quick", "--dtype", "float32", "--threads", "1", "--json", "-"]
    result = CliRunner().invoke(main, ["bench", *flags, *common])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize(
    ("vs", "names", "sides"),
    [
        ("transformers", FIGURES, ["ours", "theirs"]),
        ("ordinary", FIGURES, []),
        ("in-process", FIGURES, []),
        ("untraced", FIGURES, []),
        ("no-prefix-cache", ["warm_prompt", "shared_prompt"], []),
    ],
)
def test_a_quick_comparison_has_the_shape_of_a_real_one(
    vs: str, names: list[str], sides: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = quick(monkeypatch, tmp_path, "--vs", vs)
    report = json.loads(result.stdout)
    assert list(report["ratios"]) == names
    assert list(report["rounds"]) == names
    for rounds in report["rounds"].values():
        assert len(rounds) == 2
        for one in rounds:
            assert one["read_gb_per_s"] > 0
            assert one["ratio"] == pytest.approx(one["ours"] / one["theirs"])
    if vs not in ("in-process", "untraced"):
        agreed = {"tokens": 4 * 32, "same": 4 * 32}
        assert report["agreement"] == agreed, "float32 agrees exactly"
    assert list(report["accuracy"]) == sides
    for accuracy in report["accuracy"].values():
        assert (accuracy["agreement"], accuracy["kl"] < 1e-6) == (1.0, True)
    assert report["settings"]["dtype"] == "float32"
    assert report["versions"]["transformers"]
    assert "no verdict" in result.stderr or "minimsg is" in result.stderr
    if vs == "untraced":
        assert [step["streams"] for step in report["peer"]["untraced_steps"]] == [1, 8, 16]
        assert "wanted are less than 10%" in result.stderr
        assert "wanted are less than 1%" in result.stderr


def test_llama_cpp_is_compared_by_its_programs_and_the_page_shows_it(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "report.html"
    flags = ["--vs", "llama-bench", "--llama-bench", str(llama / "llama-bench"), "--limit"]
    flags += ["--gguf", str(llama / "model.gguf"), "--html", str(page)]
    result = quick(monkeypatch, tmp_path, *flags)
    report = json.loads(result.stdout)
    assert list(report["ratios"]) == FIGURES
    assert report["peer"]["build_commit"] == "abc1234"
    assert list(report["accuracy"]) == ["ours"]
    assert report["limits"]["figures"]["decode_1"]["share"] > 0
    assert page.read_text().count("<svg") == len(FIGURES)
    stored = tmp_path / "report.json"
    stored.write_text(result.stdout)
    table = CliRunner().invoke(main, ["bench", "--table", str(stored)])
    assert [line.split(" | ")[1] for line in table.output.splitlines()[2:7]] == (
        FIGURES if not report["noise"] else [f"{figure}\\*" for figure in FIGURES]
    )


def test_our_server_is_compared_with_llama_cpps(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["--llama-server", str(llama / "llama-server"), "--gguf", str(llama / "model.gguf")]
    flags += ["--accuracy-prompts", "0"]
    report = json.loads(quick(monkeypatch, tmp_path, "--vs", "llama-server", *flags).stdout)
    assert list(report["ratios"]) == FIGURES
    assert report["peer"] == {"model": "stand-in"}


def test_a_profile_shows_the_engines_own_cost_and_a_server_under_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = quick(monkeypatch, tmp_path, "--profile")
    report = json.loads(result.stdout)
    assert "wanted are at most 5%" in result.stderr.replace("\n", " ")
    assert [step["streams"] for step in report["steps"]] == [1, 8, 16]
    for step in report["steps"]:
        assert 0 < step["own_percent"] < 100
    for load in report["server"]:
        assert (load["answered"], load["errors"]) == (load["streams"], {})
        assert load["lag_ms"]["p50"] <= load["lag_ms"]["p99"]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--vs", "llama-bench", "--quick"], "--llama-bench, the program"),
        (["--vs", "transformers", "--profile"], "one by one"),
        (["--table"], "JSON reports"),
    ],
)
def test_what_a_comparison_lacks_is_named(
    flags: list[str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path))
    result = CliRunner().invoke(main, ["bench", *flags])
    assert result.exit_code != 0
    assert why in result.output


@pytest.mark.parametrize("file", ["README.md", ".ci/bench"])
def test_every_flag_that_is_shown_exists(file: str) -> None:
    text = (Path(__file__).parent.parent.parent / file).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if re.match(r" *(minimsg bench|measure) ", line)]
    assert len(lines) >= 6
    flags = {flag for line in lines for flag in re.findall(r" (--[a-z-]+)", line)}
    known = {name for parameter in bench.params for name in parameter.opts}
    assert flags <= known

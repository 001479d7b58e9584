"""llama.cpp's own benchmarks as a side, with stand-ins for its programs."""

from __future__ import annotations

import json
import sys
from itertools import islice, pairwise
from pathlib import Path

import pytest

from minimsg.bench.llama import LlamaBench
from minimsg.errors import ConfigError

from . import llama_bench


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The path of a `llama-bench` with its sibling beside it."""
    for name in ("llama-bench", "llama-batched-bench"):
        script = f'#!/bin/sh\nexec {sys.executable} {llama_bench.__file__} "$0" "$@"\n'
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    return tmp_path / "llama-bench"


def side(program: Path) -> LlamaBench:
    return LlamaBench(program, program.parent / "model.gguf", threads=2)


def asked(program: Path) -> list[dict[str, str]]:
    """The flags of each run as pairs; a flag without a value is left out."""
    lines = (program.parent / "asked.jsonl").read_text().splitlines()
    flags = [json.loads(line)["flags"] for line in lines]
    return [dict(pairwise(each)) for each in flags]


def test_a_round_of_reading_is_one_run_of_the_prompts_length(program: Path) -> None:
    prompts = [[1] * 512, [2] * 512]
    assert list(side(program).prefilling(prompts)) == [llama_bench.PREFILL_SPEED] * 2
    for flags in asked(program):
        assert (flags["-p"], flags["-n"], flags["-r"], flags["-t"]) == ("512", "0", "1", "2")


def test_a_round_of_decoding_begins_where_the_one_before_ended(program: Path) -> None:
    figures = side(program).decoding([[1] * 256] * 8, new_tokens=16)
    assert list(islice(figures, 3)) == [llama_bench.DECODE_SPEED] * 3
    assert [flags["-npp"] for flags in asked(program)] == ["256", "272", "288"]
    for flags in asked(program):
        assert (flags["-npl"], flags["-ntg"]) == ("8", "16")
        assert int(flags["-c"]) >= 8 * (int(flags["-npp"]) + 16)


def test_the_report_says_what_was_built(program: Path) -> None:
    assert side(program).facts()["build_commit"] == "abc1234"


def test_a_file_that_is_missing_is_named_before_anything_runs(program: Path) -> None:
    program.with_name("llama-batched-bench").unlink()
    with pytest.raises(ConfigError, match="llama-batched-bench is no file"):
        side(program)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo cannot load >&2; exit 3", "ended with 3: cannot load"),
        ("echo nothing", "no JSON object"),
        ("echo '[{\"avg_ts\": 0}]'", "gave no avg_ts"),
    ],
)
def test_a_run_that_fails_is_told_in_its_own_words(program: Path, script: str, why: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(ConfigError, match=why):
        next(side(program).prefilling([[1, 2]]))

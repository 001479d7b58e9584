"""The benchmark of the kernels runs, counts right, and gives no figures of a wrong kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from minimsg.kernels import bench, peaks
from minimsg.kernels.bench import QUICK, Shapes, Target, accuracy, decode, main, prefill
from minimsg.kernels.bench_steps import Heads
from minimsg.kernels.peaks import Peaks
from minimsg.kernels.reference import Backend

CPU = torch.device("cpu")
PEAKS = Peaks(bytes_per_s=1e9, flop_per_s=1e12)


class Blind(Backend):
    """Sees one token less than it should."""

    def attention(self, query, key, value, pages, layout, *, scale, window=None):  # type: ignore[no-untyped-def]
        return super().attention(query, key, value, pages, layout, scale=scale, window=20)


@pytest.fixture
def one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is timed takes a second."""
    monkeypatch.setattr(bench, "seconds", lambda run, device: 1.0)


def test_a_quick_run_on_the_cpu_reports_every_part(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert main(["--device", "cpu", "--quick", "--kernel", "cpu", "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert (report["kernel"], report["dtype"]) == ("cpu", "bfloat16")
    assert {row["kernel"] for row in report["accuracy"]} >= {"cpu", "reference", "tiled"}
    for part in ("decode", "prefill", "model"):
        assert report[part]
        assert all(row["share"] > 0 for row in report[part])


def test_a_wrong_kernel_ends_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("minimsg.kernels.cpu.Backend", Blind)
    file = tmp_path / "figures.json"
    assert main(["--quick", "--kernel", "reference", "--json", str(file)]) == 1
    assert "decode" not in json.loads(file.read_text())


@pytest.mark.usefixtures("one_second")
def test_decoding_reads_keys_and_values_of_every_token_once() -> None:
    """3 sequences x 40 tokens x 2 heads x 64 numbers x 2 bytes, keys and values; two layers."""
    layer_bytes = 3 * 40 * 2 * 64 * 2 * 2
    shapes = Shapes(Heads(4, 2, 64), (40,), (3,), cache_bytes=layer_bytes + 1)
    (row,) = decode(Target(Backend(), CPU, torch.bfloat16, PEAKS), shapes)
    assert row["microseconds"] == pytest.approx(0.5e6)
    assert row["gb_per_s"] == pytest.approx(2 * layer_bytes / 1e9)
    assert row["share"] == pytest.approx(2 * layer_bytes / 1e9)


@pytest.mark.usefixtures("one_second")
def test_a_prompt_multiplies_every_query_with_every_key_before_it_twice() -> None:
    """Of 3 tokens there are 6 pairs; a product of 64 numbers is 128 operations, 4 heads."""
    shapes = Shapes(Heads(4, 2, 64), prompts=(3,))
    (row,) = prefill(Target(Backend(), CPU, torch.float32, PEAKS), shapes)
    assert row["tflop_per_s"] == pytest.approx(6 * 128 * 4 * 2 / 1e12)
    assert row["share"] == row["tflop_per_s"]


def test_the_reference_is_within_tolerance_in_every_format_and_case() -> None:
    rows = list(accuracy(CPU, ["minimsg.kernels.reference"]))
    assert len(rows) == 12
    assert all(row["is_right"] for row in rows)


def test_the_median_is_of_runs_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 13.0, 20.0, 25.0, 30.0, 34.0])
    monkeypatch.setattr(peaks, "perf_counter", lambda: next(clock))
    runs: list[int] = []
    assert peaks.seconds(lambda: runs.append(1), CPU, repeats=3) == 4
    assert len(runs) == 4
    assert QUICK.cache_bytes == 1  # one layer

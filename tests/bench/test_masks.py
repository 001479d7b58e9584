"""What a grammar costs is measured on real steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from minimsg.bench.masks import Timed
from minimsg.cli.main import main


def test_the_report_has_the_cost_of_each_way_of_holding_a_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINIMSG_DATA_DIR", str(tmp_path))
    flags = ["--vs", "masks", "--quick", "--dtype", "float32", "--threads", "1", "--json", "-"]
    result = CliRunner().invoke(main, ["bench", *flags])
    assert result.exit_code == 0, result.output
    costs = json.loads(result.stdout)["costs"]
    assert list(costs) == ["forced tool", "format", "auto, strict"]
    for cost in costs.values():
        assert cost["tokens"] == 15
        assert 0 < cost["median_ms"] <= cost["max_ms"]
        assert cost["mean_ms"] <= cost["max_ms"]
        assert cost["step_ms"] > 0
        assert cost["percent"] > 0


class Slow:
    """A hook that allows two ids."""

    def mask(self) -> list[int]:
        return [1, 2]

    def forced(self) -> int | None:
        return None

    def advance(self, id: int) -> None: ...

    def rollback(self, n: int) -> None: ...


def test_a_timed_hook_says_its_script_first_and_counts_every_token() -> None:
    hook = Timed(Slow(), [7, 8])
    said = []
    for _ in range(3):
        said.append(hook.forced())
        hook.mask()
        hook.advance(0)
    assert said == [7, 8, None]
    assert len(hook.times_s) == 4
    assert all(seconds > 0 for seconds in hook.times_s[:3])

"""`minimsg batch run --ray` on a local Ray of two workers, one of which is killed amid the work.

Ray lives in an environment of its own (`fetched.py`), in processes of its own, without
telemetry and with loopback addresses only. Reads: MINIMSG_CLIENT_CACHE.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from minimsg.bench.foreign import quiet_environment

from ..offline.files import request, results, write  # noqa: TID252 tests have no absolute name
from . import fetched

pytestmark = [pytest.mark.client, pytest.mark.timeout(1_200)]

WORKER = "MapWorker"  # in the title of the processes that hold a model
RUN_S = 600


def start(python: Path, folder: Path) -> subprocess.Popen[str]:
    """The command, on two workers."""
    files = [str(folder / "requests.jsonl"), "tiny", "-o", str(folder / "results.jsonl")]
    flags = ["--data-dir", str(folder), "--threads", "1", "--ray=local", "--workers", "2"]
    environment = os.environ | quiet_environment() | {"PYTHONPATH": str(fetched.ROOT)}
    return subprocess.Popen(
        [str(python), "-m", "minimsg", "batch", "run", *files, *flags],
        env=environment | {"RAY_USAGE_STATS_ENABLED": "0", "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes beneath `process` that hold a model."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if WORKER in " ".join(child.cmdline()):
                found.append(child)
        except psutil.Error:  # it ended between the two calls
            continue
    return found


def test_a_worker_that_is_killed_costs_no_request_and_none_is_answered_twice(
    cache: Path, tmp_path: Path
) -> None:
    python, output = fetched.ray_environment(cache), tmp_path / "results.jsonl"
    items = [request(f"r{n}", max_tokens=60) for n in range(1_000)]
    write(tmp_path / "requests.jsonl", *items, request("wrong", "nobody"))
    process = start(python, tmp_path)
    try:
        deadline = time.monotonic() + RUN_S
        while not (output.exists() and output.stat().st_size) or len(workers(process)) < 2:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        workers(process)[0].kill()
        size = output.stat().st_size
        said, _ = process.communicate(timeout=RUN_S)
    finally:
        process.kill()
    assert process.returncode == 0, said
    found = results(output)
    assert set(found) == {item["custom_id"] for item in items} | {"wrong"}
    assert [name for name, result in found.items() if result["type"] == "errored"] == ["wrong"]
    assert output.stat().st_size > size, "the worker was killed after the end"


def test_a_second_run_finishes_what_is_missing(cache: Path, tmp_path: Path) -> None:
    python, output = fetched.ray_environment(cache), tmp_path / "results.jsonl"
    write(tmp_path / "requests.jsonl", *(request(f"r{n}") for n in range(40)))
    for _ in range(2):
        said, _ = (process := start(python, tmp_path)).communicate(timeout=RUN_S)
        assert process.returncode == 0, said
        assert len(results(output)) == 40
        kept = output.read_bytes().splitlines(keepends=True)[:15]
        output.write_bytes(b"".join(kept) + b'{"custom_id":"r')
    said, _ = (process := start(python, tmp_path)).communicate(timeout=RUN_S)
    assert process.returncode == 0, said
    assert output.read_bytes().startswith(b"".join(kept))
    assert len(results(output)) == 40

"""Answers a file of requests on a Ray cluster: each worker of Ray Data holds a model.

The requests go from here to the workers and the results come back: this process alone reads
the one file and writes the other, so the machines need to share no disk. Where a worker is
lost, Ray starts another and gives it the same requests again; what was answered twice is
written once. Nothing is reported to Ray's makers (RAY_USAGE_STATS_ENABLED).
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from threading import Thread
from typing import Any, Final

import pyarrow
import ray
import ray.data

from minimsg.errors import ConfigError, GenerationFailed, MinimsgError
from minimsg.machine import usable_cores
from minimsg.offline.answering import Answerer, Asked, refused
from minimsg.offline.requests import Line
from minimsg.offline.results import ResultsFile

LOCAL: Final = "local"
BLOCK_LINES: Final = 16  # requests that a worker gets together, and that are lost with it
BLOCK_BYTES: Final = 1 << 20
LOOK_S: Final = 0.5  # between two looks at the engine
SCHEMA: Final = pyarrow.schema(
    [("custom_id", pyarrow.string()), ("kind", pyarrow.string()), ("body", pyarrow.large_binary())]
)

Row = dict[str, Any]


def run_on_ray(
    asked: Asked,
    lines: Iterator[Line],
    results: ResultsFile,
    show: Callable[[], None],
    *,
    address: str,
    num_workers: int | None,
) -> None:
    """Add a result to `results` for each of `lines`; `show` is called after each.

    Raises DiskFailed, GenerationFailed, and ConfigError: the cluster, or what a worker says.
    """
    with _cluster(address, num_workers):
        has_gpus = _resources("GPU") > 0 and asked.engine.device in ("auto", "cuda")
        number = num_workers or int(_resources("GPU") if has_gpus else len(ray.nodes()))
        asked = _with_threads(asked, number) if address == LOCAL and not has_gpus else asked
        blocks = [ray.put(block) for block in _blocks(_sound(lines, results, show))]
        if not blocks:
            return
        workers = _share(asked, number, has_gpus=has_gpus)
        answered = ray.data.from_arrow_refs(blocks).map_batches(Worker, **workers)
        for row in answered.iter_rows():
            if row["custom_id"] not in results.done:
                results.append(row["custom_id"], row["kind"], row["body"])
                show()


class Worker:
    """A loaded model in a process of Ray; several threads of it ask at once."""

    def __init__(self, asked: Asked) -> None:
        """Raises what `Answerer.open` raises."""
        self._loop = asyncio.new_event_loop()
        Thread(target=self._loop.run_forever, name="answers", daemon=True).start()
        self._stack = AsyncExitStack()  # never closed: Ray ends the process
        self._answerer = self._await(self._stack.enter_async_context(Answerer.open(asked)))

    def __call__(self, requests: pyarrow.Table) -> pyarrow.Table:
        """The results of a block of requests. Raises GenerationFailed."""
        rows: list[Row] = self._await(self._answers(requests.to_pylist()))
        return pyarrow.Table.from_pylist(rows, schema=SCHEMA)

    async def _answers(self, requests: list[Row]) -> list[Row]:
        answering = asyncio.gather(*(self._row(each) for each in requests))
        while not answering.done():
            await asyncio.wait({answering}, timeout=LOOK_S)
            self._answerer.check()
        return answering.result()

    async def _row(self, request: Row) -> Row:
        line = Line(0, b"", request["custom_id"], request["params"])
        kind, body = await self._answerer.answer(line)
        return {"custom_id": line.custom_id, "kind": kind, "body": body}

    def _await(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@contextmanager
def _cluster(address: str, num_workers: int | None) -> Iterator[None]:
    """Ray for as long as the block lasts; what fails in it is told in our words."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    quiet: Row = {"log_to_driver": False, "logging_level": "WARNING"}
    here: Row = {
        "num_cpus": max(num_workers or 1, usable_cores()),
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
    }
    try:
        ray.init(address=address, **quiet, **(here if address == LOCAL else {}))
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ConfigError(f"no Ray cluster at {address}: {error}") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    except ray.exceptions.RayError as error:
        raise _told(error) from error
    finally:
        ray.shutdown()


def _told(error: BaseException) -> MinimsgError:
    """What a worker has raised, if it is an error of ours; else Ray's."""
    cause: BaseException | None = error
    while cause is not None:
        inner = getattr(cause, "cause", None)
        for each in (inner, cause):
            if isinstance(each, MinimsgError):
                return each
        cause = inner if isinstance(inner, BaseException) else cause.__cause__
    return GenerationFailed(f"Ray gave up: {str(error).strip().splitlines()[-1]}")


def _resources(name: str) -> float:
    return float(ray.cluster_resources().get(name, 0))


def _with_threads(asked: Asked, num_workers: int) -> Asked:
    """On one machine the workers share its cores."""
    if asked.engine.threads is not None:
        return asked
    threads = max(1, usable_cores() // num_workers)
    return replace(asked, engine=replace(asked.engine, threads=threads))


def _share(asked: Asked, number: int, *, has_gpus: bool) -> Row:
    """What `map_batches` is to run. Raises ConfigError for more than the cluster has."""
    name = "GPU" if has_gpus else "CPU"
    if _resources(name) < number:
        raise ConfigError(
            f"--workers {number}: each needs a {name}, and the cluster has {_resources(name):g}"
        )
    at_once = -(-asked.num_at_once // BLOCK_LINES)
    pool = ray.data.ActorPoolStrategy(
        size=number,
        max_concurrent_calls_per_actor=at_once,
        max_tasks_in_flight_per_actor=at_once + 1,
        enable_true_multi_threading=True,
    )
    return {
        "compute": pool,
        "fn_constructor_args": (asked,),
        "batch_size": None,  # a block at a time
        "batch_format": "pyarrow",
        "num_gpus": 1 if has_gpus else 0,
        "num_cpus": 1,
    }


def _sound(lines: Iterator[Line], results: ResultsFile, show: Callable[[], None]) -> Iterator[Line]:
    """The lines that a model is to see; the others get their results at once."""
    for line in lines:
        if line.fault is None:
            yield line
        else:
            assert line.custom_id is not None
            results.append(line.custom_id, "errored", refused(line.fault))
            show()


def _blocks(lines: Iterator[Line]) -> Iterator[pyarrow.Table]:
    rows: list[Row] = []
    num_bytes = 0
    for line in lines:
        rows.append({"custom_id": line.custom_id, "params": line.params})
        num_bytes += len(line.params)
        if len(rows) == BLOCK_LINES or num_bytes >= BLOCK_BYTES:
            yield pyarrow.Table.from_pylist(rows)
            rows, num_bytes = [], 0
    if rows:
        yield pyarrow.Table.from_pylist(rows)

"""Answers a file of requests in this process, as many at once as keep the engine full.

A request is read when it is its turn, and its result written when it is there: in memory are
those in work, and ids. A first Ctrl-C or SIGTERM begins nothing more and lets what is in work
end, for a time; a second ends at once. Either way the file can be gone on with.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Final

from minimsg.offline.answering import Answerer, Asked
from minimsg.offline.requests import Line
from minimsg.offline.results import ResultsFile
from minimsg.server.signals import signals

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5  # between two looks at signals, the engine and the disk


async def run(
    asked: Asked, lines: Iterator[Line], results: ResultsFile, show: Callable[[], None]
) -> None:
    """Add a result to `results` for each of `lines`, or fewer after a signal.

    `show` is called after each. Raises what `Answerer.open` raises, DiskFailed,
    GenerationFailed, and ConfigError if the requests change meanwhile.
    """
    async with Answerer.open(asked) as answerer:
        await _Run(answerer, lines, results, show).run(asked)


class _Run:
    def __init__(
        self,
        answerer: Answerer,
        lines: Iterator[Line],
        results: ResultsFile,
        show: Callable[[], None],
    ) -> None:
        self._answerer = answerer
        self._lines = lines
        self._results = results
        self._show = show
        self._num_in_work = 0
        self._is_stopping = False

    async def run(self, asked: Asked) -> None:
        tasks = [asyncio.create_task(self._work()) for _ in range(asked.num_at_once)]
        working = asyncio.gather(*tasks)
        try:
            with signals() as received:
                await self._watch(working, received, asked.server.drain_timeout_s)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            with suppress(asyncio.CancelledError):
                await working  # the first failure

    async def _work(self) -> None:
        """Answer one request after the other."""
        while not self._is_stopping:
            if (line := next(self._lines, None)) is None:
                return
            assert line.custom_id is not None
            self._num_in_work += 1
            try:
                result = await self._answerer.answer(line)
            finally:
                self._num_in_work -= 1
            self._results.append(line.custom_id, *result)
            self._show()

    async def _watch(
        self, working: asyncio.Future[list[None]], received: asyncio.Queue[int], drain_s: float
    ) -> None:
        """Return when the work is over, or is to be ended."""
        deadline = float("inf")
        while not working.done() and monotonic() < deadline:
            await asyncio.wait({working}, timeout=LOOK_S)
            self._answerer.check()
            await asyncio.to_thread(self._results.sync)
            if not received.empty():
                received.get_nowait()
                deadline = 0 if self._is_stopping else monotonic() + drain_s
                self._stop(drain_s)

    def _stop(self, drain_s: float) -> None:
        """Begin nothing more."""
        if not self._is_stopping:
            logger.warning(
                "stopping: %d requests are in work and may take %g s more; a second Ctrl-C "
                "ends at once",
                self._num_in_work,
                drain_s,
            )
        self._is_stopping = True

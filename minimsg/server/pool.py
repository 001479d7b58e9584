"""Where bodies are prepared: small ones in a thread, big ones, images and PDFs in a process.

A big body would hold Python's lock against the event loop and the engine for seconds,
and a thread cannot be stopped. A process can: work that is cancelled or late, or an image
or PDF that breaks its decoder, ends with its process, and the next body gets a new one. Requests
and results cross as bytes and JSON over pipes (`prepare_process.py` is the other end), never
as pickles.
Invariant: a process is idle, or owned by exactly one running `_in_process`.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Final, TypeVar, cast

from minimsg.errors import InternalError, InvalidRequest, Overloaded, RequestTimeout
from minimsg.limits import LIMITS
from minimsg.protocol.dialect import PLAIN, Dialect
from minimsg.server.explain import Explained
from minimsg.server.pdf_guard import cause_of
from minimsg.server.prepare import NOTHING, Counted, Known, NamedUrls, Prepared, Served
from minimsg.server.prepare_process import ERRAND, REPLY, SETTINGS, Errand, Failure

NUM_THREADS: Final = 1  # with the engine's, as many as can take turns with the event loop
NUM_PROCESSES: Final = 2
HUGE_BYTES: Final = 1 << 20
MAX_BIG_BODIES: Final = 64  # at once,
MAX_BIG_BYTES: Final = 512 << 20  # with what they name
# Never reached: a pipe that is paused keeps a killed process from being seen to end.
MAX_REPLY_BYTES: Final = 1 << 30

# The end of `application/pdf` in JSON, whose letters and slash may be written with escapes.
PDF: Final = re.compile(rb'(?:/|\\u002[fF])(?:p|\\u0070)(?:d|\\u0064)(?:f|\\u0066)"')

R = TypeVar("R", Prepared, Counted, Explained, NamedUrls)
Work = Callable[[bytes, Served, Dialect, Known], R]


class PreparePool:
    """Runs the functions of `prepare.py` beside the event loop; processes start when needed."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="prepare")
        self._slots = asyncio.Semaphore(NUM_PROCESSES)
        self._slow_slots = asyncio.Semaphore(NUM_PROCESSES - 1)
        self._idle: list[Process] = []
        self._num_big = 0
        self._big_bytes = 0

    async def run(
        self, work: Work[R], body: bytes, dialect: Dialect = PLAIN, known: Known = NOTHING
    ) -> R:
        """What `work` makes of `body`. Raises RequestError."""
        is_big = len(body) + known.num_chars > LIMITS.inline_body_bytes
        sees = self._served.chat.vision is not None
        # A huge body is not searched: it is slow anyway, and searching takes 10 ns a byte.
        is_slow = len(body) > HUGE_BYTES or known.has_pdfs or may_hold_pdfs(body)
        if is_big or is_slow or (sees and may_hold_images(body)):
            errand = Errand(work.__name__, len(body), dialect, known)
            return await self._in_turn(work, body, errand, is_slow)
        loop = asyncio.get_running_loop()
        async with _deadline():
            return await loop.run_in_executor(
                self._threads, work, body, self._served, dialect, known
            )

    async def close(self) -> None:
        """End every process; what still runs is ended by whoever waits for it."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        while self._idle:
            await _end(self._idle.pop())

    async def _in_turn(self, work: Work[R], body: bytes, errand: Errand, is_slow: bool) -> R:
        size = len(body) + errand.known.num_chars
        if self._num_big >= MAX_BIG_BODIES or self._big_bytes + size > MAX_BIG_BYTES:
            raise Overloaded("Too many large requests are being read; try again.")
        self._num_big += 1
        self._big_bytes += size
        try:
            async with _deadline(), self._turn(is_slow), self._slots:
                return await self._in_process(work, body, errand)
        finally:
            self._num_big -= 1
            self._big_bytes -= size

    def _turn(self, is_slow: bool) -> AbstractAsyncContextManager[object]:
        """Huge bodies and PDFs, which take seconds, never hold all processes."""
        return self._slow_slots if is_slow else nullcontext()

    async def _in_process(self, work: Work[R], body: bytes, errand: Errand) -> R:
        process = await self._take()
        is_usable = False
        try:
            reply = REPLY.validate_json(await _exchange(process, errand, body))
            is_usable = True
        except BrokenAt as broken:
            if (why := cause_of(await process.wait())) is not None:
                raise InvalidRequest(broken.path, why) from None
            raise InternalError("The request could not be prepared.") from broken
        except (EOFError, ConnectionError) as error:
            raise InternalError("The request could not be prepared.") from error
        finally:
            if is_usable:
                self._idle.append(process)
            else:
                await _end(process)
        if isinstance(reply, Failure):
            raise reply.error()
        return cast("R", reply)  # the other end ran the same function

    async def _take(self) -> Process:
        """An idle process that still lives, else a new one."""
        while self._idle:
            process = self._idle.pop()
            if process.returncode is None:
                return process
        return await self._start()

    async def _start(self) -> Process:
        served = self._served
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "minimsg.server.prepare_process"),
            *(str(served.chat.folder), SETTINGS.dump_json(served.settings).decode()),
            stdin=PIPE,
            stdout=PIPE,
            limit=MAX_REPLY_BYTES,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # Ctrl-C is for the server, which ends its processes itself
        )


class BrokenAt(Exception):
    """A process has ended while it read the PDF at `path`."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


def may_hold_pdfs(body: bytes) -> bool:
    """False only if none is in it, however the type is written."""
    return PDF.search(body) is not None


def may_hold_images(body: bytes) -> bool:
    """False only if none is in it: the word may be written with escapes."""
    return b"image" in body or b"\\u" in body


@asynccontextmanager
async def _deadline() -> AsyncIterator[None]:
    limit = LIMITS.prepare_timeout_s
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        why = (
            f"Checking and tokenizing the request took longer than {limit:g} s; send a shorter one."
        )
        raise RequestTimeout(why, headers={"x-should-retry": "false"}) from None


async def _exchange(process: Process, errand: Errand, body: bytes) -> bytes:
    """The reply. Raises EOFError, ConnectionError, BrokenAt if the process ends before."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(ERRAND.dump_json(errand) + b"\n" + body)
    await process.stdin.drain()
    path = ""
    try:
        while (line := await process.stdout.readuntil()).startswith(b"@"):
            path = line[1:-1].decode()
        return await process.stdout.readexactly(int(line))
    except EOFError:
        if path:
            raise BrokenAt(path) from None
        raise


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()

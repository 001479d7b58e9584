"""What stands around the reading of a PDF in a process that prepares bodies.

PDFium cannot be stopped and may break, so its process is what ends: by the system, once it
has computed too long, or by its own fault, at a lack of memory above all. Before that the
process has announced at which PDF it is, so that the other end (`pool.py`) can tell its client.
Knows limits and signals; no PDF.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from minimsg.limits import LIMITS
from minimsg.prompt.pdf import UNREADABLE
from minimsg.prompt.pdfs import PathGuard

STATM: Final = Path("/proc/self/statm")  # pages of memory; Linux only
BREAKS: Final = (
    signal.SIGABRT,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGSEGV,
    signal.SIGTRAP,
)


def guarding(announce: Callable[[str], None]) -> PathGuard:
    """A guard that calls `announce` with the path of each PDF, and with "" when it is left."""

    @contextmanager
    def guard(path: str) -> Iterator[None]:
        announce(path)
        with _limit(resource.RLIMIT_CPU, _time_s()), _limit(resource.RLIMIT_AS, _memory_bytes()):
            yield
        announce("")

    return guard


def cause_of(status: int) -> str | None:
    """Why a process ended while a PDF was read, for its client; None: it was not the PDF."""
    if status == -signal.SIGXCPU:
        return f"{UNREADABLE}: it takes more than {LIMITS.pdf_time_s} s of computing"
    if -status in BREAKS:
        return f"{UNREADABLE}: it takes too much memory, or breaks what reads it"
    return None


@contextmanager
def _limit(kind: int, most: int | None) -> Iterator[None]:
    """No more of a resource than `most`, where the system can say so."""
    soft, hard = resource.getrlimit(kind)
    if most is None or (soft != resource.RLIM_INFINITY and soft <= most):
        yield
        return
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


def _time_s() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int(used.ru_utime + used.ru_stime) + 1 + LIMITS.pdf_time_s


def _memory_bytes() -> int | None:
    if not STATM.exists():
        return None
    pages = int(STATM.read_text("ascii").split()[0])
    return pages * resource.getpagesize() + LIMITS.pdf_memory_bytes

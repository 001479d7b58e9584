"""What a log may say of an unexpected exception: its type and its place.

Not its message: that may quote what a client sent.
"""

from __future__ import annotations

import logging
import traceback


def trace(error: BaseException) -> str:
    """Frames and type of `error` and of what it came from, without any message."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    cause = error.__cause__ or error.__context__
    before = f"{trace(cause)}\n" if cause is not None else ""
    return f"{before}{frames}{type(error).__module__}.{type(error).__qualname__}"


class WithoutMessages(logging.Filter):
    """Puts `trace` in the place of the tracebacks that aiohttp logs."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            record.msg, record.args = f"{record.getMessage()}\n{trace(error)}", ()
            record.exc_info = None
        return True

"""What a log may say of an unexpected exception: its type and its place.

Not its message: that may quote the prompt.
"""

from __future__ import annotations

import traceback


def trace(error: BaseException) -> str:
    """Frames and type of `error` and of what it came from, without any message."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    cause = error.__cause__ or error.__context__
    before = f"{trace(cause)}\n" if cause is not None else ""
    return f"{before}{frames}{type(error).__module__}.{type(error).__qualname__}"

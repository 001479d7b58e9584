"""Log lines on the terminal: one record, one line.

Control characters are escaped, so that a name sent by a client can neither forge a
line nor drive the terminal. What a record may hold (ids, sizes, times; never prompt
text or keys) is decided where it is written.
"""

from __future__ import annotations

import logging

from minimsg.text.control import escape

LEVELS = ("debug", "info", "warning", "error")


class OneLine(logging.Formatter):
    """`time level logger: message`, tracebacks apart, always on one line."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escape(super().formatMessage(record))


def configure(level: str) -> None:
    """Send the log of minimsg and its libraries to stderr, from `level` on."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # One line a request is ours to write, with the id that the client saw.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)

"""The environment in which other people's programs and libraries run beside ours.

A benchmark compares and a test of a client asks our server; neither reports: telemetry
and look-ups are switched off by the switches that the programs document, and what ignores
them meets a proxy that is nobody. Set it before the import of the library; libraries read
it once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Port 9 is "discard" (RFC 863); nothing listens there, so a connection is refused at once.
CLOSED = "http://127.0.0.1:9"


def quiet_environment() -> dict[str, str]:
    """Variables to add to a foreign program's environment."""
    switches = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DO_NOT_TRACK": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    proxies = {
        name: CLOSED
        for lower in ("http_proxy", "https_proxy", "all_proxy")
        for name in (lower, lower.upper())
    }
    return switches | proxies | {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


@contextmanager
def quiet() -> Iterator[None]:
    """This process with the quiet environment, and with its own again afterwards."""
    before = dict(os.environ)
    os.environ.update(quiet_environment())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)

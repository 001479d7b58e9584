"""`minimsg` as a process of its own, and what it says."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from dataclasses import dataclass

MINIMSG = [sys.executable, "-c", "from minimsg.cli.main import main; main()"]
START_S = 120


@dataclass
class Serving:
    """A running `minimsg serve scripted`, and what it said until it was ready."""

    process: subprocess.Popen[bytes]
    said: str

    @property
    def url(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+", self.said)
        assert found
        return found.group()


def read_until(process: subprocess.Popen[bytes], end: str) -> str:
    """What the process says up to `end`; fails if it ends or takes too long."""
    assert process.stdout is not None
    said = b""
    deadline = time.monotonic() + START_S
    while end.encode() not in said:
        assert select.select([process.stdout], [], [], deadline - time.monotonic())[0], said
        data = os.read(process.stdout.fileno(), 4096)
        assert data, said.decode()
        said += data
    return said.decode()

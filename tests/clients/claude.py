"""The real Claude Code as a program: its home, its environment, and what it said.

It runs unmodified, as `claude -p`, in a folder of its own and with nothing else of this
machine's environment than PATH. Knows its flags and its JSON output; not what our
server should do: `test_claude_code.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minimsg.bench.foreign import quiet_environment

RUN_S = 300  # a prompt of 20,000 tokens on a busy machine

Event = dict[str, Any]


@dataclass(frozen=True)
class Ran:
    """One run: its exit status and the events it wrote, the last of them the result."""

    status: int
    events: list[Event]
    said: str

    @property
    def result(self) -> Event:
        """The event that ends every run."""
        assert self.events, self.said
        assert self.events[-1]["type"] == "result", self.said[-2_000:]
        return self.events[-1]

    @property
    def tool_results(self) -> list[Event]:
        """What the tools answered, in order."""
        turns = [event["message"]["content"] for event in self.events if event["type"] == "user"]
        return [block for turn in turns for block in turn if block["type"] == "tool_result"]

    @property
    def tool_calls(self) -> list[Event]:
        """What the model called, in order."""
        turns = [each["message"]["content"] for each in self.events if each["type"] == "assistant"]
        return [block for turn in turns for block in turn if block["type"] == "tool_use"]


@dataclass(frozen=True)
class Claude:
    """An installed Claude Code, and the folder that it takes for its user's home."""

    program: Path
    home: Path

    @property
    def folder(self) -> Path:
        """Where it works."""
        folder = self.home / "work"
        folder.mkdir(exist_ok=True)
        return folder

    def ask(self, url: str, prompt: str, *flags: str) -> Ran:
        """`claude -p PROMPT` against the server at `url`."""
        command = [str(self.program), "-p", prompt, "--output-format", "stream-json", "--verbose"]
        done = subprocess.run(
            [*command, *flags],
            cwd=self.folder,
            env=self._environment(url),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_S,
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        return Ran(done.returncode, [json.loads(line) for line in lines], done.stdout)

    def _environment(self, url: str) -> dict[str, str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        server = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_AUTH_TOKEN": "x"}
        return own | server | quiet_environment()

"""Requests in work are bounded by their bytes: a file of any size, of lines of any size."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from minimsg.config import EngineConfig, ParserConfig, ServerConfig
from minimsg.offline import run as module
from minimsg.offline.answering import Answerer, Asked
from minimsg.offline.requests import Line, RequestsFile
from minimsg.offline.results import Origin, ResultsFile
from minimsg.store import ResultKind

from .files import request, results, write

MAX_BYTES = 4_000
ASKED = Asked("tiny", EngineConfig(), ServerConfig(), ParserConfig(), "2023-06-01", ())


class Watching:
    """Answers at once, and knows how much it had at a time."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self.most_bytes = self.most_lines = 0

    async def answer(self, line: Line) -> tuple[ResultKind, bytes]:
        self._lines.append(line)
        if len(self._lines) > 1:  # one alone may be as large as a request may be
            self.most_bytes = max(self.most_bytes, sum(len(each.text) for each in self._lines))
        self.most_lines = max(self.most_lines, len(self._lines))
        await asyncio.sleep(0)
        self._lines.remove(line)
        return "errored", b'{"type":"errored"}'

    def check(self) -> None:
        """It is well."""


async def test_requests_in_work_are_bounded_by_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching = Watching()

    @asynccontextmanager
    async def opened(asked: Asked) -> AsyncIterator[Watching]:
        yield watching

    monkeypatch.setattr(Answerer, "open", opened)
    monkeypatch.setattr(module, "MAX_BYTES", MAX_BYTES)
    sizes = [1_000, 10, 2 * MAX_BYTES, 1_500] * 20
    each = [request(f"r{n}", system="x" * size) for n, size in enumerate(sizes)]
    file = RequestsFile(write(tmp_path / "requests.jsonl", *each))
    scan, output = file.scan(), tmp_path / "results.jsonl"
    origin = Origin(scan.digest, "tiny")
    with ResultsFile.open(output, file.path, scan.ids, origin, keeps=False) as found:
        await module.run(ASKED, file.lines_of(scan.ids), found, lambda: None)
    assert set(results(output)) == scan.ids
    assert 0 < watching.most_bytes <= MAX_BYTES
    assert watching.most_lines > 1

"""The calls of the official SDK on batches, files and models without async, one after the other."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from .batching import requests
from .running import PLAIN, TAPES, Running


def walk_batches(batches: Any) -> None:
    """Create, list both ways, retrieve, cancel, results, delete."""
    made = [batches.create(requests=requests(f"r{n}")).id for n in range(4)]
    assert [batch.id for batch in batches.list(limit=1)] == made[::-1]
    # Started with before_id, the SDK goes on towards the newest.
    pages = list(batches.list(limit=2, before_id=made[0]).iter_pages())
    assert [[batch.id for batch in page.data] for page in pages] == [made[2:0:-1], [made[3]]]
    assert [batch.id for batch in batches.list(limit=1, after_id=made[3])] == made[2::-1]
    for number, id in enumerate(made):
        while batches.retrieve(id).processing_status != "ended":
            time.sleep(0.01)
        (line,) = batches.results(id)
        assert (line.custom_id, line.result.type) == (f"r{number}", "succeeded")
        assert line.result.message.content[0].text == TAPES[PLAIN]
        with pytest.raises(anthropic.BadRequestError, match="has ended"):
            batches.cancel(id)
        assert batches.delete(id).type == "message_batch_deleted"
    running = batches.create(requests=requests(*(f"r{n}" for n in range(50))))
    assert batches.cancel(running.id).processing_status == "canceling"
    assert next(iter(batches.list(limit=1))).id == running.id


def walk_files(files: Any, folder: Path) -> None:
    """Upload in every way, list, metadata, download, delete."""
    path = folder / "notes.txt"
    path.write_bytes(b"from a path")
    with path.open("rb") as opened:
        made = [
            files.upload(file=path),
            files.upload(file=opened),
            files.upload(file=b"bytes"),
            files.upload(file=("b.json", b"{}")),
            files.upload(file=("c", b"{}", "application/pdf")),
        ]
    assert [(file.filename, file.mime_type, file.size_bytes) for file in made] == [
        ("notes.txt", "text/plain", 11),
        ("notes.txt", "text/plain", 11),
        ("unnamed.bin", "application/octet-stream", 5),
        ("b.json", "application/json", 2),
        ("c", "application/pdf", 2),
    ]
    assert list(files.list(limit=2)) == made[::-1]
    for file in made:
        assert files.retrieve_metadata(file.id) == file
        with pytest.raises(anthropic.BadRequestError, match="cannot be downloaded"):
            files.download(file.id)
        assert files.delete(file.id).type == "file_deleted"
    assert list(files.list()) == []


@pytest.mark.parametrize("is_beta", [False, True])
async def test_batches_files_and_models_are_what_the_sdk_expects(
    scripted: Running, tmp_path: Path, is_beta: bool
) -> None:
    with Anthropic(
        base_url=scripted.url, api_key="any", max_retries=0, _strict_response_validation=True
    ) as client:
        part: Any = client.beta if is_beta else client

        def walk() -> None:
            walk_batches(part.messages.batches)
            walk_files(part.files, tmp_path)
            (model,) = part.models.list()
            assert part.models.retrieve(model.id) == model

        await asyncio.to_thread(walk)

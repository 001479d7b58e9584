"""`minimsg batch`, what it is given, and what a server might say of a batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from minimsg.cli.main import main

BATCH: Any = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "request_counts": {"processing": 0, "succeeded": 2, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-11-30T04:10:32Z",
    "results_url": "/",
}
RUNNING: Any = BATCH | {"processing_status": "in_progress"}
NOBODY = "http://127.0.0.1:1"
EMPTY: Any = {"data": [], "has_more": False, "first_id": None, "last_id": None}


def batch(*words: str, url: str = NOBODY, env: dict[str, str] | None = None) -> Result:
    """`minimsg batch WORDS` for the server at `url`."""
    clean = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "ANTHROPIC_BASE_URL": ""}
    where = ["--base-url", url] if url else []
    return CliRunner().invoke(main, ["batch", *words, *where], env=clean | (env or {}))


def page(*ids: str, is_last: bool = False) -> tuple[int, object]:
    """An answer with a page of the list."""
    data = [BATCH | {"id": each} for each in ids]
    ends = {"first_id": ids[0], "last_id": ids[-1]}
    return 200, {"data": data, "has_more": not is_last, **ends}


def requests(folder: Path, *custom_ids: str) -> str:
    """A file of good requests."""
    params = {"model": "scripted", "max_tokens": 5, "messages": [{"role": "user", "content": "?"}]}
    lines = [json.dumps({"custom_id": each, "params": params}) + "\n" for each in custom_ids]
    (folder / "requests.jsonl").write_text("".join(lines))
    return str(folder / "requests.jsonl")

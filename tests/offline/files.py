"""Files of requests as tests write them, and what is in a file of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def request(custom_id: str, model: str = "tiny", **fields: Any) -> dict[str, Any]:
    """One request, of few tokens."""
    messages = [{"role": "user", "content": "go"}]
    return {
        "custom_id": custom_id,
        "params": {"model": model, "max_tokens": 3, "messages": messages} | fields,
    }


def write(file: Path, *requests: object) -> Path:
    """`file` with a line for each."""
    file.write_text("".join(json.dumps(each) + "\n" for each in requests))
    return file


def results(file: Path) -> dict[str, Any]:
    """What `file` has, by custom_id: whole lines only, and none twice."""
    data = file.read_bytes()
    assert data.endswith(b"\n") or not data
    lines = [json.loads(line) for line in data.splitlines()]
    found = {line["custom_id"]: line["result"] for line in lines}
    assert len(found) == len(lines)
    return found

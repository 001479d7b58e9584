"""A message batch in words for a terminal. Whatever a server says may be shown: it is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minimsg.text.control import escape

Json = dict[str, Any]

TIMES = ("created_at", "ended_at", "cancel_initiated_at", "expires_at", "archived_at")


def described(batch: Json) -> str:
    """All of it, a line each."""
    rows = {"id": batch.get("id"), "status": batch.get("processing_status"), "requests": ""}
    rows["requests"] = counts(batch)
    rows |= {name.removesuffix("_at").replace("_", " "): batch.get(name) for name in TIMES}
    if batch.get("processing_status") == "ended" and batch.get("results_url"):
        rows["results"] = f"minimsg batch results {batch.get('id')} -o results.jsonl"
    return "\n".join(f"{name:17} {escape(str(value))}" for name, value in rows.items() if value)


def one_line(batch: Json) -> str:
    """The little that matters while one waits."""
    words = f"{batch.get('id')}: {batch.get('processing_status')}, {counts(batch)}"
    return escape(words)


def counts(batch: Json) -> str:
    """`3 succeeded, 1 errored`."""
    found = batch.get("request_counts")
    kinds = found.items() if isinstance(found, dict) else ()
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds if number) or "none"


def table(batches: Sequence[Json]) -> str:
    """A line each."""
    if not batches:
        return "no batches"
    rows = [("ID", "STATUS", "CREATED", "REQUESTS")]
    for batch in batches:
        facts = (batch.get("id"), batch.get("processing_status"), batch.get("created_at"))
        id, status, created = (escape(str(fact)) for fact in facts)
        rows.append((id, status, created, escape(counts(batch))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )

"""How much is stored, in SQL: what /metrics shows. Runs inside a transaction of `database.py`."""

from __future__ import annotations

import sqlite3
from typing import Final

from minimsg.store.batches import IS_MADE
from minimsg.store.records import Figures

LEFT: Final = "num_items - succeeded - errored - canceled - expired"
SUMS: Final = ", ".join(
    f"coalesce(sum({column}), 0)"
    for column in (LEFT, "succeeded", "errored", "canceled", "expired")
)


def figures(connection: sqlite3.Connection) -> Figures:
    """Those of now."""
    items = connection.execute(
        f"SELECT {SUMS}, min(CASE WHEN ended_at IS NULL THEN created_at END) "
        f"FROM batches WHERE {IS_MADE}"
    ).fetchone()
    files = connection.execute(
        "SELECT count(*), coalesce(sum(size_bytes), 0) FROM files WHERE has_bytes"
    ).fetchone()
    return Figures(*items, *files)

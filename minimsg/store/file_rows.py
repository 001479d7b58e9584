"""Uploaded files in SQL: what is known of each. Runs inside a transaction of `database.py`.

A file that has expired loses its bytes at once and is remembered a while, so that whoever
asks learns why it is gone. Where the bytes lie: `blobs.py`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

from minimsg.errors import NotFound
from minimsg.store.records import DAY_S, File

COLUMNS: Final = ", ".join(File.__slots__)
REMEMBERED_S: Final = 30 * DAY_S  # after it has expired
IS_THERE: Final = "(expires_at IS NULL OR expires_at > ?)"


def add(connection: sqlite3.Connection, file: File) -> None:
    """Keep `file` as the newest of its tenant's."""
    connection.execute(
        f"INSERT INTO files (number, {COLUMNS}) "
        "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM files WHERE tenant = ?",
        (
            *(file.id, file.tenant, file.filename, file.mime_type, file.size_bytes),
            *(file.created_at, file.expires_at, file.tenant),
        ),
    )


def get(connection: sqlite3.Connection, tenant: str, id: str, now: float) -> File:
    """One file. Raises NotFound, also for another tenant's."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM files WHERE id = ? AND tenant = ?", (id, tenant)
    ).fetchone()
    if row is None:
        raise NotFound("No file has that id.")
    file = File(*row)
    if file.expires_at is not None and file.expires_at <= now:
        raise NotFound("The file has expired.", error_code="file_expired")
    return file


def find(connection: sqlite3.Connection, tenant: str, ids: Sequence[str], now: float) -> list[File]:
    """Those of `ids` that are there, newest first."""
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM files WHERE tenant = ? AND {IS_THERE} "
        "AND id IN (SELECT value FROM json_each(?)) ORDER BY number DESC",
        (tenant, now, json.dumps(list(ids))),
    )
    return [File(*row) for row in rows]


def page(
    connection: sqlite3.Connection, tenant: str, limit: int, below: int, now: float
) -> tuple[list[File], int | None]:
    """At most `limit` files with numbers under `below`, newest first, and the next `below`."""
    rows = connection.execute(
        f"SELECT number, {COLUMNS} FROM files WHERE tenant = ? AND number < ? AND {IS_THERE} "
        "ORDER BY number DESC LIMIT ?",
        (tenant, below, now, limit + 1),
    ).fetchall()
    numbers = [number for number, *_ in rows[:limit]]
    return [File(*columns) for _, *columns in rows[:limit]], (
        numbers[-1] if len(rows) > limit else None
    )


def delete(connection: sqlite3.Connection, tenant: str, id: str, now: float) -> None:
    """Forget a file. Raises NotFound."""
    get(connection, tenant, id, now)
    connection.execute("DELETE FROM files WHERE id = ?", (id,))


def ids_with_bytes(connection: sqlite3.Connection) -> set[str]:
    """Every file whose bytes must be there."""
    return {id for (id,) in connection.execute("SELECT id FROM files WHERE has_bytes")}


def expire(connection: sqlite3.Connection, now: float) -> list[str]:
    """The ids of files that lose their bytes now."""
    rows = connection.execute(
        "SELECT id FROM files WHERE has_bytes AND expires_at <= ?", (now,)
    ).fetchall()
    connection.execute("UPDATE files SET has_bytes = 0 WHERE has_bytes AND expires_at <= ?", (now,))
    connection.execute("DELETE FROM files WHERE expires_at <= ?", (now - REMEMBERED_S,))
    return [id for (id,) in rows]

"""The tables, and whether a file on disk has them: made whole, or refused in words.

A new database is built beside its place and renamed, so an empty or cut file is never
taken for a new one. `STEPS` bring an older one to `VERSION`, a newer one is refused.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from minimsg.errors import ConfigError

logger = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x6D736773  # "msgs": SQLite's field for whose file this is
VERSION: Final = 2

TABLES: Final = """
CREATE TABLE files (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    number INTEGER NOT NULL,             -- of the tenant's own; grows
    filename TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    has_bytes INTEGER NOT NULL DEFAULT 1, -- 0 once it has expired
    UNIQUE (tenant, number)
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    dialect BLOB NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    cancel_initiated_at REAL,
    ended_at REAL,
    archived_at REAL,
    num_items INTEGER NOT NULL DEFAULT 0,
    succeeded INTEGER NOT NULL DEFAULT 0,
    errored INTEGER NOT NULL DEFAULT 0,
    canceled INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX batches_of_a_tenant ON batches (tenant, number);
CREATE TABLE batch_items (
    batch INTEGER NOT NULL REFERENCES batches (number) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    custom_id TEXT NOT NULL,
    kind TEXT,                           -- null until there is a result
    params BLOB,                         -- null from then on
    result BLOB,
    num_begun INTEGER NOT NULL DEFAULT 0, -- times that it ran, or runs
    PRIMARY KEY (batch, position),
    UNIQUE (batch, custom_id)
);
CREATE INDEX items_to_run ON batch_items (batch, num_begun, position) WHERE kind IS NULL;
CREATE INDEX open_batches ON batches (number) WHERE ended_at IS NULL;
"""

STEPS: Final = {
    1: """
ALTER TABLE batch_items ADD COLUMN num_begun INTEGER NOT NULL DEFAULT 0;
DROP INDEX items_to_run;
CREATE INDEX items_to_run ON batch_items (batch, num_begun, position) WHERE kind IS NULL;
CREATE INDEX open_batches ON batches (number) WHERE ended_at IS NULL;
"""
}  # by the version that they start from


def create(file: Path) -> None:
    """Make the database `file`, whole or not at all. Raises OSError, sqlite3.Error."""
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA synchronous = FULL; BEGIN; {TABLES}"
            f"PRAGMA user_version = {VERSION}; COMMIT;"
        )
    os.replace(new, file)


def check(connection: sqlite3.Connection, file: Path) -> None:
    """Read the database through once, and bring an older one up to `VERSION`.

    Raises ConfigError for one that is not ours and whole, sqlite3.Error.
    """
    cure = f"restore a copy of it, or move {file.parent} away to begin with an empty store"
    try:
        application_id = _pragma(connection, "application_id")
        version = int(str(_pragma(connection, "user_version")))
        fault = str(_pragma(connection, "quick_check(1)"))
    except sqlite3.DatabaseError as error:
        application_id, version, fault = APPLICATION_ID, VERSION, str(error)
    if file.stat().st_size == 0:  # to SQLite a new one
        fault = "it is empty"
    if fault != "ok":
        raise ConfigError(f"{file} is damaged or cut short ({fault}); {cure}")
    if application_id != APPLICATION_ID:
        raise ConfigError(f"{file} is no store of minimsg's; {cure}")
    while version in STEPS:
        _step(connection, version)
        logger.info("%s is of schema %d now", file, version := version + 1)
    if version != VERSION:
        raise ConfigError(
            f"{file} was written by a newer minimsg (schema {version}; this one reads {VERSION}): "
            "update this one, or give it a folder of its own with --data-dir"
        )


def _step(connection: sqlite3.Connection, version: int) -> None:
    connection.executescript(
        f"BEGIN; {STEPS[version]} PRAGMA user_version = {version + 1}; COMMIT;"
    )


def _pragma(connection: sqlite3.Connection, name: str) -> object:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    found: object = value
    return found

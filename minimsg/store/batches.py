"""Message batches in SQL. Every function runs inside a transaction of `database.py`.

An item waits (`kind` is null) or has a result; nothing on disk says that it runs. Who runs
what is memory (`claimed`, of `store.py`), so after a crash whatever has no result waits again.
Invariant: a batch's counts are those of its items, and it has ended when they are all there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Set
from typing import Final, Literal

from minimsg.errors import InvalidRequest, NotFound
from minimsg.store.records import (
    BATCH_LIFE_S,
    RESULTS_LIFE_S,
    Batch,
    Item,
    NewItem,
    Result,
    ResultKind,
)

Key = tuple[str, str]  # of an item: the id of its batch and its custom_id

COLUMNS: Final = ", ".join(Batch.__slots__)
PAGE_ITEMS, PAGE_BYTES = 1_000, 1 << 20  # of results that are in memory at a time
ENDED: Final = "The message batch has ended and cannot be canceled."
RUNNING: Final = "The message batch has not ended and cannot be deleted; cancel it first."


def create(
    connection: sqlite3.Connection,
    tenant: str,
    id: str,
    dialect: bytes,
    items: Iterable[NewItem],
    now: float,
) -> Batch:
    """A new batch of `items`, each read only when it is its turn."""
    number = connection.execute(
        "INSERT INTO batches (id, tenant, dialect, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
        (id, tenant, dialect, now, now + BATCH_LIFE_S),
    ).lastrowid
    num_items = connection.executemany(
        "INSERT INTO batch_items (batch, position, custom_id, params) VALUES (?, ?, ?, ?)",
        ((number, place, item.custom_id, item.params) for place, item in enumerate(items)),
    ).rowcount
    connection.execute("UPDATE batches SET num_items = ? WHERE id = ?", (num_items, id))
    return get(connection, tenant, id)


def get(connection: sqlite3.Connection, tenant: str, id: str) -> Batch:
    """One batch. Raises NotFound, also for another tenant's."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM batches WHERE id = ? AND tenant = ?", (id, tenant)
    ).fetchone()
    if row is None:
        raise NotFound("No message batch has that id.")
    return Batch(*row)


def page(
    connection: sqlite3.Connection,
    tenant: str,
    limit: int,
    after_id: str | None,
    before_id: str | None,
) -> tuple[list[Batch], bool]:
    """At most `limit` batches, newest first, and whether there are more in that direction.

    Raises InvalidRequest for a cursor that is no batch of the tenant's.
    """
    bound, order, values = "", "DESC", list[str | int]([tenant])
    for field, cursor, sign in (("after_id", after_id, "<"), ("before_id", before_id, ">")):
        if cursor is not None:
            bound = f"AND number {sign} ?"
            values = [tenant, _number(connection, tenant, field, cursor)]
            order = "DESC" if field == "after_id" else "ASC"
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM batches WHERE tenant = ? {bound} ORDER BY number {order} LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    found = [Batch(*row) for row in rows[:limit]]
    return (found if order == "DESC" else found[::-1]), len(rows) > limit


def cancel(
    connection: sqlite3.Connection, tenant: str, id: str, claimed: Set[Key], now: float
) -> Batch:
    """Cancel what does not run yet; of a batch that is being canceled, nothing.

    Raises NotFound, InvalidRequest if it has ended.
    """
    batch = get(connection, tenant, id)
    if batch.ended_at is not None:
        raise InvalidRequest("", ENDED)
    if batch.cancel_initiated_at is None:
        connection.execute(
            "UPDATE batches SET cancel_initiated_at = max(?, created_at) WHERE id = ?", (now, id)
        )
        _end_waiting(connection, id, "canceled", claimed, now)
    return get(connection, tenant, id)


def delete(connection: sqlite3.Connection, tenant: str, id: str) -> None:
    """Forget a batch and its results. Raises NotFound, InvalidRequest if it has not ended."""
    if get(connection, tenant, id).ended_at is None:
        raise InvalidRequest("", RUNNING)
    connection.execute("DELETE FROM batches WHERE id = ?", (id,))


def waiting(connection: sqlite3.Connection, num_items: int, claimed: Set[Key]) -> Iterator[Item]:
    """At most `num_items` items that have no result and are not `claimed`, the oldest first."""
    keys = connection.execute(
        "SELECT batch, position, id, custom_id FROM batch_items JOIN batches ON number = batch "
        "WHERE kind IS NULL ORDER BY batch, position LIMIT ?",
        (num_items + len(claimed),),
    ).fetchall()
    free = [(batch, place) for batch, place, *key in keys if tuple(key) not in claimed]
    for key in free[:num_items]:
        row = connection.execute(
            "SELECT id, custom_id, tenant, dialect, params FROM batch_items "
            "JOIN batches ON number = batch WHERE batch = ? AND position = ?",
            key,
        ).fetchone()
        yield Item(*row)


def finish(
    connection: sqlite3.Connection, key: Key, kind: ResultKind, result: bytes, now: float
) -> bool:
    """Give an item its result; False, and nothing changes, if it has one or is gone."""
    batch_id, custom_id = key
    num_changed = connection.execute(
        "UPDATE batch_items SET kind = ?, result = ?, params = NULL WHERE kind IS NULL "
        "AND custom_id = ? AND batch = (SELECT number FROM batches WHERE id = ?)",
        (kind, result, custom_id, batch_id),
    ).rowcount
    _count(connection, batch_id, kind, num_changed, now)
    return num_changed == 1


def results(connection: sqlite3.Connection, id: str, after: int) -> tuple[list[Result], int]:
    """The next results behind place `after` (-1: the first), and the place of the last of them.

    Raises NotFound if the batch, or with it its results, is gone.
    """
    found = connection.execute(
        "SELECT number FROM batches WHERE id = ? AND archived_at IS NULL", (id,)
    ).fetchone()
    if found is None:
        raise NotFound("No message batch with results has that id.")
    page: list[Result] = []
    num_bytes = 0
    for place, custom_id, kind, body in connection.execute(
        "SELECT position, custom_id, kind, result FROM batch_items "
        "WHERE batch = ? AND position > ? AND kind IS NOT NULL ORDER BY position LIMIT ?",
        (found[0], after, PAGE_ITEMS),
    ):
        page.append(Result(custom_id, kind, body))
        after = place
        num_bytes += len(body or b"")
        if num_bytes >= PAGE_BYTES:
            break
    return page, after


def expire(connection: sqlite3.Connection, claimed: Set[Key], now: float) -> None:
    """End what waits in batches that are too old, and drop results that are."""
    late = connection.execute(
        "SELECT id FROM batches WHERE ended_at IS NULL AND expires_at <= ?", (now,)
    ).fetchall()
    for (id,) in late:
        _end_waiting(connection, id, "expired", claimed, now)
    old = connection.execute(
        "SELECT number FROM batches WHERE ended_at IS NOT NULL AND archived_at IS NULL "
        "AND created_at <= ?",
        (now - RESULTS_LIFE_S,),
    ).fetchall()
    for (number,) in old:
        connection.execute("DELETE FROM batch_items WHERE batch = ?", (number,))
        connection.execute("UPDATE batches SET archived_at = ? WHERE number = ?", (now, number))


def end_canceled(connection: sqlite3.Connection, now: float) -> None:
    """After a crash: what ran in a batch that was being canceled is not begun again."""
    canceling = connection.execute(
        "SELECT id FROM batches WHERE cancel_initiated_at IS NOT NULL AND ended_at IS NULL"
    ).fetchall()
    for (id,) in canceling:
        _end_waiting(connection, id, "canceled", frozenset(), now)


def _number(connection: sqlite3.Connection, tenant: str, field: str, id: str) -> int:
    row = connection.execute(
        "SELECT number FROM batches WHERE id = ? AND tenant = ?", (id, tenant)
    ).fetchone()
    if row is None:
        raise InvalidRequest(field, "no item of this list has that id")
    number: int = row[0]
    return number


def _end_waiting(
    connection: sqlite3.Connection,
    id: str,
    kind: Literal["canceled", "expired"],
    claimed: Set[Key],
    now: float,
) -> None:
    running = json.dumps([custom_id for batch_id, custom_id in claimed if batch_id == id])
    num_changed = connection.execute(
        "UPDATE batch_items SET kind = ?, params = NULL WHERE kind IS NULL "
        "AND batch = (SELECT number FROM batches WHERE id = ?) "
        "AND custom_id NOT IN (SELECT value FROM json_each(?))",
        (kind, id, running),
    ).rowcount
    _count(connection, id, kind, num_changed, now)


def _count(
    connection: sqlite3.Connection, id: str, kind: ResultKind, num_items: int, now: float
) -> None:
    """The batch ends with its last result, and never before it began, whatever the clock says."""
    connection.execute(f"UPDATE batches SET {kind} = {kind} + ? WHERE id = ?", (num_items, id))
    connection.execute(
        "UPDATE batches SET ended_at = max(?, created_at) WHERE id = ? AND ended_at IS NULL "
        "AND succeeded + errored + canceled + expired = num_items",
        (now, id),
    )

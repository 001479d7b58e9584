"""Message batches in SQL. Every function runs inside a transaction of `database.py`.

An item waits (`kind` is null) or has a result; who runs what is memory (`claimed`, of
`store.py`), so after a crash whatever has no result waits again. Batches are made, ended and
dropped in parts, each a transaction, so that nobody waits for a hundred thousand rows.
Invariants: a batch's counts are those of its items, and it has ended when they are all there;
one with `num_items` 0 is being made or dropped, and is seen by nobody.
Next: `waiting.py`, for which item is next.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence, Set
from typing import Final

from minimsg.errors import InvalidRequest, NotFound
from minimsg.store.records import (
    BATCH_LIFE_S,
    RESULTS_LIFE_S,
    Batch,
    NewItem,
    NotRunKind,
    Result,
    ResultKind,
)

Key = tuple[str, str]  # of an item: the id of its batch and its custom_id

COLUMNS: Final = ", ".join(Batch.__slots__)
PAGE_ITEMS, PAGE_BYTES = 1_000, 1 << 20  # of results that are in memory at a time
IS_MADE: Final = "num_items > 0"
ENDED: Final = "The message batch has ended and cannot be canceled."
RUNNING: Final = "The message batch has not ended and cannot be deleted; cancel it first."


def begin(connection: sqlite3.Connection, tenant: str, id: str, dialect: bytes, now: float) -> None:
    """Let there be a batch that nobody sees yet."""
    connection.execute(
        "INSERT INTO batches (id, tenant, dialect, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
        (id, tenant, dialect, now, now + BATCH_LIFE_S),
    )


def extend(connection: sqlite3.Connection, id: str, start: int, items: Sequence[NewItem]) -> None:
    """The next `items` of a batch that is being made; `start` is the place of the first."""
    connection.executemany(
        "INSERT INTO batch_items (batch, position, custom_id, params) "
        "SELECT number, ?, ?, ? FROM batches WHERE id = ?",
        ((start + n, item.custom_id, item.params, id) for n, item in enumerate(items)),
    )


def complete(connection: sqlite3.Connection, tenant: str, id: str, num_items: int) -> Batch:
    """All items are there: from now on the batch is, too."""
    connection.execute("UPDATE batches SET num_items = ? WHERE id = ?", (num_items, id))
    return get(connection, tenant, id)


def get(connection: sqlite3.Connection, tenant: str, id: str) -> Batch:
    """One batch. Raises NotFound, also for another tenant's."""
    row = connection.execute(
        f"SELECT {COLUMNS} FROM batches WHERE id = ? AND tenant = ? AND {IS_MADE}", (id, tenant)
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
        f"SELECT {COLUMNS} FROM batches WHERE tenant = ? AND {IS_MADE} {bound} "
        f"ORDER BY number {order} LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    found = [Batch(*row) for row in rows[:limit]]
    return (found if order == "DESC" else found[::-1]), len(rows) > limit


def cancel(connection: sqlite3.Connection, tenant: str, id: str, now: float) -> Batch:
    """Begin no more of it: what waits is still to be ended, by `end_part`.

    Of a batch that is being canceled, nothing. Raises NotFound, InvalidRequest if it has ended.
    """
    batch = get(connection, tenant, id)
    if batch.ended_at is not None:
        raise InvalidRequest("", ENDED)
    if batch.cancel_initiated_at is None:
        connection.execute(
            "UPDATE batches SET cancel_initiated_at = max(?, created_at) WHERE id = ?", (now, id)
        )
    return get(connection, tenant, id)


def delete(connection: sqlite3.Connection, tenant: str, id: str) -> None:
    """Let nobody see a batch any more: its rows are still to be dropped, by `drop_part`.

    Raises NotFound, InvalidRequest if it has not ended.
    """
    if get(connection, tenant, id).ended_at is None:
        raise InvalidRequest("", RUNNING)
    connection.execute("UPDATE batches SET num_items = 0 WHERE id = ?", (id,))


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
        f"SELECT number FROM batches WHERE id = ? AND archived_at IS NULL AND {IS_MADE}", (id,)
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


def to_end(connection: sqlite3.Connection, now: float) -> list[tuple[str, NotRunKind]]:
    """The batches of which no request is to be begun any more, and what those that wait are."""
    rows = connection.execute(
        "SELECT id, CASE WHEN cancel_initiated_at IS NULL THEN 'expired' ELSE 'canceled' END "
        f"FROM batches WHERE ended_at IS NULL AND {IS_MADE} "
        "AND (cancel_initiated_at IS NOT NULL OR expires_at <= ?)",
        (now,),
    )
    return [(id, kind) for id, kind in rows]


def end_part(
    connection: sqlite3.Connection,
    id: str,
    kind: NotRunKind,
    claimed: Set[Key],
    num_items: int,
    now: float,
) -> bool:
    """End at most `num_items` that wait; whether there are more."""
    running = json.dumps([custom_id for batch_id, custom_id in claimed if batch_id == id])
    (number,) = connection.execute("SELECT number FROM batches WHERE id = ?", (id,)).fetchone()
    num_changed = connection.execute(
        "UPDATE batch_items SET kind = ?, params = NULL WHERE batch = ? AND position IN "
        "(SELECT position FROM batch_items WHERE batch = ? AND kind IS NULL "
        "AND custom_id NOT IN (SELECT value FROM json_each(?)) LIMIT ?)",
        (kind, number, number, running, num_items),
    ).rowcount
    _count(connection, id, kind, num_changed, now)
    return num_changed == num_items


def archive(connection: sqlite3.Connection, now: float) -> None:
    """Show no results that are too old; their rows are still to be dropped."""
    connection.execute(
        "UPDATE batches SET archived_at = ? WHERE ended_at IS NOT NULL AND archived_at IS NULL "
        "AND created_at <= ?",
        (now, now - RESULTS_LIFE_S),
    )


def to_drop(connection: sqlite3.Connection) -> list[str]:
    """The batches whose items nobody can see: never completed, deleted, archived."""
    rows = connection.execute(
        f"SELECT id FROM batches WHERE NOT {IS_MADE} OR archived_at IS NOT NULL "
        "AND EXISTS (SELECT 1 FROM batch_items WHERE batch = number)"
    )
    return [id for (id,) in rows]


def drop_part(connection: sqlite3.Connection, id: str, num_items: int) -> bool:
    """Forget at most `num_items` of a batch that is `to_drop`; whether there are more."""
    num_dropped = connection.execute(
        "DELETE FROM batch_items WHERE rowid IN (SELECT batch_items.rowid FROM batch_items "
        f"JOIN batches ON number = batch WHERE id = ? AND (NOT {IS_MADE} "
        "OR archived_at IS NOT NULL) LIMIT ?)",
        (id, num_items),
    ).rowcount
    if num_dropped < num_items:
        connection.execute(f"DELETE FROM batches WHERE id = ? AND NOT {IS_MADE}", (id,))
    return num_dropped == num_items


def _number(connection: sqlite3.Connection, tenant: str, field: str, id: str) -> int:
    row = connection.execute(
        f"SELECT number FROM batches WHERE id = ? AND tenant = ? AND {IS_MADE}", (id, tenant)
    ).fetchone()
    if row is None:
        raise InvalidRequest(field, "no item of this list has that id")
    number: int = row[0]
    return number


def _count(
    connection: sqlite3.Connection, id: str, kind: ResultKind, num_items: int, now: float
) -> None:
    """The batch ends with its last result, and never before it began, whatever the clock says."""
    if num_items == 0:
        return
    connection.execute(f"UPDATE batches SET {kind} = {kind} + ? WHERE id = ?", (num_items, id))
    connection.execute(
        "UPDATE batches SET ended_at = max(?, created_at) WHERE id = ? AND ended_at IS NULL "
        "AND succeeded + errored + canceled + expired = num_items",
        (now, id),
    )

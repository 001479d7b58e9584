"""Which request of which message batch is next, in SQL and by turns.

The tenant served longest ago comes first, of its batches the one served longest ago, and of
a batch the oldest request: a hundred thousand of one tenant's keep nobody else waiting, and
a large batch no later one. A request that was running when an earlier server died may be
what killed it: it comes after all others of its batch and runs with no other beside it, so
that the next death is counted against the right one. Runs inside a transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from minimsg.store.batches import IS_MADE, Key
from minimsg.store.records import Item


@dataclass
class Claims:
    """What runs, and who was served when; gone with the server."""

    items: dict[Key, Item] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)  # of tenants
    batch_turns: dict[str, int] = field(default_factory=dict)

    @property
    def has_suspect(self) -> bool:
        """Whether something runs that must be alone."""
        return any(item.num_deaths for item in self.items.values())

    def add(self, item: Item | None) -> None:
        """It runs; others are next."""
        if item is None:
            return
        self.items[item.batch_id, item.custom_id] = item
        latest = max(self.turns.values(), default=0)
        self.turns[item.tenant] = self.batch_turns[item.batch_id] = latest + 1

    def remove(self, keys: Iterable[Key]) -> None:
        """They run no more."""
        for key in keys:
            self.items.pop(key, None)


def begin(connection: sqlite3.Connection, claims: Claims) -> Item | None:
    """The request that is to run now, if there is one; it is begun on disk, to be claimed then."""
    if (item := _next(connection, claims)) is not None:
        _count(connection, [item], 1)
    return item


def release(connection: sqlite3.Connection, items: Collection[Item]) -> None:
    """They were not begun after all."""
    _count(connection, items, -1)


def _next(connection: sqlite3.Connection, claims: Claims) -> Item | None:
    if claims.has_suspect:
        return None
    for number in _in_turn(connection, claims):
        rows = connection.execute(
            "SELECT position, id, custom_id FROM batch_items JOIN batches ON number = batch "
            "WHERE batch = ? AND kind IS NULL ORDER BY num_begun, position LIMIT ?",
            (number, len(claims.items) + 1),
        )
        for place, *key in rows.fetchall():
            if tuple(key) not in claims.items:
                item = _read(connection, number, place)
                return None if item.num_deaths and claims.items else item
    return None


def _in_turn(connection: sqlite3.Connection, claims: Claims) -> list[int]:
    """The numbers of all batches that are in progress, that whose turn it is first."""
    found = connection.execute(
        f"SELECT number, id, tenant FROM batches WHERE ended_at IS NULL AND {IS_MADE} "
        "AND cancel_initiated_at IS NULL"
    ).fetchall()
    claims.batch_turns = {
        id: claims.batch_turns[id] for _, id, _ in found if id in claims.batch_turns
    }
    turns, batch_turns = claims.turns, claims.batch_turns
    found.sort(key=lambda row: (turns.get(row[2], 0), batch_turns.get(row[1], 0), row[0]))
    return [number for number, _, _ in found]


def _read(connection: sqlite3.Connection, number: int, place: int) -> Item:
    row = connection.execute(
        "SELECT id, custom_id, tenant, dialect, params, num_begun FROM batch_items "
        "JOIN batches ON number = batch WHERE batch = ? AND position = ?",
        (number, place),
    ).fetchone()
    return Item(*row)


def _count(connection: sqlite3.Connection, items: Collection[Item], change: int) -> None:
    connection.executemany(
        "UPDATE batch_items SET num_begun = num_begun + ? WHERE custom_id = ? "
        "AND batch = (SELECT number FROM batches WHERE id = ?)",
        [(change, item.custom_id, item.batch_id) for item in items],
    )

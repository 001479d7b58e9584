"""Whose request is next: every tenant's in turn, and what may have killed a server last."""

from __future__ import annotations

import pytest

from minimsg.store import Store
from minimsg.store.records import MAX_DEATHS

from .conftest import Open, items

DAY = 86_400
Keys = list[tuple[str, str]]


async def claimed(store: Store, num_items: int) -> Keys:
    return [(item.batch_id, item.custom_id) for item in await store.next_items(num_items)]


async def die(store: Store) -> None:
    """End a store as a crash does: what it has claimed is not put back."""
    store._claims.items.clear()
    await store.close()


async def test_a_large_batch_keeps_neither_another_tenant_nor_a_later_batch_waiting(
    store: Store,
) -> None:
    await store.create_batch("ann", "large", b"", items(*(f"i{n}" for n in range(1_000))))
    assert await claimed(store, 4) == [("large", f"i{n}") for n in range(4)]
    await store.create_batch("bob", "small", b"", items("x", "y"))
    await store.create_batch("ann", "later", b"", items("x"))
    assert await claimed(store, 8) == [
        ("small", "x"),
        ("later", "x"),
        ("small", "y"),
        *(("large", f"i{n}") for n in range(4, 9)),
    ]


async def test_each_tenant_has_one_turn_however_many_batches_it_has(store: Store) -> None:
    for number in range(3):
        await store.create_batch("ann", f"a{number}", b"", items("x", "y"))
    await store.create_batch("bob", "b", b"", items("x", "y", "z"))
    turns = [batch for batch, _ in await claimed(store, 7)]
    assert turns == ["a0", "b", "a1", "b", "a2", "b", "a0"]


async def test_what_ran_when_a_server_died_comes_last_and_alone(
    store: Store, open_store: Open
) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y", "z"))
    assert await claimed(store, 2) == [("b1", "x"), ("b1", "y")]
    await die(store)
    again = await open_store()
    await again.create_batch("bob", "b2", b"", items("x"))
    assert await claimed(again, 9) == [("b1", "z"), ("b2", "x")]
    for batch in ("b1", "b2"):
        assert await claimed(again, 9) == []
        await again.finish_item(batch, "z" if batch == "b1" else "x", "succeeded", b"")
    (suspect,) = await again.next_items(9)
    assert (suspect.custom_id, suspect.num_deaths) == ("x", 1)
    await again.create_batch("bob", "b3", b"", items("x"))
    assert await claimed(again, 9) == []
    await again.finish_item("b1", "x", "succeeded", b"")
    assert await claimed(again, 9) == [("b3", "x")]


async def test_only_what_was_running_when_a_server_died_is_counted(
    store: Store, open_store: Open
) -> None:
    await store.create_batch("ann", "b1", b"", items("poison", "y"))
    for number in range(MAX_DEATHS):
        assert [item.num_deaths for item in await store.next_items(1)] == [number]
        if number == 0:
            await store.finish_item("b1", (await store.next_items(1))[0].custom_id, "errored", b"")
        await die(store)
        store = await open_store()
    assert [item.num_deaths for item in await store.next_items(9)] == [MAX_DEATHS]


@pytest.mark.parametrize("in_order", ["released", "closed"])
async def test_an_end_in_order_is_no_death(store: Store, open_store: Open, in_order: str) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    begun = await store.next_items(2)
    if in_order == "released":
        await store.release_items(begun)
        await die(store)
    await store.close()
    again = await open_store()
    assert [item.num_deaths for item in await again.next_items(9)] == [0, 0]

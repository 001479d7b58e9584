"""Message batches on disk: what is kept, in which order, and that it adds up."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from minimsg.errors import InvalidRequest, NotFound
from minimsg.store import Batch, NewItem, Result, Store
from minimsg.store.store import DATABASE

from .conftest import Clock, Open, items

HOUR, DAY = 3_600, 86_400


def counts(batch: Batch) -> tuple[int, int, int, int, int]:
    return batch.num_left, batch.succeeded, batch.errored, batch.canceled, batch.expired


async def results(store: Store, id: str) -> list[Result]:
    return [result async for result in store.results(id)]


async def test_a_batch_is_kept_as_it_was_created(store: Store, clock: Clock) -> None:
    made = await store.create_batch("ann", "b1", b"dialect", items("x", "y"))
    assert await store.get_batch("ann", "b1") == made
    assert (made.dialect, made.created_at, made.ended_at) == (b"dialect", clock.now, None)
    assert made.expires_at == clock.now + DAY
    assert counts(made) == (2, 0, 0, 0, 0)


async def test_requests_of_a_batch_run_the_oldest_first_and_each_once(store: Store) -> None:
    await store.create_batch("ann", "b1", b"d1", items("x", "y", "z"))
    first = await store.next_items(2)
    assert [(item.batch_id, item.custom_id) for item in first] == [("b1", "x"), ("b1", "y")]
    assert (first[0].tenant, first[0].dialect, first[0].params) == ("ann", b"d1", b"params of x")
    (last,) = await store.next_items(2)
    assert last.custom_id == "z"
    assert await store.next_items(1) == []
    await store.release_items(first[1:])
    assert await store.next_items(9) == first[1:]


async def test_a_batch_ends_with_its_last_result(store: Store, clock: Clock) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    await store.next_items(2)
    assert await store.finish_item("b1", "y", "succeeded", b"Y")
    assert (await store.get_batch("ann", "b1")).ended_at is None
    clock.now += 5
    assert await store.finish_item("b1", "x", "errored", b"X")
    ended = await store.get_batch("ann", "b1")
    assert (ended.ended_at, counts(ended)) == (clock.now, (0, 1, 1, 0, 0))
    assert await results(store, "b1") == [
        Result("x", "errored", b"X"),
        Result("y", "succeeded", b"Y"),
    ]


async def test_the_first_result_of_a_request_stays(store: Store) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    assert await store.finish_item("b1", "x", "succeeded", b"first")
    assert not await store.finish_item("b1", "x", "errored", b"second")
    assert not await store.finish_item("b1", "unknown", "errored", b"third")
    assert await results(store, "b1") == [Result("x", "succeeded", b"first")]
    assert counts(await store.get_batch("ann", "b1")) == (1, 1, 0, 0, 0)


async def test_what_ran_when_the_server_ended_runs_again_after_all_that_is_done(
    store: Store, open_store: Open
) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y", "z"))
    await store.next_items(2)
    await store.finish_item("b1", "x", "succeeded", b"X")
    await store.close()
    again = await open_store()
    assert [item.custom_id for item in await again.next_items(9)] == ["y", "z"]
    assert await results(again, "b1") == [Result("x", "succeeded", b"X")]


async def test_a_batch_that_cannot_be_read_to_its_end_leaves_nothing(store: Store) -> None:
    def broken() -> Iterator[NewItem]:
        yield NewItem("x", b"")
        raise InvalidRequest("requests.1.custom_id", "no")

    with pytest.raises(InvalidRequest, match=r"requests\.1"):
        await store.create_batch("ann", "b1", b"", broken())
    with pytest.raises(NotFound):
        await store.get_batch("ann", "b1")
    assert await store.next_items(1) == []


async def test_a_batch_that_is_being_made_is_seen_by_nobody_and_gone_after_a_crash(
    store: Store, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.store.store.PART_ITEMS", 10)
    seen: list[object] = []
    loop = asyncio.get_running_loop()

    def slowly() -> Iterator[NewItem]:
        for number in range(21):
            if number == 20:  # by now two parts are on disk
                asyncio.run_coroutine_threadsafe(look(), loop).result()
            yield NewItem(f"i{number}", b"")

    async def look() -> None:
        await store.tidy()
        seen.append(await store.list_batches("ann", limit=9))
        seen.append(await store.next_items(1))
        for call in (store.get_batch, store.cancel_batch, store.delete_batch):
            with pytest.raises(NotFound):
                await call("ann", "b1")
        with pytest.raises(NotFound):
            await results(store, "b1")
        shutil.copytree(store.folder, store.folder.with_name("crashed"))

    made = await store.create_batch("ann", "b1", b"", slowly())
    assert (seen, made.num_items) == ([([], False), []], 21)
    assert len(await store.next_items(30)) == 21
    crashed = await open_store(store.folder.with_name("crashed"))
    assert num_items(crashed) == 20
    await crashed.tidy()
    assert num_items(crashed) == 0
    assert await crashed.list_batches("ann", limit=9) == ([], False)


def num_items(store: Store) -> int:
    """Rows on disk, whoever may see them."""
    with closing(sqlite3.connect(store.folder / DATABASE)) as connection:
        found: int = connection.execute("SELECT count(*) FROM batch_items").fetchone()[0]
        return found


async def test_nobody_waits_for_the_whole_of_a_large_batch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minimsg.store.store.PART_ITEMS", 10)
    order: list[str] = []

    async def one(tenant: str, id: str, names: list[str]) -> None:
        await store.create_batch(tenant, id, b"", items(*names))
        order.append(f"made {id}")
        await store.cancel_batch(tenant, id)
        order.append(f"canceled {id}")
        await store.delete_batch(tenant, id)
        order.append(f"deleted {id}")

    large = one("ann", "large", [f"i{n}" for n in range(500)])
    await asyncio.gather(large, one("bob", "small", ["x"]))
    assert order[:3] == ["made small", "canceled small", "deleted small"]
    assert num_items(store) == 0


async def test_cancelling_lets_what_runs_finish(store: Store, clock: Clock) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y", "z"))
    await store.next_items(1)
    clock.now += 1
    canceling = await store.cancel_batch("ann", "b1")
    assert (canceling.cancel_initiated_at, canceling.ended_at) == (clock.now, None)
    now = await store.get_batch("ann", "b1")
    assert counts(now) == (1, 0, 0, 2, 0)
    clock.now += 1
    assert await store.cancel_batch("ann", "b1") == now
    assert await store.next_items(9) == []
    await store.finish_item("b1", "x", "succeeded", b"X")
    ended = await store.get_batch("ann", "b1")
    assert (counts(ended), ended.ended_at) == ((0, 1, 0, 2, 0), clock.now)
    with pytest.raises(InvalidRequest, match="ended"):
        await store.cancel_batch("ann", "b1")


async def test_what_ran_in_a_cancelled_batch_does_not_run_again_after_a_crash(
    store: Store, open_store: Open
) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    await store.next_items(1)
    await store.cancel_batch("ann", "b1")
    await store.close()
    again = await open_store()
    assert await again.next_items(9) == []
    await again.tidy()
    ended = await again.get_batch("ann", "b1")
    assert (counts(ended), ended.ended_at is None) == ((0, 0, 0, 2, 0), False)


async def test_only_a_batch_that_has_ended_can_be_deleted(store: Store) -> None:
    await store.create_batch("ann", "b1", b"", items("x"))
    with pytest.raises(InvalidRequest, match="not ended"):
        await store.delete_batch("ann", "b1")
    await store.finish_item("b1", "x", "succeeded", b"")
    await store.delete_batch("ann", "b1")
    for gone in (store.get_batch, store.delete_batch, store.cancel_batch):
        with pytest.raises(NotFound):
            await gone("ann", "b1")
    with pytest.raises(NotFound):
        await results(store, "b1")


@pytest.mark.parametrize("call", ["get_batch", "cancel_batch", "delete_batch"])
async def test_a_batch_of_another_tenant_is_as_one_that_never_was(store: Store, call: str) -> None:
    await store.create_batch("ann", "b1", b"", items("x"))
    refusals = []
    for id in ("b1", "never"):
        with pytest.raises(NotFound) as caught:
            await getattr(store, call)("bob", id)
        refusals.append(str(caught.value))
    assert refusals[0] == refusals[1]
    assert await store.list_batches("bob", limit=9) == ([], False)
    with pytest.raises(InvalidRequest):
        await store.list_batches("bob", limit=9, after_id="b1")


@pytest.mark.parametrize(
    ("cursor", "ids", "has_more"),
    [
        ({}, ["b5", "b4"], True),
        ({"after_id": "b4"}, ["b3", "b2"], True),
        ({"after_id": "b2"}, ["b1"], False),
        ({"after_id": "b1"}, [], False),
        ({"before_id": "b2"}, ["b4", "b3"], True),
        ({"before_id": "b4"}, ["b5"], False),
        ({"before_id": "b5"}, [], False),
    ],
)
async def test_pages_are_newest_first_both_ways(
    store: Store, clock: Clock, cursor: dict[str, str], ids: list[str], has_more: bool
) -> None:
    for number in range(1, 6):
        clock.now -= HOUR  # the order is that of the calls, not that of the clock
        await store.create_batch("ann", f"b{number}", b"", items("x"))
        await store.create_batch("bob", f"other{number}", b"", items("x"))
    found, more = await store.list_batches("ann", limit=2, **cursor)
    assert ([batch.id for batch in found], more) == (ids, has_more)


async def test_what_has_not_begun_after_a_day_expires(store: Store, clock: Clock) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    await store.next_items(1)
    clock.now += DAY - 1
    await store.tidy()
    assert counts(await store.get_batch("ann", "b1")) == (2, 0, 0, 0, 0)
    clock.now += 1
    await store.tidy()
    assert counts(await store.get_batch("ann", "b1")) == (1, 0, 0, 0, 1)
    await store.finish_item("b1", "x", "succeeded", b"X")
    assert await results(store, "b1") == [
        Result("x", "succeeded", b"X"),
        Result("y", "expired", None),
    ]


async def test_results_are_gone_29_days_after_the_batch_was_created(
    store: Store, clock: Clock
) -> None:
    await store.create_batch("ann", "b1", b"", items("x"))
    await store.finish_item("b1", "x", "succeeded", b"X")
    clock.now += 29 * DAY - 1
    await store.tidy()
    assert len(await results(store, "b1")) == 1
    clock.now += 1
    await store.tidy()
    archived = await store.get_batch("ann", "b1")
    assert (archived.archived_at, counts(archived)) == (clock.now, (0, 1, 0, 0, 0))
    with pytest.raises(NotFound):
        await results(store, "b1")


async def test_a_clock_that_jumps_back_makes_no_time_before_the_beginning(
    store: Store, clock: Clock
) -> None:
    made = await store.create_batch("ann", "b1", b"", items("x", "y"))
    clock.now -= 25 * HOUR
    await store.tidy()
    await store.next_items(1)
    canceling = await store.cancel_batch("ann", "b1")
    await store.finish_item("b1", "x", "succeeded", b"X")
    ended = await store.get_batch("ann", "b1")
    assert canceling.cancel_initiated_at == ended.ended_at == made.created_at
    assert ended.expires_at == made.expires_at


async def test_results_larger_than_a_page_come_whole_and_in_order(store: Store) -> None:
    names = [f"i{number}" for number in range(1_500)]
    await store.create_batch("ann", "b1", b"", items(*names))
    await store.finish_item("b1", "i3", "succeeded", b"x" * (3 << 20))
    await store.cancel_batch("ann", "b1")
    found = await results(store, "b1")
    assert [result.custom_id for result in found] == names
    assert len(found[3].body or b"") == 3 << 20

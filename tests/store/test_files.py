"""Files on disk: whole when they are listed, gone when they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from minimsg.errors import NotFound
from minimsg.store import File, Store

from .conftest import Clock, Open

HOUR, DAY = 3_600, 86_400


async def add(store: Store, tenant: str, id: str, data: bytes = b"x", hours: int = 0) -> File:
    async with store.files.receive() as incoming:
        incoming.write(data)
        return await store.files.add(
            tenant,
            id,
            incoming,
            filename="a.txt",
            mime_type="text/plain",
            expires_in_s=hours * HOUR or None,
        )


def on_disk(folder: Path) -> list[str]:
    """Every path under the store that is not SQLite's or the lock."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(("store.sqlite", "lock"))
    )


async def test_a_file_is_kept_over_a_restart(store: Store, open_store: Open) -> None:
    made = await add(store, "ann", "file_1", b"some bytes")
    await store.close()
    again = await open_store()
    assert await again.files.get("ann", "file_1") == made
    assert await again.files.read("ann", "file_1") == b"some bytes"
    assert made.size_bytes == 10


async def test_what_was_received_and_not_kept_leaves_nothing(store: Store, tmp_path: Path) -> None:
    async with store.files.receive() as incoming:
        incoming.write(b"half")
        assert len(on_disk(tmp_path / "store")) == 1
    assert on_disk(tmp_path / "store") == []


async def test_a_crash_around_the_renaming_leaves_nothing(
    store: Store, open_store: Open, tmp_path: Path
) -> None:
    await add(store, "ann", "file_1", b"whole")
    await store.close()
    folder = tmp_path / "store"
    (folder / "incoming" / "0123").write_bytes(b"received in par")
    (folder / "files" / "file_2").write_bytes(b"renamed, and no row yet")
    again = await open_store()
    assert on_disk(folder) == ["files/file_1"]
    assert [file.id for file in (await again.files.page("ann", limit=9))[0]] == ["file_1"]


async def test_a_file_of_another_tenant_is_as_one_that_never_was(store: Store) -> None:
    await add(store, "ann", "file_1")
    refusals = []
    for call in (store.files.get, store.files.read, store.files.delete):
        for id in ("file_1", "never"):
            with pytest.raises(NotFound) as caught:
                await call("bob", id)
            refusals.append((str(caught.value), caught.value.error_code))
    assert len(set(refusals)) == 1
    assert await store.files.find("bob", ["file_1"]) == []
    assert await store.files.page("bob", limit=9) == ([], None)
    assert await store.files.read("ann", "file_1") == b"x"


async def test_a_deleted_file_is_gone_with_its_bytes(store: Store, tmp_path: Path) -> None:
    await add(store, "ann", "file_1")
    await store.files.delete("ann", "file_1")
    with pytest.raises(NotFound):
        await store.files.get("ann", "file_1")
    assert on_disk(tmp_path / "store") == []


async def test_pages_go_on_where_they_ended_whatever_comes_and_goes(store: Store) -> None:
    for number in range(1, 6):
        await add(store, "ann", f"file_{number}")
    first, below = await store.files.page("ann", limit=2)
    assert below is not None
    await store.files.delete("ann", "file_4")  # the one that the page ended with
    await add(store, "ann", "file_6")
    second, below = await store.files.page("ann", limit=2, below=below)
    assert below is not None
    third, end = await store.files.page("ann", limit=2, below=below)
    pages = [[file.id for file in page] for page in (first, second, third)]
    assert (pages, end) == ([["file_5", "file_4"], ["file_3", "file_2"], ["file_1"]], None)


async def test_files_are_found_by_their_ids(store: Store) -> None:
    for number in (1, 2, 3):
        await add(store, "ann", f"file_{number}")
    found = await store.files.find("ann", ["file_1", "never", "file_3", "file_1"])
    assert [file.id for file in found] == ["file_3", "file_1"]


async def test_an_expired_file_is_gone_and_says_why_for_a_while(
    store: Store, clock: Clock, tmp_path: Path
) -> None:
    made = await add(store, "ann", "file_1", hours=1)
    await add(store, "ann", "file_2")
    assert made.expires_at == clock.now + HOUR
    clock.now += HOUR - 1
    await store.tidy()
    assert await store.files.read("ann", "file_1") == b"x"
    clock.now += 1
    with pytest.raises(NotFound) as caught:
        await store.files.read("ann", "file_1")
    assert caught.value.error_code == "file_expired"
    assert [file.id for file in (await store.files.page("ann", limit=9))[0]] == ["file_2"]
    assert await store.files.find("ann", ["file_1"]) == []
    await store.tidy()
    assert on_disk(tmp_path / "store") == ["files/file_2"]
    clock.now += 30 * DAY
    await store.tidy()
    with pytest.raises(NotFound) as caught:
        await store.files.get("ann", "file_1")
    assert caught.value.error_code is None

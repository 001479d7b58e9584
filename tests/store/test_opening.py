"""A store that cannot be trusted or shared is refused in words; a full disk is waited for."""

from __future__ import annotations

import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from minimsg.errors import ConfigError, StoreFull
from minimsg.store import Store
from minimsg.store.schema import VERSION

from .conftest import Open, items

DATABASE = "store.sqlite"


async def test_two_servers_cannot_share_a_folder(open_store: Open, tmp_path: Path) -> None:
    first = await open_store()
    with pytest.raises(ConfigError) as caught:
        await open_store()
    assert str(tmp_path / "store") in str(caught.value)
    assert "--data-dir" in str(caught.value)
    assert "--no-store" in str(caught.value)
    await first.close()
    await open_store()


async def test_servers_without_a_store_share_nothing_and_leave_nothing(open_store: Open) -> None:
    first, second = await open_store(None), await open_store(None)
    await first.create_batch("ann", "b1", b"", items("x"))
    assert await second.list_batches("ann", limit=9) == ([], False)
    folder = first.folder
    assert (folder / DATABASE).exists()
    await first.close()
    assert not folder.exists()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.99])
async def test_a_database_that_was_cut_is_refused(
    store: Store, open_store: Open, tmp_path: Path, share: float
) -> None:
    await store.create_batch("ann", "b1", b"", items(*(f"i{n}" for n in range(500))))
    await store.close()
    file = tmp_path / "store" / DATABASE
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ConfigError, match="damaged") as caught:
        await open_store()
    assert str(file) in str(caught.value)
    file.write_bytes(data)
    assert (await (await open_store()).get_batch("ann", "b1")).num_items == 500


async def test_a_database_that_is_overwritten_in_its_middle_is_refused(
    store: Store, open_store: Open, tmp_path: Path
) -> None:
    await store.create_batch("ann", "b1", b"", items(*(f"i{n}" for n in range(500))))
    await store.close()
    file = tmp_path / "store" / DATABASE
    data = bytearray(file.read_bytes())
    middle = len(data) // 2 // 4_096 * 4_096
    data[middle : middle + 4_096] = b"\x07" * 4_096
    file.write_bytes(data)
    with pytest.raises(ConfigError, match="damaged"):
        await open_store()


@pytest.mark.parametrize(
    ("pragma", "words"),
    [
        (f"user_version = {VERSION + 1}", "newer minimsg"),
        ("application_id = 7", "no store of minimsg's"),
    ],
)
async def test_a_database_that_is_not_of_this_version_is_refused_and_left_alone(
    store: Store, open_store: Open, tmp_path: Path, pragma: str, words: str
) -> None:
    await store.close()
    file = tmp_path / "store" / DATABASE
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA {pragma}")
    before = file.read_bytes()
    with pytest.raises(ConfigError, match=words):
        await open_store()
    assert file.read_bytes() == before


async def test_a_database_of_an_older_version_is_brought_up_to_this_one(
    store: Store, open_store: Open, tmp_path: Path
) -> None:
    await store.create_batch("ann", "b1", b"", items("x", "y"))
    await store.finish_item("b1", "x", "succeeded", b"X")
    await store.close()
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE)) as connection:
        connection.executescript(
            "DROP INDEX items_to_run; DROP INDEX open_batches;"
            "ALTER TABLE batch_items DROP COLUMN num_begun;"
            "CREATE INDEX items_to_run ON batch_items (batch, position) WHERE kind IS NULL;"
            "PRAGMA user_version = 1"
        )
    again = await open_store()
    assert [item.custom_id for item in await again.next_items(9)] == ["y"]
    assert [result.body async for result in again.results("b1")] == [b"X"]
    await again.close()
    await open_store()


@pytest.mark.parametrize("change", ["deleted", "replaced"])
async def test_a_folder_that_is_taken_away_from_a_running_server_is_told(
    store: Store, open_store: Open, caplog: pytest.LogCaptureFixture, change: str
) -> None:
    await store.create_batch("ann", "b1", b"", items("x"))
    folder = store.folder
    folder.rename(folder.with_name("elsewhere"))
    if change == "replaced":
        await (await open_store(folder)).close()
    for _ in range(2):
        with pytest.raises(StoreFull):
            await store.create_batch("ann", "b2", b"", items("x"))
    assert [r.message for r in caplog.records if "started again" in r.message] == [
        f"{folder} takes no more: [Errno 2] it was deleted or replaced while the server runs, "
        f"which must be started again: '{folder / DATABASE}'; message batches wait, uploads are "
        "refused"
    ]
    assert (await store.get_batch("ann", "b1")).num_items == 1
    await store.close()
    assert await (await open_store(folder.with_name("elsewhere"))).get_batch("ann", "b1")


async def test_a_folder_that_cannot_be_is_refused(open_store: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ConfigError, match="cannot keep batches and files"):
        await open_store(tmp_path / "file" / "store")


async def test_a_database_that_another_program_holds_is_refused(
    store: Store, open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.close()
    monkeypatch.setattr("minimsg.store.database.BUSY_S", 0.1)
    with closing(sqlite3.connect(tmp_path / "store" / DATABASE)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigError, match="locked"):
            await open_store()
    await open_store()


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from minimsg.errors import StoreFull
from minimsg.store import NewItem, Store

async def main(folder):
    store = Store(folder)
    await store.open()
    await store.create_batch("ann", "b1", b"", [NewItem(f"i{n}", b"p") for n in range(20)])
    limit = max(file.stat().st_size for file in folder.iterdir() if file.is_file()) + 100_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    done, full = [], 0
    for n in range(20):
        for attempt in range(2):
            try:
                assert await store.finish_item("b1", f"i{n}", "succeeded", b"%d" % n * 30_000)
                done.append(n)
                break
            except StoreFull:
                full += 1
                batch = await store.get_batch("ann", "b1")
                assert batch.succeeded == n, (batch, n)
                async with store.files.receive() as incoming:
                    try:
                        incoming.write(b"x" * (limit + 1))
                        incoming.sync()
                        raise SystemExit("a file over the limit was taken")
                    except StoreFull:
                        pass
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert full == 1 and done == list(range(20)), (full, done)
    found = [(r.custom_id, r.body) async for r in store.results("b1")]
    assert found == [(f"i{n}", b"%d" % n * 30_000) for n in range(20)]
    assert (await store.get_batch("ann", "b1")).ended_at is not None
    await store.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_full_disk_is_said_and_nothing_is_lost_once_there_is_room(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


KILLED = """
import asyncio, os, sys
from pathlib import Path
from minimsg.store import NewItem, Store

async def main(folder):
    store = Store(folder)
    await store.open()
    items = [NewItem(f"i{n}", b"params") for n in range(200)]
    await store.create_batch("ann", "b1", b"", items)
    print("ready", flush=True)
    while found := await store.next_items(3):
        for item in found:
            result = item.custom_id.encode() * 1_000
            await store.finish_item("b1", item.custom_id, "succeeded", result)
            print(item.custom_id, flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def killed_after(num_lines: int, folder: Path) -> list[str]:
    """Start `KILLED`, kill it after so many lines; all that it has said."""
    command = [sys.executable, "-c", KILLED, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(num_lines)]
        process.kill()
        return said + process.stdout.read().split()


@pytest.mark.parametrize("num_lines", [1, 8, 40])
async def test_whatever_was_said_to_be_kept_is_there_after_kill_9(
    open_store: Open, tmp_path: Path, num_lines: int
) -> None:
    said = killed_after(num_lines, tmp_path / "store")
    store = await open_store()
    kept = [result async for result in store.results("b1")]
    assert {result.custom_id for result in kept} >= set(said[1:])
    assert all(result.body == result.custom_id.encode() * 1_000 for result in kept)
    batch = await store.get_batch("ann", "b1")
    assert (batch.succeeded, batch.num_left) == (len(kept), 200 - len(kept))
    left = set()
    while found := await store.next_items(1_000):
        left |= {item.custom_id for item in found}
        for item in found:
            await store.finish_item("b1", item.custom_id, "succeeded", b"")
    assert left == {f"i{n}" for n in range(200)} - {result.custom_id for result in kept}

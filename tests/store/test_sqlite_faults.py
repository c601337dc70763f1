"""A file that is read-only, full, damaged, locked, removed or replaced: StoreError, and recovery."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.stores import Place, node, record, session, store_fails

from toolglot.core.errors import StoreError
from toolglot.store import sqlite
from toolglot.store.interface import RecordQuery
from toolglot.store.sqlite import SqliteStore

SECRET = b"planted-4d1a"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("sqlite:folder/store.db", tmp_path)


async def test_modes_of_file_and_folder(place: Place) -> None:
    before = os.umask(0)
    try:
        async with place.opened() as store:
            await store.add_session(session(), [])
            for file in place.file.parent.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
            assert len(list(place.file.parent.iterdir())) == 3
    finally:
        os.umask(before)
    assert stat.S_IMODE(place.file.parent.stat().st_mode) == 0o700
    assert [file.name for file in place.file.parent.iterdir()] == ["store.db"]


class SmallStore(SqliteStore):
    """A store on a disk that is soon full."""

    pages = 60

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        connection.execute(f"PRAGMA max_page_count = {self.pages}")
        return connection


async def test_a_full_disk(place: Place) -> None:
    store = SmallStore(place.file, time.time)
    await store.open()
    await store.add_records([record("fits")])
    with store_fails("the disk is full", without=(SECRET.decode(),)):
        await store.add_records([record("r1", data=SECRET * 100_000)])
    many = [store.add_records([record(f"m{at}", data=SECRET * (30_000 if at % 2 else 10))]) for at in range(6)]
    done = await asyncio.gather(*many, return_exceptions=True)
    assert [one is None for one in done] == [True, False] * 3, "small ones fit, whatever they wait beside"
    assert len(await store.list_records(None, RecordQuery())) == 4
    SmallStore.pages = 10_000
    await store.add_records([record("r1", data=SECRET * 100_000)])
    assert len(await store.list_records(None, RecordQuery())) == 5
    await store.close()


@pytest.mark.parametrize("damage", ["noise", "text", "cut", "empty"])
async def test_a_damaged_file(place: Place, damage: str) -> None:
    async with place.opened() as store:
        await store.add_records([record(f"{at:04}", data=os.urandom(2000)) for at in range(200)])
    whole = place.file.read_bytes()
    place.file.write_bytes(
        {
            "noise": whole[:100] + os.urandom(len(whole) - 100),
            "text": b"This is not a database. " * 1000,
            "cut": whole[: len(whole) // 2 + 100],
            "empty": b"",
        }[damage]
    )
    store = place.make()
    errors = 0
    for work in (store.open(), store.check(), store.get_record(None, "0199"), store.add_records([record()])):
        try:
            await work
        except StoreError as error:
            errors += 1
            assert "move it away" in str(error)
    assert (errors > 0) == (damage != "empty")
    for file in place.file.parent.iterdir():
        file.rename(place.folder / f"moved-{file.name}")
    await store.add_records([record("new")])
    assert [row.id for row in await store.list_records(None, RecordQuery())] == ["new"]
    await store.close()


async def test_a_file_that_is_damaged_while_it_is_open(place: Place) -> None:
    async with place.opened() as store:
        await store.add_records([record(f"{at:04}", data=os.urandom(2000)) for at in range(200)])
        backup = place.folder / "backup.db"
        with sqlite3.connect(place.file) as connection:
            connection.execute("VACUUM INTO ?", (str(backup),))
        connection.close()
        with sqlite3.connect(place.file) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        with place.file.open("r+b") as opened:
            opened.write(os.urandom(place.file.stat().st_size))
        failed = 0
        for _ in range(3):
            try:
                await store.add_records([record(f"x{failed}")])
                await store.list_records(None, RecordQuery(model="none"))
            except StoreError:
                failed += 1
        assert failed
        for file in place.file.parent.iterdir():
            file.unlink()
        shutil.move(backup, place.file)
        await store.add_records([record("new")])
        assert len(await store.list_records(None, RecordQuery(limit=999))) == 201


async def test_a_removed_file_is_made_again(place: Place) -> None:
    async with place.opened() as store:
        await store.add_records([record("old")])
        shutil.rmtree(place.file.parent)
        await store.add_records([record("new")])
        assert [row.id for row in await store.list_records(None, RecordQuery())] == ["new"]
        async with place.opened() as other:
            assert [row.id for row in await other.list_records(None, RecordQuery())] == ["new"]


@pytest.mark.parametrize("obstacle", ["file", "folder"])
async def test_a_path_that_cannot_be_a_file(place: Place, obstacle: str) -> None:
    if obstacle == "file":
        place.file.parent.write_text("in the way")
    else:
        place.file.mkdir(parents=True)
    store = place.make()
    for _ in range(2):
        with store_fails("store store.db: "):
            await store.open()
        with store_fails("store store.db: "):
            await store.list_keys()
    if obstacle == "file":
        place.file.parent.unlink()
    else:
        place.file.rmdir()
    await store.check()
    await store.close()


@pytest.fixture
def locked(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.2)
    asyncio.run(touch(place))
    connection = sqlite3.connect(place.file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield connection
    connection.close()


async def touch(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"k")])


async def test_a_lock_of_another_process(place: Place, locked: sqlite3.Connection) -> None:
    store = place.make()
    with store_fails("another process keeps it locked"):
        await store.open()
    locked.execute("ROLLBACK")
    await store.open()
    locked.execute("BEGIN IMMEDIATE")
    turns = 0
    writing = asyncio.gather(*(store.add_session(session(f"s{at}"), []) for at in range(50)), return_exceptions=True)
    while not writing.done():
        assert len(await store.find_nodes([b"k"])) == 1, "reading does not wait for the lock"
        turns += 1
        await asyncio.sleep(0.01)
    assert turns > 5
    assert {type(one) for one in await writing} == {StoreError}
    locked.execute("ROLLBACK")
    await store.add_session(session("s2"), [])
    await store.close()


READ_ONLY = """
    import asyncio, os, sys, time
    from pathlib import Path
    from toolglot.core.errors import StoreError
    from toolglot.store import open_store
    from toolglot.store.interface import SessionRow

    def session(id):
        return SessionRow(id=id, owner=b"", created=1.0, used=1.0, turns=0, model="m", upstream="u")

    async def fails(work):
        try:
            await work
        except StoreError as error:
            return str(error)
        return ""

    async def create(folder):
        store = open_store("sqlite:store.db", state_folder=folder, now=time.time)
        await store.open()
        await store.add_session(session("s1"), [])
        await store.close()

    async def main(folder):
        for path, mode, right in ((folder / "store.db", 0o400, 0o600), (folder, 0o500, 0o700)):
            os.chmod(path, mode)
            store = open_store("sqlite:store.db", state_folder=folder, now=time.time)
            print(await fails(store.open()))
            print(await fails(store.add_session(session("s2"), [])))
            os.chmod(path, right)
            await store.add_session(session("s2"), [])
            assert await store.get_session(None, "s2")
            await store.delete_session(None, "s2")
            await store.close()

    folder = Path(sys.argv[1])
    asyncio.run(create(folder))
    if os.geteuid() == 0:
        for path in (folder, folder / "store.db"):
            os.chown(path, 65534, 65534)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    asyncio.run(main(folder))
"""


def test_a_read_only_file_or_folder() -> None:
    """In a process of its own, which is not root, because root may write everything."""
    folder = Path(tempfile.mkdtemp(prefix="toolglot-ro-"))
    try:
        shown = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(READ_ONLY), str(folder)], capture_output=True, text=True
        )
    finally:
        shutil.rmtree(folder)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("store store.db: ") for line in lines), lines


async def test_a_file_that_is_too_new_for_this_sqlite(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with store_fails("3.35 or later is needed"):
        await place.make().open()

"""Records, sessions, owners, cursors and retention, on both engines."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from support.stores import Place, chat, make_id, node, record, session, store_fails

from toolglot.store.interface import KeptValue, RecordQuery
from toolglot.store.sqlite import VACUUM_PAGES, SqliteStore

ALL = RecordQuery(limit=1000)


def ids(rows: object) -> list[str]:
    return [row.id for row in rows]  # type: ignore[attr-defined]


async def test_a_record_comes_back_as_it_was(place: Place) -> None:
    bodies = {"request": os.urandom(100_000), "model": b"", "answer": "grüße \0".encode() * 1000}
    written = record(
        bodies=bodies, data=b"\x00\xff", owner=b"\x00", status=499, outcome="abandoned", session="", time=1e9 + 0.123456
    )
    async with place.opened() as store:
        await store.add_records([written])
        assert await store.get_record(b"\x00", "r1") == written
        assert await store.get_record(None, "req-r1") == written
        [listed] = await store.list_records(None, ALL)
    assert listed.bodies == {}
    assert listed.data == written.data
    async with place.opened() as store:
        assert await store.get_record(None, "r1") == written


async def test_owners_do_not_see_the_rows_of_others(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session("s1"), [])
        await store.add_session(session("s2", owner=b""), [])
        await store.add_records([record("r1"), record("r2", owner=b"", session="s2"), record("r3", owner=b"berta")])
        for owner, records, sessions in ((b"anna", ["r1"], ["s1"]), (b"", ["r2"], ["s2"]), (b"x", [], [])):
            assert ids(await store.list_records(owner, ALL)) == records
            assert ids(await store.list_sessions(owner, 10)) == sessions
        assert ids(await store.list_records(None, ALL)) == ["r3", "r2", "r1"]
        assert ids(await store.list_sessions(None, 10)) == ["s2", "s1"]
        for name in ("r1", "req-r1"):
            assert await store.get_record(b"", name) is None
        assert await store.get_session(b"", "s1") is None
        assert await store.delete_session(b"", "s1") is None
        assert await store.get_session(b"anna", "s1") is not None


async def test_a_record_is_found_by_id_before_request_id(place: Place) -> None:
    async with place.opened() as store:
        await store.add_records(
            [
                record("a"),
                record("b", request_id="a"),
                record("c", request_id="twice"),
                record("d", request_id="twice", owner=b"berta"),
                record("e", request_id="twice"),
            ]
        )
        assert [getattr(await store.get_record(None, name), "id", None) for name in ("a", "twice", "no")] == [
            "a",
            "e",
            None,
        ]
        found = await store.get_record(b"berta", "twice")
        assert found is not None
        assert found.id == "d"


async def test_filters_and_cursors(place: Place) -> None:
    rows = [
        record(make_id(at, "01"), model="ab"[at % 2], outcome=("ok", "failed", "refused")[at % 3], session=f"s{at % 5}")
        for at in range(60)
    ]
    async with place.opened() as store:
        await store.add_records(rows[::-1])
        newest = ids(rows)[::-1]
        assert ids(await store.list_records(None, RecordQuery())) == newest[:50]
        seen: list[str] = []
        while page := await store.list_records(b"anna", RecordQuery(limit=7, before=seen[-1] if seen else "")):
            seen += ids(page)
            await store.add_records([record(make_id(1000 + len(seen)))])  # newer ones do not move the cursor
        assert seen == newest
        query = RecordQuery(limit=3, model="a", outcome="failed", session="s2", before=rows[50].id)
        expected = [row.id for row in rows[:50] if (row.model, row.outcome, row.session) == ("a", "failed", "s2")][::-1]
        assert ids(await store.list_records(None, query)) == expected[:3] != []
        assert await store.list_records(None, RecordQuery(before="0")) == []


async def test_ids_sort_by_bytes_whatever_the_language_of_the_database(place: Place) -> None:
    names = ["A", "B", "_", "a", "a-b", "ab", "b", "ä"]
    async with place.opened() as store:
        await store.add_records([record(name) for name in names])
        assert ids(await store.list_records(None, ALL)) == sorted(names, reverse=True)
        assert ids(await store.list_records(None, RecordQuery(before="a-b"))) == ["a", "_", "B", "A"]


async def test_sessions_are_paged_while_they_are_deleted(place: Place) -> None:
    names = [make_id(at) for at in range(10)]
    async with place.opened() as store:
        for name in names:
            await store.add_session(session(name), [])
        seen: list[str] = []
        while page := await store.list_sessions(b"anna", 3, seen[-1] if seen else ""):
            seen += ids(page)
            for name in ids(page):
                assert await store.delete_session(b"anna", name) == []
        assert seen == names[::-1]
        assert await store.list_sessions(None, 10) == []


async def test_records_update_their_session_once(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(used=50.0, turns=2), [])
        batch = [record(f"r{at}", time=40.0 + at * 10) for at in range(3)] + [record("x", owner=b"berta", time=99.0)]
        await store.add_records(batch)
        await store.add_records([*batch, *batch])
        found = await store.get_session(None, "s1")
        assert found is not None
        assert (found.turns, found.used) == (5, 60.0)
        await store.add_records([record("late", time=1.0)])
        found = await store.get_session(None, "s1")
        assert found is not None
        assert (found.turns, found.used) == (6, 60.0)
        await store.add_records([])


async def test_a_session_is_deleted_with_all_that_belongs_to_it(place: Place) -> None:
    async with place.opened() as store:
        for name in ("s1", "s2"):
            await store.add_session(session(name), [node(b"start", name)])
            token = await store.add_chat(chat(f"chat-{name}", session=name), "me", 60)
            assert await store.commit_turn(
                [node(b"k", name, chat=f"chat-{name}", message="m")], f"chat-{name}", "m", token
            )
            await store.add_records([record(f"r-{name}", session=name, bodies={"answer": b"text"})])
        await store.add_records([record("other", owner=b"berta", session="s1")])
        deleted = await store.delete_session(b"anna", "s1")
        assert deleted is not None
        assert [(found.id, found.head, found.session) for found in deleted] == [("chat-s1", "m", "s1")]
        assert await store.delete_session(b"anna", "s1") is None
        assert [found.node.session for found in await store.find_nodes([b"start", b"k"])] == ["s2", "s2"]
        assert ids(await store.list_records(None, ALL)) == ["r-s2", "other"]
        assert await store.get_record(None, "r-s1") is None
        assert await store.commit_turn([node(b"new", chat="chat-s1", message="n")], "chat-s1", "n", token) is False
        assert await store.acquire_lease("chat-s1", "me", 1) is None
        await store.add_nodes([node(b"late", "s1"), node(b"late", "s2"), node(b"late", "s2", chat="chat-s1")])
        assert [found.node for found in await store.find_nodes([b"late"])] == [node(b"late", "s2")]
        with store_fails("belongs to one that does not exist"):
            await store.add_chat(chat("chat-s3"), "me", 60)


async def test_text_that_a_database_cannot_hold_is_replaced(place: Place) -> None:
    async with place.opened() as store:
        await store.add_records([record("r1", model="nul\0 half \ud83d", request_id="\0")])
        [found] = await store.list_records(None, RecordQuery(model="nul\0 half \ud83d"))
        assert found.model.startswith("nul\ufffd half ")
        assert await store.get_record(None, "\0") is not None
        with store_fails():
            await store.add_records([record("r2", status=1 << 70)])
        assert ids(await store.list_records(None, ALL)) == ["r1"]


@pytest.mark.parametrize("count", [1, 255, 256, 257, 1300])
async def test_any_number_of_rows_in_one_call(place: Place, count: int) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"%d" % at) for at in range(count)])
        await store.add_records([record(f"{at:05}", bodies={"model": b"x", "answer": b"y"}) for at in range(count)])
        assert len(await store.list_records(None, RecordQuery(limit=5000))) == count
        keys = [b"%d" % at for at in range(count)]
        assert [found.node.key for found in await store.find_nodes(keys[::-1])] == keys[::-1]
        await store.keep([KeptValue(owner=b"o", key=key, value=key, expires=place.now() + 99) for key in keys])
        assert await store.find_kept(b"o", keys) == dict(zip(keys, keys, strict=True))


async def test_old_rows_are_pruned(place: Place) -> None:
    now = place.now()
    async with place.opened() as store:
        for at in range(450):
            name = f"{at:04}"
            await store.add_session(session(name, used=float(at)), [node(name.encode(), name)])
        await store.add_records(
            [record(f"{at:04}", session="", time=float(at), bodies={"model": b"b"}) for at in range(450)]
        )
        await store.add_chat(chat(session="0003"), "me", 60)
        await store.keep([KeptValue(owner=b"o", key=b"old", value=b"1", expires=now - 1)])
        await store.keep([KeptValue(owner=b"o", key=b"new", value=b"1", expires=now + 99)])
        assert await store.find_kept(b"o", [b"old", b"new"]) == {b"new": b"1"}
        assert await store.prune(records_before=401.0, sessions_before=403.0, max_bytes=1 << 30) == 1 + 401 + 402
        assert ids(await store.list_records(None, ALL)) == [f"{at:04}" for at in range(449, 400, -1)]
        assert ids(await store.list_sessions(None, 1000)) == [*(f"{at:04}" for at in range(449, 402, -1)), "0003"]
        nodes = await store.find_nodes([f"{at:04}".encode() for at in range(450)])
        assert [one.node.session for one in nodes] == ["0003", *(f"{at:04}" for at in range(403, 450))]
        assert await store.prune(records_before=0, sessions_before=0, max_bytes=1 << 30) == 0


async def test_the_oldest_records_go_until_the_store_is_small_enough(place: Place) -> None:
    limit = 2_000_000
    async with place.opened() as store:
        await store.add_session(session(), [])
        for at in range(0, 4000, 500):
            rows = [
                record(f"{at + n:05}", time=float(at + n), data=os.urandom(500), bodies={"model": os.urandom(500)})
                for n in range(500)
            ]
            await store.add_records(rows)
        deleted = await store.prune(records_before=0, sessions_before=0, max_bytes=limit)
        left = ids(await store.list_records(None, RecordQuery(limit=5000)))
        assert len(left) == 4000 - deleted
        assert left == [f"{at:05}" for at in range(3999, deleted - 1, -1)]
        assert 1000 < len(left) < 2000
        assert await store.prune(records_before=0, sessions_before=0, max_bytes=limit) == 0
    if place.is_sqlite:
        assert place.file.stat().st_size < limit


async def test_pruning_is_many_small_transactions(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others write between them: each deletes records of a megabyte, and gives back many pages at once."""
    if not place.is_sqlite:
        pytest.skip("PostgreSQL has no such limit")
    steps: Counter[str] = Counter()
    write = SqliteStore._write

    def count(store: SqliteStore, operation: Any, *args: Any, **named: Any) -> Any:
        steps[operation.__name__] += 1
        return write(store, operation, *args, **named)

    async with place.opened() as store:
        body = os.urandom(400_000)
        await store.add_records(
            [record(f"{at:05}", session="", time=float(at), bodies={"model": body}) for at in range(30)]
        )
        monkeypatch.setattr(SqliteStore, "_write", count)
        assert await store.prune(records_before=20.0, sessions_before=0, max_bytes=1 << 30) == 20
        assert ids(await store.list_records(None, ALL)) == [f"{at:05}" for at in range(29, 19, -1)]
        pages = 20 * 400_000 // 4096
        assert 20 * 0.4 <= steps["delete_batch"] <= 20
        assert steps["_give_back_pages"] <= pages // VACUUM_PAGES + 2
    assert place.file.stat().st_size < 15 * 400_000


async def test_a_closed_store_refuses(place: Place) -> None:
    store = place.make()
    await store.open()
    await store.close()
    await store.close()
    with store_fails("closed"):
        await store.load_rollout()

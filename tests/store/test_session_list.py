"""Totals of sessions and the list that the console shows, on both engines."""

from __future__ import annotations

import pytest
from support.stores import Place, record, session

from toolglot.store.interface import ADMIN, KeyRow, RecordQuery, SessionQuery, TurnCounts


async def test_turns_are_added_up(place: Place) -> None:
    counts = TurnCounts(
        calls=2, repairs=1, rejected=3, retries=1, failed=0, input_tokens=100, output_tokens=7, seconds=0.5
    )
    async with place.opened() as store:
        await store.add_session(session(), [])
        await store.add_records(
            [
                record("r1", time=10.0, counts=counts, client="one/1", outcome="ok"),
                record("r2", time=20.0, counts=counts, client="two/1", outcome="failed"),
                record("r3", time=30.0, counts=None, client="replay", outcome="ok"),
            ]
        )
        await store.add_records([record("r1", time=10.0, counts=counts)])  # again: changes nothing
        [found] = (await store.find_sessions(None, SessionQuery())).rows
        assert (found.turns, found.calls, found.repairs, found.rejected, found.retries) == (2, 4, 2, 6, 2)
        assert (found.failed, found.input_tokens, found.output_tokens, found.seconds) == (0, 200, 14, 1.0)
        assert (found.client, found.outcome, found.used) == ("two/1", "failed", 20.0)
        await store.add_records([record("r4", time=15.0, client="late/1", outcome="refused")])  # written late
        [found] = (await store.find_sessions(None, SessionQuery())).rows
        assert (found.turns, found.client, found.outcome, found.used) == (3, "two/1", "failed", 20.0)
        await store.add_records([record("r5", time=40.0, client="", outcome="ok")])
        [found] = (await store.find_sessions(None, SessionQuery())).rows
        assert (found.client, found.outcome) == ("two/1", "ok")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (SessionQuery(), "edcba"),
        (SessionQuery(limit=2), "ed"),
        (SessionQuery(limit=2, offset=4), "a"),
        (SessionQuery(offset=9), ""),
        (SessionQuery(text="QWEN"), "ca"),
        (SessionQuery(text="50%"), "b"),
        (SessionQuery(text="%"), "b"),
        (SessionQuery(text="_"), "d"),
        (SessionQuery(text="!"), "e"),
        (SessionQuery(text="own-id"), "c"),
        (SessionQuery(text="x' OR 1 = 1 --"), ""),
        (SessionQuery(outcome="failed"), "b"),
        (SessionQuery(troubled=True), "ba"),
        (SessionQuery(troubled=True, text="qwen", outcome="ok"), "a"),
    ],
    ids=str,
)
async def test_filters(place: Place, query: SessionQuery, found: str) -> None:
    async with place.opened() as store:
        for row in (
            session("a", used=1.0, model="Qwen3", outcome="ok", repairs=1),
            session("b", used=2.0, model="50% off", outcome="failed", failed=1),
            session("c", used=3.0, model="glm", upstream="qwen-cloud", outcome="ok", client_session="own-id"),
            session("d", used=4.0, client="agent_1/2", outcome="ok"),
            session("e", used=5.0, client="wow!", outcome="ok"),
        ):
            await store.add_session(row, [])
        page = await store.find_sessions(None, query)
        assert "".join(row.id for row in page.rows) == found
        if not (query.offset or query.limit == 2):
            assert page.total == len(found)
        else:
            assert page.total == 5
        assert (await store.find_sessions(b"anna", query)).rows == page.rows
        assert (await store.find_sessions(b"other", query)).total == 0


async def test_only_newer_records(place: Place) -> None:
    async with place.opened() as store:
        await store.add_records([record(f"r{number}") for number in range(5)])
        assert [row.id for row in await store.list_records(None, RecordQuery(after="r2"))] == ["r4", "r3"]


async def test_the_scope_of_a_key(place: Place) -> None:
    async with place.opened() as store:
        await store.save_key(KeyRow(name="root", hash="h", created=1.0, scope=ADMIN))
        await store.save_key(KeyRow(name="app", hash="h", created=1.0))
        assert [(key.name, key.scope) for key in await store.list_keys()] == [("app", ""), ("root", ADMIN)]

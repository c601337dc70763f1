"""What requests that have ended add to a store in one transaction, on both engines."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from support.stores import Place, node, record, session, until

from toolglot.store.interface import (
    EndedTurns,
    NodeClaim,
    RecordQuery,
    RecordRow,
    SessionRow,
    Store,
    TurnCounts,
)
from toolglot.store.operations import SESSION
from toolglot.store.record_operations import COUNTS
from toolglot.store.sqlite import SqliteStore


def invent_records(chance: random.Random) -> list[RecordRow]:
    """Records of four sessions, some of them no turns, in any order of their times."""
    return [
        record(
            f"r{number:02}",
            session=f"s{number % 4}",
            time=float(chance.randrange(1, 20)),
            outcome=chance.choice(["ok", "failed"]),
            client=chance.choice(["", "one/1", "two/2"]),
            counts=chance.choice([None, TurnCounts(calls=number, failed=1, seconds=0.5, output_tokens=3)]),
            bodies=chance.choice([{}, {"answer": b"x"}]),
        )
        for number in range(20)
    ]


async def list_all(store: Store) -> tuple[list[RecordRow], list[SessionRow]]:
    return await store.list_records(None, RecordQuery(limit=100)), await store.list_sessions(None, 100)


@pytest.mark.parametrize("seed", range(3))
async def test_a_new_session_is_added_with_its_totals(place: Place, seed: int) -> None:
    """They are the same as those of a session that is there before its records."""
    records = invent_records(random.Random(seed))
    sessions = [session(f"s{at}") for at in range(4)]
    nodes = [node(b"%d" % at, f"s{at}") for at in range(4)]
    turns = EndedTurns(sessions=sessions[:3], nodes=nodes, records=records)
    async with place.opened() as store:
        await store.add_session(sessions[3], [])
        assert await store.add_turns(turns)
        added = await list_all(store)
        assert await store.add_turns(turns), "a call can be repeated"
        assert await list_all(store) == added
        assert [found.node for found in await store.find_nodes([b"0", b"1", b"2", b"3"])] == nodes
        for one in sessions:
            assert await store.delete_session(None, one.id) == []
            await store.add_session(one, [])
        await store.add_records(records)
        assert await list_all(store) == added


def test_the_totals_are_the_last_columns_of_a_session() -> None:
    assert SESSION[-len(COUNTS) :] == COUNTS


async def test_a_new_session_that_exists_gets_what_is_added(place: Place) -> None:
    """The first attempt has written the sessions only."""
    async with place.opened() as store:
        await store.add_session(session(), [])
        turns = EndedTurns(sessions=[session()], records=[record(counts=TurnCounts(calls=2), client="one/1")])
        for _ in range(2):
            assert await store.add_turns(turns)
            [found] = await store.list_sessions(None, 10)
            assert (found.turns, found.calls, found.client, found.outcome) == (1, 2, "one/1", "ok")


async def test_a_lost_claim_adds_nothing(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [node(b"k"), node(b"l")])
        claims = [NodeClaim(node=node(b"k"), answer=b"one"), NodeClaim(node=node(b"l"), answer=b"one")]
        turns = EndedTurns(claims=claims, sessions=[session("s2")], nodes=[node(b"m")], records=[record()])
        assert await store.claim_node(node(b"l"), b"two")
        assert not await store.add_turns(turns)
        assert await list_all(store) == ([], [session()])
        assert await store.find_nodes([b"m"]) == []
        gone = EndedTurns(claims=[NodeClaim(node=node(b"gone"), answer=b"one")], records=[record()])
        assert not await store.add_turns(gone)
        assert await store.add_turns(EndedTurns(claims=claims[:1], records=[record()]))
        assert [found.node.answer for found in await store.find_nodes([b"k"])] == [b"one"]
        [found] = await store.list_sessions(None, 10)
        assert found.turns == 1


async def test_one_of_many_claims_of_a_node_succeeds(place: Place) -> None:
    async with place.opened() as one, place.opened() as two:
        await one.add_session(session(), [node(b"k")])
        claims = [NodeClaim(node=node(b"k"), answer=b"%d" % at) for at in range(20)]
        written = [
            EndedTurns(claims=[claim], nodes=[node(claim.answer)], records=[record(f"r{at:02}")])
            for at, claim in enumerate(claims)
        ]
        won = await asyncio.gather(*((one, two)[at % 2].add_turns(turns) for at, turns in enumerate(written)))
        assert won.count(True) == 1
        winner = won.index(True)
        assert [found.id for found in await two.list_records(None, RecordQuery())] == [f"r{winner:02}"]
        assert [found.node.answer for found in await two.find_nodes([b"k"])] == [claims[winner].answer]


async def test_a_session_that_was_deleted_stays_deleted(place: Place) -> None:
    async with place.opened() as store:
        await store.add_session(session(), [])
        await store.delete_session(None, "s1")
        assert await store.add_turns(EndedTurns(nodes=[node(b"k"), node(b"k", chat="c1")], records=[record()]))
        assert await store.list_sessions(None, 10) == []
        assert await store.find_nodes([b"k"]) == []


async def test_a_file_that_does_not_change_is_not_read_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a store that reads all the time miss a change."""
    if not place.is_sqlite:
        pytest.skip("PostgreSQL reports changes itself")
    async with place.opened() as store, place.opened() as other:
        assert isinstance(store, SqliteStore)
        reports: list[str] = []
        watching = asyncio.create_task(store.watch(reports.append))
        await until(lambda: len(reports) == 3)
        await asyncio.sleep(0.6)
        reads: list[object] = []
        read = store._read

        async def note(*args: Any) -> Any:
            reads.append(args)
            return await read(*args)

        monkeypatch.setattr(store, "_read", note)
        await asyncio.sleep(1)
        assert reads == [] and len(reports) == 3
        monkeypatch.undo()
        await other.save_rollout(b"{}")
        while len(reports) == 3:
            await store.find_nodes([b"k"])
        assert reports[3:] == ["rollout"]
    await watching

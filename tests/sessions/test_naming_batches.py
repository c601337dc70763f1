"""Sessions of requests are the same whether their records are named one by one or many at a time, and by which process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from toolglot.core.conversation import Message, Text
from toolglot.gateway.sessions.chain import make_chain
from toolglot.gateway.sessions.naming import EndedTurn, NamedTurns, find_names
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.store.interface import FoundNode
from toolglot.store.sqlite import SqliteStore

OWNER = bytes(8)


def make_turn(dialog: list[tuple[str, str]], *, failed: bool = False) -> EndedTurn:
    messages = [Message(role, (Text(text),)) for role, text in dialog]  # type: ignore[arg-type]
    chain = make_chain(messages, b"secret", OWNER.hex(), "")
    turn = SessionTurn(owner=OWNER, client_session="", chain=chain, model="m", upstream="u")
    return EndedTurn(turn=turn, time=1.0, failed=failed)


def invent_requests(chance: random.Random) -> list[EndedTurn]:
    """Conversations that begin alike, take turns, fail, are retried, repeated and edited."""
    dialogs: list[list[tuple[str, str]]] = []
    requests: list[EndedTurn] = []
    for number in range(40):
        if not dialogs or chance.random() < 0.3:
            dialogs.append([("user", chance.choice(["Hello", f"Question {number}"]))])
            dialog = dialogs[-1]
        else:
            dialog = chance.choice(dialogs)
            dialog += [("assistant", f"Answer {number}"), ("user", f"Go on {number}")]
        if chance.random() < 0.2:
            requests.append(make_turn(dialog, failed=True))
        requests.append(make_turn(dialog))
        if chance.random() < 0.1:
            requests.append(make_turn([*dialog[:-1], ("user", f"Edited {number}")]))
    return requests


def name_in_batches(requests: list[EndedTurn], size: int, folder: Path) -> list[int]:
    """The sessions, numbered in the order in which they came."""
    numbers = count(1)

    async def name() -> list[str]:
        store = SqliteStore(folder / f"{size}.db", lambda: 1.0)
        await store.open()
        named: list[str] = []
        for start in range(0, len(requests), size):
            part = await find_names(requests[start : start + size], store, lambda: f"ses_{next(numbers):06}")
            assert await store.add_turns(part.add_records([]))
            named += part.names
        listed = {session.id for session in await store.list_sessions(OWNER, 1000)}
        await store.close()
        assert listed == set(named)
        return named

    named = asyncio.run(name())
    order = {session: at for at, session in enumerate(dict.fromkeys(named))}
    return [order[session] for session in named]


@pytest.mark.parametrize("seed", range(3))
def test_the_size_of_a_batch_does_not_matter(seed: int, tmp_path: Path) -> None:
    requests = invent_requests(random.Random(seed))
    alone = name_in_batches(requests, 1, tmp_path)
    assert len(set(alone)) > 1
    for size in (2, 7, len(requests)):
        assert name_in_batches(requests, size, tmp_path) == alone


LONG = [(role, f"{role} {number}") for number in range(20) for role in ("user", "assistant")]


async def open_pair(folder: Path) -> tuple[SqliteStore, SqliteStore]:
    stores = SqliteStore(folder / "pair.db", lambda: 1.0), SqliteStore(folder / "pair.db", lambda: 1.0)
    for store in stores:
        await store.open()
    return stores


def test_a_request_is_named_again_if_another_process_was_faster(tmp_path: Path) -> None:
    """Two processes have continued the same question with different answers at the same time."""

    async def test() -> None:
        numbers = count(1)
        one, two = await open_pair(tmp_path)

        async def find(store: SqliteStore, *dialog: tuple[str, str]) -> NamedTurns:
            return await find_names([make_turn(list(dialog))], store, lambda: f"ses_{next(numbers)}")

        begun = await find(one, ("user", "Hello"))
        assert await one.add_turns(begun.add_records([]))
        first = await find(one, ("user", "Hello"), ("assistant", "Yes"), ("user", "More"))
        second = await find(two, ("user", "Hello"), ("assistant", "No"), ("user", "More"))
        assert first.names == second.names == begun.names
        assert await two.add_turns(second.add_records([]))
        assert not await one.add_turns(first.add_records([]))
        again = await find(one, ("user", "Hello"), ("assistant", "Yes"), ("user", "More"))
        assert again.names != begun.names
        assert await one.add_turns(again.add_records([]))
        assert {session.id for session in await two.list_sessions(OWNER, 10)} == {*begun.names, *again.names}
        for store in (one, two):
            await store.close()

    asyncio.run(test())


def test_of_a_known_conversation_only_its_end_is_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        store, other = await open_pair(tmp_path)
        asked: list[tuple[int, int]] = []
        find_nodes = store.find_nodes

        async def note(keys: Sequence[bytes], failed: Sequence[bytes] = ()) -> list[FoundNode]:
            asked.append((len(keys), len(failed)))
            return await find_nodes(keys, failed)

        monkeypatch.setattr(store, "find_nodes", note)
        numbers = count(1)
        names: list[str] = []
        for end in (1, 37, 39, 5):  # new; goes on far behind what is known; the next turn; an earlier one, edited
            dialog = LONG[:end] if end != 5 else [*LONG[:4], ("user", "something else")]
            named = await find_names([make_turn(dialog)], store, lambda: f"ses_{next(numbers)}")
            assert await store.add_turns(named.add_records([]))
            names += named.names
        assert asked == [(0, 1), (1, 1), (17, 0), (1, 1), (1, 1), (1, 0)]
        assert names == ["ses_1"] * 4
        await store.close()
        await other.close()

    asyncio.run(test())

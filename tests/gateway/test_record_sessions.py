"""The task that writes records finds their sessions: other processes may be faster, and a record may be refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.gateway import run
from support.record_writing import SECRET, dropped, finish, stored, until, writing

from toolglot.core.conversation import Message, Text
from toolglot.gateway.sessions.chain import make_chain
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.store.interface import EndedTurns


def make_session_turn(*dialog: str) -> SessionTurn:
    """Question, answer, question, ..."""
    messages = [Message("assistant" if at % 2 else "user", (Text(text),)) for at, text in enumerate(dialog)]
    return SessionTurn(
        owner=b"", client_session="", chain=make_chain(messages, SECRET.encode()), model="m", upstream="u"
    )


def test_a_request_gets_a_session_of_its_own_if_another_process_was_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry, writing(tmp_path) as other:
            assert telemetry.writer is not None and other.writer is not None
            finish(telemetry, "begun", turn=make_session_turn("Hello"))
            await stored(telemetry)
            store = telemetry.writer.store
            add_turns, results = store.add_turns, list[bool]()

            async def add(turns: EndedTurns) -> bool:
                if not results:  # between the search and the write
                    finish(other, "faster", turn=make_session_turn("Hello", "No", "More"))
                    await stored(other)
                results.append(await add_turns(turns))
                return results[-1]

            monkeypatch.setattr(store, "add_turns", add)
            finish(telemetry, "slower", turn=make_session_turn("Hello", "Yes", "More"))
            sessions = {row.request_id: row.session for row in await stored(telemetry)}
            assert results == [False, True]
            assert sessions["begun"] == sessions["faster"] != sessions["slower"]
            turns = {session.id: session.turns for session in await store.list_sessions(None, 10)}
            assert turns == {sessions["begun"]: 2, sessions["slower"]: 1}
            assert telemetry.metrics.records_queued.total == 0

    run(test)


def test_sessions_are_right_although_a_record_of_their_batch_cannot_be_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            await stored(telemetry)
            with sqlite3.connect(tmp_path / "toolglot.db") as other:
                other.execute(
                    "CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.request_id = 'poison'"
                    " BEGIN SELECT RAISE(FAIL, 'refused'); END"
                )
            other.close()
            finish(telemetry, "first", turn=make_session_turn("One"))
            finish(telemetry, "poison", turn=make_session_turn("Two"))
            finish(telemetry, "second", turn=make_session_turn("One", "Answer", "More"))
            await until(lambda: dropped(telemetry, "write_failed"))
            rows = {row.request_id: row for row in await stored(telemetry)}
            assert set(rows) == {"first", "second"} and rows["first"].session == rows["second"].session
            assert telemetry.writer is not None
            sessions = {row.id: row.turns for row in await telemetry.writer.store.list_sessions(None, 10)}
            assert sessions.pop(rows["first"].session) == 2
            assert list(sessions.values()) == [0]

    run(test)

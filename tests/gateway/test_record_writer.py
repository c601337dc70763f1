"""The task that writes records: batches, ids, bodies, limits, and a store that fails. The store is a real one."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
from pathlib import Path

import pytest
from support.gateway import run
from support.record_writing import KEY, SECRET, dropped, finish, make_store, stored, until, writing

from toolglot.config import StoreSettings
from toolglot.config.keys import REFUSED_OWNER
from toolglot.config.store_settings import StoreUrl
from toolglot.core.events import CallEnded, CallRejected, CallStarted, NearMiss, Reason
from toolglot.gateway.telemetry import record_writer
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.record_writer import MARGIN, RECORD_ID, RecordWriter


def test_ids_sort_by_time_and_say_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            for number in range(300):
                finish(telemetry, f"r{number}")
            rows = await stored(telemetry)
            assert [row.request_id for row in rows] == [f"r{number}" for number in reversed(range(300))]
            ids = [row.id for row in rows]
            assert all(map(RECORD_ID.fullmatch, ids)) and len(set(ids)) == 300
            began = int(ids[-1][4:18], 16) / 1e6
            assert abs(began - time.time()) < 60
            assert len({name[18:] for name in ids}) == 300

    run(test)


def test_ids_grow_even_if_the_clock_goes_back(tmp_path: Path) -> None:
    async def test() -> None:
        clock = iter([1000.0, 1000.0, 900.0, 1000.000001, 2000.0] + [2000.0] * 9)
        telemetry = Telemetry()
        writer = RecordWriter(make_store(tmp_path), telemetry.metrics, StoreSettings(), now=lambda: next(clock))
        ids = [writer._next_id() for _ in range(5)]
        assert ids == sorted(ids) and len({name[:18] for name in ids}) == 5

    run(test)


def test_a_burst_is_few_transactions(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            await stored(telemetry)
            with sqlite3.connect(tmp_path / "toolglot.db") as watching:
                before = watching.execute("PRAGMA data_version").fetchone()[0]
                changes = set()
                for number in range(1000):
                    finish(telemetry, f"r{number}")
                while telemetry.metrics.records_queued.total:
                    await asyncio.sleep(0.001)
                    changes.add(watching.execute("PRAGMA data_version").fetchone()[0])
            assert len(await stored(telemetry, 2000)) == 1000
            assert len(changes - {before}) <= 10
            watching.close()

    run(test)


@pytest.mark.parametrize("mode", ["off", "failures", "all"])
def test_which_bodies_are_stored(tmp_path: Path, mode: str) -> None:
    def answer(telemetry: Telemetry, name: str, status: int = 200) -> None:
        recorder = telemetry.begin(name, "openai_chat")
        telemetry.body(recorder, "request", b'{"request": 1}')
        telemetry.body(recorder, "upstream_request", b'{"upstream": 1}')
        recorder.count_bytes(b'{"answer": ')
        recorder.count_bytes(b"1}")
        if name == "rejected":
            recorder.observe(CallRejected("<x>", Reason.TRUNCATED, "write"))
        if name == "repaired":
            recorder.observe(CallStarted(0, "c", "read"))
            recorder.observe(CallEnded(0, "hermes", 0.9, ("unquoted_key",)))
        if name == "missed":
            recorder.note_near_miss(NearMiss("hermes"))
        if name == "gone":
            recorder.client_gone = True
        if name == "broken":
            recorder.error = "upstream_closed"
        telemetry.finish(recorder, status)

    async def test() -> None:
        names = ("fine", "rejected", "repaired", "missed", "gone", "broken", "failed")
        async with writing(tmp_path, bodies=mode) as telemetry:
            for name in names:
                answer(telemetry, name, 500 if name == "failed" else 200)
            await stored(telemetry)
            assert telemetry.writer is not None
            found = {}
            for name in names:
                row = await telemetry.writer.store.get_record(None, name)
                assert row is not None
                found[name] = dict(row.bodies)
        bodies = {"request": b'{"request": 1}', "upstream_request": b'{"upstream": 1}', "answer": b'{"answer": 1}'}
        expected = {"off": (), "failures": names[1:], "all": names}[mode]
        for name in expected:
            assert [size for _, size in json.loads(found[name].pop("trace"))["client"]] == [11, 2]
        assert found == {name: bodies if name in expected else {} for name in names}

    run(test)


def test_the_requests_of_all_attempts_are_stored(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path, bodies="all") as telemetry:
            recorder = telemetry.begin("r", "openai_chat")
            for number in range(3):
                telemetry.body(recorder, "upstream_request", b'{"attempt": %d}' % number)
            telemetry.finish(recorder, 200)
            await stored(telemetry)
            assert telemetry.writer is not None
            row = await telemetry.writer.store.get_record(None, "r")
            assert row is not None
            assert {kind: json.loads(body)["attempt"] for kind, body in row.bodies.items()} == {
                "upstream_request.1": 0,
                "upstream_request.2": 1,
                "upstream_request": 2,
            }

    run(test)


def test_with_bodies_off_nothing_is_collected(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            recorder = telemetry.begin("r", "openai_chat")
            assert (recorder.body, recorder.bodies, recorder.model_text) == (None, None, None)

    run(test)


def test_bodies_are_capped_and_stay_utf8(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path, bodies="all", max_body_bytes=1001) as telemetry:
            recorder = telemetry.begin("r", "openai_chat")
            telemetry.body(recorder, "request", "ä".encode() * 5000)
            for _ in range(100):
                recorder.count_bytes("日本".encode() * 500)
            telemetry.finish(recorder, 200)
            await stored(telemetry)
            assert telemetry.writer is not None
            row = await telemetry.writer.store.get_record(None, "r")
            assert row is not None
            assert row.bodies["request"] == "ä".encode() * 500
            assert len(row.bodies["answer"]) <= 1001 and row.bodies["answer"].decode().strip("日本") == ""

    run(test)


@pytest.mark.parametrize("size", [0, 500, 1000, 990, 1000 + MARGIN - 5, 1000 + MARGIN])
def test_no_part_of_a_secret_stays_at_the_cut(tmp_path: Path, size: int) -> None:
    async def test() -> None:
        many = SECRET + "\n" + "x" * 40 + "\n"
        async with writing(tmp_path, bodies="all", max_body_bytes=1000) as telemetry:
            recorder = telemetry.begin("r", "openai_chat")
            telemetry.body(recorder, "request", ("y" * size + SECRET + "z" * 90_000).encode())
            telemetry.body(recorder, "upstream_request", (many * 5000).encode())
            telemetry.finish(recorder, 200)
            await stored(telemetry)
            assert telemetry.writer is not None
            row = await telemetry.writer.store.get_record(None, "r")
            assert row is not None and len(row.bodies) == 2
            for body in row.bodies.values():
                assert b"hunt" not in body

    run(test)


def test_secrets_are_redacted_and_json_stays_json(tmp_path: Path) -> None:
    request = {
        "model": "m",
        "messages": [
            {"role": "user", "content": f"My key is {KEY} and {SECRET}; sk-abcdefghijkl1234 too, password: swordfish"},
            {"role": "assistant", "tool_calls": [{"function": {"arguments": json.dumps({"password": "open sesame"})}}]},
        ],
        "tools": [{"function": {"parameters": {"properties": {"password": {"type": "string"}, "secret": True}}}}],
        "metadata": {"password": 12345678, "api_key": "kkkk", "client_secret": "ssss", "n": 1.0},
    }
    chunks = [f"data: {json.dumps({'delta': {'content': piece}})}\n\n" for piece in (SECRET[:5], SECRET[5:], "ok")]

    async def test() -> None:
        async with writing(tmp_path, bodies="all") as telemetry:
            recorder = telemetry.begin(f"id-{SECRET}", "openai_chat", key=KEY)
            recorder.stream, recorder.model = True, f"model {KEY}"
            recorder.notes.append(f"noted {SECRET}")
            telemetry.metrics.streams.total += 1
            telemetry.body(recorder, "request", json.dumps(request).encode())
            recorder.count_bytes("".join(chunks).encode())
            assert recorder.model_text is not None
            recorder.model_text += ["It is ", SECRET[:3], SECRET[3:]]
            telemetry.finish(recorder, 200)
            (listed,) = await stored(telemetry)
            assert telemetry.writer is not None
            row = await telemetry.writer.store.get_record(None, listed.id)
            assert row is not None
            kept = json.loads(row.bodies["request"])
            assert kept["tools"] == request["tools"] and kept["metadata"]["n"] == 1.0
            assert (
                kept["metadata"]["password"]
                == kept["metadata"]["api_key"]
                == kept["metadata"]["client_secret"]
                == "***"
            )
            arguments = kept["messages"][1]["tool_calls"][0]["function"]["arguments"]
            assert "open" not in arguments
            everything = b"".join((*row.bodies.values(), row.data, row.model.encode(), row.request_id.encode()))
            for secret in (SECRET, KEY, json.dumps(KEY)[1:-1], "sk-abc", "swordfish", "12345678", "kkkk", "ssss"):
                assert secret.encode() not in everything
            events = [json.loads(line[6:]) for line in row.bodies["answer"].decode().split("\n\n") if line]
            assert "".join(event["delta"]["content"] for event in events) == "***ok"
            assert json.loads(row.data)["notes"] == ["noted ***"]

    run(test)


def test_a_full_queue_drops_and_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(record_writer, "QUEUE_RECORDS", 50)

    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            for number in range(80):  # the task does not run in between
                finish(telemetry, f"r{number}")
            assert dropped(telemetry, "queue_full") == 30
            assert {row.request_id for row in await stored(telemetry)} == {f"r{number}" for number in range(50)}
            assert telemetry.metrics.records_queued.total == 0
            finish(telemetry, "later")
            assert len(await stored(telemetry)) == 51

    with caplog.at_level(logging.WARNING, "toolglot.store"):
        run(test)
    assert [one.message for one in caplog.records] == ["1 records were dropped (queue_full)"]


def test_bodies_in_the_queue_are_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "QUEUE_BYTES", 10_000)

    async def test() -> None:
        async with writing(tmp_path, bodies="all") as telemetry:
            for turn in range(2):
                for number in range(20):
                    finish(telemetry, f"r{turn}-{number}", bodies={"request": b"x" * 1000})
                assert dropped(telemetry, "queue_full") == 10 * (turn + 1)
                assert len(await stored(telemetry)) == 10 * (turn + 1)

    run(test)


def test_requests_without_a_key_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_writer, "REFUSED_PER_MINUTE", 5)

    async def test() -> None:
        telemetry = Telemetry()
        now = [1_000_000.0]
        writer = RecordWriter(make_store(tmp_path), telemetry.metrics, StoreSettings(), now=lambda: now[0])
        telemetry.writer = writer
        for minute in range(2):
            now[0] += 60
            for _ in range(8):
                finish(telemetry, owner=REFUSED_OWNER)
            assert dropped(telemetry, "unauthenticated") == 3 * (minute + 1)
            finish(telemetry)
        assert len(writer._queue) == 12

    run(test)


def break_store(folder: Path) -> None:
    """Put a folder where the file was: nothing can be written, whatever user this is."""
    for path in folder.glob("toolglot.db*"):
        path.unlink()
    (folder / "toolglot.db").mkdir()


def test_a_store_that_fails_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            writer = telemetry.writer
            assert writer is not None and not writer.problem and telemetry.metrics.store_available.total == 1
            break_store(tmp_path)
            finish(telemetry, "first")
            await until(lambda: writer.problem)
            assert telemetry.metrics.store_available.total == 0
            finish(telemetry, "second")
            await writer.flush(1e9)  # there is nothing to wait for
            await asyncio.sleep(1)  # several attempts, one message
            (tmp_path / "toolglot.db").rmdir()
            await until(lambda: not writer.problem)
            assert [row.request_id for row in await stored(telemetry)] == ["second", "first"]
            assert telemetry.metrics.store_available.total == 1

    with caplog.at_level(logging.INFO, "toolglot.store"):
        run(test)
    failed, recovered = [one.message for one in caplog.records]
    assert failed.startswith("the store is unavailable, requests are answered without it: ")
    assert recovered == "the store is available again"


def test_a_store_that_cannot_be_opened_at_first(tmp_path: Path) -> None:
    async def test() -> None:
        (tmp_path / "toolglot.db").mkdir()
        async with writing(tmp_path) as telemetry:
            assert telemetry.writer is not None and telemetry.writer.problem
            finish(telemetry, "early")
            (tmp_path / "toolglot.db").rmdir()
            await until(lambda: telemetry.writer and not telemetry.writer.problem)
            assert [row.request_id for row in await stored(telemetry)] == ["early"]

    run(test)


def test_closing_gives_up_after_a_while_and_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        telemetry = Telemetry()
        writer = telemetry.writer = RecordWriter(make_store(tmp_path), telemetry.metrics, StoreSettings())
        await writer.start()
        break_store(tmp_path)
        finish(telemetry)
        finish(telemetry)
        await writer.close(0.5)
        assert dropped(telemetry, "shutdown") == 2

    run(test)


def test_a_locked_store_is_waited_for(tmp_path: Path) -> None:
    """Another process holds the lock for longer than the store waits."""

    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            writer = telemetry.writer
            assert writer is not None
            other = sqlite3.connect(tmp_path / "toolglot.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            for number in range(100):
                finish(telemetry, f"r{number}")
            await until(lambda: writer.problem)
            other.execute("ROLLBACK")
            other.close()
            await until(lambda: not writer.problem)
            assert len(await stored(telemetry)) == 100

    run(test)


def test_one_record_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with writing(tmp_path) as telemetry:
            await stored(telemetry)
            with sqlite3.connect(tmp_path / "toolglot.db") as other:
                other.execute(
                    "CREATE TRIGGER refuse BEFORE INSERT ON records WHEN NEW.request_id = 'poison'"
                    " BEGIN SELECT RAISE(FAIL, 'refused'); END"
                )
            other.close()
            for name in ("before", "poison", "after"):
                finish(telemetry, name)
            assert telemetry.writer is not None
            await until(lambda: dropped(telemetry, "write_failed"))
            await until(lambda: telemetry.writer and not telemetry.writer.problem)
            assert [row.request_id for row in await stored(telemetry)] == ["after", "before"]

    run(test)


def test_no_message_has_the_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        url = StoreUrl("postgresql://me:s3cret%40pass@127.0.0.1:1/nothing?passfile=hidden-file")
        telemetry = Telemetry()
        store = make_store(tmp_path, url.reveal())
        writer = RecordWriter(store, telemetry.metrics, StoreSettings(url=url))
        await writer.start(5)
        assert writer.problem
        await writer.close(1)
        for text in (writer.problem, caplog.text, repr(url), str(StoreSettings(url=url))):
            assert not {"s3cret", "hidden-file"} & {part for part in ("s3cret", "hidden-file") if part in text}

    with caplog.at_level(logging.DEBUG):
        run(test)

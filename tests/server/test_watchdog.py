"""A reader that does not return: its answer ends with an error, and others are served."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.gateway import ASK, gateway, run

from toolglot.core import offload, watchdog
from toolglot.core.errors import StuckError
from toolglot.core.events import Event
from toolglot.dialects import scanner
from toolglot.reading.reader import Reader

MESSAGES = {"model": "sim", "max_tokens": 99, "messages": ASK["messages"]} | {
    "tools": [{"name": "read", "input_schema": {"type": "object", "properties": {"filePath": {"type": "string"}}}}]
}
WIRES: dict[str, dict[str, Any]] = {"/v1/chat/completions": ASK, "/v1/messages": MESSAGES}


def spin(*given: object) -> None:
    while True:
        pass


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TICK_SECONDS", 0.2)


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the reader of the gateway hang from now on; that of the simulated upstream goes on."""
    feed, feed_last = Reader.feed, Reader.feed_last

    def hang_in_gateway(read: Callable[..., list[Event]], *given: Any) -> list[Event]:
        while watchdog.watch().number & 1:
            pass
        return read(*given)

    def begin() -> None:
        monkeypatch.setattr(watchdog, "TICK_SECONDS", 0.2)
        monkeypatch.setattr(Reader, "feed", lambda *given: hang_in_gateway(feed, *given))
        monkeypatch.setattr(Reader, "feed_last", lambda *given: hang_in_gateway(feed_last, *given))

    return begin


@pytest.mark.parametrize("path", WIRES)
@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_ends_with_an_error_and_others_are_served(hang: Callable[[], None], path: str, stream: bool) -> None:
    async def check() -> None:
        async with gateway(dialect="hermes") as gate:
            question = {**WIRES[path], "stream": stream}
            assert b"tool_" in (await gate.ask(question, path)).body
            hang()
            stuck = asyncio.create_task(gate.ask(question, path))
            others = [await gate.get("/health") for _ in range(20)]
            answer = await stuck
            assert {one.status for one in others} == {200}
            assert answer.status == (200 if stream else 500)
            assert b"could not convert this in time" in answer.body and b"tool_" not in answer.body
            assert (await gate.get("/health")).status == 200

    run(check)


def test_a_request_that_cannot_be_prepared_is_refused(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolglot.server import app

    monkeypatch.setattr(app, "prepare", spin)

    async def check() -> None:
        async with gateway() as gate:
            answer = await gate.ask()
            assert (answer.status, answer.error["code"]) == (500, "gateway_stuck")

    run(check)


def test_work_in_a_thread_is_interrupted_too(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "THREAD_TICKS", 2)
    monkeypatch.setattr(offload, "_EXECUTOR", ThreadPoolExecutor(1))

    async def check() -> None:
        with pytest.raises(StuckError):
            await offload.run(True, spin)
        assert await offload.run(True, threading.get_ident) != threading.get_ident()

    run(check)


def swallow(*given: object) -> None:
    while True:
        try:
            spin()
        except Exception:
            len("goes on")


def test_work_that_catches_errors_is_interrupted_too(quick: None) -> None:
    with pytest.raises(StuckError):
        watchdog.watch().run(swallow)
    with pytest.raises(StuckError):
        watchdog.watch().guard(swallow)("x")


def test_work_that_hangs_in_threads_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(offload, "PATIENCE", 0.1)

    async def check() -> None:
        stuck = [asyncio.create_task(offload.run(True, ended.wait, 60)) for _ in range(6)]
        begun = time.perf_counter()
        assert await offload.run(True, lambda: 1) == 1
        assert not ended.is_set() and time.perf_counter() - begun < 30
        ended.set()
        assert await asyncio.gather(*stuck) == [True] * 6

    run(check)


def test_the_process_ends_although_work_hangs() -> None:
    program = (
        "import asyncio, threading\nfrom toolglot.core import offload\n"
        "async def main():\n task = asyncio.ensure_future(offload.run(True, threading.Event().wait))\n"
        " await asyncio.sleep(0.2)\n task.cancel()\n"
        "asyncio.run(main())\nprint('over')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


def test_no_error_arrives_after_the_work_has_ended(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that ends about when it would be interrupted either ends or raises; nothing is raised later."""
    monkeypatch.setattr(watchdog, "TICK_SECONDS", 0.001)
    section = watchdog.watch()
    interrupted = 0

    def work(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    for number in range(300):
        try:
            section.run(work, 0.002 + number % 20 / 10_000)
        except StuckError:
            interrupted += 1
        for _ in range(500):  # an error that arrives here ends the test
            pass
    assert section.number % 2 == 0


def test_work_within_work_is_one_piece(quick: None) -> None:
    section = watchdog.watch()
    with pytest.raises(StuckError):
        section.run(section.run, spin)
    assert section.number % 2 == 0
    assert section.run(lambda: 1) == 1


def test_a_reader_without_progress_leaves_a_note_and_a_near_miss(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer arrives as text."""

    async def check() -> None:
        async with gateway(dialect="hermes") as gate:
            assert (await gate.ask()).message["tool_calls"]
            monkeypatch.setattr(scanner, "FIRST_STEPS", 0)
            monkeypatch.setattr(scanner, "STEPS_PER_CHARACTER", 0)
            with caplog.at_level("INFO"):
                answer = await gate.ask()
            assert "<tool_call>" in answer.message["content"] and not answer.message.get("tool_calls")
            metrics = (await gate.get("/metrics")).body.decode()
            assert re.search(r"toolglot_[a-z_]*\{[^}]*near_miss[^}]*\} 1", metrics)
            assert "made no progress" in caplog.text

    run(check)


def test_cancelled_work_in_a_thread_ends() -> None:
    """A client that leaves, or the end of the server, does not wait for work that is of no use any more."""
    ended = threading.Event()

    def work() -> None:
        try:
            spin()
        finally:
            ended.set()

    async def check() -> None:
        task = asyncio.create_task(offload.run(True, work))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, 10)
        assert await offload.run(True, lambda: 1) == 1

    run(check)

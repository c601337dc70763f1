"""Kills what writes to a store at random points, and looks at what is left.

A process writes records and turns of chats in several tasks, and reports each as soon as the store has committed it. It is
killed with SIGKILL after a random time; in PostgreSQL the server is, too, every few rounds. After each kill the store is
opened, and everything that was reported has to be there:

- records: all that were reported, complete;
- sessions that were written together with their records: each with as many turns as records;
- chats: every turn that was reported, no gap, a head that belongs to the latest turn or is unknown, and never an old head
  after the next message was sent;
- leases: not given to others before they expire, and given soon after.

Some rounds start with an empty store, so that its creation is interrupted. The bench fails if anything is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from msgspec.structs import replace
from support.postgres import PostgresServer

from toolglot.core.errors import StoreError
from toolglot.store import open_store
from toolglot.store.interface import ChainNode, Chat, EndedTurns, RecordQuery, RecordRow, SessionRow, Store

TASKS = 6
TTL = 0.15
LONGEST_RUN = 0.2
EMPTY_EVERY = 10
SERVER_EVERY = 8
OWNER: Final = b"bench"
SESSION: Final = SessionRow(id="s", owner=OWNER, created=1.0, used=1.0, turns=0, model="m", upstream="u")
Report = Callable[[str], None]

# -- the process that is killed ----------------------------------------------------------------------------------------


def make_store(url: str, folder: Path) -> Store:
    store = open_store(url, state_folder=folder, now=time.time)
    assert store is not None
    return store


async def write(url: str, folder: Path, name: str, report: Report) -> None:
    store = make_store(url, folder)
    await store.open()
    await store.add_session(SESSION, [])
    report("open")
    await asyncio.gather(
        *(write_records(store, f"{name}-{task}", report) for task in range(TASKS)),
        *(write_turns(store, f"chat{task}", report) for task in range(TASKS)),
    )


async def write_records(store: Store, name: str, report: Report) -> None:
    for number in range(1_000_000):
        ids = [f"{name}-{number:06}-{part}" for part in range(random.randint(1, 4))]
        records = [make_record(one) for one in ids]
        if (session := records[0].session) == SESSION.id:
            await store.add_records(records)
        else:  # a new session, with its records and the totals of its turns
            key = session.encode()
            new = replace(SESSION, id=session)
            await store.add_turns(
                EndedTurns(sessions=[new], nodes=[ChainNode(key=key, session=session)], records=records)
            )
        for one in ids:
            report(f"record {one}")


def make_record(name: str) -> RecordRow:
    """The record of this name; every other batch is a session of its own."""
    batch = name.rpartition("-")[0]
    text = name.encode() * random.Random(name).randint(1, 200)
    fields = {
        "wire": "w",
        "model": "m",
        "upstream": "u",
        "status": 200,
        "outcome": "ok",
        "session": batch if batch.endswith(("1", "3", "5", "7", "9")) else SESSION.id,
        "owner": OWNER,
    }
    return RecordRow(id=name, request_id=name, time=1.0, data=text, bodies={"model": text}, **fields)


async def write_turns(store: Store, name: str, report: Report) -> None:
    """Turns of one chat: lease, send, commit. A lease that is left by a killed process has to expire first."""
    while True:
        asked = time.time()
        token = await acquire(store, name)
        if token is None:
            await asyncio.sleep(0.01)
            continue
        report(f"lease {name} {token} {asked + TTL} {time.time() + TTL}")
        turn = await count_turns(store, name) + 1
        if not await store.interrupt_chat(name, token):
            continue
        report(f"sent {name} {turn}")
        node = ChainNode(key=f"{name} {turn}".encode(), session="s", chat=name, message=f"m{turn}")
        if not await store.commit_turn([node], name, f"m{turn}", token):
            continue
        report(f"turn {name} {turn}")
        report(f"free {name} {token}")  # before: whether the release happens is not known after a kill
        await store.release_lease(name, token)


async def acquire(store: Store, name: str) -> int | None:
    token = await store.acquire_lease(name, "writer", TTL)
    if token is None:
        try:
            return await store.add_chat(Chat(id=name, account="a", session="s", owner=OWNER), "writer", TTL)
        except StoreError:
            return None  # it exists, and is leased
    return token


async def count_turns(store: Store, name: str) -> int:
    """How many turns a chat has; they are looked for from the first on, so that a gap is seen."""
    turns, step = 0, 64
    while True:
        found = await store.find_nodes([f"{name} {turns + at + 1}".encode() for at in range(step)])
        turns += len(found)
        if len(found) < step:
            return turns


# -- what has to be there ----------------------------------------------------------------------------------------------


@dataclass
class Expected:
    """What the processes have reported so far."""

    records: list[str] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    leases: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Chats with a lease that its holder did not begin to release: when it expires, at the earliest and at the latest."""

    def read(self, reports: bytes) -> bool:
        """Take reports; the last line may be cut. Returns whether the store was open."""
        lines = [line.split() for line in reports.decode().split("\n")[:-1]]
        for kind, *rest in lines:
            if kind == "record":
                self.records.append(rest[0])
            elif kind == "lease":
                self.tokens[rest[0]], self.leases[rest[0]] = int(rest[1]), (float(rest[2]), float(rest[3]))
            elif kind == "sent":
                self.sent[rest[0]] = int(rest[1])
            elif kind == "turn":
                self.turns[rest[0]] = int(rest[1])
            elif kind == "free":
                self.leases.pop(rest[0], None)
        return ["open"] in lines


@dataclass
class Figures:
    kills: int = 0
    server_kills: int = 0
    while_opening: int = 0
    records: int = 0
    sessions: int = 0
    turns: int = 0
    leases_held: int = 0
    longest_open: float = 0.0
    longest_lease: float = 0.0
    problems: list[str] = field(default_factory=list)


async def check(store: Store, expected: Expected, since: int, figures: Figures) -> None:
    started = time.perf_counter()
    await open_soon(store)
    figures.longest_open = max(figures.longest_open, time.perf_counter() - started)
    await check_leases(store, expected, figures)
    await check_records(store, expected.records[since:], figures)
    for name in expected.tokens:
        await check_chat(store, name, expected, figures)


async def open_soon(store: Store) -> None:
    """A server that was killed recovers first."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return await store.open()
        except StoreError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.02)


async def check_leases(store: Store, expected: Expected, figures: Figures) -> None:
    """Nobody gets a lease that has not expired; soon after that, everybody does, with a higher token."""
    started = time.time()
    for name, (earliest, latest) in expected.leases.items():
        figures.leases_held += 1
        token, deadline = None, latest + 10
        while token is None and time.time() < deadline:
            asked = time.time()
            token = await store.acquire_lease(name, "checker", 0)
            if token is None:
                await asyncio.sleep(0.005)
        answered = time.time()
        if token is None or answered < earliest or token <= expected.tokens[name]:
            early = earliest - answered
            figures.problems.append(f"lease of {name}: {token} after {expected.tokens[name]}, {early:.3f} s early")
        figures.longest_lease = max(figures.longest_lease, asked - max(latest, started))
    expected.leases.clear()


async def check_records(store: Store, names: list[str], figures: Figures) -> None:
    figures.records += len(names)
    found = {}
    for prefix, count in Counter(name.rpartition("-")[0].rpartition("-")[0] for name in names).items():
        # the next prefix begins after the dot; a few more may be there that were not reported
        page = await store.list_records(OWNER, RecordQuery(limit=count + 10, before=f"{prefix}."))
        found |= {row.id: row.data for row in page}
    wrong = [name for name in names if found.get(name) != make_record(name).data]
    for name in random.sample(names, min(5, len(names))):
        if await store.get_record(OWNER, name) != make_record(name):
            wrong.append(name)
    if wrong:
        figures.problems.append(f"{len(wrong)} records lost or damaged: {wrong[:3]}")
    prefixes = {name.rpartition("-")[0].rpartition("-")[0] for name in names}
    own = [name for name in found if name.rpartition("-")[0].rpartition("-")[0] in prefixes]
    await check_sessions(store, own, figures)


async def check_sessions(store: Store, found: Iterable[str], figures: Figures) -> None:
    """Every session that was written with its records has as many turns as records, and its node."""
    turns = Counter(make_record(name).session for name in found)
    del turns[SESSION.id]
    wrong = []
    for name, count in turns.items():
        session = await store.get_session(OWNER, name)
        if session is None or session.turns != count or len(await store.find_nodes([name.encode()])) != 1:
            wrong.append(name)
    figures.sessions += len(turns)
    if wrong:
        figures.problems.append(f"{len(wrong)} sessions are not those of their records: {wrong[:3]}")


async def check_chat(store: Store, name: str, expected: Expected, figures: Figures) -> None:
    turns, reported, sent = await count_turns(store, name), expected.turns.get(name, 0), expected.sent.get(name, 0)
    found = await store.find_nodes([f"{name} {turns}".encode(), f"{name} {turns + 1}".encode()])
    head = found[0].chat.head if found and found[0].chat else ""
    wrong = turns not in (reported, reported + 1) or head not in ("", f"m{turns}") or len(found) > 1
    if sent > reported and turns == reported and head:
        wrong = True  # the message was sent, so the head cannot be the one before
    if sent <= reported < turns:
        wrong = True  # a turn that was committed before it was sent
    if wrong:
        figures.problems.append(f"{name}: {turns} turns, {reported} reported, {sent} sent, head {head!r}")
    expected.turns[name] = turns  # a turn may be committed and not reported


# -- the rounds --------------------------------------------------------------------------------------------------------


def run_and_kill(
    url: str, folder: Path, name: str, seconds: float, *, opened: bool, also: Callable[[], None]
) -> tuple[bytes, bool]:
    """Run the writing process, kill it some time after its start or after it has ``opened`` the store, after ``also``.
    Returns its reports, and whether it ended by itself."""
    reader, writer = os.pipe()
    process = os.fork()
    if not process:
        os.close(reader)
        random.seed(name)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        report = partial(send, writer)
        try:
            asyncio.run(write(url, folder, name, report))
        except BaseException as error:
            report(f"failed {error!r}")
        finally:
            os._exit(1)
    os.close(writer)
    reports = b""
    os.set_blocking(reader, False)
    started = time.monotonic()
    ended = False
    while time.monotonic() < started + seconds and not ended:
        reports += read_all(reader)
        time.sleep(0.001)
        ended = os.waitpid(process, os.WNOHANG)[0] != 0
        if opened and b"open\n" not in reports:
            started = time.monotonic()
    also()
    if not ended:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    reports += read_all(reader)
    os.close(reader)
    return reports, ended


def send(writer: int, line: str) -> None:
    os.write(writer, f"{line}\n".encode())


def read_all(reader: int) -> bytes:
    found = b""
    try:
        while chunk := os.read(reader, 1 << 16):
            found += chunk
    except BlockingIOError:
        pass
    return found


@contextmanager
def places(engine: str, server: PostgresServer | None, folder: Path) -> Iterator[Callable[[], str]]:
    """Makes URLs of empty stores."""
    with ExitStack() as stack:
        made = 0

        def make() -> str:
            nonlocal made
            made += 1
            return stack.enter_context(server.lend_database()) if server else f"sqlite:{engine}{made}.db"

        yield make


def run_rounds(engine: str, rounds: int, folder: Path, server: PostgresServer | None) -> Figures:
    figures = Figures()
    choose = random.Random(rounds)
    with places(engine, server, folder) as make_url:
        url, kept = make_url(), Expected()
        for number in range(1, rounds + 1):
            empty = number % EMPTY_EVERY == 0
            place, expected = (make_url(), Expected()) if empty else (url, kept)
            kill_server = server is not None and number % SERVER_EVERY == 0
            since = len(expected.records)
            before = sum(expected.turns.values())
            seconds = choose.random() * LONGEST_RUN
            also = server.kill if server and kill_server else lambda: None
            reports, ended = run_and_kill(place, folder, f"{number:04}", seconds, opened=not empty, also=also)
            if ended:
                figures.problems.append(f"the writing process failed: {reports[-300:]!r}")
            if server and kill_server:
                server.start()
                figures.server_kills += 1
            figures.kills += 1
            figures.while_opening += not expected.read(reports)
            figures.turns += sum(expected.turns.values()) - before
            asyncio.run(check_once(place, folder, expected, since, figures))
            print(f"\r{engine}: {number} of {rounds} kills", end="", file=sys.stderr)
        sessions = figures.sessions
        asyncio.run(check_once(url, folder, kept, 0, figures))
        figures.records -= len(kept.records)
        figures.sessions = sessions
    print(file=sys.stderr)
    return figures


async def check_once(url: str, folder: Path, expected: Expected, since: int, figures: Figures) -> None:
    store = make_store(url, folder)
    await check(store, expected, since, figures)
    await store.close()
    if url.startswith("sqlite:"):
        with sqlite3.connect(folder / url.removeprefix("sqlite:")) as connection:
            [(state,)] = connection.execute("PRAGMA quick_check")
        connection.close()
        if state != "ok":
            figures.problems.append(f"quick_check: {state}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=220, help="for each engine")
    parser.add_argument("--engine", choices=["sqlite", "postgres"], action="append")
    options = parser.parse_args()
    print(
        "| engine | kills | of the server | while opening | records | sessions | turns | leases held | open, at most | lease free after its end | problems |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    problems: list[str] = []
    for engine in options.engine or ["sqlite", "postgres"]:
        server = PostgresServer() if engine == "postgres" else None
        with tempfile.TemporaryDirectory(prefix="toolglot-crash-") as folder:
            try:
                if server:
                    server.start()
                found = run_rounds(engine, options.kills, Path(folder), server)
            finally:
                if server:
                    server.remove()
        print(
            f"| {engine} | {found.kills} | {found.server_kills} | {found.while_opening} | {found.records} | {found.sessions} | {found.turns} "
            f"| {found.leases_held} | {found.longest_open * 1000:.0f} ms | {found.longest_lease * 1000:.0f} ms | {len(found.problems)} |"
        )
        problems += (f"{engine}: {problem}" for problem in found.problems)
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())

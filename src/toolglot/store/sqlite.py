"""The store in one SQLite file, which the processes of one host share.

Strategy. One thread writes, one reads, each with its own connection, so that nothing blocks the event loop. The
writer puts the operations that wait into one transaction; if one of them fails, each gets a transaction of its own. In
WAL mode reads do not wait for writes. A connection is opened on demand: after a failure, and if the file was replaced,
the next operation opens it again. The reader also looks whether shared settings have changed, so that the event loop is
only woken up if they have.

Durability. What is committed survives the end of the process at any point, ``kill -9`` included. With
``synchronous=NORMAL`` a power failure may undo the last transactions; it never damages the file.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar

from msgspec import Struct, field

from toolglot.core.errors import StoreError
from toolglot.store.interface import TOPICS
from toolglot.store.migrations import is_current, migrate
from toolglot.store.sql import Engine, Query, Steps, clean_all
from toolglot.store.sql_store import PRUNE_PAUSE, SqlStore

BUSY_SECONDS: Final = 3.0
"""How long an operation waits for the writer of another process."""

POLL_SECONDS: Final = 0.5
MAX_GROUP: Final = 256
VACUUM_PAGES: Final = 500
"""Pages that one transaction gives back."""
WAL_PAGES: Final = 4096
"""Pages of 4 KB in the write-ahead log before they are copied to the file: records change some pages again."""
SELECT_VERSIONS: Final = "SELECT topic, version FROM changes"
MINIMUM_VERSION: Final = (3, 35)
MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_CREATION: Final = threading.Lock()
Params = ParamSpec("Params")
Result = TypeVar("Result")

ENGINE: Final = Engine(
    name="sqlite",
    pattern=re.compile(r"\$|FOR (?:UPDATE|KEY SHARE)(?: SKIP LOCKED)?"),
    replacements={"$": "?"},  # SQLite finds parameters with names more slowly
    find_table="SELECT 1 FROM sqlite_master WHERE name = $1",
    lock_schema="SELECT 1",  # the transaction has the lock
    report_change="""
        INSERT INTO changes (topic, version) VALUES ($1, 1)
        ON CONFLICT (topic) DO UPDATE SET version = changes.version + 1
    """,
    count_bytes="""
        SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()
    """,
    writes_alone=True,
    has_plain_parameters=True,
)
REASONS: Final = {
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked",
    sqlite3.SQLITE_READONLY: "the file or its folder is read-only",
    sqlite3.SQLITE_PERM: "the file or its folder is read-only",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the file cannot be read or written",
    sqlite3.SQLITE_CORRUPT: "the file is damaged; move it away to start with an empty store",
    sqlite3.SQLITE_NOTADB: "the file is not a database; move it away to start with an empty store",
    sqlite3.SQLITE_CONSTRAINT: "a row exists already or belongs to one that does not exist",
    sqlite3.SQLITE_TOOBIG: "a value is too large",
}
"""What an error means, by its primary code."""


class _Job(Struct):
    start: Callable[[], Steps[Any]]
    future: Future[Any] = field(default_factory=Future)


class _ConnectionThread:
    """Runs operations on one connection, one transaction after the other. ``begin`` starts a transaction."""

    def __init__(self, name: str, begin: str, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._begin = begin
        self._connect = connect
        self._path = path
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._report: Callable[[], object] | None = None
        self._version: object = None
        """Changes when another connection changes the file; None if it is unknown."""
        self._topics: object = None
        """The versions of shared settings; None if they are unknown."""
        self._next_look = 0.0
        self._thread = threading.Thread(target=self._run, name=f"toolglot-store-{name}", daemon=True)
        self._thread.start()

    def submit(self, start: Callable[[], Steps[Result]]) -> Future[Result]:
        job = _Job(start)
        self._jobs.put(job)
        return job.future

    def stop(self) -> None:
        """Close the connection after the operations that wait, and end the thread."""
        self._jobs.put(None)
        self._thread.join()

    def report_changes(self, report: Callable[[], object]) -> None:
        """Call ``report``, in the thread, a moment after shared settings have changed, and if the file cannot be read.
        Takes effect with the next operation."""
        self._report = report

    def _run(self) -> None:
        stopped = False
        while not stopped:
            waiting: list[_Job | None] = []
            with suppress(Empty):
                waiting.append(self._jobs.get(timeout=self._wait_seconds()))
                while len(waiting) < MAX_GROUP:
                    waiting.append(self._jobs.get_nowait())
            stopped = None in waiting
            if not self._wait_seconds():
                self._look_for_change()
            jobs = [job for job in waiting if job is not None and job.future.set_running_or_notify_cancel()]
            if jobs:
                self._run_jobs(jobs)
        self._close()

    def _wait_seconds(self) -> float | None:
        """Seconds until the next look at the file; None if changes are not reported."""
        return None if self._report is None else max(0.0, self._next_look - time.monotonic())

    def _look_for_change(self) -> None:
        if self._report is None:
            return
        version: object = None
        topics: object = None
        if self._connection is not None and self._file == _identify(self._path):
            with suppress(sqlite3.Error):
                version, topics = self._connection.execute("PRAGMA data_version").fetchone(), self._topics
                if version != self._version:
                    topics = self._connection.execute(SELECT_VERSIONS).fetchall()
        self._version = version
        if topics is None or topics != self._topics:
            self._topics = topics
            with suppress(RuntimeError):  # the event loop is closed
                self._report()
        self._next_look = time.monotonic() + POLL_SECONDS

    def _run_jobs(self, jobs: list[_Job]) -> None:
        """Run jobs in one transaction; if that fails, each on its own."""
        try:
            with self._opened() as connection:
                results = [_run_steps(connection, job.start()) for job in jobs]
        except BaseException as error:
            if len(jobs) > 1 and _code(error) != sqlite3.SQLITE_BUSY:
                for job in jobs:
                    self._run_jobs([job])
                return
            for job in jobs:
                job.future.set_exception(_translate(error, self._path))
            return
        for job, result in zip(jobs, results, strict=True):
            job.future.set_result(result)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """A transaction. After an error of the file the connection is closed, and the next transaction opens it."""
        if self._file != _identify(self._path):
            self._close()
        if self._connection is None:
            self._connection = self._connect()
            self._file = _identify(self._path)
        connection = self._connection
        try:
            connection.execute(self._begin)
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            if _code(error) not in (None, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CONSTRAINT):
                self._close()
            raise

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._version = self._topics = None


class SqliteStore(SqlStore):
    """A store in a file. ``now`` is the clock of leases and expiry; all processes have to use the same."""

    engine = ENGINE
    is_shared = False

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        super().__init__(now)
        self._path = path
        self._threads: tuple[_ConnectionThread, _ConnectionThread] | None = None
        self._closed, self._changed = asyncio.Event(), asyncio.Event()

    async def open(self) -> None:
        await self.check()

    async def close(self) -> None:
        self._closed.set()
        self._changed.set()
        threads, self._threads = self._threads, None
        for thread in threads or ():
            await asyncio.to_thread(thread.stop)

    async def watch(self, changed: Callable[[str], None]) -> None:
        seen: dict[str, int] = {}
        report = partial(asyncio.get_running_loop().call_soon_threadsafe, self._changed.set)
        while not self._closed.is_set():
            self._changed.clear()
            limit: float | None = POLL_SECONDS
            with suppress(StoreError):
                self._start()[1].report_changes(report)
                versions = await self._read(_read_versions)
                for topic in TOPICS:
                    if versions.get(topic, 0) != seen.get(topic):
                        changed(topic)
                seen = dict.fromkeys(TOPICS, 0) | versions
                limit = None
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), limit)

    async def prune(self, *, records_before: float, sessions_before: float, max_bytes: int) -> int:
        deleted = await super().prune(
            records_before=records_before, sessions_before=sessions_before, max_bytes=max_bytes
        )
        while await self._write(_give_back_pages):
            await asyncio.sleep(PRUNE_PAUSE)
        return deleted

    async def _read(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        _, reader = self._start()
        return await asyncio.wrap_future(reader.submit(partial(operation, *args, **named)))

    async def _write(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        writer, _ = self._start()
        return await asyncio.wrap_future(writer.submit(partial(operation, *args, **named)))

    def _start(self) -> tuple[_ConnectionThread, _ConnectionThread]:
        if self._closed.is_set():
            raise StoreError("the store is closed")
        if self._threads is None:
            writer = _ConnectionThread("writer", "BEGIN IMMEDIATE", self._connect, self._path)
            self._threads = (writer, _ConnectionThread("reader", "BEGIN", self._connect, self._path))
        return self._threads

    def _connect(self) -> sqlite3.Connection:
        """Open the file, create it if it is missing, and migrate it."""
        if sqlite3.sqlite_version_info < MINIMUM_VERSION:
            raise StoreError(f"SQLite {sqlite3.sqlite_version} is too old: 3.35 or later is needed")
        self._path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        _create(self._path)
        if not os.access(self._path, os.R_OK | os.W_OK):  # SQLite would give its other files the same mode for good
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.create_function("CLOCK", 0, self._now)
            if connection.execute("PRAGMA page_count").fetchone() == (0,):
                connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute(f"PRAGMA journal_size_limit = {WAL_PAGES << 12}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
            if not _run_steps(connection, is_current(ENGINE)):
                connection.execute("BEGIN IMMEDIATE")
                _run_steps(connection, migrate(ENGINE))
                connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection


def _create(path: Path) -> None:
    """Create the file if it is missing, with its mode. Closing a file drops all locks that the process has on it, so
    this never opens an existing one."""
    with suppress(FileExistsError), _CREATION:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, MODE))


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode. While another process does the same SQLite fails without waiting, so this waits."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _run_steps(connection: sqlite3.Connection, steps: Steps[Result]) -> Result:
    try:
        query = next(steps)
        while True:
            query = steps.send(connection.execute(ENGINE.adapt(query.sql), clean_all(query.values)).fetchall())
    except StopIteration as stop:
        result: Result = stop.value
        return result


def _read_versions() -> Steps[dict[str, int]]:
    return {topic: version for topic, version in (yield Query(SELECT_VERSIONS))}


def _give_back_pages() -> Steps[bool]:
    """Make the file smaller, some pages at a time. Returns whether there are more.

    The pragma reports each page as a row without columns, at which Python's ``sqlite3`` stops: it gives back one page,
    whatever number it is given.
    """
    [(free,)] = yield Query("PRAGMA freelist_count")
    for _ in range(min(free, VACUUM_PAGES)):
        yield Query("PRAGMA incremental_vacuum(1)")
    return int(free) > VACUUM_PAGES


def _identify(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _code(error: BaseException) -> int | None:
    """The primary code of an SQLite error; -1 if it has none, None for other errors."""
    if not isinstance(error, sqlite3.Error):
        return None
    code = getattr(error, "sqlite_errorcode", -1)
    return code & 0xFF if code >= 0 else code


def _translate(error: BaseException, path: Path) -> BaseException:
    """The error for the caller. Messages of SQLite may quote SQL, so they are not passed on."""
    if isinstance(error, sqlite3.Error):
        reason = REASONS.get(_code(error) or -1) or getattr(error, "sqlite_errorname", "the query failed")
    elif isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
    elif isinstance(error, OverflowError):
        reason = "a number is too large"
    else:
        return error
    return StoreError(f"store {path.name}: {reason}")

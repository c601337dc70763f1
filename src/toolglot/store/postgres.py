"""The store in a PostgreSQL database, which many hosts share.

Strategy. A pool of few connections; an operation is one transaction, or one statement where that is all. The server
ends statements and waits for locks that take too long. If it does not answer at all, the connection is cut, so that
every operation ends within seconds. Operations run in tasks of their own: a caller that is cancelled leaves no
connection behind in the middle of a transaction. After connecting has failed, operations fail at once for a second,
then the next one tries again. Changes are reported by NOTIFY, on one more connection.

Durability is that of the server. Leases use its clock, so that hosts need not agree on the time.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import asyncpg

from toolglot.core.errors import StoreError
from toolglot.store.interface import TOPICS
from toolglot.store.migrations import is_current, migrate
from toolglot.store.operations import ONE_STATEMENT
from toolglot.store.sql import Engine, Steps, clean_all
from toolglot.store.sql_store import SqlStore

POOL_SIZE: Final = 5
CONNECT_SECONDS: Final = 2.0
STATEMENT_SECONDS: Final = 3.0
OPERATION_SECONDS: Final = 5.0
"""After this time the connection of an operation is cut."""

MIGRATION_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 1.0
"""How long operations fail at once after connecting has failed."""

PING_SECONDS: Final = 5.0
FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0
CHANNEL: Final = "toolglot"
ATTEMPTS: Final = 3
"""How often an operation is tried that the server rolls back because of another one (deadlock)."""

SERVER_SETTINGS: Final = {
    "application_name": "toolglot",
    "statement_timeout": f"{STATEMENT_SECONDS:.0f}s",
    "lock_timeout": f"{STATEMENT_SECONDS:.0f}s",
    "idle_in_transaction_session_timeout": f"{OPERATION_SECONDS:.0f}s",
}

Params = ParamSpec("Params")
Result = TypeVar("Result")
Connection = Any
"""asyncpg has no complete types."""

REPLACEMENTS: Final = {
    "BLOB": "BYTEA",
    "REAL": "DOUBLE PRECISION",
    "INTEGER PRIMARY KEY": "BIGSERIAL PRIMARY KEY",
    "INTEGER": "BIGINT",
    "TEXT": 'TEXT COLLATE "C"',
    "CLOCK()": "extract(epoch FROM clock_timestamp())::float8",
}
ENGINE: Final = Engine(
    name="postgres",
    pattern=re.compile(r"\b(?:BLOB|REAL|INTEGER PRIMARY KEY|INTEGER|TEXT)\b|\bCLOCK\(\)"),
    replacements=REPLACEMENTS,
    find_table="SELECT 1 FROM pg_tables WHERE tablename = $1 AND schemaname = ANY (current_schemas(false))",
    lock_schema=f"SELECT pg_advisory_xact_lock({int.from_bytes(CHANNEL.encode())})",
    report_change=f"SELECT pg_notify('{CHANNEL}', $1)",
    count_bytes="""
        SELECT (SELECT coalesce(sum(size), 0) FROM records) + (SELECT coalesce(sum(octet_length(value)), 0) FROM kept)
    """,
)
FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
REASONS: Final = {
    "08": "the connection is lost",
    "22": "a value is not valid",
    "23": "a row exists already or belongs to one that does not exist",
    "25": "the database is read-only",
    "28": "the server refuses the user or the password",
    "3D": "the database does not exist",
    "40": "another operation was in the way",
    "42": "the user may not do this, or a table is missing",
    "53": "the server has no space or no connections left",
    "55": "another operation was in the way",
    "57": "the server is starting or shutting down, or the query took too long",
    "58": "the server has a disk error",
}
"""What an error means, by the class of its code."""


class PostgresStore(SqlStore):
    """A store in a database. ``now`` is the clock of expiry; leases use that of the server."""

    engine = ENGINE
    is_shared = True

    def __init__(self, url: str, now: Callable[[], float]) -> None:
        super().__init__(now)
        self._url = url
        self._pool: Any = None
        self._opening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listeners: set[Connection] = set()
        self._retry_at = 0.0
        self._closed = asyncio.Event()

    async def open(self) -> None:
        await self._open_once()

    async def close(self) -> None:
        self._closed.set()
        for connection in self._listeners:
            connection.terminate()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=OPERATION_SECONDS)
            for task in late:
                task.cancel()
        pool, self._pool = self._pool, None
        if pool is not None:
            with suppress(*FAILURES):
                await asyncio.wait_for(pool.close(), CONNECT_SECONDS)

    async def watch(self, changed: Callable[[str], None]) -> None:
        delay = FIRST_DELAY
        while not self._closed.is_set():
            with suppress(*FAILURES):
                async with self._listen(changed) as lost:
                    delay = FIRST_DELAY
                    await lost
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), delay)
            delay = min(delay * 2, LONGEST_DELAY)

    @asynccontextmanager
    async def _listen(self, changed: Callable[[str], None]) -> AsyncIterator[Awaitable[None]]:
        """Report changes, all topics first. Yields what ends when the connection is lost."""

        def report(_connection: object, _process: int, _channel: str, topic: object) -> None:
            if topic in TOPICS:
                changed(str(topic))

        connection = await asyncpg.connect(self._url, timeout=CONNECT_SECONDS, command_timeout=STATEMENT_SECONDS)
        self._listeners.add(connection)
        try:
            if self._closed.is_set():
                connection.terminate()
            await connection.add_listener(CHANNEL, report)
            for topic in TOPICS:
                changed(topic)
            yield _wait_for_loss(connection)
        finally:
            self._listeners.discard(connection)
            connection.terminate()

    async def _read(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        return await self._start(partial(operation, *args, **named), in_transaction=False)

    async def _write(
        self, operation: Callable[Params, Steps[Result]], *args: Params.args, **named: Params.kwargs
    ) -> Result:
        in_transaction = operation not in ONE_STATEMENT
        return await self._start(partial(operation, *args, **named), in_transaction=in_transaction)

    async def _start(self, start: Callable[[], Steps[Result]], *, in_transaction: bool) -> Result:
        """Run an operation in a task of its own, which a caller that is cancelled does not cancel."""
        return await asyncio.shield(self._keep(asyncio.create_task(self._run(start, in_transaction))))

    def _keep(self, task: asyncio.Task[Result]) -> asyncio.Task[Result]:
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # so that it counts as seen if the caller is gone

    async def _run(self, start: Callable[[], Steps[Result]], in_transaction: bool) -> Result:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._acquire() as connection:
                    if not in_transaction:
                        return await _run_steps(connection, start())
                    async with connection.transaction():
                        return await _run_steps(connection, start())
            except asyncpg.TransactionRollbackError as error:
                if attempt == ATTEMPTS:
                    raise StoreError(_explain(error)) from None
            except FAILURES as error:
                raise StoreError(_explain(error)) from None
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def _acquire(self) -> AsyncIterator[Connection]:
        """A connection of the pool, which is cut if the operation takes too long."""
        loop = asyncio.get_running_loop()
        if self._closed.is_set():
            raise StoreError("the store is closed")
        if loop.time() < self._retry_at:
            raise StoreError("store postgres: there is no connection to the server")
        try:
            if self._pool is None:
                await asyncio.wait_for(self._open_once(), OPERATION_SECONDS)
            pool = self._pool
            connection = await pool.acquire(timeout=CONNECT_SECONDS)
        except (StoreError, *FAILURES):
            self._retry_at = loop.time() + RETRY_SECONDS
            raise
        limit = loop.call_later(OPERATION_SECONDS, connection.terminate)
        try:
            yield connection
        except asyncpg.UndefinedTableError:
            self._pool = None  # another database has taken the place of this one: migrate it
            pool.terminate()
            raise
        finally:
            limit.cancel()
            await pool.release(connection, timeout=CONNECT_SECONDS)

    async def _open_once(self) -> None:
        """Migrate and make the pool; operations that come meanwhile wait for the same attempt."""
        if self._opening is None or self._opening.done():
            self._opening = self._keep(asyncio.create_task(self._open()))
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        if self._pool is not None:
            return
        try:
            await _migrate(self._url)
            self._pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=POOL_SIZE,
                timeout=CONNECT_SECONDS,
                reset=_keep_session,
                server_settings=SERVER_SETTINGS,
            )
        except FAILURES as error:
            raise StoreError(_explain(error)) from None


async def _migrate(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS, command_timeout=MIGRATION_SECONDS)
    try:
        if not await _run_steps(connection, is_current(ENGINE)):
            async with connection.transaction():
                await _run_steps(connection, migrate(ENGINE))
    finally:
        await connection.close(timeout=CONNECT_SECONDS)


async def _run_steps(connection: Connection, steps: Steps[Result]) -> Result:
    try:
        query = next(steps)
        while True:
            query = steps.send(await connection.fetch(ENGINE.adapt(query.sql), *clean_all(query.values)))
    except StopIteration as stop:
        result: Result = stop.value
        return result


async def _wait_for_loss(connection: Connection) -> None:
    """Wait until the connection is lost; use it from time to time, to see that it is alive."""
    lost = asyncio.Event()
    connection.add_termination_listener(lambda _connection: lost.set())
    while not connection.is_closed():
        with suppress(TimeoutError):
            await asyncio.wait_for(lost.wait(), PING_SECONDS)
            return
        await connection.execute("SELECT 1")


async def _keep_session(_connection: Connection) -> None:
    """Operations change no setting of their session, so that nothing has to be reset."""


def _explain(error: Exception) -> str:
    """The error in words. Messages of the server may quote values, so they are not passed on."""
    if isinstance(error, asyncpg.PostgresError):
        code = error.sqlstate or ""
        reason = REASONS.get(code[:2], "the server reports an error") + (f" ({code})" if code else "")
    elif isinstance(error, asyncpg.DataError | ValueError):
        reason = "a value or the URL is not valid"
    elif isinstance(error, TimeoutError):
        reason = "the server does not respond"
    elif isinstance(error, OSError):
        known = error.errno is not None and error.errno > 0
        reason = f"no connection to the server ({os.strerror(error.errno or 0) if known else type(error).__name__})"
    else:
        reason = "the connection is lost"
    return f"store postgres: {reason}"

"""The port that clients come to, and the doors of those who came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

from toolglot.core.errors import ShutdownError, ToolglotError, UsageError
from toolglot.server.http_connection import HttpConnection
from toolglot.server.http_request import Request, Response

BACKLOG: Final = 4096
ROUND: Final = 1.0
"""Seconds between two looks at all doors."""
LAST_WRITES: Final = 1.0
"""Seconds in which clients may take the error that ends their answer."""


class Answering(Protocol):
    """Who answers."""

    def answer(self, request: Request) -> Awaitable[Response | None]: ...

    def refuse(self, error: ToolglotError) -> Response: ...


class Listener:
    """Everybody who came in, and the way out."""

    def __init__(self, answering: Answering, body_limit: int, head_limit: int) -> None:
        self.body_limit = body_limit
        self.head_limit = head_limit
        self.draining = False
        self.answer = answering.answer
        self.refuse = answering.refuse
        self._doors: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None
        self._rounds: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def open(self, host: str, port: int, *, shared: bool = False) -> str:
        """Open a port; its address. ``shared``: other processes may open the same."""
        try:
            self._server = await self._loop.create_server(
                self._meet, host, port, backlog=BACKLOG, reuse_port=shared or None
            )
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
        self._look_round()
        bound, number = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{bound}]' if ':' in bound else bound}:{number}"

    def _meet(self) -> HttpConnection:
        return HttpConnection(self, self._loop)

    def remember(self, door: HttpConnection) -> None:
        self._doors.add(door)

    def forget(self, door: HttpConnection) -> None:
        self._doors.discard(door)

    def _look_round(self) -> None:
        now = self._loop.time()
        for door in tuple(self._doors):
            door.look(now)
        self._rounds = self._loop.call_later(ROUND, self._look_round)

    async def close(self, patience: float) -> None:
        """Stop accepting connections and wait for open answers; those that take too long end with an error."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        if self._rounds is not None:
            self._rounds.cancel()
        await self._wait_for_doors(patience)
        for door in tuple(self._doors):
            door.interrupt(ShutdownError("The gateway is shutting down and could not wait for the end of this answer."))
        await self._wait_for_doors(LAST_WRITES)
        for door in tuple(self._doors):
            door.transport.abort()
        await asyncio.sleep(0)

    async def _wait_for_doors(self, seconds: float) -> None:
        """Wait until all connections are closed, at most for some seconds; idle ones are closed at once."""
        end = self._loop.time() + seconds
        while self._doors and self._loop.time() < end:
            for door in tuple(self._doors):
                door.look(self._loop.time())
            await asyncio.sleep(0.02)

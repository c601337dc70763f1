"""The listening port and the open client connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Final, Protocol

from toolglot.core.errors import ShutdownError, ToolglotError, UsageError
from toolglot.server.http_connection import HttpConnection
from toolglot.server.http_request import Request, Response

BACKLOG: Final = 4096
SWEEP_SECONDS: Final = 1.0
"""Seconds between two checks of all connections."""
FLUSH_SECONDS: Final = 1.0
"""Seconds that clients have to read the error that ends their response at shutdown."""


class Application(Protocol):
    """What answers requests."""

    def answer(self, request: Request) -> Awaitable[Response | None]: ...

    def refuse(self, error: ToolglotError) -> Response: ...


class Listener:
    """Open client connections; graceful shutdown."""

    def __init__(self, app: Application, body_limit: int, head_limit: int) -> None:
        self.body_limit = body_limit
        self.head_limit = head_limit
        self.draining = False
        self.answer = app.answer
        self.refuse = app.refuse
        self.connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    async def open(self, host: str, port: int, *, shared: bool = False) -> str:
        """Listen on a port and return its URL. ``shared``: other processes may listen on the same port.

        Raises: UsageError if the port cannot be opened.
        """
        try:
            self._server = await self._loop.create_server(
                partial(HttpConnection, self, self._loop), host, port, backlog=BACKLOG, reuse_port=shared or None
            )
        except OSError as error:
            raise UsageError(
                f"cannot listen on {host}:{port}: {error.strerror or error}. Choose another with --port; 0 takes any"
            ) from None
        self._sweep()
        bound, number = self._server.sockets[0].getsockname()[:2]
        return f"http://{f'[{bound}]' if ':' in bound else bound}:{number}"

    def _sweep(self) -> None:
        """Check the timeouts of all connections, periodically."""
        now = self._loop.time()
        for connection in tuple(self.connections):
            connection.check_timeouts(now)
        self._sweep_timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    async def close(self, seconds: float) -> None:
        """Stop accepting connections and wait for open responses; after some seconds, end them with an error."""
        self.draining = True
        if self._server is not None:
            self._server.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        await self._wait_for_connections(seconds)
        for connection in tuple(self.connections):
            connection.interrupt(
                ShutdownError("The gateway is shutting down and could not wait for the end of this answer.")
            )
        await self._wait_for_connections(FLUSH_SECONDS)
        for connection in tuple(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    async def _wait_for_connections(self, seconds: float) -> None:
        """Wait until all connections are closed, at most some seconds; idle ones are closed at once."""
        end = self._loop.time() + seconds
        while self.connections and self._loop.time() < end:
            for connection in tuple(self.connections):
                connection.check_timeouts(self._loop.time())
            await asyncio.sleep(0.02)

"""The gateway as an ASGI application: it runs under any ASGI server, alone or mounted in a larger application.

Strategy. The HTTP server of the other process parses requests and writes responses; everything behind that is the same
as in ``toolglot serve``. One task answers a request and appends to a queue what it writes; the coroutine that the ASGI
server awaits sends the queue, and waits for a slow client. A second task receives the body and then waits for the
client to disconnect, which cancels the answer and with it the request to the upstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, TypeAlias

from msgspec import Struct

from toolglot.config import Settings, is_loopback
from toolglot.core.errors import OriginError, ShutdownError, ToolglotError, UsageError
from toolglot.server.app import Gateway
from toolglot.server.http_request import Request, Response
from toolglot.server.lifecycle import open_gateway, warm_up

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

HIGH_WATER: Final = 64 << 10
"""Bytes that may wait for a slow client before the answer waits, too."""
POLICY_VIOLATION: Final = 1008
"""The code that closes a WebSocket, which the gateway does not serve."""


class AsgiGateway:
    """The gateway as an ASGI application.

        app = AsgiGateway(make_settings(base_url="http://127.0.0.1:8080/v1"))

    An ASGI server starts and stops it through the lifespan protocol. Servers send that to the outermost application
    only, so a program that mounts the gateway enters it in its own lifespan: ``async with app: ...``. Without client
    keys it answers only clients on this machine, as ``toolglot serve`` does; address, port and workers of the settings
    do not count, because the ASGI server listens.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.body_limit = settings.limits.body_bytes
        self.draining = False
        self._gateway: Gateway | None = None
        self._exit = AsyncExitStack()
        self._open: set[AsgiRequest] = set()

    async def __aenter__(self) -> AsgiGateway:
        """Open the store and the connections to upstreams. Raises: UsageError if it has been started."""
        if self._gateway is not None:
            raise UsageError("this gateway has been started already")
        if not self.settings.upstreams:
            raise UsageError("there is no upstream: give base_url, or a settings file with [[upstream]]")
        await asyncio.to_thread(warm_up, self.settings)
        self._gateway = await self._exit.enter_async_context(open_gateway(self.settings))
        self.draining = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for open responses, then end them with an error; close the store and the connections to upstreams."""
        self.draining = True
        if self._gateway is not None:
            self._gateway.draining = True
        await self._wait_for_answers(self.settings.server.drain_seconds)
        for request in tuple(self._open):
            request.interrupt(ShutdownError("The gateway is shutting down and could not wait for the end."))
        await self._wait_for_answers(1.0)
        self._gateway = None
        await self._exit.aclose()

    async def _wait_for_answers(self, seconds: float) -> None:
        tasks = [request.answering for request in self._open if request.answering is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            raise UsageError(f"the gateway does not serve ASGI scopes of type {scope['type']!r}")

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan protocol."""
        await receive()
        try:
            await self.__aenter__()
        except ToolglotError as error:
            await send({"type": "lifespan.startup.failed", "message": f"toolglot: {error.message}"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        gateway = self._gateway
        if gateway is None:
            raise UsageError(
                "the gateway has not been started: the ASGI server must support the lifespan protocol, and a program"
                " that mounts the gateway must enter it in its own lifespan ('async with gateway: ...')"
            )
        request = AsgiRequest(self, scope)
        request.answering = asyncio.create_task(self._answer(gateway, request, scope))
        receiving = asyncio.create_task(request.receive_body(receive))
        self._open.add(request)
        try:
            await request.send_response(send)
        finally:
            self._open.discard(request)
            receiving.cancel()
            request.answering.cancel()
            await asyncio.wait((receiving, request.answering))

    async def _answer(self, gateway: Gateway, request: AsgiRequest, scope: Scope) -> None:
        try:
            if gateway.access.keys.required or is_local(scope):
                response = await gateway.answer(request)
            else:
                error = OriginError("This gateway has no client keys, so it serves only clients on this machine.")
                response = gateway.refuse(error)
            if response is not None:
                request.send(response)
        finally:
            request.close()


def is_local(scope: Scope) -> bool:
    """Whether the client is on this machine; an ASGI server that does not name it listens on a local socket."""
    client = scope.get("client")
    return client is None or is_loopback(str(client[0]))


class _Connection(Struct):
    """What a request needs of its connection; only the ASGI server has the transport."""

    owner: AsgiGateway
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    drained: asyncio.Future[None] | None = None


class AsgiRequest(Request):
    """A request that an ASGI server has parsed. What is written waits in a queue until the server has taken it."""

    __slots__ = ("_closed", "_gone", "_queue", "_ready", "_waiting", "answering")

    def __init__(self, app: AsgiGateway, scope: Scope) -> None:
        connection = _Connection(app, asyncio.get_running_loop(), asyncio.Transport({"peername": scope.get("client")}))
        super().__init__(connection, scope["method"], make_target(scope), read_headers(scope["headers"]), "1.1")
        self.answering: asyncio.Task[None] | None = None
        self._queue: list[Event] = []
        self._waiting = 0
        self._ready = asyncio.Event()
        self._closed = False
        self._gone = False
        """The client has disconnected."""

    # -- called by the ASGI server's side ------------------------------------------------------------------------------

    async def receive_body(self, receive: Receive) -> None:
        """Receive the body, then wait for the client to disconnect."""
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                break
            self.add_body(event.get("body", b""))
            if not event.get("more_body", False):
                self.complete_body()
        self._gone = True
        if self.answering is not None and not self.response_complete:
            self.answering.cancel()

    async def send_response(self, send: Send) -> None:
        """Send what is written until the response ends. Raises: ConnectionError if it ends early, so that the server
        aborts the connection: a response that was cut must not look complete."""
        while True:
            while self._queue:
                queue, self._queue = self._queue, []
                self._waiting = 0
                for event in queue:
                    await send(event)
                self._release()
            if self._closed:
                break
            self._ready.clear()
            await self._ready.wait()
        if self.response_started and not (self.response_complete or self._gone):
            raise ConnectionError("the response was cut")

    def interrupt(self, error: ToolglotError) -> None:
        """End the response with an error."""
        self.interruption = error
        if self.answering is not None:
            self.answering.cancel()

    # -- called by the gateway -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing more will be written."""
        self._closed = True
        self._ready.set()

    def send(self, response: Response) -> None:
        self.response_started = self.response_complete = True
        headers = {**response.headers, "content-length": str(len(response.body))}
        self._add_start(response.status, headers, response.content_type)
        self._add({"type": "http.response.body", "body": b"" if self.method == "HEAD" else response.body})

    def begin(self, headers: Mapping[str, str], content_type: str) -> None:
        self.response_started = True
        self._add_start(200, headers, content_type)

    def write(self, data: bytes) -> bool:
        self._add({"type": "http.response.body", "body": data, "more_body": True})
        self._waiting += len(data)
        if self._waiting > HIGH_WATER and self._connection.drained is None:
            self._connection.drained = self.loop.create_future()
        return self.is_blocked

    def end(self, data: bytes = b"") -> None:
        self.response_complete = True
        self._add({"type": "http.response.body", "body": data})

    def _add_start(self, status: int, headers: Mapping[str, str], content_type: str) -> None:
        named = {"content-type": content_type, **headers}
        fields = [
            (name.lower().encode("latin-1"), value.encode("utf-8", "surrogateescape"))
            for name, value in named.items()
            if value.isprintable()
        ]
        self._add({"type": "http.response.start", "status": status, "headers": fields})

    def _add(self, event: Event) -> None:
        self._queue.append(event)
        self._ready.set()

    def _release(self) -> None:
        drained, self._connection.drained = self._connection.drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)


def make_target(scope: Scope) -> bytes:
    """The request target below the place where the application is mounted."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    root: bytes = scope.get("root_path", "").encode()
    if root and path.startswith(root):
        path = path[len(root) :]
    return b"/" + path.lstrip(b"/") + (b"?" + query if query else b"")


def read_headers(fields: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers by lower-case names; the ASGI server answers ``Expect`` itself."""
    headers: dict[str, str] = {}
    for name, value in fields:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    headers.pop("expect", None)
    return headers

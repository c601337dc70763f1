"""The API of live updates.

    GET /live    server-sent events: "sessions" (sessions that have a new turn), "progress" (requests in progress)

*Strategy.* While a console is open, a process asks twice a second: the store for records that are new, whichever
process wrote them, and itself for its requests in progress. Any number of consoles shares the queries. Requests
themselves do nothing for them, and a console that reads too slowly misses updates.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from toolglot.console.app import ConsoleContext
from toolglot.console.query_cache import QueryCache
from toolglot.core.errors import OverloadError, StoreError
from toolglot.core.redaction import redact_printable
from toolglot.gateway.mounting import HttpRequest, Response, Route
from toolglot.gateway.storage import describe_session
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.store.interface import RecordQuery

TICK_SECONDS: Final = 0.5
SHARED_SECONDS: Final = 0.3
"""Seconds for which all consoles use the answer of one query."""
OVERLAP_SECONDS: Final = 5.0
"""Processes write their records a moment after they have named them: newer names may be written first."""
HEARTBEAT_TICKS: Final = 30
MAX_NEW: Final = 200
"""Records that are looked at each time; of more, the newest."""
MAX_DESCRIBED: Final = 20
"""Sessions that are described each time; of others only the id is sent."""
MAX_OPEN: Final = 100
MAX_CONSOLES: Final = 32
HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no", "x-content-type-options": "nosniff"}


class LiveView:
    """Sends what is new to open consoles."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context
        self.consoles = 0
        self.changes = Changes(context)

    def routes(self) -> Iterable[Route]:
        yield "GET", "/live", self.stream

    async def stream(self, request: HttpRequest) -> Response | None:
        if self.consoles >= MAX_CONSOLES:
            raise OverloadError(f"{MAX_CONSOLES} consoles are open already.", 60)
        self.consoles += 1
        try:
            request.begin(HEADERS, "text/event-stream")
            await self.send_updates(request)
        finally:
            self.consoles -= 1
        request.end()
        return None

    async def send_updates(self, request: HttpRequest) -> None:
        """Send what is new until the client is gone, its login has ended, or the gateway stops."""
        feed, quiet = LiveFeed(self.context, self.changes), 0
        request.write(b"retry: 2000\n\n")
        while not self.context.gateway.is_draining() and await self.context.login.admits(request):
            if not request.is_blocked:
                messages = await feed.collect()
                quiet = 0 if messages else quiet + 1
                if quiet >= HEARTBEAT_TICKS:
                    quiet, messages = 0, b": alive\n\n"
                if messages:
                    request.write(messages)
            await asyncio.sleep(TICK_SECONDS)


class Changes:
    """Sessions that have a new turn, for all open consoles: whichever asks first queries the store for all."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context
        self.number = 0
        """How many changes there have been."""
        self.latest: deque[tuple[int, dict[str, object]]] = deque(maxlen=MAX_NEW)
        """The latest changes, each with its number and the session."""
        self.seen: dict[str, None] = {}
        self.asked: QueryCache[None] = QueryCache(SHARED_SECONDS)

    async def find(self, known: int) -> list[dict[str, object]]:
        """The sessions that changed after the first ``known`` changes. Raises: StoreError."""
        await self.asked.find("", self.load)
        sessions = {session["id"]: session for number, session in self.latest if number > known}
        return list(sessions.values())

    async def load(self) -> None:
        """Find the sessions of records that are new. Raises: StoreError."""
        if self.context.telemetry.writer is None:
            return
        store = await self.context.open_store(fresh=False)
        since = self.context.gateway.source.now() - OVERLAP_SECONDS
        query = RecordQuery(limit=MAX_NEW, after=f"rec_{int(since * 1e6):014x}")
        new = [row for row in await call_store(store.list_records(None, query)) if row.id not in self.seen]
        self.seen |= dict.fromkeys(row.id for row in new)
        for old in list(self.seen)[: -4 * MAX_NEW]:
            del self.seen[old]
        names = dict.fromkeys(row.session for row in new if row.session)
        for at, name in enumerate(names):
            described: dict[str, object] = {"id": name}
            if at < MAX_DESCRIBED and (session := await call_store(store.get_session(None, name))) is not None:
                described = describe_session(session)
            self.number += 1
            self.latest.append((self.number, described))


class LiveFeed:
    """What one console has been sent."""

    def __init__(self, context: ConsoleContext, changes: Changes) -> None:
        self.context = context
        self.changes = changes
        self.known = changes.number
        self.open = b"[]"

    async def collect(self) -> bytes:
        """The events since the last call."""
        messages = b""
        try:
            sessions, self.known = await self.changes.find(self.known), self.changes.number
            if sessions:
                messages += encode_event("sessions", msgspec.json.encode(sessions))
        except StoreError as error:
            messages += encode_event("problem", msgspec.json.encode(error.message))
        in_progress = msgspec.json.encode(describe_open(self.context.telemetry.open))
        if in_progress != self.open:
            self.open = in_progress
            messages += encode_event("progress", in_progress)
        return messages


def describe_open(recorders: Mapping[int, RequestRecorder]) -> list[dict[str, object]]:
    """The requests in progress of this process, the latest first."""
    latest = list(recorders.values())[-MAX_OPEN:]
    return [describe_recorder(recorder) for recorder in reversed(latest)]


def describe_recorder(recorder: RequestRecorder) -> dict[str, object]:
    model, upstream, agent = recorder.clean(recorder.model, recorder.upstream, recorder.agent.partition(" ")[0])
    return {
        "request_id": redact_printable(recorder.request_id),
        "began": recorder.time,
        "wire": recorder.wire,
        "model": model,
        "upstream": upstream,
        "client": recorder.client or agent,
        "mode": recorder.mode,
        "dialect": recorder.dialect,
        "bytes": recorder.bytes,
        "calls": recorder.calls,
        "attempts": len(recorder.attempts) + 1,
        "replay_of": recorder.replay_of,
    }


def encode_event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)

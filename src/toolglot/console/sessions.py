"""The API of the views Sessions and Session.

GET    /sessions?offset=&limit=&text=&outcome=&troubled=    most recently used first, with the number of all
GET    /sessions/{id}                                       with its turns, oldest first
DELETE /sessions/{id}
GET    /sessions/{id}/export?check=                         the session as one HTML file
GET    /turns/{id}                                          one turn in full
GET    /refused                                             the newest requests that belong to no session
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from toolglot.console import work
from toolglot.console.app import ConsoleContext
from toolglot.console.export import export_session
from toolglot.console.parameters import encode_json, make_response, read_id, read_number, read_query
from toolglot.console.static_files import API_HEADERS
from toolglot.console.turns import describe_turn, summarize
from toolglot.core.errors import OverloadError, RequestError, UnknownPathError
from toolglot.gateway.mounting import HttpRequest, Response, Route
from toolglot.gateway.storage import describe_session
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import OUTCOMES, REFUSED, RecordQuery, RecordRow, SessionQuery, SessionRow, Store

MAX_PAGE: Final = 500
MAX_TURNS: Final = 2000
MAX_REFUSED: Final = 200
MAX_EXPORTS: Final = 8
"""Exports at the same time; each holds a turn in memory while its client reads."""
EXPORT_SECONDS: Final = 10
CHECK: Final = "check"
"""The parameter of a request that only asks whether an export would be answered."""
FILTERS: Final = ("offset", "limit", "text", "outcome", "troubled")


class SessionsView:
    """Sessions and their turns, of all clients."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context
        self.exports = 0
        """Exports that are being read."""

    def routes(self) -> Iterable[Route]:
        yield "GET", "/sessions", self.list_sessions
        yield "GET", "/sessions/{id:[^/]+}", self.show_session
        yield "DELETE", "/sessions/{id:[^/]+}", self.delete_session
        yield "GET", "/sessions/{id:[^/]+}/export", self.export
        yield "GET", "/turns/{id:[^/]+}", self.show_turn
        yield "GET", "/refused", self.list_refused

    async def list_sessions(self, request: HttpRequest) -> Response:
        given = read_query(request.query, FILTERS)
        outcome = given.get("outcome", "")
        if outcome and outcome not in OUTCOMES:
            raise RequestError(f"outcome must be one of {', '.join(OUTCOMES)}.", "outcome")
        query = SessionQuery(
            limit=read_number(given, "limit", 100, 1, MAX_PAGE),
            offset=read_number(given, "offset", 0, 0, 10_000_000),
            text=given.get("text", ""),
            outcome=outcome,
            troubled=given.get("troubled", "") == "1",
        )
        store = await self.context.open_store(fresh=False)
        page = await call_store(store.find_sessions(None, query))
        return make_response({"total": page.total, "sessions": [describe_session(row) for row in page.rows]})

    async def show_session(self, request: HttpRequest) -> Response:
        store = await self.context.open_store()
        row = await find_session(store, read_id(request))
        turns = [summarize(record) for record in await list_turns(store, row.id)]
        return make_response({"session": describe_session(row), "turns": turns})

    async def list_refused(self, request: HttpRequest) -> Response:
        store = await self.context.open_store()
        rows = await call_store(store.list_records(None, RecordQuery(limit=MAX_REFUSED, outcome=REFUSED)))
        return make_response({"requests": [summarize(row) for row in rows if not row.session]})

    async def delete_session(self, request: HttpRequest) -> Response:
        session_id = read_id(request)
        if not await self.context.gateway.delete_session(session_id):
            raise unknown_session(session_id)
        return make_response({"deleted": session_id})

    async def export(self, request: HttpRequest) -> Response | None:
        store = await self.context.open_store()
        row = await find_session(store, read_id(request))
        if self.exports >= MAX_EXPORTS:
            message = f"{MAX_EXPORTS} sessions are being exported; try again in a moment."
            raise OverloadError(message, EXPORT_SECONDS, step="wait until one of these downloads has ended.")
        if request.query.get(CHECK):
            return make_response({})
        self.exports += 1
        try:
            headers = {**API_HEADERS, "content-disposition": f'attachment; filename="{row.id}.html"'}
            request.begin(headers, "text/html; charset=utf-8")
            turns = await list_turns(store, row.id)
            async with aclosing(export_session(store, row, turns, self.context.settings)) as pieces:
                async for piece in pieces:
                    if request.write(piece):
                        await request.drain()
        finally:
            self.exports -= 1
        request.end()
        return None

    async def show_turn(self, request: HttpRequest) -> Response:
        store, record_id = await self.context.open_store(), read_id(request)
        row = await call_store(store.get_record(None, record_id))
        if row is None:
            raise UnknownPathError(f"There is no record {record_id[:100]!r}; it may have been deleted.")
        return Response(await work.run(encode_turn, row, self.context))


def encode_turn(row: RecordRow, context: ConsoleContext) -> bytes:
    return encode_json(describe_turn(row, context.settings))


async def find_session(store: Store, session_id: str) -> SessionRow:
    row = await call_store(store.get_session(None, session_id))
    if row is None:
        raise unknown_session(session_id)
    return row


async def list_turns(store: Store, session_id: str) -> list[RecordRow]:
    """The latest turns of a session, oldest first, without bodies."""
    rows = await call_store(store.list_records(None, RecordQuery(limit=MAX_TURNS, session=session_id)))
    return sorted(rows, key=lambda row: (row.time, row.id))


def unknown_session(session_id: str) -> UnknownPathError:
    return UnknownPathError(f"There is no session {session_id[:100]!r}; it may have been deleted.")

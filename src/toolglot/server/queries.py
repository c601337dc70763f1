"""The endpoints that query the store: records of requests, and sessions.

    GET    /v1/records?limit=&before=&model=&session=&outcome=     newest first
    GET    /v1/records/{id}                                        with stored bodies; by its id or the request's
    GET    /v1/sessions?limit=&before=                             newest first
    GET    /v1/sessions/{id}                                       with its latest records
    DELETE /v1/sessions/{id}                                       with its records, and its chats at the upstream

With client keys, a key sees only its own rows: those of others do not exist for it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from toolglot.core.errors import RequestError, StoreError, UnknownPathError
from toolglot.gateway.storage import describe_record, describe_session
from toolglot.gateway.telemetry.record_writer import RECORD_ID, RecordWriter, call_store
from toolglot.server.http_request import Request, Response
from toolglot.store.interface import OUTCOMES, Chat, RecordQuery, RecordRow, SessionRow, Store

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
MAX_TEXT: Final = 500
PLAIN: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{MAX_TEXT}}}")
"""What a parameter can be: no store takes control characters and lone surrogates."""
RECORD_FILTERS: Final = ("limit", "before", "model", "session", "outcome")
SESSION_FILTERS: Final = ("limit", "before")
KEY_PARAMETER: Final = "key"
"""Any request may present its client key as this parameter."""
NO_STORE: Final = "This gateway has no store, so there are no records and sessions."
SET_STORE: Final = "let the operator set store.url (TOOLGLOT_STORE_URL), and server.state_dir if that is 'none'."
NO_ROW: Final = "take an id from the list: GET /v1/records or GET /v1/sessions."

Handler = Callable[[Request], Awaitable[Response | None]]
DeleteChats = Callable[[Sequence[Chat]], Awaitable[None]]
Row = TypeVar("Row", RecordRow, SessionRow)


async def keep_chats(chats: Sequence[Chat]) -> None:
    """Deletes no chats: without stateful upstreams there are none."""


class Queries:
    """``owner`` gives the owner whose rows a request may see, None for all. ``delete_chats`` deletes the chats of a
    session at their upstream."""

    def __init__(self, writer: RecordWriter | None, owner: Callable[[Request], bytes | None]) -> None:
        self.writer = writer
        self.owner = owner
        self.delete_chats: DeleteChats = keep_chats

    def routes(self) -> Iterable[tuple[str, str, Handler]]:
        yield "GET", "/v1/records", self.list_records
        yield "GET", "/v1/records/{id:.+}", self.show_record
        yield "GET", "/v1/sessions", self.list_sessions
        yield "GET", "/v1/sessions/{id:.+}", self.show_session
        yield "DELETE", "/v1/sessions/{id:.+}", self.delete_session

    def describe_store(self) -> dict[str, str]:
        """The state of the store, for the health of the gateway."""
        if self.writer is None:
            return {"store": "none"}
        if self.writer.problem:
            return {"store": "unavailable", "store_problem": self.writer.problem}
        return {"store": "ok"}

    async def list_records(self, request: Request) -> Response:
        given = read_parameters(request.query, RECORD_FILTERS)
        outcome = given.get("outcome", "")
        if outcome and outcome not in OUTCOMES:
            raise RequestError(f"outcome must be one of {', '.join(OUTCOMES)}.", "outcome")
        before = given.get("before", "")
        if before and not RECORD_ID.fullmatch(before):
            raise RequestError("before must be the id of a record, such as the field 'next' of a page.", "before")
        query = RecordQuery(
            limit=read_limit(given),
            before=before,
            model=given.get("model", ""),
            session=given.get("session", ""),
            outcome=outcome,
        )
        return make_response(await self.find_records(await self.open(), self.owner(request), query))

    async def find_records(self, store: Store, owner: bytes | None, query: RecordQuery) -> dict[str, Any]:
        one_more = msgspec.structs.replace(query, limit=query.limit + 1)
        rows = await call_store(store.list_records(owner, one_more))
        return make_list(rows, query.limit, describe_record)

    async def show_record(self, request: Request) -> Response:
        record_id = read_id(request)
        row = await call_store((await self.open()).get_record(self.owner(request), record_id))
        if row is None:
            raise unknown("record", record_id)
        return make_response(describe_record(row))

    async def list_sessions(self, request: Request) -> Response:
        given = read_parameters(request.query, SESSION_FILTERS)
        limit = read_limit(given)
        store = await self.open()
        rows = await call_store(store.list_sessions(self.owner(request), limit + 1, given.get("before", "")))
        return make_response(make_list(rows, limit, describe_session))

    async def show_session(self, request: Request) -> Response:
        session_id, owner = read_id(request), self.owner(request)
        store = await self.open()
        row = await call_store(store.get_session(owner, session_id))
        if row is None:
            raise unknown("session", session_id)
        records = await self.find_records(store, owner, RecordQuery(limit=DEFAULT_LIMIT, session=row.id))
        return make_response({**describe_session(row), "records": records})

    async def delete_session(self, request: Request) -> Response:
        session_id = read_id(request)
        if not await self.delete_by_id(session_id, self.owner(request)):
            raise unknown("session", session_id)
        return make_response({"id": session_id, "object": "session", "deleted": True})

    async def delete_by_id(self, session_id: str, owner: bytes | None = None) -> bool:
        """Delete a session of an owner, by default of any. Returns whether there was one."""
        chats = await call_store((await self.open()).delete_session(owner, session_id))
        if chats is not None:
            await self.delete_chats(chats)
        return chats is not None

    async def open(self) -> Store:
        """The store, with the records of all requests that have ended. Raises: UnknownPathError if there is no store,
        StoreError if it is unavailable."""
        if self.writer is None:
            raise UnknownPathError(NO_STORE, step=SET_STORE)
        await self.writer.flush()
        if self.writer.problem:
            raise StoreError(f"The store is unavailable: {self.writer.problem}")
        return self.writer.store


def read_parameters(query: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """The parameters that are not empty. Raises: RequestError for unknown ones and values that cannot be right."""
    for name, value in query.items():
        if name not in (*known, KEY_PARAMETER):
            raise RequestError(f"Unknown parameter {name[:100]!a}; known are {', '.join(known)}.")
        if name != KEY_PARAMETER and not is_plain(value):
            raise RequestError(f"{name} must have at most {MAX_TEXT} characters, and no control characters.", name)
    return {name: value for name, value in query.items() if value and name != KEY_PARAMETER}


def read_limit(given: Mapping[str, str]) -> int:
    text = given.get("limit", str(DEFAULT_LIMIT))
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_LIMIT)) and 1 <= int(text) <= MAX_LIMIT):
        raise RequestError(f"limit must be a whole number from 1 to {MAX_LIMIT}.", "limit")
    return int(text)


def read_id(request: Request) -> str:
    """The id in the path. Raises: UnknownPathError if nothing can have it."""
    read_parameters(request.query, ())
    given = request.path_params["id"]
    if not is_plain(given):
        raise UnknownPathError("There is nothing with that id.", step=NO_ROW)
    return given


def is_plain(text: str) -> bool:
    return PLAIN.fullmatch(text) is not None


def unknown(what: str, given: str) -> UnknownPathError:
    return UnknownPathError(f"There is no {what} {given[:100]!r}.", step=NO_ROW)


def make_list(rows: Sequence[Row], limit: int, describe: Callable[[Row], dict[str, Any]]) -> dict[str, Any]:
    """One page. ``rows`` has one more than the limit if there is a next page."""
    page, more = rows[:limit], len(rows) > limit
    return {
        "object": "list",
        "data": [describe(row) for row in page],
        "has_more": more,
        "next": page[-1].id if more else None,
    }


def make_response(value: object) -> Response:
    return Response(msgspec.json.encode(value))

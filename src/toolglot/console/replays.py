"""The API of the view Replay: sends a recorded request again with other settings.

GET  /replay/options          models, dialects and modes to choose from
POST /turns/{id}/replay       {"model": "", "mode": "", "dialect": "", "stream": true, "recovery": {"retries": 0}}
GET  /turns/{id}/snippets     the turn as curl, as Python, as a test sample
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from toolglot.config.settings import MODES
from toolglot.console import work
from toolglot.console.app import ConsoleContext
from toolglot.console.login import is_https
from toolglot.console.parameters import make_response, read_body, read_id
from toolglot.console.snippets import write_snippets
from toolglot.core.errors import RequestError, UnknownPathError
from toolglot.dialects.records import all_dialects
from toolglot.gateway.mounting import HttpRequest, ReplayRequest, Response, Route
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import RecordRow

MAX_RETRIES: Final = 5
CUT: Final = "The recorded request is not complete JSON: it was cut at store.max_body_bytes."
NOT_RECORDED: Final = 'The request of this turn was not recorded. Set store.bodies = "all" to record requests.'


class RecoveryChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of ``[recovery]`` for one replay; None leaves a setting as it is."""

    retries: int | None = None
    narrated_stop: bool | None = None
    continue_cut: bool | None = None

    def as_fields(self) -> dict[str, int | bool | str]:
        if self.retries is not None and not 0 <= self.retries <= MAX_RETRIES:
            raise RequestError(f"recovery.retries must be from 0 to {MAX_RETRIES}.", "recovery.retries")
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class ReplayChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is different in a replay. Empty fields leave a setting as it is."""

    model: str = ""
    mode: str = ""
    dialect: str = ""
    stream: bool | None = None
    recovery: RecoveryChoice = RecoveryChoice()


class ReplayView:
    def __init__(self, context: ConsoleContext) -> None:
        self.context = context

    def routes(self) -> Iterable[Route]:
        yield "GET", "/replay/options", self.list_options
        yield "POST", "/turns/{id:[^/]+}/replay", self.replay
        yield "GET", "/turns/{id:[^/]+}/snippets", self.show_snippets

    async def list_options(self, request: HttpRequest) -> Response:
        settings = self.context.settings
        return make_response(
            {
                "models": [model.name for model in settings.models if "*" not in model.name],
                "dialects": sorted(dialect.name for dialect in all_dialects()),
                "modes": list(MODES),
                "retries": settings.recovery.retries,
            }
        )

    async def replay(self, request: HttpRequest) -> Response:
        row, choice = await self.find(request), await read_body(request, ReplayChoice)
        check_choice(choice)
        asked = ReplayRequest(
            record=row.id,
            session=row.session,
            owner=row.owner,
            wire=row.wire,
            body=change_body(row.bodies["request"], choice),
            model=choice.model or row.model,
            stream=is_streamed(row) if choice.stream is None else choice.stream,
            agent=str(msgspec.json.decode(row.data).get("agent", "")),
            mode=choice.mode,
            dialect=choice.dialect,
            recovery=choice.recovery.as_fields(),
        )
        request_id = await self.context.gateway.replay(asked)
        answer = await call_store((await self.context.open_store()).get_record(None, request_id))
        if answer is None:
            raise UnknownPathError("The replay ran, but its record could not be stored.")
        return make_response({"id": answer.id})

    async def show_snippets(self, request: HttpRequest) -> Response:
        row = await self.find(request)
        scheme = "https" if is_https(request.headers) else "http"
        address = f"{scheme}://{request.headers.get('host', '127.0.0.1')}"
        return make_response(await work.run(write_snippets, row, address, self.context.settings))

    async def find(self, request: HttpRequest) -> RecordRow:
        """The record, with its request. Raises: UnknownPathError, RequestError."""
        record_id = read_id(request)
        row = await call_store((await self.context.open_store()).get_record(None, record_id))
        if row is None:
            raise UnknownPathError(f"There is no record {record_id[:100]!r}; it may have been deleted.")
        if "request" not in row.bodies:
            raise RequestError(NOT_RECORDED)
        return row


def check_choice(choice: ReplayChoice) -> None:
    """Raise RequestError if a choice is not one of those offered."""
    if choice.mode and choice.mode not in MODES:
        raise RequestError(f"mode must be one of {', '.join(MODES)}.", "mode")
    if choice.dialect and choice.dialect not in {dialect.name for dialect in all_dialects()}:
        raise RequestError("There is no such dialect; 'toolglot dialects' lists them.", "dialect")


def change_body(body: bytes, choice: ReplayChoice) -> bytes:
    """The recorded request with another model, streamed or not. Raises: RequestError if it was cut."""
    try:
        fields: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RequestError(CUT) from None
    if not isinstance(fields, dict):
        raise RequestError(CUT)
    changes: dict[str, object] = {"model": choice.model} if choice.model else {}
    if choice.stream is not None:
        changes["stream"] = choice.stream
    return msgspec.json.encode(fields | changes) if changes else body


def is_streamed(row: RecordRow) -> bool:
    fields: Mapping[str, object] = msgspec.json.decode(row.data)
    return bool(fields.get("stream"))

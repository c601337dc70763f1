"""Sends a recorded request through the gateway again, with other settings; the answer goes to its record only.

*Strategy.* The request takes the way of any other: routing, prompting, the upstream, reading, recovery. Only its
connection is not a socket, and its settings are changed for this request alone. What a conversation has learned before
(its mode, its first system prompt) does not count, because it would override the settings that are to be tried.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from toolglot.config import ModelSettings, Settings
from toolglot.core.errors import InternalError, RequestError, ToolglotError
from toolglot.gateway.mounting import ReplayRequest
from toolglot.server.http_request import Request, make_request_id
from toolglot.wires import client_wires

if TYPE_CHECKING:
    from toolglot.server.app import Gateway

MAX_SECONDS: Final = 600.0


class MemoryTransport(asyncio.Transport):
    """A transport that drops what is written: the recorder has it."""

    def write(self, data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False


class MemoryConnection:
    """The connection of a request that came from nowhere."""

    draining = False

    def __init__(self, body_limit: int) -> None:
        self.transport: asyncio.Transport = MemoryTransport()
        self.drained: asyncio.Future[None] | None = None
        self.loop = asyncio.get_running_loop()
        self.body_limit = body_limit

    @property
    def owner(self) -> MemoryConnection:
        return self


async def replay(gateway: Gateway, asked: ReplayRequest) -> str:
    """Send a recorded request again. Returns the request id of its record. Raises: RequestError if it cannot be."""
    wire = client_wires().get(asked.wire)
    if wire is None:
        raise RequestError(f"Requests of the wire {asked.wire!r} cannot be sent again.")
    settings = change_settings(gateway.settings, asked)
    headers = {"user-agent": asked.agent} if asked.agent else {}
    target = f"{wire.base_path}{wire.locate(asked.model, stream=asked.stream)}".encode()
    request = Request(MemoryConnection(settings.limits.body_bytes), "POST", target, headers, "1.0")
    request.id = make_request_id(gateway.source)
    with suppress(LookupError):  # some wires have a part of the request in the path
        _, request.path_params = gateway.router["POST", request.path]
    isolated = f"replay {request.id}".encode()
    recorder = gateway.telemetry.begin(request.id, wire.name, isolated)
    recorder.agent, recorder.replay_of, status = asked.agent, asked.record, 500
    try:
        async with asyncio.timeout(MAX_SECONDS):
            gateway.telemetry.body(recorder, "request", asked.body)
            context = structs.replace(gateway.context, settings=settings)
            exchange = await gateway.open_exchange(wire, asked.body, request, recorder, asked.mode, context)
            if exchange.streamed:
                gateway.telemetry.stream(recorder)
            await gateway.answer_exchange(request, exchange)
            status = 200
    except ToolglotError as error:
        status, recorder.error = error.status, error.code
        recorder.notes.append(error.message)
        if recorder.body is not None and not recorder.bytes:
            recorder.body.append(wire.encode_error(error))
    except TimeoutError:
        recorder.error = "timeout"
        recorder.notes.append(f"the replay was stopped after {MAX_SECONDS:g} s")
    except RecursionError:
        recorder.error = InternalError.code
    finally:
        recorder.owner, recorder.session, recorder.turn = asked.owner, asked.session, None
        gateway.telemetry.finish(recorder, status)
    return request.id


def change_settings(settings: Settings, asked: ReplayRequest) -> Settings:
    """The settings for one replay. Raises: RequestError if a value is not valid."""
    models = settings.models
    if asked.dialect or asked.mode:
        models = tuple(change_model(model, asked) for model in models)
    try:
        recovery = replace(settings.recovery, **asked.recovery)  # type: ignore[arg-type]
    except TypeError:
        raise RequestError("recovery has unknown fields.", "recovery") from None
    return replace(settings, models=models, recovery=recovery)


def change_model(model: ModelSettings, asked: ReplayRequest) -> ModelSettings:
    return replace(model, dialect=asked.dialect or model.dialect, mode=asked.mode or model.mode)

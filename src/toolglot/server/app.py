"""The gateway's face: which addresses it answers at, and to whom.

What a request asks is decided by ``exchange``; how its answer reaches the client is the business of ``visit``. When a
client goes away its request is cancelled, and with it the connection to the upstream.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from secrets import token_hex
from time import monotonic, time
from typing import Any
from urllib.parse import urlsplit

import msgspec

import toolglot
from toolglot.config import Settings, Upstream, admit, is_loopback
from toolglot.core import offload
from toolglot.core.errors import (
    AuthenticationError,
    InternalError,
    OriginError,
    OverloadError,
    RateLimitError,
    RequestError,
    ToolglotError,
    UnknownPathError,
    UpstreamError,
    UpstreamResponseError,
)
from toolglot.gateway.exchange import Exchange, GatewayContext, IncomingRequest, Source, prepare
from toolglot.gateway.response_pipeline import prepare_with_tools
from toolglot.gateway.telemetry.log import RequestRecorder, Telemetry
from toolglot.server.admission import Admission
from toolglot.server.http_request import JSON_TYPE, Request, Response
from toolglot.server.responder import REQUEST_ID, Responder
from toolglot.server.router import EVERY, Router
from toolglot.server.upstream.discovery import Discovery, gather_knowledge
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires, openai_chat
from toolglot.wires.json_fields import find_field
from toolglot.wires.protocol import ExtraEndpoint, Wire

OUR_FAULT = "Something went wrong here; the log knows more."
TOKEN_LENGTH = 24
TOKENS_AT_ONCE = 256
KEY_HEADERS = ("x-api-key", "x-goog-api-key")
DOUBLED_PREFIX = re.compile(r"^(?:/v1)+(?=/(?:v1|v1beta|api)/)")
"""Clients add the version themselves to an address that has it already."""
GONE = 499
"""What the record says of a client that left; nobody is told."""

LOG = logging.getLogger("toolglot.server")
USUAL_WIRE = all_wires()[openai_chat.WIRE.name]
Answer = Callable[[Request], Awaitable[Response | None]]


class Gateway:
    """Everything that lives as long as the server."""

    def __init__(self, settings: Settings, telemetry: Telemetry, source: Source | None = None) -> None:
        self.settings = settings
        self.telemetry = telemetry
        self.source = source or Source(time, Tokens().take)
        self.transport = ConnectionPool()
        self.knowledge = gather_knowledge(settings, self.source.now)
        self.inquiry = Discovery(self.transport, self.knowledge)
        self.context = GatewayContext(settings, self.source, self.knowledge)
        self.admission = Admission(settings.limits, telemetry.metrics, monotonic, keyed=bool(settings.server.keys))
        self.draining = False
        self.paths = self.lay_paths()

    def lay_paths(self) -> Router[tuple[Answer, Wire]]:
        paths: Router[tuple[Answer, Wire]] = Router()
        for wire in all_wires().values():
            for path in wire.routes:
                paths.add("POST", path, (self.admitted(partial(self.complete, wire)), wire))
            for extra in wire.extra_endpoints:
                paths.add(extra.method, extra.path, (self.admitted(partial(self.answer_extra, extra)), wire))
        for prefix in ("/v1", ""):
            paths.add("GET", f"{prefix}/models", (self.admitted(self.list_models), USUAL_WIRE))
            paths.add("GET", prefix + "/models/{name:.+}", (self.admitted(self.show_model), USUAL_WIRE))
        paths.add("GET", "/metrics", (self.admitted(self.show_metrics), USUAL_WIRE))
        for path in ("/", "/health", "/health/liveliness", "/health/liveness"):
            paths.add("GET", path, (self.show_health, USUAL_WIRE))
        paths.add("GET", "/health/readiness", (self.show_readiness, USUAL_WIRE))
        paths.add("HEAD", "{path:.*}", (self.show_health, USUAL_WIRE))
        for wire in all_wires().values():
            if wire.own_prefix:
                paths.add(EVERY, wire.own_prefix + "/{path:.*}", (self.admitted(self.refuse_path), wire))
        paths.add(EVERY, "{path:.*}", (self.admitted(self.refuse_path), USUAL_WIRE))
        return paths

    async def close(self) -> None:
        await self.transport.close()

    # -- every request -------------------------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response | None:
        """The answer to any request; every error is told in the words of its wire."""
        request.id, request.key = identify(request, self.source), find_key(request)
        request.path = DOUBLED_PREFIX.sub("", request.path)
        (answer, wire), request.match = self.paths.find(request.method, request.path)
        try:
            if not self.settings.server.keys:
                check_origin(*(request.headers.get(name, "") for name in ("host", "origin", "sec-fetch-site")))
            return await answer(request)
        except ToolglotError as error:
            told = error
        except Exception:
            LOG.exception("request %s", request.id)
            told = InternalError(OUR_FAULT)
        return None if request.begun else self.refuse(told, request.id, wire)

    def refuse(self, error: ToolglotError, request_id: str = "", wire: Wire = USUAL_WIRE) -> Response:
        headers = {REQUEST_ID: request_id} if request_id else {}
        if isinstance(error, UpstreamResponseError):
            headers |= error.headers
        if isinstance(error, (OverloadError, RateLimitError)):
            headers["retry-after"] = str(error.retry_after)
        if isinstance(error, AuthenticationError):
            headers["www-authenticate"] = "Bearer"
        return Response(wire.encode_error(error), error.status, headers)

    def admitted(self, answer: Answer) -> Answer:
        """The same for those who may ask, and nothing of it for others."""
        keys = self.settings.server.keys

        def ask(request: Request) -> Awaitable[Response | None]:
            if not admit(keys, request.key):
                raise AuthenticationError("No valid API key was presented." if request.key else "An API key is needed.")
            return answer(request)

        return ask if keys else answer

    # -- the one that matters ------------------------------------------------------------------------------------------

    async def complete(self, wire: Wire, request: Request) -> None:
        watch = self.telemetry.begin(request.id, wire.name)
        status, body, entered = 500, b"", False
        try:
            self.admission.check_rate(request.key)
            body = await request.read()
            await self.admission.enter()
            entered = True
            self.telemetry.body(watch, "request", body)
            mode = request.headers.get("x-toolglot-mode", "")
            exchange = await self.open(wire, body, request, watch, mode)
            body = b""
            if exchange.streamed:
                self.telemetry.stream(watch)
            response = await self.ask(request, exchange)
            status = 200
            if response is not None:  # a client that reads slowly keeps its place
                request.send(response)
                await request.drain()
            return None
        except ToolglotError as error:
            status, watch.error = error.status, error.code
            raise
        except RecursionError:
            status, watch.error = RequestError.status, RequestError.code
            raise describe_depth(body) from None
        except asyncio.CancelledError:
            if (told := request.interruption) is not None:
                status, watch.error = told.status, told.code
                raise told from None
            status, watch.client_gone = GONE, True
            raise
        except Exception:
            watch.error = InternalError.code
            raise
        finally:
            if entered:
                self.admission.leave()
            self.telemetry.finish(watch, status)

    async def ask(self, request: Request, exchange: Exchange) -> Response | None:
        """Send the request to its upstream, and its answer to the client."""
        visit = Responder(request, exchange, self.settings.server.heartbeat_seconds)
        try:
            while True:
                try:
                    return await self.ask_once(request, exchange, visit)
                except UpstreamError as error:
                    if not await offload.run(exchange.is_large, exchange.fall_back, error):
                        raise
                    visit.restart()
        except ToolglotError as error:
            visit.fail(error)
        except asyncio.CancelledError:
            if request.interruption is None:
                raise
            visit.fail(request.interruption)
        except RecursionError:
            visit.fail(UpstreamError("The upstream's answer is nested too deeply."))
        except Exception:
            LOG.exception("request %s", request.id)
            visit.fail(InternalError(OUR_FAULT))
        finally:
            visit.over()
        return None

    async def ask_once(self, request: Request, exchange: Exchange, visit: Responder) -> Response | None:
        upstream = exchange.route.upstream
        headers = self.headers_for(upstream, request)
        carried = exchange.wire.forwarded_headers
        if carried and exchange.same_wire:
            headers = {name: request.headers[name] for name in carried if name in request.headers} | headers
        self.telemetry.body(exchange.recorder, "upstream_request", exchange.upstream_body)
        async with self.transport.send(
            "POST", exchange.address, upstream, headers, exchange.take_upstream_body()
        ) as reply:
            response = await visit.answer(reply)
        exchange.conclude()
        return response

    async def open(self, wire: Wire, body: bytes, request: Request, watch: RequestRecorder, mode: str) -> Exchange:
        """Decode and route a request; if the route depends on what the upstream supports, ask the upstream first."""
        path = {**request.query, **request.match}
        incoming = IncomingRequest(wire, body, watch, path, mode, request.key, request.headers)
        large = len(body) >= offload.LARGE_REQUEST
        opening = prepare_with_tools if large else prepare
        while True:
            exchange = await offload.run(large, opening, incoming, self.context)
            if isinstance(exchange, Exchange):
                return exchange
            watch.notes.clear()
            await self.inquiry.ask(exchange.upstream, exchange.model, self.headers_for(exchange.upstream, request))

    def headers_for(self, upstream: Upstream, request: Request) -> dict[str, str]:
        headers = {"Content-Type": JSON_TYPE, "Accept-Encoding": "identity", REQUEST_ID: request.id}
        key = upstream.api_key.reveal()
        if not key and not self.settings.server.keys:
            key = request.key
        if key:
            headers |= all_wires()[upstream.wire].authorize(key)
        return {**headers, **upstream.headers}

    async def answer_extra(self, extra: ExtraEndpoint, request: Request) -> Response:
        body = await request.read()
        models = [model["id"] for model in await self.known_models(request)] if extra.needs_models else ()
        try:
            return Response(extra.answer(body, models))
        except RecursionError:
            raise describe_depth(body) from None

    # -- models --------------------------------------------------------------------------------------------------------

    async def list_models(self, request: Request) -> Response:
        return reply_json({"object": "list", "data": await self.known_models(request)})

    async def show_model(self, request: Request) -> Response:
        name = request.match["name"]
        known = {model["id"]: model for model in await self.known_models(request)}
        if name not in known:
            self.settings.model_for(name)
            known[name] = describe_model(name, "toolglot")
        return reply_json(known[name])

    async def known_models(self, request: Request) -> list[dict[str, Any]]:
        """The names that are configured and, where any name is passed on, those that the upstream tells."""
        known: dict[str, dict[str, Any]] = {}
        for model in self.settings.models:
            if "*" not in model.name:
                known[model.name] = describe_model(model.name, model.upstream)
                continue
            _, upstream = self.settings.model_for(model.name)
            for told in await self.ask_models(upstream, request):
                if model.match(told["id"]) is not None:
                    known.setdefault(told["id"], told)
        return list(known.values())

    async def ask_models(self, upstream: Upstream, request: Request) -> list[dict[str, Any]]:
        try:
            headers = self.headers_for(upstream, request)
            async with self.transport.send("GET", upstream.endpoint("/models"), upstream, headers) as reply:
                told = msgspec.json.decode(await reply.whole())
        except (ToolglotError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return []
        listed = told.get("data") if isinstance(told, dict) else None
        return [
            {**describe_model(model["id"], upstream.name), **model}
            for model in listed or ()
            if isinstance(model, dict) and isinstance(model.get("id"), str)
        ]

    # -- state ---------------------------------------------------------------------------------------------------------

    async def show_health(self, request: Request) -> Response:
        return reply_json({"status": "ok", "name": "toolglot", "version": toolglot.__version__})

    async def show_readiness(self, request: Request) -> Response:
        state = "draining" if self.draining else "ready"
        return reply_json({"status": state}, 503 if self.draining else 200)

    async def show_metrics(self, request: Request) -> Response:
        from toolglot.gateway.telemetry.prometheus import CONTENT_TYPE, render

        return Response(render(self.telemetry.metrics), content_type=CONTENT_TYPE)

    async def refuse_path(self, request: Request) -> Response:
        raise UnknownPathError(f"{request.method} {request.path[:200]} is not served here.")


class Tokens:
    """Random tokens. The system's generator is slow, so one call makes many of them. Safe for threads."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def take(self) -> str:
        while True:
            try:
                return self._made.pop()
            except IndexError:
                portion = token_hex(TOKEN_LENGTH // 2 * TOKENS_AT_ONCE)
                self._made += [portion[at : at + TOKEN_LENGTH] for at in range(0, len(portion), TOKEN_LENGTH)]


@lru_cache(maxsize=256)
def check_origin(host: str, origin: str, site: str) -> None:
    """Refuse what a web page may have sent to a gateway without keys.

    Parameters: ``host``, ``origin`` and ``site`` are the headers Host, Origin and Sec-Fetch-Site; each may be missing.
    A page of another site gives its own ``origin`` or, where browsers leave that out (images, scripts, frames, links),
    a ``site`` of "cross-site"; one whose name resolves to this machine (DNS rebinding) gives its own ``host``.
    Raises: OriginError if an address is not a loopback address, or the page is unknown and of another site.
    """
    foreign = not origin and site == "cross-site"
    for address in (f"//{host}" if host else "", origin):
        try:
            named = urlsplit(address).hostname or ""
        except ValueError:
            named = ""
        foreign |= bool(address) and not is_loopback(named)
    if foreign:
        raise OriginError(
            "This gateway has no client keys, so it serves only requests to a loopback address such as 127.0.0.1,"
            " and none from web pages of other sites. Make a key with 'toolglot key' to allow others."
        )


def identify(request: Request, source: Source) -> str:
    """The id that the client gave, or a new one."""
    given = request.headers.get(REQUEST_ID)
    return given if given and len(given) <= 200 and given.isprintable() else f"req_{source.token()}"


def find_key(request: Request) -> str:
    """The key that a client shows, whichever way its wire does that."""
    headers = request.headers
    for name in KEY_HEADERS:
        if key := headers.get(name):
            return key
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else "") or request.query.get("key", "")


def describe_depth(body: bytes) -> RequestError:
    where = find_field(body)
    return RequestError(f"{where or 'The request'} is nested too deeply.", where)


def describe_model(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


def reply_json(told: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(told), status)

"""The gateway application: routes, authentication and error responses.

``gateway.exchange`` prepares a request for its upstream; ``responder`` writes the response to the client. When a
client disconnects, its request is cancelled, and with it the connection to the upstream.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from secrets import token_hex
from time import monotonic, time

import msgspec

import toolglot
from toolglot.clients.gateway_key import NO_KEY
from toolglot.config import Settings, Upstream
from toolglot.config.keys import REFUSED_OWNER
from toolglot.config.upstream_errors import KEY_STATUSES
from toolglot.core import offload
from toolglot.core.errors import (
    AuthenticationError,
    ClientError,
    InternalError,
    MethodError,
    OverloadError,
    RateLimitError,
    RequestError,
    ToolglotError,
    UnknownPathError,
    UpstreamError,
    UpstreamResponseError,
    forget_frames,
)
from toolglot.core.watchdog import watch
from toolglot.gateway.capabilities.learned import find_folder
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange, prepare
from toolglot.gateway.mounting import GatewayInterface, Mount
from toolglot.gateway.response_pipeline import prepare_with_tools
from toolglot.gateway.routing import CapabilitiesUnknown
from toolglot.gateway.sessions.chain import make_chain_secret
from toolglot.gateway.sessions.chats import ChatIndex
from toolglot.gateway.sessions.kept_values import KeptValues
from toolglot.gateway.sessions.ttl_store import Lookup
from toolglot.gateway.telemetry.log import RequestRecorder, Telemetry
from toolglot.server.admission import Admission, make_access
from toolglot.server.http_request import JSON_TYPE, Request, Response, make_request_id
from toolglot.server.models import Models
from toolglot.server.queries import Queries
from toolglot.server.replay import replay
from toolglot.server.responder import REQUEST_ID, Responder
from toolglot.server.router import ANY_METHOD, Router
from toolglot.server.shared_state import SharedState
from toolglot.server.upstream.chats import ChatClient
from toolglot.server.upstream.checks import KnownProblems
from toolglot.server.upstream.discovery import Discovery, load_capabilities
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires, client_wires, openai_chat
from toolglot.wires.json_fields import find_field
from toolglot.wires.protocol import ExtraEndpoint, Wire

INTERNAL_ERROR = "Something went wrong in the gateway."
TOO_DEEP = "let the operator check that the upstream is right; no model answers like this."
TOKEN_LENGTH, TOKENS_AT_ONCE = 24, 256
DOUBLED_PREFIX = re.compile(r"^(?:/v1)+(?=/(?:v1|v1beta|api)/)")
CLIENT_CLOSED_REQUEST = 499
"""The status recorded when the client disconnected; it is never sent."""

MAX_PREPARATIONS = 5
"""A request is prepared again after discovery and after each of at most three loads: an item, the answer that the item
belongs to, the reasoning of its steps."""

FLUSH_SECONDS = 5.0
"""Seconds that records have to be stored at shutdown."""
LOG = logging.getLogger("toolglot.server")
DEFAULT_WIRE = all_wires()[openai_chat.WIRE.name]
Answer = Callable[[Request], Awaitable[Response | None]]
Reopen = Callable[[], Awaitable[Exchange]]


class Gateway:
    """The application: answers every request of one server process."""

    def __init__(
        self,
        settings: Settings,
        telemetry: Telemetry,
        source: Source | None = None,
        *,
        mount: Mount | None = None,
        problems: KnownProblems | None = None,
    ) -> None:
        self.settings = settings
        self.telemetry = telemetry
        self.source = source or Source(time, TokenSource().take)
        self.problems = problems or KnownProblems()
        self.pool = ConnectionPool(settings.limits)
        self.capabilities = load_capabilities(settings, self.source.now)
        self.access = make_access(settings, self.source.now, monotonic)
        self.kept: KeptValues | None = None
        self.shared: SharedState | None = None
        self.discovery = Discovery(self.pool, self.capabilities)
        store = telemetry.writer.store if telemetry.writer is not None else None
        secret = make_chain_secret(settings) if store is not None else b""
        self.context = GatewayContext(settings, self.source, self.capabilities, secret)
        index = ChatIndex(store, self.source.now, self.source.token)
        self.chats = ChatClient(settings, self.pool, index, self.source, self.upstream_headers)
        self.models = Models(settings, self.pool, self.chats, self.upstream_headers)
        self.admission = Admission(settings.limits, telemetry.metrics, monotonic, keyed=True)
        self.draining = False
        self.api_descriptions: dict[bool, bytes] = {}
        self.queries = Queries(telemetry.writer, self.access.visible_owner)
        self.queries.delete_chats = self.chats.delete_chats
        self.mounted = mount(self.describe_interface()) if mount is not None else None
        self.router = self.build_router()

    def describe_interface(self) -> GatewayInterface:
        return GatewayInterface(
            settings=self.settings,
            telemetry=self.telemetry,
            keys=self.access.keys,
            guesses=self.access.login_guesses,
            capabilities=self.capabilities,
            source=self.source,
            check_origin=self.access.check_origin,
            replay=partial(replay, self),
            delete_session=self.queries.delete_by_id,
            is_draining=lambda: self.draining,
        )

    def build_router(self) -> Router[tuple[Answer, Wire]]:
        router: Router[tuple[Answer, Wire]] = Router()
        for wire in client_wires().values():
            for path in wire.routes:
                router.add("POST", path, (partial(self.complete, wire), wire))
            for extra in wire.extra_endpoints:
                router.add(extra.method, extra.path, (self.require_key(partial(self.answer_extra, extra)), wire))
        for prefix in ("/v1", ""):
            router.add("GET", f"{prefix}/models", (self.require_key(self.models.list_models), DEFAULT_WIRE))
            router.add("GET", prefix + "/models/{name:.+}", (self.require_key(self.models.show_model), DEFAULT_WIRE))
        for method, path, answer in self.queries.routes():
            router.add(method, path, (self.require_key(answer), DEFAULT_WIRE))
        for method, path, handler in self.mounted.routes() if self.mounted is not None else ():
            router.add(method, path, (handler, DEFAULT_WIRE))
        router.add("GET", "/openapi.json", (self.require_origin(self.show_api), DEFAULT_WIRE))
        router.add("GET", "/metrics", (self.require_key(self.show_metrics), DEFAULT_WIRE))
        for path in ("/", "/health", "/health/liveliness", "/health/liveness"):
            router.add("GET", path, (self.require_origin(self.show_health), DEFAULT_WIRE))
        router.add("GET", "/health/readiness", (self.require_origin(self.show_readiness), DEFAULT_WIRE))
        for path, wire in {path: wire for _, path, (_, wire) in router.list_routes()}.items():
            router.add(ANY_METHOD, path, (self.require_key(self.refuse_method), wire))
        for wire in client_wires().values():
            if wire.own_prefix:
                router.add(ANY_METHOD, wire.own_prefix + "/{path:.*}", (self.require_key(self.refuse_path), wire))
        router.add("HEAD", "{path:.*}", (self.require_origin(self.show_health), DEFAULT_WIRE))
        router.add(ANY_METHOD, "{path:.*}", (self.require_key(self.refuse_path), DEFAULT_WIRE))
        return router

    async def start(self) -> None:
        """Connect to the store, if there is one: read what is shared there, and write there what is kept."""
        writer, settings = self.telemetry.writer, self.settings
        if self.telemetry.workers is not None:
            self.telemetry.workers.start()
        if writer is None:
            return
        await writer.start()
        store = writer.store
        shared = store.is_shared or settings.server.workers > 1
        secrets = [secret for upstream in settings.upstreams for secret in upstream.secrets]
        dropped = self.telemetry.metrics.kept_dropped
        self.kept = KeptValues(self.capabilities.store, store, dropped, shared=shared, secrets=secrets)
        folder, failures = find_folder(settings.server.state_dir, os.environ), self.capabilities.failures
        self.shared = SharedState(store, settings, self.access.keys, failures, folder, self.source.now)
        await self.shared.start()
        self.chats.start()

    async def close(self) -> None:
        await self.chats.close()
        await self.pool.close()
        if self.shared is not None:
            await self.shared.close()
        if self.kept is not None:
            await self.kept.close(FLUSH_SECONDS)
        if self.telemetry.writer is not None:
            await self.telemetry.writer.close(FLUSH_SECONDS)
        if self.telemetry.workers is not None:
            await self.telemetry.workers.close()
        if self.telemetry.tracer is not None:
            await asyncio.to_thread(self.telemetry.tracer.close, FLUSH_SECONDS)

    # -- all requests --------------------------------------------------------------------------------------------------

    async def answer(self, request: Request) -> Response | None:
        """Answer any request; errors are encoded in the client's wire."""
        request.id, request.key = identify(request, self.source), find_key(request)
        request.path = normalize_path(request.path)
        (answer, wire), request.path_params = self.router[request.method, request.path]
        try:
            return await answer(request)
        except ToolglotError as error:
            forget_frames(error)
            failure = error
        except Exception as error:
            LOG.exception("request %s failed", request.id)
            forget_frames(error)
            failure = InternalError(INTERNAL_ERROR)
        return None if request.response_started else self.refuse(failure, request.id, wire)

    def refuse(self, error: ToolglotError, request_id: str = "", wire: Wire = DEFAULT_WIRE) -> Response:
        headers = {REQUEST_ID: request_id} if request_id else {}
        if isinstance(error, UpstreamResponseError):
            headers |= error.headers
        if isinstance(error, (OverloadError, RateLimitError)):
            headers["retry-after"] = str(error.retry_after)
        if isinstance(error, MethodError):
            headers["allow"] = ", ".join(error.allowed)
        if isinstance(error, AuthenticationError):
            headers["www-authenticate"] = "Bearer"
        if error.status in KEY_STATUSES:  # no retry makes a key right, and agents retry for minutes
            headers["x-should-retry"] = "false"
        return Response(wire.encode_error(error), error.status, headers)

    def require_key(self, answer: Answer) -> Answer:
        """Wrap a handler: it answers only requests that have access."""

        def check(request: Request) -> Awaitable[Response | None]:
            self.access.check(request)
            return answer(request)

        return check

    def require_origin(self, answer: Answer) -> Answer:
        """Wrap a handler that needs no key."""

        def check(request: Request) -> Awaitable[Response | None]:
            self.access.check_origin(request)
            return answer(request)

        return check

    # -- completions ---------------------------------------------------------------------------------------------------

    async def complete(self, wire: Wire, request: Request) -> None:
        recorder = self.telemetry.begin(request.id, wire.name, REFUSED_OWNER, request.key)
        recorder.agent = request.headers.get("user-agent", "")
        if self.telemetry.tracer is not None:
            self.telemetry.tracer.begin(recorder, request.headers)
        status, body, entered = 500, b"", False
        try:
            recorder.owner = self.access.check(request)
            self.admission.check_rate(request.key if self.access.keys.required else "")
            body = await request.read()
            if not self.admission.try_enter():
                await self.admission.enter()
            entered = True
            if recorder.body is not None:
                self.telemetry.body(recorder, "request", body)
            mode = request.headers.get("x-toolglot-mode", "")
            exchange = await self.open_exchange(wire, body, request, recorder, mode)
            reopen = partial(self.open_exchange, wire, body, request, recorder, mode) if self.models.switches else None
            body = b""
            if exchange.streamed:
                self.telemetry.stream(recorder)
            response = await self.answer_or_switch(request, exchange, reopen)
            status = 200
            if response is not None:  # a slow client keeps its admission slot until it has read everything
                request.send(response)
                await request.drain()
            return None
        except ToolglotError as error:
            status = note_error(recorder, error, wire)
            raise
        except RecursionError:
            too_deep = depth_error(body)
            status = note_error(recorder, too_deep, wire)
            raise too_deep from None
        except asyncio.CancelledError:
            if (reason := request.interruption) is not None:
                status = note_error(recorder, reason, wire)
                raise reason from None
            status, recorder.client_gone = CLIENT_CLOSED_REQUEST, True
            raise
        except Exception:
            recorder.note_error(InternalError(INTERNAL_ERROR))
            raise
        finally:
            if entered:
                self.admission.leave()
            self.telemetry.finish(recorder, status)

    async def answer_or_switch(self, request: Request, exchange: Exchange, reopen: Reopen | None) -> Response | None:
        """Answer with the only model of the upstream if it does not know the one that was asked for. ``reopen`` opens
        the exchange again; None if that is not allowed."""
        try:
            return await self.answer_exchange(request, exchange)
        except UpstreamResponseError as error:
            if reopen is None or not await self.models.use_only_model(error, exchange, request):
                raise
        return await self.answer_exchange(request, await reopen())

    async def answer_exchange(self, request: Request, exchange: Exchange) -> Response | None:
        """Send the request upstream and the response to the client; retry with tools as text where that may help."""
        sent_client_key = request.key not in ("", NO_KEY) and not self.access.keys.required
        heartbeat_seconds = self.settings.server.heartbeat_seconds
        responder = Responder(request, exchange, heartbeat_seconds, sent_client_key=sent_client_key)
        try:
            while True:
                try:
                    response = await self.send_upstream(request, exchange, responder)
                except UpstreamError as error:
                    if exchange.is_retry:
                        exchange.recorder.notes.append(f"the model could not be asked again: {error.code}")
                        return responder.settle()
                    if not await offload.run(exchange.is_large, exchange.fall_back, error):
                        await self.models.complete_error(error, exchange, request)
                        raise
                    responder.restart()
                    continue
                if not exchange.asks_again:
                    return response
                await offload.run(True, exchange.ask_again)  # feedback on a hostile answer takes a while
                responder.begin_attempt()
        except ToolglotError as error:
            self.problems.explain(error, exchange.route.upstream)
            responder.fail(error)
            forget_frames(error)
        except asyncio.CancelledError:
            if request.interruption is None:
                raise
            responder.fail(request.interruption)
        except RecursionError:
            responder.fail(UpstreamError("The upstream's answer is nested too deeply.", step=TOO_DEEP))
        except Exception:
            LOG.exception("request %s failed", request.id)
            responder.fail(InternalError(INTERNAL_ERROR))
        finally:
            responder.close()
        return None

    async def send_upstream(self, request: Request, exchange: Exchange, responder: Responder) -> Response | None:
        if exchange.chat_turn is not None:
            log_body = partial(self.telemetry.body, exchange.recorder, "upstream_request")
            response = await self.chats.answer(request, exchange, responder, log_body)
            if not exchange.asks_again:
                exchange.conclude()
            return response
        upstream = exchange.route.upstream
        headers = self.upstream_headers(upstream, request.key, request.id)
        headers |= exchange.forwarded_headers
        if exchange.recorder.trace_headers is not None:
            headers |= exchange.recorder.trace_headers
        if exchange.recorder.body is not None:
            self.telemetry.body(exchange.recorder, "upstream_request", exchange.upstream_body)
        async with self.pool.send(
            "POST", exchange.address, upstream, headers, exchange.take_upstream_body()
        ) as received:
            response = await responder.answer(received)
        if not exchange.asks_again:
            exchange.conclude()
        return response

    async def open_exchange(
        self,
        wire: Wire,
        body: bytes,
        request: Request,
        recorder: RequestRecorder,
        mode: str,
        context: GatewayContext | None = None,
    ) -> Exchange:
        """Decode and route the request; first discover what its upstream can do, and load kept values from the store,
        if it depends on them."""
        path = {**request.query, **request.path_params}
        kept, lookup = self.kept, Lookup() if self.kept is not None else None
        given = request.key, request.headers, recorder.owner
        incoming = IncomingRequest(wire, body, recorder, path, mode, *given, lookup)
        large = len(body) >= offload.LARGE_REQUEST
        prepared = partial(prepare_with_tools if large else prepare, incoming, context or self.context)
        for _ in range(MAX_PREPARATIONS):
            exchange = await offload.run(large, prepared) if large else watch().run(prepared)
            if isinstance(exchange, Exchange):
                if kept is not None and kept.shared and exchange.keeps_values:
                    exchange.before_end.append(kept.flush)
                return exchange
            recorder.notes.clear()
            if isinstance(exchange, CapabilitiesUnknown):
                headers = self.upstream_headers(exchange.upstream, request.key, request.id)
                await self.discovery.discover(exchange.upstream, exchange.model, headers)
            elif kept is not None and lookup is not None:
                await kept.load(lookup)
        LOG.error("request %s still needs capabilities or values", request.id)
        raise InternalError(INTERNAL_ERROR)

    def upstream_headers(self, upstream: Upstream, client_key: str, request_id: str = "") -> dict[str, str]:
        """The headers of a request to an upstream. An upstream without a key gets the client's, if the gateway itself
        has no client keys."""
        headers = {"Content-Type": JSON_TYPE, "Accept-Encoding": "identity"}
        if request_id:
            headers[REQUEST_ID] = request_id
        if client_key and upstream.takes_client_key and not self.access.keys.required:
            headers |= all_wires()[upstream.wire].authorize(client_key)
        return {**headers, **upstream.key_headers, **upstream.own_headers}

    async def answer_extra(self, extra: ExtraEndpoint, request: Request) -> Response:
        body = await request.read()
        models = [model["id"] for model in await self.models.collect(request)] if extra.needs_models else ()
        try:
            return Response(extra.answer(body, models))
        except RecursionError:
            raise depth_error(body) from None

    # -- health and metrics --------------------------------------------------------------------------------------------

    async def show_health(self, request: Request) -> Response:
        return json_response({"status": "ok", "name": "toolglot", "version": toolglot.__version__})

    async def show_readiness(self, request: Request) -> Response:
        state = "draining" if self.draining else "ready"
        return json_response({"status": state, **self.queries.describe_store()}, 503 if self.draining else 200)

    async def show_metrics(self, request: Request) -> Response:
        from toolglot.gateway.telemetry.prometheus import CONTENT_TYPE, render

        workers, own = self.telemetry.workers, self.telemetry.metrics
        return Response(render(own if workers is None else await workers.collect()), content_type=CONTENT_TYPE)

    async def show_api(self, request: Request) -> Response:
        """The description of the HTTP API. It needs no key: it names endpoints, neither models nor upstreams."""
        required = self.access.keys.required
        if required not in self.api_descriptions:
            from toolglot.server.openapi import describe_api

            routes = [(method, path, wire) for method, path, (_, wire) in self.router.list_routes()]
            self.api_descriptions[required] = msgspec.json.encode(describe_api(routes, keys_required=required))
        return Response(self.api_descriptions[required])

    async def refuse_path(self, request: Request) -> Response:
        raise UnknownPathError(f"{request.method[:20]} {request.path[:200]} is not served here.")

    async def refuse_method(self, request: Request) -> Response:
        allowed = self.router.list_methods(request.path)
        message = f"{request.method[:20]} is not allowed for {request.path[:200]}; allowed are {', '.join(allowed)}."
        raise MethodError(message, allowed)


class TokenSource:
    """Random tokens. urandom is slow; one call yields 256 tokens. Thread-safe."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def take(self) -> str:
        while True:
            try:
                return self._made.pop()
            except IndexError:
                digits = token_hex(TOKEN_LENGTH // 2 * TOKENS_AT_ONCE)
                self._made += [digits[at : at + TOKEN_LENGTH] for at in range(0, len(digits), TOKEN_LENGTH)]


@lru_cache(maxsize=256)
def normalize_path(path: str) -> str:
    """The path without a repeated ``/v1``: some clients append it to a base URL that already has it."""
    return DOUBLED_PREFIX.sub("", path)


def identify(request: Request, source: Source) -> str:
    """The request id that the client sent, or a new one."""
    given = request.headers.get(REQUEST_ID)
    return given if given and len(given) <= 200 and given.isprintable() else make_request_id(source)


def find_key(request: Request) -> str:
    """The key that a client presents: in the header of any wire, or in the query."""
    headers = request.headers
    if key := headers.get("x-api-key") or headers.get("x-goog-api-key"):
        return key
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else "") or request.query.get("key", "")


def note_error(recorder: RequestRecorder, error: ToolglotError, wire: Wire) -> int:
    """Record why a request is not answered. Returns the status."""
    recorder.note_error(error)
    recorder.refused = isinstance(error, (ClientError, OverloadError))
    if recorder.body is not None and not recorder.bytes:
        recorder.body.append(wire.encode_error(error))
    return error.status


def depth_error(body: bytes) -> RequestError:
    where = find_field(body)
    return RequestError(f"{where or 'The request'} is nested too deeply.", where)


def json_response(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status)

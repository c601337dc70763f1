"""The gateway's face: which addresses it answers at, and to whom.

What a request asks is decided by ``exchange``; how its answer reaches the client is the business of ``visit``. When a
client goes away its handler is cancelled, and with it the connection to the upstream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from secrets import token_hex
from time import time
from typing import Any

import msgspec
from aiohttp import web

import toolglot
from toolglot.config import Settings, Upstream, admit
from toolglot.errors import (
    AccessError,
    InternalError,
    RefusedError,
    RequestError,
    SizeError,
    ToolglotError,
    UnknownPathError,
    UpstreamError,
)
from toolglot.exchange import Exchange, Source
from toolglot.inquiry import Inquiry, gather_knowledge
from toolglot.routing import UnsureError
from toolglot.telemetry import CONTENT_TYPE, Telemetry, Watch
from toolglot.transport import Transport
from toolglot.visit import JSON_TYPE, REQUEST_ID, Visit, request_id
from toolglot.wire import Extra, Wire
from toolglot.wires import all_wires, openai_chat

OUR_FAULT = "Something went wrong here; the log knows more."
OPENAI_ROOT = "/v1"
KEY_HEADERS = ("x-api-key", "x-goog-api-key")
GONE = 499
"""What the record says of a client that left; nobody is told."""

LOG = logging.getLogger("toolglot.server")
USUAL_WIRE = all_wires()[openai_chat.NAME]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gateway:
    """Everything that lives as long as the server."""

    def __init__(self, settings: Settings, telemetry: Telemetry, source: Source | None = None) -> None:
        self.settings = settings
        self.telemetry = telemetry
        self.source = source or Source(time, lambda: token_hex(12))
        self.transport = Transport()
        self.knowledge = gather_knowledge(settings, self.source.now)
        self.inquiry = Inquiry(self.transport, self.knowledge)
        self.draining = False

    def application(self) -> web.Application:
        app = web.Application(client_max_size=self.settings.limits.body_bytes)
        for wire in all_wires().values():
            for path in wire.ROUTES:
                app.router.add_post(path, self.guard(partial(self.complete, wire), wire))
            for extra in getattr(wire, "EXTRAS", ()):
                app.router.add_route(extra.method, extra.path, self.guard(partial(self.answer_extra, extra), wire))
        for prefix in ("/v1", ""):
            app.router.add_get(f"{prefix}/models", self.guard(self.list_models), allow_head=False)
            app.router.add_get(prefix + "/models/{name:.+}", self.guard(self.show_model), allow_head=False)
        app.router.add_route("HEAD", "/{path:.*}", self.show_health)
        app.router.add_get("/metrics", self.guard(self.show_metrics), allow_head=False)
        for path in ("/", "/health", "/health/liveliness", "/health/liveness"):
            app.router.add_get(path, self.show_health, allow_head=False)
        app.router.add_get("/health/readiness", self.show_readiness, allow_head=False)
        app.router.add_route("*", "/{path:.*}", self.guard(self.refuse_path))
        app.on_shutdown.append(self.start_draining)
        app.on_cleanup.append(self.clean_up)
        return app

    async def start_draining(self, app: web.Application) -> None:
        self.draining = True

    async def clean_up(self, app: web.Application) -> None:
        await self.transport.close()

    # -- every request -------------------------------------------------------------------------------------------------

    def guard(self, handler: Handler, wire: Wire = USUAL_WIRE) -> Handler:
        """Ask for the key, and tell every error in the words of the wire."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            try:
                self.admit(request)
                return await handler(request)
            except ToolglotError as error:
                return self.refuse(request, error, wire)
            except web.HTTPRequestEntityTooLarge:
                limit = self.settings.limits.body_bytes
                return self.refuse(request, SizeError(f"The body is larger than {limit} bytes."), wire)
            except ConnectionError:
                return web.Response(status=GONE)
            except Exception:
                LOG.exception("request %s", request_id(request))
                return self.refuse(request, InternalError(OUR_FAULT), wire)

        return guarded

    def admit(self, request: web.Request) -> None:
        keys = self.settings.server.keys
        if not keys:
            return
        presented = presented_key(request)
        if not admit(keys, presented):
            raise AccessError("No valid API key was presented." if presented else "An API key is needed.")

    def refuse(self, request: web.Request, error: ToolglotError, wire: Wire) -> web.Response:
        headers = {REQUEST_ID: request_id(request)}
        if isinstance(error, RefusedError):
            headers |= error.headers
        if isinstance(error, AccessError):
            headers["WWW-Authenticate"] = "Bearer"
        body = wire.encode_error(error)
        return web.Response(status=error.status, body=body, content_type=JSON_TYPE, headers=headers)

    # -- the one that matters ------------------------------------------------------------------------------------------

    async def complete(self, wire: Wire, request: web.Request) -> web.StreamResponse:
        watch = self.telemetry.begin(request_id(request), wire.NAME)
        status = 500
        try:
            body = await request.read()
            self.telemetry.body(watch, "request", body)
            mode = request.headers.get("x-toolglot-mode", "")
            exchange = await self.open(wire, body, request, watch, mode)
            del body
            if exchange.streamed:
                self.telemetry.stream(watch)
            response = await self.ask(request, exchange)
            status = response.status
            return response
        except ToolglotError as error:
            status, watch.error = error.status, error.code
            raise
        except RecursionError:
            status, watch.error = RequestError.status, RequestError.code
            raise RequestError("The request is nested too deeply.") from None
        except web.HTTPRequestEntityTooLarge:
            status, watch.error = SizeError.status, SizeError.code
            raise
        except (asyncio.CancelledError, ConnectionError):
            status, watch.client_gone = GONE, True
            raise
        except Exception:
            watch.error = InternalError.code
            raise
        finally:
            self.telemetry.finish(watch, status)

    async def ask(self, request: web.Request, exchange: Exchange) -> web.StreamResponse:
        """Send the request to its upstream, and its answer to the client."""
        visit = Visit(request, exchange, self.settings.server.heartbeat_seconds)
        try:
            while True:
                try:
                    return await self.ask_once(request, exchange, visit)
                except UpstreamError as error:
                    if not exchange.retreat(error):
                        raise
                    visit.restart()
        except ToolglotError as error:
            return await visit.fail(error)
        except ConnectionError:
            raise
        except Exception:
            LOG.exception("request %s", request_id(request))
            return await visit.fail(InternalError(OUR_FAULT))
        finally:
            visit.over()

    async def ask_once(self, request: web.Request, exchange: Exchange, visit: Visit) -> web.StreamResponse:
        upstream = exchange.route.upstream
        place = exchange.upstream_wire.locate(exchange.route.model.model, stream=exchange.streamed)
        address = upstream.endpoint(place, getattr(exchange.upstream_wire, "ROOT", OPENAI_ROOT))
        headers = self.headers_for(upstream, request)
        if exchange.one_wire:
            carried = getattr(exchange.wire, "CARRIED", ())
            headers = {name: request.headers[name] for name in carried if name in request.headers} | headers
        async with self.transport.send("POST", address, upstream, headers, exchange.request) as reply:
            response = await visit.answer(reply)
        exchange.conclude()
        return response

    async def open(self, wire: Wire, body: bytes, request: web.Request, watch: Watch, mode: str) -> Exchange:
        """The request, read and routed; what its upstream can do is asked before, if nobody knows."""
        path = {**request.query, **request.match_info}
        who = presented_key(request)
        given = (wire, body, path, self.settings, self.source, watch, self.knowledge, mode, who)
        try:
            return Exchange(*given)
        except UnsureError as unsure:
            watch.notes.clear()
            await self.inquiry.ask(unsure.upstream, unsure.model, self.headers_for(unsure.upstream, request))
            return Exchange(*given)

    def headers_for(self, upstream: Upstream, request: web.Request) -> dict[str, str]:
        headers = {"Content-Type": JSON_TYPE, "Accept-Encoding": "identity", REQUEST_ID: request_id(request)}
        key = upstream.api_key.reveal() if upstream.api_key else ""
        if not key and not self.settings.server.keys:
            key = presented_key(request)
        if key:
            headers |= all_wires()[upstream.wire].authorize(key)
        return headers | dict(upstream.headers)

    async def answer_extra(self, extra: Extra, request: web.Request) -> web.Response:
        body = await request.read()
        models = [model["id"] for model in await self.known_models(request)] if extra.needs_models else ()
        return web.Response(body=extra.answer(body, models), content_type=JSON_TYPE)

    # -- models --------------------------------------------------------------------------------------------------------

    async def list_models(self, request: web.Request) -> web.Response:
        return reply_json({"object": "list", "data": await self.known_models(request)})

    async def show_model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        known = {model["id"]: model for model in await self.known_models(request)}
        if name not in known:
            self.settings.model_for(name)
            known[name] = describe_model(name, "toolglot")
        return reply_json(known[name])

    async def known_models(self, request: web.Request) -> list[dict[str, Any]]:
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

    async def ask_models(self, upstream: Upstream, request: web.Request) -> list[dict[str, Any]]:
        try:
            headers = self.headers_for(upstream, request)
            async with self.transport.send("GET", upstream.endpoint("/models"), upstream, headers) as reply:
                told = msgspec.json.decode(await reply.whole())
        except (ToolglotError, msgspec.DecodeError):
            return []
        listed = told.get("data") if isinstance(told, dict) else None
        return [
            {**describe_model(model["id"], upstream.name), **model}
            for model in listed or ()
            if isinstance(model, dict) and isinstance(model.get("id"), str)
        ]

    # -- state ---------------------------------------------------------------------------------------------------------

    async def show_health(self, request: web.Request) -> web.Response:
        return reply_json({"status": "ok", "name": "toolglot", "version": toolglot.__version__})

    async def show_readiness(self, request: web.Request) -> web.Response:
        state = "draining" if self.draining else "ready"
        return reply_json({"status": state}, 503 if self.draining else 200)

    async def show_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self.telemetry.render(), headers={"Content-Type": CONTENT_TYPE})

    async def refuse_path(self, request: web.Request) -> web.Response:
        raise UnknownPathError(f"{request.method} {request.path} is not served here.")


def presented_key(request: web.Request) -> str:
    """The key that a client shows, whichever way its wire does that."""
    for name in KEY_HEADERS:
        if key := request.headers.get(name):
            return key
    scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
    return (bearer.strip() if scheme.lower() == "bearer" else "") or request.query.get("key", "")


def describe_model(name: str, owner: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": owner}


def reply_json(told: object, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(told), content_type=JSON_TYPE)

"""The console as the server mounts it: its routes, each behind the login."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

import msgspec

import toolglot
from toolglot.console.ended_logins import EndedLogins
from toolglot.console.login import SAFE_METHODS, Login
from toolglot.console.parameters import NO_STORE, read_only_error
from toolglot.console.static_files import (
    API_HEADERS,
    COMMON_HEADERS,
    Asset,
    load_assets,
    make_page,
    page_headers,
)
from toolglot.core.errors import StoreError, UnknownPathError
from toolglot.gateway.mounting import GatewayInterface, Handler, HttpRequest, Response, Route
from toolglot.store.interface import Store

PAGE_PATHS: Final = ("/console", "/console/")
UNCHANGING: Final = ("/playground", "/rollout/preview")
"""Paths of POST requests that change nothing; all others are refused in read-only mode."""


class ConsoleContext:
    """What the views of the console share."""

    def __init__(self, gateway: GatewayInterface) -> None:
        self.gateway = gateway
        self.settings = gateway.settings
        self.telemetry = gateway.telemetry
        ended = EndedLogins(self.find_store, gateway.source.now)
        self.login = Login(gateway.settings, gateway.keys, gateway.guesses, gateway.source, ended)

    def find_store(self) -> Store | None:
        """The store, if there is one that works."""
        writer = self.telemetry.writer
        return None if writer is None or writer.problem else writer.store

    async def open_store(self, fresh: bool = True) -> Store:
        """The store; ``fresh``: with the records of all requests that have ended. Raises: UnknownPathError if there is
        none, StoreError if it is unavailable."""
        writer = self.telemetry.writer
        if writer is None:
            raise UnknownPathError(NO_STORE)
        if fresh:
            await writer.flush()
        if writer.problem:
            raise StoreError(f"The store is unavailable: {writer.problem}")
        return writer.store

    def describe_store(self) -> str:
        """``ok``, or why there are no records."""
        writer = self.telemetry.writer
        return NO_STORE if writer is None else writer.problem or "ok"


class View(Protocol):
    """The API of one view. Paths are relative to ``/console/api``."""

    def routes(self) -> Iterable[Route]: ...


class Console:
    """The page, its assets, the login and the API."""

    def __init__(self, context: ConsoleContext, views: Iterable[View]) -> None:
        self.context = context
        self.gateway = context.gateway
        self.login = context.login
        self.views = tuple(views)

    def routes(self) -> Iterable[Route]:
        for path in PAGE_PATHS:
            yield "GET", path, self.show_page
        yield "GET", "/console/assets/{name:.+}", self.show_asset
        yield "GET", "/console/api/state", self.show_state
        yield "POST", "/console/api/login", self.log_in
        yield "POST", "/console/api/logout", self.log_out
        for view in self.views:
            for method, path, handler in view.routes():
                changes = method not in SAFE_METHODS and path not in UNCHANGING
                yield method, f"/console/api{path}", self.require_login(handler, changes=changes)

    def require_login(self, handler: Handler, *, changes: bool) -> Handler:
        refused = changes and self.context.settings.console.read_only

        async def answer(request: HttpRequest) -> Response | None:
            self.gateway.check_origin(request)
            await self.login.check(request)
            if refused:
                raise read_only_error()
            response = await handler(request)
            if response is None:
                return None
            headers = {**API_HEADERS, **response.headers}
            return Response(response.body, response.status, headers, response.content_type)

        return answer

    async def show_page(self, request: HttpRequest) -> Response:
        self.gateway.check_origin(request)
        page = make_page()
        return Response(page.body, headers=page_headers(), content_type=page.content_type)

    async def show_asset(self, request: HttpRequest) -> Response:
        self.gateway.check_origin(request)
        asset = load_assets().get(request.path_params["name"])
        if asset is None:
            raise UnknownPathError("There is no such asset.")
        return send_asset(asset, request.headers.get("if-none-match", ""))

    async def show_state(self, request: HttpRequest) -> Response:
        """What the page has to know before a login; nothing that a stranger must not know."""
        self.gateway.check_origin(request)
        logged_in = await self.login.admits(request)
        state: dict[str, object] = {
            "login_required": self.login.required,
            "login_possible": self.login.is_possible,
            "logged_in": logged_in,
        }
        if logged_in:
            settings = self.context.settings
            state |= {
                "version": toolglot.__version__,
                "read_only": settings.console.read_only,
                "bodies": settings.store.bodies,
                "store": self.context.describe_store(),
                "workers": settings.server.workers,
            }
        return Response(msgspec.json.encode(state), headers=API_HEADERS)

    async def log_in(self, request: HttpRequest) -> Response:
        self.gateway.check_origin(request)
        self.login.check_form(request)
        headers = self.login.log_in(request, await request.read())
        return Response(b"{}", headers={**API_HEADERS, **headers})

    async def log_out(self, request: HttpRequest) -> Response:
        self.gateway.check_origin(request)
        ended, headers = await self.login.log_out(request)
        return Response(msgspec.json.encode({"ended": ended}), headers={**API_HEADERS, **headers})


def send_asset(asset: Asset, known: str) -> Response:
    headers = {**COMMON_HEADERS, "cache-control": "no-cache", "etag": asset.etag}
    if known == asset.etag:
        return Response(b"", 304, headers, asset.content_type)
    return Response(asset.body, 200, headers, asset.content_type)


def open_console(gateway: GatewayInterface) -> Console:
    """The console of a gateway."""
    from toolglot.console.live import LiveView
    from toolglot.console.measures import KpisView
    from toolglot.console.playground import PlaygroundView
    from toolglot.console.replays import ReplayView
    from toolglot.console.routes import RoutesView
    from toolglot.console.sessions import SessionsView

    context = ConsoleContext(gateway)
    views = (SessionsView, LiveView, ReplayView, KpisView, PlaygroundView, RoutesView)
    return Console(context, [view(context) for view in views])

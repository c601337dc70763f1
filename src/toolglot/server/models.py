"""The models of the gateway: their endpoints, what upstreams list, and requests for models that are not known."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Any, Final

import msgspec

from toolglot.config import Settings, Upstream
from toolglot.config.settings import ANY, ONLY_MODEL
from toolglot.config.upstream_errors import add_served_models
from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.core.redaction import redact
from toolglot.gateway.exchange import Exchange
from toolglot.server.http_request import Request, Response
from toolglot.server.upstream.chats import ChatClient
from toolglot.server.upstream.connection import SMALL_BODY
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires

LOG = logging.getLogger("toolglot.server")
LIST_SECONDS: Final = 3.0
"""Seconds that an error waits for the list of models that it names."""
LONG_AGO: Final = "1970-01-01T00:00:00Z"
MakeHeaders = Callable[[Upstream, str, str], dict[str, str]]


class Models:
    """``make_headers(upstream, client_key, request_id)`` makes the headers of a request to an upstream."""

    def __init__(self, settings: Settings, pool: ConnectionPool, chats: ChatClient, make_headers: MakeHeaders) -> None:
        self.settings = settings
        self.pool = pool
        self.chats = chats
        self.make_headers = make_headers
        self.switches = settings.server.unknown_model == ONLY_MODEL

    # -- endpoints -----------------------------------------------------------------------------------------------------

    async def list_models(self, request: Request) -> Response:
        models = await self.collect(request)
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return Response(msgspec.json.encode({"object": "list", "data": models, "has_more": False, **ends}))

    async def show_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        known = {model["id"]: model for model in await self.collect(request)}
        if name not in known:
            self.settings.model_for(name)
            known[name] = describe_model(name, "toolglot")
        return Response(msgspec.json.encode(known[name]))

    async def collect(self, request: Request) -> list[dict[str, Any]]:
        """The configured models and, for patterns such as ``*``, the matching models that the upstream lists."""
        known: dict[str, dict[str, Any]] = {}
        for model in self.settings.models:
            if ANY not in model.name:
                known[model.name] = describe_model(model.name, model.upstream)
                continue
            _, upstream = self.settings.model_for(model.name)
            for listed in await self.fetch(upstream, request):
                if model.match(listed["id"]) is not None:
                    known.setdefault(listed["id"], listed)
        return [*known.values()]

    async def fetch(self, upstream: Upstream, request: Request) -> list[dict[str, Any]]:
        """The models that an upstream lists; none if it does not answer."""
        try:
            if all_wires()[upstream.wire].chat is not None:
                listed: Any = await self.chats.fetch_models(upstream, request.key)
            else:
                headers = self.make_headers(upstream, request.key, request.id)
                async with self.pool.send("GET", upstream.endpoint("/models"), upstream, headers) as response:
                    answer = msgspec.json.decode(await response.read(SMALL_BODY))
                listed = answer.get("data") if isinstance(answer, dict) else None
        except (ToolglotError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            LOG.info("upstream %r lists no models: %s", upstream.name, redact(str(error), upstream.secrets))
            return []
        models = [
            {**describe_model(model["id"], upstream.name), **model}
            for model in (listed if isinstance(listed, list) else ())
            if isinstance(model, dict) and isinstance(model.get("id"), str)
        ]
        if not models:
            LOG.info("upstream %r lists no models: its list is empty", upstream.name)
        return models

    # -- models that an upstream does not know -------------------------------------------------------------------------

    async def complete_error(self, error: UpstreamError, exchange: Exchange, request: Request) -> None:
        """Name the upstream in its error and, if that is about an unknown model, the models that it serves."""
        error.place = error.place or exchange.route.upstream.place
        if is_unknown_model(error) and isinstance(error, UpstreamResponseError):
            add_served_models(error, await self.fetch_names(exchange.route.upstream, request))

    async def fetch_names(self, upstream: Upstream, request: Request) -> list[str]:
        try:
            async with asyncio.timeout(LIST_SECONDS):
                return [model["id"] for model in await self.fetch(upstream, request)]
        except TimeoutError:
            return []

    async def use_only_model(self, error: ToolglotError, exchange: Exchange, request: Request) -> bool:
        """Send further requests for a model that the upstream does not know to its only model. Returns whether that is
        possible: the setting allows it, and the upstream lists exactly one model, which is another one."""
        upstream, model = exchange.route.upstream, exchange.route.model
        if not self.switches or request.response_started or not is_unknown_model(error):
            return False
        names = await self.fetch_names(upstream, request)
        if len(names) != 1 or names[0] == model.model:
            return False
        self.settings.known_models[model.name] = replace(model, model=names[0]), upstream
        exchange.recorder.notes.append(f"the upstream does not know the model {model.model}; its only one answers")
        return True


def is_unknown_model(error: ToolglotError) -> bool:
    """Whether an upstream does not know the model, or perhaps the path."""
    return isinstance(error, UpstreamResponseError) and error.status == HTTPStatus.NOT_FOUND


def describe_model(name: str, owner: str) -> dict[str, Any]:
    """A model in the forms of OpenAI and of Anthropic at once: both ask for the same path."""
    openai = {"id": name, "object": "model", "created": 0, "owned_by": owner}
    return {**openai, "type": "model", "display_name": name, "created_at": LONG_AGO}

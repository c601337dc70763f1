"""Discovers what upstreams can do by querying them: all queries at once, with a short timeout, cached for a while."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from toolglot.config import Settings, Upstream, is_loopback
from toolglot.core.errors import ToolglotError
from toolglot.gateway.capabilities.learned import LearnedFailures, find_folder
from toolglot.gateway.capabilities.profiles import Query, load_profiles
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.sessions.ttl_store import TtlStore
from toolglot.server.upstream.connection import SMALL_BODY
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires

TIMEOUT = 1.0
"""Seconds that a request waits for the discovery of its upstream."""

LOCAL_TIMEOUT = 3.0
"""The same for a server on this machine, which shares the processors with its model: a busy one answers late, and a
conversation keeps the mode that it begins with."""

FACTS_TTL = 600.0
"""Seconds for which discovered facts are cached."""

NO_RESPONSE_TTL = 15.0
"""Seconds until a server is queried again that did not respond to all queries; it may just be starting, or busy."""


def load_capabilities(settings: Settings, now: Callable[[], float]) -> Capabilities:
    """The capabilities known without a query: profiles and learned failures."""
    folder = find_folder(settings.server.state_dir, os.environ)
    learned = LearnedFailures(folder, settings.tool_calling.cool_down_seconds)
    kept = TtlStore(now, most_bytes=settings.limits.kept_bytes, seconds=settings.limits.kept_seconds)
    return Capabilities(load_profiles(settings.tool_calling.profiles), learned, now, kept)


def default_headers(upstream: Upstream) -> dict[str, str]:
    """The headers for the gateway's own requests to an upstream, with the configured key."""
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if upstream.api_key:
        headers |= all_wires()[upstream.wire].authorize(upstream.api_key.reveal())
    return {**headers, **upstream.own_headers}


class Discovery:
    """Queries upstreams for facts and stores them; concurrent requests for the same model share one discovery."""

    def __init__(self, pool: ConnectionPool, capabilities: Capabilities) -> None:
        self.pool = pool
        self.capabilities = capabilities
        self.running: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def discover(self, upstream: Upstream, model: str, headers: Mapping[str, str]) -> None:
        """Query an upstream about a model and store the facts."""
        key = upstream.base_url, model
        task = self.running.get(key)
        if task is None:
            task = self.running[key] = asyncio.create_task(self._discover(upstream, model, headers))
            task.add_done_callback(lambda _: self.running.pop(key, None))
        await asyncio.shield(task)  # a client that disconnects must not cancel the discovery for others

    async def _discover(self, upstream: Upstream, model: str, headers: Mapping[str, str]) -> None:
        queries = self.capabilities.profiles.list_queries(upstream.base_url, model)
        tasks = [asyncio.create_task(self._send(query, upstream, headers)) for query in queries]
        host = urlsplit(upstream.base_url).hostname or ""
        _, late = await asyncio.wait(tasks, timeout=LOCAL_TIMEOUT if is_loopback(host) else TIMEOUT)
        for task in late:
            task.cancel()
        bodies = [None if task in late else task.result() for task in tasks]
        facts = self.capabilities.profiles.read_facts(body or b"" for body in bodies)
        responded = any(body is not None for body in bodies)
        self.capabilities.set_facts(upstream, model, facts, FACTS_TTL if responded and not late else NO_RESPONSE_TTL)

    async def _send(self, query: Query, upstream: Upstream, headers: Mapping[str, str]) -> bytes | None:
        """The body of the response to a query; empty for an error status, None without a response."""
        with suppress(ToolglotError):
            async with self.pool.send(query.method, query.url, upstream, headers, query.body) as response:
                return await response.read(SMALL_BODY) if response.status == 200 else b""
        return None

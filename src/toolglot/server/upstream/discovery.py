"""Servers are asked what they can do: once in a while, all questions at the same time, and never for long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from toolglot.config import Settings, Upstream
from toolglot.core.errors import ToolglotError
from toolglot.gateway.capabilities.learned import LearnedFailures, find_folder
from toolglot.gateway.capabilities.profiles import Question, load_profiles
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.sessions.ttl_store import TtlStore
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires

PATIENCE = 1.0
"""Seconds that a request waits for what its upstream tells of itself."""

BELIEVED = 600.0
"""Seconds for which an answer holds."""

UNHEARD = 15.0
"""Seconds until a server that did not say a word is asked again; it may just be starting."""


def gather_knowledge(settings: Settings, now: Callable[[], float]) -> Capabilities:
    """What can be known before anybody is asked."""
    folder = find_folder(settings.server.state_dir, os.environ)
    experience = LearnedFailures(folder, settings.tool_calling.cool_down_seconds)
    kept = TtlStore(now, most_bytes=settings.limits.kept_bytes, seconds=settings.limits.kept_seconds)
    return Capabilities(load_profiles(settings.tool_calling.profiles), experience, now, kept)


def present(upstream: Upstream) -> dict[str, str]:
    """The headers with which an upstream is asked on nobody's behalf."""
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    if upstream.api_key:
        headers |= all_wires()[upstream.wire].authorize(upstream.api_key.reveal())
    return headers | dict(upstream.headers)


class Discovery:
    """Asks upstreams about themselves and tells what they said; requests that want to know the same share one look."""

    def __init__(self, transport: ConnectionPool, knowledge: Capabilities) -> None:
        self.transport = transport
        self.knowledge = knowledge
        self.looks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def ask(self, upstream: Upstream, model: str, headers: Mapping[str, str]) -> None:
        key = upstream.base_url, model
        look = self.looks.get(key)
        if look is None:
            look = self.looks[key] = asyncio.create_task(self.look(upstream, model, headers))
            look.add_done_callback(lambda _: self.looks.pop(key, None))
        await asyncio.shield(look)  # a client that leaves does not take the answer from others

    async def look(self, upstream: Upstream, model: str, headers: Mapping[str, str]) -> None:
        questions = self.knowledge.profiles.ask(upstream.base_url, model)
        tasks = [asyncio.create_task(self.put(question, upstream, headers)) for question in questions]
        _, late = await asyncio.wait(tasks, timeout=PATIENCE)
        for task in late:
            task.cancel()
        heard = [None if task in late else task.result() for task in tasks]
        facts = self.knowledge.profiles.read(answer or b"" for answer in heard)
        answered = any(answer is not None for answer in heard)
        self.knowledge.set_facts(upstream, model, facts, BELIEVED if answered else UNHEARD)

    async def put(self, question: Question, upstream: Upstream, headers: Mapping[str, str]) -> bytes | None:
        """The answer to a question; empty if it was not understood, nothing if nobody answered."""
        with suppress(ToolglotError):
            async with self.transport.send(question.method, question.url, upstream, headers, question.body) as reply:
                return await reply.whole() if reply.status == 200 else b""
        return None

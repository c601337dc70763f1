"""Checks of upstreams: reachable, key accepted, models known, context large enough for agents.

Strategy. Every check yields findings and never raises; a check that depends on another one is left out if that failed.
No model is asked: the upstream lists its models and states their size. ``toolglot doctor``, ``toolglot run`` and the
start of the gateway share these checks. What the start finds is kept, and added to the errors that it explains.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from toolglot.config import Settings, Upstream
from toolglot.config.keys import mask_address
from toolglot.config.settings import ANY
from toolglot.config.upstream_errors import KEY_STATUSES
from toolglot.core.errors import (
    ToolglotError,
    UnreachableError,
    UpstreamError,
    UpstreamResponseError,
)
from toolglot.core.redaction import redact
from toolglot.server.responder import CONTEXT_EXCEEDED
from toolglot.server.upstream.chats import open_chats
from toolglot.server.upstream.context_size import find_context_size, list_models, model_names
from toolglot.server.upstream.findings import FINE, PROBLEM, WARNING, Finding
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires

CONNECT_TIMEOUT: Final = 5.0
LIST_TIMEOUT: Final = 30.0
LISTED: Final = 10
AGENT_TOKENS: Final = 16_384
"""Coding agents send 8,000 to 30,000 tokens before the first message of the user."""


class Examined(Struct):
    """What the checks of one upstream learned: its listed models, and the one to examine further, if any."""

    upstream: Upstream
    listed: list[dict[str, Any]] = field(default_factory=list)
    model: str = ""

    @property
    def names(self) -> list[str]:
        return model_names(self.listed)


async def check_upstream(settings: Settings, examined: Examined, pool: ConnectionPool) -> AsyncIterator[Finding]:
    """Whether the upstream can be reached, takes the gateway's key and has the configured models. ``examined`` gets
    what it lists."""
    upstream = examined.upstream
    where = f"{upstream.name}, {mask_address(upstream.base_url)}"
    unreachable = await find_unreachable(upstream)
    if unreachable is not None:
        yield unreachable
        return
    yield Finding("upstream", FINE, f"{where} is reachable")
    try:
        async with asyncio.timeout(LIST_TIMEOUT):
            if all_wires()[upstream.wire].chat is not None:
                chats = open_chats(settings, pool)
                await chats.check_key(upstream)
                examined.listed = await chats.fetch_models(upstream, "")
            else:
                examined.listed = await list_models(pool, upstream)
        yield Finding("key", FINE, f"{where}: {'accepted' if upstream.api_key else 'none is needed to list models'}")
    except (ToolglotError, ValueError, TimeoutError) as error:
        finding = describe_refusal(upstream, error)
        yield finding
        if finding.severity == PROBLEM:
            return
    examined.model, findings = find_model(settings, upstream, examined.names)
    for finding in findings:
        yield finding


async def find_unreachable(upstream: Upstream) -> Finding | None:
    """The problem and a remedy, if an upstream refuses connections."""
    parts = urlsplit(upstream.base_url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(CONNECT_TIMEOUT):
            _, writer = await asyncio.open_connection(parts.hostname or "", port)
        writer.close()
    except (OSError, UnicodeError, ValueError) as error:
        code = getattr(error, "errno", None)
        known = os.strerror(code) if code and not isinstance(error, socket.gaierror) else ""
        problem = known or getattr(error, "strerror", None) or str(error) or f"no answer within {CONNECT_TIMEOUT:g} s"
        return Finding(
            "upstream",
            PROBLEM,
            f"upstream {upstream.name!r} at {mask_address(upstream.base_url)} does not answer ({problem}): requests"
            " will fail until it runs",
            "Start it, or give another address (--base-url, OPENAI_BASE_URL, base_url)",
        )
    return None


def describe_refusal(upstream: Upstream, error: Exception) -> Finding:
    """Why an upstream does not list its models: whose key was refused, or that it has no such list."""
    message = " ".join(redact(str(error), upstream.secrets).split())[:200] or type(error).__name__
    if isinstance(error, UpstreamResponseError) and error.status in KEY_STATUSES:
        return describe_refused_key(upstream, message)
    where = f"{upstream.name} at {mask_address(upstream.base_url)}"
    return Finding("models", WARNING, f"{where} does not list its models: {message}", "name one: --model NAME")


def describe_refused_key(upstream: Upstream, message: str) -> Finding:
    """Whose key an upstream refused, and where that is set."""
    whose = "refuses the gateway's own key" if upstream.api_key else "wants a key and the gateway has none for it"
    where = f"{upstream.name} at {mask_address(upstream.base_url)}"
    text = f"{where} {whose} (this is not the key of your client): {message}"
    variable = all_wires()[upstream.wire].variables.get("api_key", "TOOLGLOT_API_KEY")
    return Finding("key", PROBLEM, text, f"set {variable}, or api_key of [[upstream]] {upstream.name!r}")


def find_model(settings: Settings, upstream: Upstream, names: list[str]) -> tuple[str, list[Finding]]:
    """A model of the upstream to examine, and which of the configured models it does not know."""
    wanted = list_wanted(settings, upstream)
    if not names:
        found = wanted[0] if wanted else ""
        text = f"no model of {upstream.name} is known"
        return found, [] if found else [Finding("model", WARNING, text, "name one: --model NAME")]
    shown = shorten(names)
    unknown = [name for name in wanted if name not in names]
    if not unknown:
        return (wanted or names)[0], [Finding("model", FINE, f"{upstream.name} has: {shown}")]
    texts = [f"{upstream.name} has no model {name!r}; it has: {shown}" for name in unknown]
    known = [name for name in wanted if name in names]
    in_file = f"upstream.{upstream.name}" in settings.sources
    remedy = f"name one in its [[model]], such as {names[0]}" if in_file else f"name one: --model {names[0]}"
    return "".join(known[:1]), [Finding("model", PROBLEM, text, remedy) for text in texts]


def shorten(names: list[str], most: int = LISTED) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def list_wanted(settings: Settings, upstream: Upstream) -> list[str]:
    """The models of an upstream that the settings name."""
    own = (model for model in settings.models if settings.upstream_of(model).name == upstream.name)
    return [name for model in own if ANY not in (name := model.model or model.name)]


async def check_context(pool: ConnectionPool, examined: Examined) -> Finding:
    """Whether the model reads as much as agents send."""
    model = examined.model
    size = await find_context_size(pool, examined.upstream, model, examined.listed)
    if size is None:
        return Finding(
            "context", FINE, f"{model}: the server does not state its size; agents need {AGENT_TOKENS:,} or more"
        )
    if size.tokens < AGENT_TOKENS:
        text = f"{model} reads {size.tokens:,} tokens; coding agents send 8,000 to 30,000 before you type a word"
        return Finding("context", WARNING, text, size.remedy)
    text = f"{model} reads {'' if size.certain else 'up to '}{size.tokens:,} tokens"
    return Finding("context", FINE, text + ("" if size.certain else f"; the server may allocate less ({size.remedy})"))


async def check_start(settings: Settings, examined: Examined, pool: ConnectionPool) -> AsyncIterator[Finding]:
    """What would make the requests of agents fail at this upstream; nothing if all is well. The context of a coached
    model is not checked: it is always too small for agents, and a note at the start names that."""
    async for finding in check_upstream(settings, examined, pool):
        if finding.severity == PROBLEM or (finding.check == "models" and not list_wanted(settings, examined.upstream)):
            yield finding
    if examined.model and not examined.upstream.coached:
        finding = await check_context(pool, examined)
        if finding.severity != FINE:
            yield finding


class KnownProblems:
    """What the checks at the start found, by upstream, to explain the errors that follow from it."""

    def __init__(self) -> None:
        self._findings: dict[str, dict[str, Finding]] = {}

    async def check(self, settings: Settings, report: Callable[[Finding], None]) -> None:
        """Check all upstreams at once and report what is wrong."""
        pool = ConnectionPool(settings.limits)

        async def check(upstream: Upstream) -> None:
            async for finding in check_start(settings, Examined(upstream), pool):
                self._findings.setdefault(upstream.name, {}).setdefault(finding.check, finding)
                report(finding)

        try:
            await asyncio.gather(*map(check, settings.upstreams))
        finally:
            await pool.close()

    def explain(self, error: ToolglotError, upstream: Upstream) -> None:
        """Add to an error what the start found about its cause, if it did. Where the error says itself whose key was
        refused, that stands."""
        findings = self._findings.get(upstream.name)
        if findings is None or not isinstance(error, UpstreamError):
            return
        finding = findings.get(_find_cause(error))
        if finding is None or error.step:
            return
        if finding.check != "upstream":
            error.message = f"{error.message.rstrip('. ')}. Found at the start: {finding.text}."
        error.step = f"{finding.remedy[:1].lower()}{finding.remedy[1:]}."


CAUSES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "key",
    HTTPStatus.FORBIDDEN: "key",
    HTTPStatus.NOT_FOUND: "model",
}
"""The check that explains a status of an upstream."""


def _find_cause(error: UpstreamError) -> str:
    """The check that explains an error of an upstream; empty if none does."""
    if isinstance(error, UnreachableError):
        return "upstream"
    if not isinstance(error, UpstreamResponseError):
        return ""
    if CONTEXT_EXCEEDED.search(f"{error.kind} {error.message}"):
        return "context"
    return CAUSES.get(error.status, "")

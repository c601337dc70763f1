"""Tests how a server handles tools, natively and as text (``toolglot probe``).

Strategy. Every test is one exchange, as the gateway would make it, in a fixed mode; so the result depends on the
server alone. The record of the exchange shows whether a call was native or read from text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from toolglot.config import RecoverySettings, Settings, Upstream
from toolglot.core.errors import ToolglotError, UpstreamResponseError
from toolglot.gateway.capabilities.profiles import Rule
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange, prepare
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.routing import Capabilities, CapabilitiesUnknown
from toolglot.gateway.telemetry.log import Telemetry, redact
from toolglot.server.upstream.chats import open_chats
from toolglot.server.upstream.discovery import Discovery, default_headers
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires, openai_chat

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ONE = "What is the weather in Paris? Use the tool get_weather."
TWO = 'Two things in one answer: call get_weather with {"city": "Paris"} and call get_weather with {"city": "Oslo"}.'
NONE = "Say hello."
MAX_TOKENS = 300
"""Enough for two calls."""

DIALECTS = ("hermes", "roo_xml")
YES, NO, FAILED = "yes", "no", "failed"


class Test(Struct, frozen=True):
    """One test request, and how many calls the answer must contain."""

    name: str
    mode: str
    question: str = ONE
    calls: int = 1
    stream: bool = False
    dialect: str = ""
    fields: tuple[tuple[str, Any], ...] = ()


TESTS = (
    Test("native call", "native"),
    Test("native, streamed", "native", stream=True),
    Test("native, two calls", "native", TWO, 2, fields=(("parallel_tool_calls", True),)),
    Test("native, required", "native", NONE, fields=(("tool_choice", "required"),)),
    *(Test(f"text, {dialect}", "text", dialect=dialect) for dialect in DIALECTS),
    *(Test(f"text, {dialect}, streamed", "text", dialect=dialect, stream=True) for dialect in DIALECTS),
)


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one test; ``status`` is the one that the upstream refused it with, if it did."""

    name: str
    result: str
    detail: str
    seconds: float
    status: int = 0


class Probe:
    """Runs the tests against one model of one upstream."""

    def __init__(self, settings: Settings, capabilities: Capabilities, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.capabilities = capabilities
        self.clock = clock
        self.numbers = iter(range(1, 1 << 30))
        model, self.upstream = settings.model_for("")
        self.model = model.model

    async def list_models(self) -> Finding:
        """Whether the server lists its models; the first is tested if none is configured."""
        began = self.clock()
        try:
            names = await self.fetch_names()
        except (ToolglotError, ValueError, KeyError, TypeError) as error:
            return Finding(name="models", result=NO, detail=self.clean(str(error)), seconds=self.clock() - began)
        self.model = self.model or (names[0] if names else "")
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return Finding(name="models", result=YES, detail=shown, seconds=self.clock() - began)

    async def find_rule(self) -> tuple[Finding, Rule]:
        """The profile rule that applies, after discovery if it needs facts."""
        began = self.clock()
        rule = self.capabilities.find_rule(self.upstream, self.model)
        if isinstance(rule, CapabilitiesUnknown):
            async with fresh_pool() as pool:
                headers = default_headers(self.upstream)
                await Discovery(pool, self.capabilities).discover(self.upstream, self.model, headers)
            rule = self.capabilities.find_rule(self.upstream, self.model)
        assert not isinstance(rule, CapabilitiesUnknown)
        return Finding(
            name="profile", result="native" if rule.native else "text", detail=rule.name, seconds=self.clock() - began
        ), rule

    async def run(self, test: Test) -> Finding:
        began = self.clock()
        try:
            exchange = self.prepare(test)
            if exchange.chat_turn is not None:
                body = await self.ask_chat(exchange)
            else:
                body = await self.fetch("POST", exchange.address, exchange.upstream_body, exchange)
            calls = read_calls(reply(exchange, body, streamed=body.lstrip().startswith((b"data:", b"event:", b":"))))
        except ToolglotError as error:
            status = error.status if isinstance(error, UpstreamResponseError) else 0
            detail, seconds = self.clean(error.message), self.clock() - began
            return Finding(name=test.name, result=FAILED, detail=detail, seconds=seconds, status=status)
        result, detail = judge(test, calls, exchange.recorder.read_as)
        return Finding(name=test.name, result=result, detail=detail, seconds=self.clock() - began)

    def prepare(self, test: Test) -> Exchange:
        tools = replace(self.settings.tool_calling, dialect=test.dialect)
        request = {
            "model": self.model,
            "messages": [{"role": "user", "content": test.question}],
            "tools": [WEATHER],
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
            "stream": test.stream,
            **dict(test.fields),
        }
        source = Source(self.capabilities.now, lambda: str(next(self.numbers)))
        recorder = Telemetry().begin("probe", openai_chat.WIRE.name)
        once = RecoverySettings(retries=0)  # what the model does by itself
        settings = replace(self.settings, tool_calling=tools, recovery=once)
        incoming = IncomingRequest(_WIRE, json.dumps(request).encode(), recorder, mode=test.mode)
        exchange = prepare(incoming, GatewayContext(settings, source, self.capabilities))
        assert isinstance(exchange, Exchange)
        return exchange

    async def fetch(self, method: str, url: str, body: bytes | None = None, exchange: Exchange | None = None) -> bytes:
        headers = default_headers(self.upstream)
        async with fresh_pool() as pool, pool.send(method, url, self.upstream, headers, body) as response:
            received = await response.read()
            if response.status >= 300:
                raise (exchange.upstream_wire if exchange else _WIRE).decode_error(response.status, received)
            return received

    async def fetch_names(self) -> list[str]:
        if all_wires()[self.upstream.wire].chat is None:
            listed = json.loads(await self.fetch("GET", self.upstream.endpoint("/models")))["data"]
        else:
            async with fresh_pool() as pool:
                listed = await open_chats(self.settings, pool).fetch_models(self.upstream, "")
        return [one["id"] for one in listed]

    async def ask_chat(self, exchange: Exchange) -> bytes:
        async with fresh_pool() as pool:
            return await open_chats(self.settings, pool).ask_once(exchange)

    def clean(self, text: str) -> str:
        return " ".join(redact(text, self.upstream.secrets).split())[:200]


@asynccontextmanager
async def fresh_pool() -> AsyncIterator[ConnectionPool]:
    """An empty pool: the server is tested, not its keep-alive."""
    pool = ConnectionPool()
    try:
        yield pool
    finally:
        await pool.close()


_WIRE = all_wires()[openai_chat.WIRE.name]


def read_calls(reply: bytes) -> list[str]:
    """The arguments of the calls in a complete answer."""
    message = json.loads(reply)["choices"][0]["message"]
    return [call["function"]["arguments"] for call in message.get("tool_calls") or ()]


def judge(test: Test, calls: list[str], read_as: list[str]) -> tuple[str, str]:
    """Whether the answer has the expected calls, and a detail for the report."""
    if not calls:
        return NO, "an answer without a call"
    shown = "; ".join(calls)
    if test.mode == "native" and read_as:
        return NO, f"the call came as text ({', '.join(read_as)})"
    if not all(_is_object(call) for call in calls):
        return NO, f"the arguments are not an object: {shown}"
    if len(calls) < test.calls:
        return NO, f"{len(calls)} call instead of {test.calls}: {shown}"
    return YES, shown if not read_as else f"{shown} (read as {', '.join(read_as)})"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def suggest(upstream: Upstream, model: str, findings: Mapping[str, Finding], known: Rule) -> Iterator[str]:
    """The lines of a profile rule that describes the findings."""
    passed = {name for name, finding in findings.items() if finding.result == YES}
    native = {"native call", "native, streamed"} <= passed
    dialects = [name for name in DIALECTS if {f"text, {name}", f"text, {name}, streamed"} <= passed]
    yield "[[rule]]"
    yield f"name = {json.dumps(f'probed: {model}')}"
    yield f"address = [{json.dumps(urlsplit(upstream.base_url).netloc.rpartition('@')[2])}]"
    yield f"model = [{json.dumps(model)}]"
    yield f"native = {json.dumps(native)}"
    if native:
        yield f"parallel = {json.dumps('native, two calls' in passed)}"
    if dialects and not native:
        yield f"dialect = {json.dumps(dialects[0])}"
    for name in ("reasoning", "structured", "strict"):
        if getattr(known, name):
            yield f"{name} = {json.dumps(getattr(known, name))}"
    if known.quirks:
        yield f"quirks = {json.dumps(list(known.quirks))}"

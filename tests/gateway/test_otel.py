"""OpenTelemetry traces: sent by the real exporter to a collector here, through a real gateway."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from support.gateway import ASK, gateway, run

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT_ID = "b7ad6b7169203331"
SECRET = "The secret plan of Carthage"


class Collector:
    """An OTLP collector: the spans that it received."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.services: set[str] = set()

    def receive(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            names = [one.value.string_value for one in resource.resource.attributes if one.key == "service.name"]
            self.services.update(names)
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]


@contextmanager
def collecting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.receive(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


def read_attributes(span: Any) -> dict[str, Any]:
    """The attributes of a span as plain values."""
    found: dict[str, Any] = {}
    for one in span.attributes:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind)
        found[one.key] = [item.string_value for item in value.values] if kind == "array_value" else value
    return found


def test_a_request_is_a_span_with_one_below_it_per_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        async with gateway(mode="text", dialect="hermes", traces="otlp") as gate:
            body = {**ASK, "messages": [{"role": "user", "content": f'{SECRET}. Read the file "package.json"'}]}
            answer = await gate.ask(body, traceparent=f"00-{TRACE_ID}-{PARENT_ID}-01")
            assert answer.message["tool_calls"]

    with collecting(monkeypatch) as collector:
        run(ask)
    child, span = collector.spans
    assert collector.services == {"toolglot"}
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE_ID, PARENT_ID)
    assert (child.trace_id, child.parent_span_id) == (span.trace_id, span.span_id)
    assert (span.name, span.kind, child.kind) == ("chat sim", span.SPAN_KIND_SERVER, span.SPAN_KIND_CLIENT)
    assert span.start_time_unix_nano <= child.start_time_unix_nano <= child.end_time_unix_nano
    assert child.end_time_unix_nano <= span.end_time_unix_nano + 1_000_000
    attributes = read_attributes(span)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "sim"
    assert attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert attributes["toolglot.dialect"] == "hermes"
    assert attributes["toolglot.calls.tools"] == ["read"]
    assert attributes["toolglot.outcome"] == "ok"
    assert SECRET not in "".join(map(str, collector.spans))


def test_upstreams_get_the_span_as_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    received: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        received.append(request.headers["traceparent"])
        return web.json_response({"error": {"message": "busy", "code": "overloaded"}}, status=503)

    async def ask() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        async with gateway(app=app, mode="text", traces="otlp") as gate:
            assert (await gate.ask()).status == 503

    with collecting(monkeypatch) as collector:
        run(ask)
    child, span = collector.spans
    assert received[0].split("-")[1:3] == [span.trace_id.hex(), span.span_id.hex()]
    assert span.status.code == child.status.code == span.status.STATUS_CODE_ERROR
    assert read_attributes(span)["toolglot.fault"] == "upstream"
    assert read_attributes(child)["error.type"] == "overloaded"


def test_traces_are_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> None:
        async with gateway(mode="text", dialect="hermes") as gate:
            assert (await gate.ask(traceparent=f"00-{TRACE_ID}-{PARENT_ID}-01")).status == 200
            assert "traceparent" not in {name.lower() for name in gate.record.last.headers}

    with collecting(monkeypatch) as collector:
        run(ask)
    assert collector.spans == []


def test_a_collector_that_is_down_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")

    async def ask() -> None:
        async with gateway(mode="text", dialect="hermes", traces="otlp") as gate:
            assert (await gate.ask()).status == 200

    run(ask)

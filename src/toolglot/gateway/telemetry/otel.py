"""OpenTelemetry traces: one span per request, one below it per request to an upstream.

The span of a request continues the trace of the client (``traceparent``), and upstreams get it as the parent of theirs.
Spans have counts, names and times, never texts. Names of attributes follow the GenAI conventions, none of which is
stable yet; they stand here and nowhere else. Where spans are sent to is set by the standard variables ``OTEL_...``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode

from toolglot.gateway.telemetry.record import Attempt, Record
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.store.interface import OK

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CONVERSATION: Final = "gen_ai.conversation.id"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
ERROR_TYPE: Final = "error.type"
STATUS_CODE: Final = "http.response.status_code"
OWN: Final = "toolglot."
"""Prefix of the attributes that no convention has a name for."""

CHAT: Final = "chat"
NANOSECONDS: Final = 1_000_000_000
TRACE_HEADERS: Final = ("traceparent", "tracestate")

Value = str | int | float | bool | tuple[str, ...]


class Tracer:
    """Makes the spans of one process. They are sent by a thread of the SDK; what it cannot send is dropped."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        resource = Resource.create() if _is_named() else Resource.create({SERVICE_NAME: "toolglot"})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("toolglot")

    def begin(self, recorder: RequestRecorder, headers: Mapping[str, str]) -> None:
        """Start the span of a request; the headers may name the client's span."""
        given = {name: headers[name] for name in TRACE_HEADERS if name in headers}
        span = self._tracer.start_span(
            CHAT, propagate.extract(given), SpanKind.SERVER, start_time=_nanoseconds(recorder.time)
        )
        if isinstance(span, Span):  # not if the trace is not sampled
            recorder.span = span
        recorder.trace_headers = {}
        propagate.inject(recorder.trace_headers, trace.set_span_in_context(span))

    def finish(self, recorder: RequestRecorder, record: Record) -> None:
        """End the span of a request, with one below it for each request to an upstream."""
        span = recorder.span
        if span is None:
            return
        span.update_name(f"{CHAT} {record.model}".strip())
        span.set_attributes(_describe(record))
        if record.outcome != OK:
            span.set_status(Status(StatusCode.ERROR, record.error or record.outcome))
        began = recorder.time
        for attempt in record.attempts:
            self._add_attempt(span, attempt, record, began)
            began += attempt.duration
        span.end(_nanoseconds(recorder.time + record.duration))

    def _add_attempt(self, parent: Span, attempt: Attempt, record: Record, began: float) -> None:
        model = record.upstream_model or record.model
        span = self._tracer.start_span(
            f"{CHAT} {model}".strip(),
            trace.set_span_in_context(parent),
            SpanKind.CLIENT,
            attributes=_drop_empty(
                {
                    OPERATION: CHAT,
                    PROVIDER: attempt.upstream,
                    REQUEST_MODEL: model,
                    f"{OWN}mode": attempt.mode,
                    f"{OWN}dialect": attempt.dialect,
                    ERROR_TYPE: attempt.error,
                }
            ),
            start_time=_nanoseconds(began),
        )
        if attempt.error:
            span.set_status(Status(StatusCode.ERROR, attempt.error))
        span.end(_nanoseconds(began + attempt.duration))

    def close(self, seconds: float) -> None:
        """Send what waits, within some seconds, and end. Blocks."""
        self._provider.force_flush(int(seconds * 1000))
        self._provider.shutdown()


def _describe(record: Record) -> dict[str, Value]:
    usage = record.usage or {}
    return _drop_empty(
        {
            OPERATION: CHAT,
            PROVIDER: record.upstream,
            REQUEST_MODEL: record.model,
            RESPONSE_MODEL: record.upstream_model,
            FINISH_REASONS: (record.finish,) if record.finish else (),
            INPUT_TOKENS: usage.get("input_tokens", 0),
            OUTPUT_TOKENS: usage.get("output_tokens", 0),
            CONVERSATION: record.session,
            FIRST_CHUNK: record.first_chunk or 0.0,
            ERROR_TYPE: record.error,
            STATUS_CODE: record.status,
            f"{OWN}request_id": record.request_id,
            f"{OWN}wire": record.wire,
            f"{OWN}mode": record.mode,
            f"{OWN}dialect": record.dialect,
            f"{OWN}client": record.client,
            f"{OWN}stream": record.stream,
            f"{OWN}outcome": record.outcome,
            f"{OWN}fault": record.fault,
            f"{OWN}tools.offered": record.offered,
            f"{OWN}calls": record.calls,
            f"{OWN}calls.tools": record.tools,
            f"{OWN}repairs": record.repairs,
            f"{OWN}rejected": record.rejected,
            f"{OWN}attempts": len(record.attempts),
        }
    )


def _drop_empty(attributes: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value not in ("", (), 0) or value is False}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * NANOSECONDS)


def _is_named() -> bool:
    """Whether the environment names the service; then that name counts."""
    return not str(Resource.create().attributes.get(SERVICE_NAME)).startswith("unknown_service")

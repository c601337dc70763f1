"""Collects the outcome of one request while it runs.

*Strategy.* Filling a recorder is cheap; it becomes a frozen record once, at the end. Whatever a client or a model
chose (names, ids) is shortened and sanitised before it is logged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from toolglot.config import SECRET_LENGTH
from toolglot.config.rollout import LEAKED, LEFT, NATIVE_CALLS, NEAR_MISS, READING, RESCUE, SHELL, SUCCESS, XML
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    NearMiss,
    Reason,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from toolglot.core.redaction import mask, redact_printable
from toolglot.gateway.sessions.turns import SessionTurn
from toolglot.gateway.telemetry.faults import (
    CLIENT,
    MODEL,
    NO_FAULT,
    PARSER,
    WRITTEN_WRONG,
    classify_error,
    classify_failure,
)
from toolglot.gateway.telemetry.record import Attempt, DryRunResult, Record
from toolglot.gateway.telemetry.trace import MAX_PIECES, Trace
from toolglot.store.interface import ABANDONED, FAILED, OK, REFUSED

if TYPE_CHECKING:  # the SDK is optional
    from opentelemetry.sdk.trace import Span

BODY_LENGTH: Final = 64 << 10
OWN_ID: Final = re.compile("req_[0-9a-f]{24}")
"""An id made by the gateway; it needs no sanitising."""

SHELL_DIALECT: Final = "shell_fence"
NO_ATTEMPT: Final = frozenset({Reason.FABRICATED_RESULT})

Clock = Callable[[], float]
Bytes = bytes
"""The type ``bytes``, in classes that have a field of that name."""


def _usage_fields(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _format_time(seconds: float) -> str:
    millis = round(seconds * 1e6) // 1000
    return f"{_format_second(millis // 1000)}.{millis % 1000:03}+00:00"


@lru_cache(maxsize=16)
def _format_second(second: int) -> str:
    """A timestamp without milliseconds; cached because many requests begin in the same second."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


class RequestRecorder(msgspec.Struct):
    """Collects the fields of a record while the request runs."""

    request_id: str
    wire: str
    time: float
    began: float
    clock: Clock
    model: str = ""
    upstream: str = ""
    upstream_model: str = ""
    mode: str = ""
    dialect: str = ""
    client: str = ""
    """The profile of an XML client; empty for other clients."""
    stream: bool = False
    offered: int = 0
    stripped: int = 0
    calls: int = 0
    tools: list[str] = []
    read_as: list[str] = []
    repairs: list[str] = []
    rejected: list[str] = []
    notes: list[str] = []
    chunks: int = 0
    bytes: int = 0
    first_chunk: float | None = None
    overhead: float | None = None
    prompt_bytes: int = 0
    stable_bytes: int | None = None
    unstable_at: str = ""
    finish: str = ""
    usage: Usage | None = None
    error: str = ""
    fault: str = ""
    """Who is at fault for the error, if that does not follow from its code."""
    client_gone: bool = False
    refused: bool = False
    """Whether the gateway itself refused the request."""
    session: str = ""
    known_secrets: tuple[str, ...] = ()
    attempts: list[Attempt] = []
    """The requests to upstreams that failed and were sent again."""
    attempt_began: float | None = None
    turn: SessionTurn | None = None
    """What the session is found by, after the request has ended."""
    conversation: str = ""
    arms: dict[str, str] = {}
    outcomes: dict[str, dict[str, int]] = {}
    transformed: list[str] = []
    confidences: list[float] = []
    complaints: list[str] = []
    dry_run: RequestRecorder | None = None
    """The recorder of a dry run, if there is one."""
    is_dry_run: bool = False
    open: dict[int, str] = {}
    """The tool names of calls in progress, by index."""
    delivered: list[Event] | None = None
    """What a dry run would have delivered, if bodies are logged."""
    model_text: list[str] | None = None
    """The model's own text, if bodies are logged."""
    model_text_length: int = 0
    delivered_lengths: dict[type, int] = {}
    record: Record | None = None
    body: list[Bytes] | None = None
    """The beginning of the response body, if bodies are logged or stored."""
    body_limit: int = 2 * BODY_LENGTH
    bodies: dict[str, Bytes] | None = None
    """The other bodies, if bodies are stored."""
    trace: Trace | None = None
    agent: str = ""
    replay_of: str = ""
    owner: Bytes = b""
    key: str = ""
    """The client's key, which is redacted from stored bodies."""
    span: Span | None = None
    """The OpenTelemetry span, if traces are sent."""
    trace_headers: dict[str, str] | None = None
    """The headers that continue the trace in requests to upstreams."""

    def count_bytes(self, data: Bytes) -> None:
        """Count one write to the client (hot path)."""
        if self.first_chunk is None:
            self.first_chunk = self.clock() - self.began
        self.chunks += 1
        if self.body is not None and self.bytes < self.body_limit:
            self.body.append(data[: self.body_limit - self.bytes])
            if self.trace is not None and len(self.trace.writes) < MAX_PIECES:
                self.trace.writes.append((self.clock(), len(data)))
        self.bytes += len(data)

    def keep_model_text(self, events: Sequence[Event]) -> None:
        """Keep the model's own text, up to the limit of bodies."""
        if self.model_text is not None and self.model_text_length <= self.body_limit:
            trace = self.trace
            for event in events:
                if type(event) is TextDelta:
                    self.model_text.append(event.text)
                    self.model_text_length += len(event.text)
                elif trace is not None and type(event) is ReasoningDelta:
                    trace.keep_reasoning(event.text)
            if trace is not None and len(trace.events) < MAX_PIECES:
                trace.events.append((self.clock(), len(trace.ends), events))

    def keep_delivered(self, events: Iterable[Event]) -> None:
        """Keep what a dry run would have delivered: every call; text and arguments up to the limit of the body log."""
        if self.delivered is None:
            return
        for event in events:
            size = len(event.fragment) if isinstance(event, CallArguments) else 0
            size = len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else size
            if size:
                kind, limit = type(event), 2 * BODY_LENGTH
                if self.delivered_lengths.get(kind, 0) > limit:
                    continue
                self.delivered_lengths[kind] = self.delivered_lengths.get(kind, 0) + size
            self.delivered.append(event)

    def observe(self, event: Event) -> None:
        """Record an event of the answer; deltas are not needed."""
        match event:
            case CallStarted(index=index, name=name):
                self.tools.append(name)
                self.open[index] = name
            case CallEnded(index=index, dialect=dialect):
                self.calls += 1
                name = self.open.pop(index, "")
                if dialect:
                    self._note_parsed(event, name)
                else:
                    self.count_native()
            case CallRejected():
                self._note_rejected(event)
            case Finished(reason=reason, usage=usage):
                self.finish, self.usage = reason, usage or self.usage
            case Failed(kind=kind):
                self.error = kind

    def _note_parsed(self, ended: CallEnded, name: str) -> None:
        """Record a call parsed from text."""
        self.repairs.extend(ended.repairs)
        if not self.client:  # calls for XML clients are recorded when they are rendered
            self.transformed.append(name)
        self.confidences.append(ended.confidence)
        if ended.dialect not in self.read_as:
            self.read_as.append(ended.dialect)
        transformation = self.transformation(ended.dialect)
        if transformation != SHELL:
            self.count_native(LEAKED)
        if transformation != XML:  # counted when they are rendered
            self.count(transformation)

    def _note_rejected(self, rejected: CallRejected) -> None:
        """Record a call that was not delivered. Without a dialect it is a native call of the upstream."""
        reason = rejected.reason
        self.rejected.append(reason.value)
        if reason in NO_ATTEMPT:
            return
        if reason is Reason.LEAKED:
            self.count_native(LEAKED)
        if rejected.dialect or self.is_dry_run or self.mode != NATIVE_CALLS:
            self.count(self.transformation(rejected.dialect), reason.value)
        else:
            self.count_native(reason.value)

    def note_error(self, error: ToolglotError) -> None:
        self.error, self.fault = error.code, classify_error(error)

    def withdraw_call(self, name: str, dialect: str) -> None:
        """A complete call that was observed is not delivered."""
        self.calls -= 1
        if name in self.tools:
            del self.tools[len(self.tools) - 1 - self.tools[::-1].index(name)]
        self._count_again(dialect, -1)

    def restore_call(self, name: str, dialect: str) -> None:
        """A call that was withdrawn is delivered after all."""
        self.calls += 1
        self.tools.append(name)
        self._count_again(dialect, 1)

    def _count_again(self, dialect: str, times: int) -> None:
        if self.mode == NATIVE_CALLS and not dialect:
            self.count(NATIVE_CALLS, SUCCESS, times)
        elif dialect and (transformation := self.transformation(dialect)) != XML:
            self.count(transformation, SUCCESS, times)

    def count_native(self, outcome: str = SUCCESS) -> None:
        """Count a call that an upstream with native tools started; dry runs do not count."""
        if self.mode == NATIVE_CALLS and not self.is_dry_run:
            self.count(NATIVE_CALLS, outcome)

    def note_left_as_text(self, dialect: str, reason: Reason) -> None:
        """Record a parsed call that stays text on purpose."""
        self.count(self.transformation(dialect), LEFT if reason is Reason.EXTRA_CALL else reason.value)

    def note_near_miss(self, miss: NearMiss) -> None:
        """Record text that was intended as a call and could not be parsed, or does not match the schema."""
        self.count(self.transformation(miss.dialect), NEAR_MISS)
        if miss.defects:
            name = miss.tool or miss.defects[0].found
            wrong = ", ".join(f"{defect.where} ({defect.reason.value})" for defect in miss.defects)
            self.notes.append(f"text that was intended as a call of {name} stays text: {wrong}")

    def transformation(self, dialect: str) -> str:
        """The transformation that parses calls in a dialect for this request."""
        if dialect == SHELL_DIALECT:
            return SHELL
        return XML if self.client else READING if self.mode == "text" else RESCUE

    def count(self, transformation: str, outcome: str = SUCCESS, times: int = 1) -> None:
        """Count the outcome of a transformation: success, or the reason of a failure."""
        if times:
            ends = self.outcomes.setdefault(transformation, {})
            ends[outcome] = ends.get(outcome, 0) + times
            if not ends[outcome]:
                del ends[outcome]

    def start_dry_run(self, mode: str, client: str = "") -> RequestRecorder:
        """A recorder for what would be delivered; its result becomes the field ``would`` of the record."""
        self.dry_run = RequestRecorder(
            self.request_id, self.wire, self.time, self.began, self.clock, mode=mode, client=client, is_dry_run=True
        )
        if self.body is not None:
            self.dry_run.delivered, self.dry_run.model_text = [], []
        return self.dry_run

    def dry_run_result(self) -> DryRunResult:
        return DryRunResult(
            calls=self.calls,
            tools=tuple(map(redact_printable, self.tools)),
            read_as=tuple(self.read_as),
            repairs=tuple(self.repairs),
            rejected=tuple(self.rejected),
            confidences=tuple(self.confidences),
            outcomes=self.outcomes,
            error=redact_printable(self.error),
        )

    def discard_calls(self) -> None:
        """Forget the calls observed so far: they are not delivered."""
        self.calls = 0
        for noted in (self.tools, self.read_as, self.repairs, self.rejected, self.transformed, self.confidences):
            noted.clear()
        self.outcomes.clear()
        self.open.clear()

    @property
    def own_secrets(self) -> tuple[str, ...]:
        """The client's key, unless it is so short that it may be any text."""
        return (self.key,) if len(self.key) >= SECRET_LENGTH else ()

    def clean(self, *texts: str) -> tuple[str, ...]:
        """Texts that clients, models or upstreams chose: short, printable and without the client's key and the secrets
        of all upstreams."""
        secrets = self.known_secrets if len(self.key) < SECRET_LENGTH else (self.key, *self.known_secrets)
        joined = "\0".join(texts)
        if [secret for secret in secrets if secret in joined]:
            texts = tuple([mask(text, secrets) for text in texts])
        return tuple(map(redact_printable, texts))

    def add_overhead(self, since: float) -> None:
        """Add the time since a moment of the clock to that which the gateway itself took."""
        self.overhead = (self.overhead or 0.0) + self.clock() - since

    def end_attempt(self, error: str) -> None:
        """The request to the upstream failed, or its answer was defective, and another one follows."""
        now = self.clock()
        upstream, error = self.clean(self.upstream, error)
        self.attempts.append(self._describe_attempt(upstream, error, now))
        if self.trace is not None:
            self.trace.ends.append(now)
        self.attempt_began, self.error = now, ""
        self.open.clear()

    def _describe_attempt(self, upstream: str, error: str, now: float) -> Attempt:
        began = self.began if self.attempt_began is None else self.attempt_began
        return Attempt(upstream=upstream, mode=self.mode, dialect=self.dialect, error=error, duration=now - began)

    def conclude(self, status: int) -> Record:
        """The record, with everything sanitised that clients, models or upstreams chose."""
        now = self.clock()
        chosen = self.model, self.upstream, self.upstream_model, self.error, self.agent.partition(" ")[0]
        model, upstream, upstream_model, error, agent = self.clean(*chosen)
        own_id = OWN_ID.fullmatch(self.request_id) is not None
        return Record(
            request_id=self.request_id if own_id else self.clean(self.request_id)[0],
            time=_format_time(self.time),
            wire=self.wire,
            model=model,
            upstream=upstream,
            upstream_model=upstream_model,
            mode=self.mode,
            dialect=self.dialect,
            client=self.client,
            stream=self.stream,
            offered=self.offered,
            stripped=self.stripped,
            status=status,
            calls=self.calls,
            tools=self.clean(*self.tools) if self.tools else (),
            read_as=tuple(self.read_as),
            repairs=tuple(self.repairs),
            rejected=tuple(self.rejected),
            notes=self.clean(*self.notes) if self.notes else (),
            chunks=self.chunks,
            bytes=self.bytes,
            first_chunk=self.first_chunk,
            duration=now - self.began,
            finish=self.finish,
            usage=_usage_fields(self.usage) if self.usage else None,
            error=error,
            client_gone=self.client_gone,
            conversation=self.conversation,
            arms=self.arms,
            outcomes=self.outcomes,
            transformed=self.clean(*self.transformed) if self.transformed else (),
            confidences=tuple(self.confidences),
            complaints=tuple(self.complaints),
            would=self.dry_run.dry_run_result() if self.dry_run else None,
            outcome=self.outcome(status),
            fault=self.find_fault(),
            session=self.session,
            attempts=(*self.attempts, self._describe_attempt(upstream, error, now)) if self.upstream else (),
            prompt_bytes=self.prompt_bytes,
            stable_bytes=self.stable_bytes,
            unstable_at=self.unstable_at,
            agent=agent,
            replay_of=self.replay_of,
            overhead=self.overhead,
        )

    def find_fault(self) -> str:
        if self.client_gone:
            return CLIENT
        if self.error:
            return self.fault or classify_failure(self.error)
        if self.rejected and not WRITTEN_WRONG.isdisjoint(self.rejected):
            return MODEL
        return PARSER if [ends for ends in self.outcomes.values() if NEAR_MISS in ends] else NO_FAULT

    def outcome(self, status: int) -> str:
        """How the request ended; a stream can fail after its status was sent."""
        if self.client_gone:
            return ABANDONED
        if self.refused:
            return REFUSED
        return FAILED if self.error or status >= 400 else OK

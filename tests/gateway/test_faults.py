"""Who is at fault: each way a request can end, and sums that add up."""

from __future__ import annotations

import pytest
from support.rows import in_one_test

from toolglot.core.errors import (
    AuthenticationError,
    InternalError,
    OverloadError,
    ShutdownError,
    ToolglotError,
    UnreachableError,
    UpstreamResponseError,
    UpstreamTimeoutError,
)
from toolglot.core.events import CallRejected, Failed, NearMiss, Reason
from toolglot.gateway.telemetry.faults import FAULTS, MODEL_FAILURES
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.metrics import ALLOWED
from toolglot.gateway.telemetry.record import Record
from toolglot.gateway.telemetry.recorder import RequestRecorder


def finish(recorder: RequestRecorder, telemetry: Telemetry, status: int = 200) -> Record:
    record = telemetry.finish(recorder, status)
    assert record.fault in FAULTS
    return record


@in_one_test(
    ("error", "fault"),
    [
        (AuthenticationError("no key"), "client"),
        (OverloadError("busy", 1), "gateway"),
        (ShutdownError("stopping"), "gateway"),
        (InternalError("a bug"), "gateway"),
        (UnreachableError("refused"), "upstream"),
        (UpstreamTimeoutError("silent"), "upstream"),
        (UpstreamResponseError("busy", 503, "overloaded"), "upstream"),
        (UpstreamResponseError("broken", 500, "internal_error"), "upstream"),
    ],
)
def test_errors_have_the_fault_of_their_branch(error: ToolglotError, fault: str) -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.note_error(error)
    assert finish(recorder, telemetry, error.status).fault == fault


@in_one_test(
    ("kind", "fault"), [*((kind, "model") for kind in sorted(MODEL_FAILURES)), ("upstream_closed", "upstream")]
)
def test_failures_within_an_answer(kind: str, fault: str) -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.observe(Failed(kind, "message"))
    assert finish(recorder, telemetry).fault == fault
    assert kind in ALLOWED["kind"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        (Reason.MALFORMED, "model"),
        (Reason.UNKNOWN_TOOL, "model"),
        (Reason.QUOTATION, "none"),
        (Reason.LOW_CONFIDENCE, "none"),
    ],
)
def test_rejected_calls(reason: Reason, fault: str) -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.mode = "text"
    recorder.observe(CallRejected("<x>", reason, "f", dialect="hermes"))
    assert finish(recorder, telemetry).fault == fault


def test_a_near_miss_is_a_fault_of_the_parser() -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.mode = "text"
    recorder.note_near_miss(NearMiss("hermes"))
    assert finish(recorder, telemetry).fault == "parser"


def test_a_client_that_leaves_is_at_fault() -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.note_error(UnreachableError("refused"))
    recorder.client_gone = True
    record = finish(recorder, telemetry, 499)
    assert (record.outcome, record.fault) == ("abandoned", "client")


def test_an_error_that_recovery_has_corrected_is_no_fault() -> None:
    telemetry = Telemetry()
    recorder = telemetry.begin("r", "openai_chat")
    recorder.note_error(UnreachableError("refused"))
    recorder.error = ""
    assert finish(recorder, telemetry).fault == "none"


def test_outcomes_add_up_to_requests() -> None:
    telemetry = Telemetry()
    for number, error in enumerate([None, UnreachableError("no"), AuthenticationError("no"), InternalError("no")] * 3):
        recorder = telemetry.begin("r", "openai_chat")
        if error is not None:
            recorder.note_error(error)
        recorder.refused = isinstance(error, AuthenticationError)
        recorder.client_gone = number % 5 == 0
        finish(recorder, telemetry, error.status if error else 200)
    metrics = telemetry.metrics
    assert sum(counted.total for counted, _ in metrics.outcomes.children.values()) == 12
    assert sum(counted.total for counted, _ in metrics.requests.children.values()) == 12

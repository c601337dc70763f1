"""When the pieces of an answer came: cheap to note, limited, without text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from toolglot.core.events import CallArguments, CallEnded, CallStarted, ReasoningDelta, TextDelta
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.gateway.telemetry.trace import MAX_PIECES, Trace


def record(times: Iterator[float], began: float, limit: int) -> tuple[RequestRecorder, Trace]:
    """A recorder of a request whose bodies are stored, and its trace. ``times`` are those of its clock."""
    trace = Trace(began, limit)
    recorder = RequestRecorder("r", "openai_chat", began, began, lambda: next(times))
    recorder.body, recorder.model_text, recorder.trace = [], [], trace
    recorder.body_limit = 1 << 30
    recorder.first_chunk = 0.0
    return recorder, trace


def test_pieces_within_a_millisecond_are_one() -> None:
    recorder, trace = record(iter((100.0101, 100.0104, 100.0204, 100.030, 100.040, 100.0415)), 100.0, 1000)
    recorder.keep_model_text([ReasoningDelta("Hm"), TextDelta("abc")])
    recorder.keep_model_text([TextDelta("de")])
    recorder.keep_model_text([TextDelta("f"), CallStarted(0, "1", "read"), CallArguments(0, "{}"), CallEnded(0)])
    recorder.end_attempt("defective")
    recorder.keep_model_text([TextDelta("again")])
    recorder.count_bytes(b"x" * 17)
    assert json.loads(trace.encode()) == {
        "upstream": [[10, "reasoning", 2, 0], [10, "text", 5, 0], [20, "text", 1, 0], [20, "call", 6, 0], [40, "text", 5, 1]],
        "client": [[41, 17]],
        "attempts": [30],
    }  # fmt: skip
    assert trace.reasoning == ["Hm"]
    assert recorder.model_text == ["abc", "de", "f", "again"]


def test_a_trace_is_limited() -> None:
    recorder, trace = record(iter(number / 100 for number in range(10 * MAX_PIECES)), 0.0, 10)
    for _ in range(MAX_PIECES + 100):
        recorder.keep_model_text([ReasoningDelta("secret")])
        recorder.count_bytes(b"12345")
    encoded = trace.encode()
    assert len(encoded) < 64 * MAX_PIECES and b"secret" not in encoded
    assert sum(map(len, trace.reasoning)) < 20

"""When the pieces of an answer came: cheap to note, limited, without text."""

from __future__ import annotations

import json

from toolglot.core.events import CallArguments, CallEnded, CallStarted, ReasoningDelta, TextDelta
from toolglot.gateway.telemetry import trace as traces
from toolglot.gateway.telemetry.trace import Trace


def test_pieces_within_a_millisecond_are_one() -> None:
    trace = Trace(100.0, 1000)
    trace.note_events(100.0101, [ReasoningDelta("Hm"), TextDelta("abc")])
    trace.note_events(100.0104, [TextDelta("de")])
    trace.note_events(100.0204, [TextDelta("f"), CallStarted(0, "1", "read"), CallArguments(0, "{}"), CallEnded(0)])
    trace.ends.append(100.030)
    trace.note_events(100.040, [TextDelta("again")])
    trace.note_write(100.0415, 17)
    assert json.loads(trace.encode()) == {
        "upstream": [[10, "reasoning", 2, 0], [10, "text", 5, 0], [20, "text", 1, 0], [20, "call", 6, 0], [40, "text", 5, 1]],
        "client": [[41, 17]],
        "attempts": [30],
    }  # fmt: skip
    assert trace.reasoning == ["Hm"]


def test_a_trace_is_limited() -> None:
    trace = Trace(0.0, 10)
    for number in range(traces.MAX_PIECES + 100):
        trace.note_events(number / 100, [ReasoningDelta("secret")])
        trace.note_write(number / 100, 5)
    encoded = trace.encode()
    assert len(encoded) < 64 * traces.MAX_PIECES and b"secret" not in encoded
    assert sum(map(len, trace.reasoning)) < 20

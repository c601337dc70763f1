"""Decode responses of the Gemini wire, streamed or not, into events.

    data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"read","args":{"path":"x"}},
           "thoughtSignature":"..."}]},"finishReason":"STOP","index":0}],"usageMetadata":{...},"responseId":"..."}

A call arrives in one piece unless the client wants its arguments in pieces. A stream has no terminator: it is complete
if a finish reason came before it closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolglot.core.events import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    Usage,
)
from toolglot.wires.call_ids import CallIds
from toolglot.wires.gemini.errors import describe, parse_list
from toolglot.wires.gemini.field_names import NAME, pick, pick_table, pick_text, read_signature, unify
from toolglot.wires.gemini.partial_calls import GivenCall, PartialCalls
from toolglot.wires.json_fields import count_at, dicts_in, end_call, find_fault, parse_object, text_at, write_arguments
from toolglot.wires.protocol import DecodedResponse
from toolglot.wires.sse import EventStream

FILTERED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII")
FILTERED_IMAGES = ("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")
FINISHES = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(FILTERED + FILTERED_IMAGES, "content_filter"),
}
BROKEN = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
"""Finish reasons that mean: the model tried to call and failed."""


class PayloadDecoder:
    """Decodes the JSON payloads of one response; a non-streamed response is a single payload."""

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.ids = CallIds(new_id)
        self.partial = PartialCalls()
        self.started = False
        self.over = False
        self.tidy = True
        self.calls = 0
        self.finish_reason = ""
        self.problem = ""
        self.usage: Usage | None = None

    def read(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        """Decode one payload."""
        if self.over:
            return
        if not self.started:
            self.started = True
            events.append(Started(pick_text(payload, "responseId"), pick_text(payload, "modelVersion")))
        if payload.get("error"):
            self.fail(events, *describe(payload))
            return
        if counted := pick_table(payload, "usageMetadata"):
            self.usage = _read_usage(counted if "promptTokenCount" in counted else unify(counted))
        for candidate in dicts_in(payload.get("candidates")):
            if not candidate.get("index"):
                self.choose(candidate, events)
        if pick_text(pick_table(payload, "promptFeedback"), "blockReason"):
            self.finish_reason = "SAFETY"

    def choose(self, candidate: Mapping[str, Any], events: list[Event]) -> None:
        for part in dicts_in(pick_table(candidate, "content").get("parts")):
            self.take(part, events)
        self.finish_reason = pick_text(candidate, "finishReason") or self.finish_reason
        self.problem = pick_text(candidate, "finishMessage") or self.problem

    def take(self, part: Mapping[str, Any], events: list[Event]) -> None:
        signature, kind = read_signature(part)
        text = text_at(part, "text")
        thought = part.get("thought") is True
        if thought and text:
            events.append(ReasoningDelta(text))
        if signature:
            events.append(ReasoningSigned(signature, kind))
        called = pick_table(part, "functionCall")
        if called or (self.partial.waiting and pick(part, "functionCall") is not None):
            for given in self.partial.take(called):
                self.call(given, events)
        elif text and not thought:
            events.append(TextDelta(text))
        elif "text" not in part and not thought:
            events.append(ProviderEvent(NAME, part))

    def call(self, given: GivenCall, events: list[Event]) -> None:
        arguments = write_arguments(given.arguments)
        fault = None if isinstance(given.arguments, dict) else find_fault(arguments) and Reason.MALFORMED
        usual = fault is None and bool(given.name) and not isinstance(given.arguments, str)
        self.tidy = self.tidy and usual and not self.ids.repeats(given.id)
        if not given.name:
            # a call without a name cannot be made; keep its text
            events += [TextDelta(arguments)] if given.arguments else []
            return
        index, self.calls = self.calls, self.calls + 1
        events.append(CallStarted(index, self.ids.choose(given.id), given.name))
        events.append(CallArguments(index, arguments))
        events.append(end_call(index, fault))

    def fail(self, events: list[Event], kind: str, message: str) -> None:
        self.over, self.tidy = True, False
        events.append(Failed(kind, message))

    def end(self, events: list[Event]) -> None:
        """The upstream has ended the response."""
        if self.over:
            return
        if self.finish_reason in BROKEN:
            self.fail(
                events,
                self.finish_reason.lower(),
                self.problem or f"The model ended its answer with {self.finish_reason}.",
            )
            return
        self.over = True
        finish = FINISHES.get(self.finish_reason, "stop")
        if finish == "stop":
            for given in self.partial.close():
                self.call(given, events)
        events.append(Finished("tool_calls" if self.calls and finish == "stop" else finish, self.usage))


class StreamDecoder(PayloadDecoder):
    """Decodes a streamed response."""

    place = None
    handed_out = None
    read_text = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        super().__init__(new_id)
        self.stream = EventStream()

    @property
    def between(self) -> bool:
        return not (self.finish_reason or self.stream.waiting)

    def measure(self, pieces: Sequence[bytes]) -> int:
        return 0 if self.finish_reason else self.stream.measure(pieces)

    def feed(self, piece: bytes) -> list[Event]:
        events: list[Event] = []
        for data in self.stream.feed(piece):
            self.read(_parse(data), events)
        return events

    def close(self) -> list[Event]:
        """End of the connection. A response without a finish reason was truncated and fails."""
        events: list[Event] = []
        for data in self.stream.close():
            self.read(_parse(data), events)
        if self.finish_reason:
            self.end(events)
        elif not self.over:
            self.fail(events, "upstream_closed", "The upstream closed the connection in the middle of its answer.")
        return events


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """Decode a non-streamed response, or a stream in list form."""
    reader, events = PayloadDecoder(new_id), list[Event]()
    listed = parse_list(body)
    for payload in listed or [_parse(body)]:
        reader.read(payload, events)
    if not reader.over and not reader.finish_reason and not events[1:]:
        reader.fail(events, "upstream_invalid", "The upstream's answer holds neither text nor calls.")
    reader.end(events)
    return DecodedResponse(events, reader.tidy and bool(reader.finish_reason) and not listed)


def _parse(data: bytes) -> dict[str, Any]:
    payload = parse_object(data)
    if payload is not None:
        return payload
    text = data.decode(errors="replace")[:80]
    return {"error": {"status": "upstream_invalid", "message": f"The upstream sent no reply but {text!r}."}}


def _read_usage(payload: Mapping[str, Any]) -> Usage:
    given = count_at(payload, "promptTokenCount") + count_at(payload, "toolUsePromptTokenCount")
    made = count_at(payload, "candidatesTokenCount") + count_at(payload, "thoughtsTokenCount")
    return Usage(
        input_tokens=given, output_tokens=made, total_tokens=count_at(payload, "totalTokenCount"), reported=payload
    )

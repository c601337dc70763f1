"""Decode responses of Ollama's wire: one JSON object, or one per line.

    {"model":"qwen3","created_at":"2025-07-07T20:22:19Z","message":{"role":"assistant","content":"I'll "},"done":false}

Calls arrive in one piece, and the finish reason does not mention them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolglot.core.errors import UpstreamResponseError
from toolglot.core.events import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
    Usage,
)
from toolglot.wires.call_ids import CallIds
from toolglot.wires.json_fields import count_at, dicts_in, end_call, find_fault, parse_object, text_at, write_arguments
from toolglot.wires.protocol import DecodedResponse


class StreamDecoder:
    """Decodes a streamed response line by line; chunks may be cut anywhere."""

    place = None
    finish_reason = None
    handed_out = None
    read_text = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.ids = CallIds(new_id)
        self.started = False
        self.over = False
        self.tidy = True
        self.calls = 0
        self.rest: list[bytes] = []

    @property
    def between(self) -> bool:
        return not self.rest

    def measure(self, pieces: Sequence[bytes]) -> int:
        return sum(map(len, pieces)) - len(self.rest[0]) if len(self.rest) == 1 else 0

    def feed(self, piece: bytes) -> list[Event]:
        events: list[Event] = []
        if b"\n" in piece:
            *lines, tail = b"".join((*self.rest, piece)).split(b"\n")
            self.rest = [tail] if tail else []
            for line in lines:
                self.read(line, events)
        elif piece:
            self.rest.append(piece)
        return events

    def close(self) -> list[Event]:
        """End of the connection. A response without its own end was truncated and fails."""
        events: list[Event] = []
        self.read(b"".join(self.rest), events)
        if not self.over:
            self.fail(events, "upstream_closed", "The upstream closed the connection in the middle of its answer.")
        return events

    def read(self, line: bytes, events: list[Event]) -> None:
        if self.over or not line.strip():
            return
        payload = parse_object(line)
        if payload is None:
            text = line.decode(errors="replace")[:80]
            self.fail(events, "upstream_invalid", f"The upstream sent no reply but {text!r}.")
        elif payload.get("error"):
            self.fail(events, UpstreamResponseError.code, str(payload["error"]))
        else:
            self.take(payload, events)

    def take(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        if not self.started:
            self.started = True
            events.append(Started("", text_at(payload, "model")))
        message = payload.get("message")
        if isinstance(message, dict):
            if thought := text_at(message, "thinking"):
                events.append(ReasoningDelta(thought))
            if text := text_at(message, "content"):
                events.append(TextDelta(text))
            for call in dicts_in(message.get("tool_calls")):
                self.take_call(call, events)
        if payload.get("done") is True:
            self.end(payload, events)

    def take_call(self, call: Mapping[str, Any], events: list[Event]) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        given, name, given_id = function.get("arguments"), text_at(function, "name"), text_at(call, "id")
        arguments = write_arguments(given)
        fault = None if isinstance(given, dict) else find_fault(arguments) and Reason.MALFORMED
        usual = fault is None and bool(name) and not isinstance(given, str)  # clients of this wire want objects
        self.tidy = self.tidy and usual and not self.ids.repeats(given_id)
        if not name:
            # a call without a name cannot be made; keep its text
            events += [TextDelta(arguments)] if given else []
            return
        index, self.calls = self.calls, self.calls + 1
        events += (
            CallStarted(index, self.ids.choose(given_id), name),
            CallArguments(index, arguments),
            end_call(index, fault),
        )

    def end(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        self.over = True
        reason = "length" if payload.get("done_reason") == "length" else "tool_calls" if self.calls else "stop"
        given, made = count_at(payload, "prompt_eval_count"), count_at(payload, "eval_count")
        events.append(
            Finished(
                reason,
                Usage(input_tokens=given, output_tokens=made, total_tokens=given + made, reported={})
                if given or made
                else None,
            )
        )

    def fail(self, events: list[Event], kind: str, message: str) -> None:
        self.over, self.tidy = True, False
        events.append(Failed(kind, message))


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """Decode a non-streamed response; one that arrives in lines all the same is accepted."""
    reader, events = StreamDecoder(new_id), list[Event]()
    if parse_object(body) is None:
        return DecodedResponse([*reader.feed(body), *reader.close()], tidy=False)
    reader.read(body, events)
    if not reader.over:
        events += reader.close()
    return DecodedResponse(events, reader.tidy)

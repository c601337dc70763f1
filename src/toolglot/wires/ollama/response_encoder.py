"""Encode events as responses of Ollama's wire: one JSON object, or one per line.

The wire has no partial calls, so a call is buffered until its end. One that never ends is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import read_arguments
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.vendor_fields import level
from toolglot.wires.whole_calls import CompleteCall, WholeCalls

_CALL = level("id", function=level("index", "name", "arguments"))
_MESSAGE = level("role", "content", "thinking", tool_calls=_CALL)
KNOWN_REQUEST = level(
    tools=level("type", function=level("name", "description", "parameters")),
    messages={**_MESSAGE, **level("images", "tool_name", "tool_call_id")},
)
"""The fields of messages and tools that the encoder of requests writes."""
KNOWN_FIELDS = level(
    *("model", "created_at", "done", "prompt_eval_count", "eval_count", "error"),
    message=_MESSAGE,
    done_reason=lambda reason: str(reason == "length"),
)
"""The fields of an answer that this wire's encoder writes; see ``vendor_fields``."""


class StreamEncoder:
    """Encodes one streamed response."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.head = encode(_head(identity))[:-1]
        self.calls = WholeCalls()

    def write(self, events: Iterable[Event]) -> bytes:
        """Encode the events as joined lines."""
        out = []
        for event in events:
            step = _STEPS.get(type(event))
            if step is not None:
                out.append(step(self, event))
        return b"".join(out)

    def resume(self, place: object) -> None:
        """Nothing to do: lines do not depend on each other."""

    def heartbeat(self) -> bytes:
        """A line without content."""
        return self.line(b'"content":""')

    def line(self, encoded: bytes) -> bytes:
        return self.head + b',"message":{"role":"assistant",' + encoded + b'},"done":false}\n'

    def add_text(self, event: TextDelta) -> bytes:
        line = self.line(b'"content":' + encode(event.text))
        return self.encode_calls(self.calls.settle()) + line if self.calls.calls else line

    def add_reasoning(self, event: ReasoningDelta) -> bytes:
        return self.line(b'"content":"","thinking":' + encode(event.text))

    def start_call(self, event: CallStarted) -> bytes:
        self.calls.start(event)
        return b""

    def add_arguments(self, event: CallArguments) -> bytes:
        self.calls.add_arguments(event)
        return b""

    def end_call(self, event: CallEnded) -> bytes:
        return self.encode_calls(self.calls.end(event))

    def encode_calls(self, calls: list[CompleteCall]) -> bytes:
        return b"".join([self.line(b'"content":"","tool_calls":' + encode([_encode_call(*call)])) for call in calls])

    def finish(self, event: Finished) -> bytes:
        out = self.encode_calls(self.calls.drain())
        encoded = {"message": {"role": "assistant", "content": ""}, **_sum_up(event.reason, event.usage)}
        return out + self.head + b"," + encode(encoded)[1:] + b"\n"

    def fail(self, event: Failed) -> bytes:
        return encode({"error": event.message}) + b"\n"


_STEPS: Mapping[type, Callable[[StreamEncoder, Any], bytes]] = {
    TextDelta: StreamEncoder.add_text,
    ReasoningDelta: StreamEncoder.add_reasoning,
    CallStarted: StreamEncoder.start_call,
    CallArguments: StreamEncoder.add_arguments,
    CallEnded: StreamEncoder.end_call,
    Finished: StreamEncoder.finish,
    Failed: StreamEncoder.fail,
}


def encode_response(events: Iterable[Event], identity: ResponseIdentity, request: ClientRequest) -> bytes:
    """Encode a non-streamed response; calls that never ended are left out."""
    text, thought = "", ""
    calls = WholeCalls()
    complete: list[dict[str, Any]] = []
    finished = Finished("stop")
    for event in events:
        match event:
            case TextDelta():
                text += event.text
            case ReasoningDelta():
                thought += event.text
            case CallStarted():
                calls.start(event)
            case CallArguments():
                calls.add_arguments(event)
            case CallEnded():
                complete += [_encode_call(*call) for call in calls.end(event)]
            case Finished():
                finished = event
    complete += [_encode_call(*call) for call in calls.drain()]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thought:
        message["thinking"] = thought
    if complete:
        message["tool_calls"] = complete
    return encode(_head(identity) | {"message": message} | _sum_up(finished.reason, finished.usage))


def _head(identity: ResponseIdentity) -> dict[str, Any]:
    created = datetime.fromtimestamp(identity.created, UTC)
    return {"model": identity.model, "created_at": created.strftime("%Y-%m-%dT%H:%M:%SZ")}


def _encode_call(started: CallStarted, arguments: str) -> dict[str, Any]:
    function = {"index": started.index, "name": started.name, "arguments": read_arguments(arguments)}
    return {"id": started.id, "function": function}


def _sum_up(reason: str, usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    return {
        "done": True,
        "done_reason": "length" if reason == "length" else "stop",
        "total_duration": 0,
        "load_duration": 0,
        "prompt_eval_count": usage.input_tokens,
        "prompt_eval_duration": 0,
        "eval_count": usage.output_tokens,
        "eval_duration": 0,
    }

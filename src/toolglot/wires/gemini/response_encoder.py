"""Encode events as responses of the Gemini wire, streamed or not.

    data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],"modelVersion":"m",
           "responseId":"1"}

Strategy. Arguments are objects here, so a call is sent when it is complete, and one that never ends is not sent. A call
whose arguments are not an object cannot be encoded: the response ends with the finish reason for malformed calls. Every
chunk holds a part, even a heartbeat, because the vendor's package discards the whole turn of a chat if one chunk has
none, and stops at a comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ProviderEvent,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
    Usage,
)
from toolglot.core.json_numbers import encode
from toolglot.wires.gemini.errors import encode_failure
from toolglot.wires.gemini.field_names import NAME, add_aliases, write_signature
from toolglot.wires.gemini.response_decoder import FINISHES as READ_FINISHES
from toolglot.wires.json_fields import find_fault, read_arguments
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.translation import CACHED, REASONED, find_count
from toolglot.wires.vendor_fields import level
from toolglot.wires.whole_calls import CompleteCall, WholeCalls

FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
NOTHING = {"text": ""}
_CALL = level("id", "name", "args", "partialArgs", "willContinue")
_PART = level("text", "thought", "thoughtSignature", functionCall=_CALL)
_GIVEN = {
    **_PART,
    "functionResponse": level("id", "name", "response", "parts"),
    "inlineData": level("mimeType", "data"),
    "fileData": level("mimeType", "fileUri"),
}
KNOWN_REQUEST = add_aliases(
    level(
        systemInstruction=level("role", parts=_GIVEN),
        contents=level("role", parts=_GIVEN),
        tools=level(functionDeclarations=level("name", "description", "parameters", "parametersJsonSchema")),
        toolConfig=level(functionCallingConfig=level("mode", "allowedFunctionNames")),
    )
)
"""The fields of contents and tools that the encoder of requests writes."""
_CANDIDATE = level(
    "index",
    content=level("role", parts=_PART),
    finishReason=lambda reason: READ_FINISHES.get(reason, "stop"),
)
SEARCHED = "toolUsePromptTokenCount"
"""The input tokens of results of the provider's own tools, which its other count of input tokens does not hold."""
_USAGE = level(
    *("promptTokenCount", "candidatesTokenCount", "totalTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"),
    SEARCHED,
)
KNOWN_FIELDS = level("modelVersion", "responseId", "error", candidates=_CANDIDATE, usageMetadata=_USAGE)
"""The fields of an answer that this wire's encoder writes; see ``vendor_fields``."""
Part: TypeAlias = dict[str, Any]


class EventEncoder:
    """Converts the events of one response to parts and a finish reason."""

    def __init__(self, request: ClientRequest) -> None:
        self.thoughts = request.memory.get("thoughts", False)
        self.calls = WholeCalls()
        self.signature = ""
        self.refused = ""

    def take(self, event: Event) -> list[Part]:
        """Return the parts that an event completes."""
        taken = _TAKEN.get(type(event))
        parts = taken(self, event) if taken is not None else None
        if not parts:
            return []
        if self.signature and "thoughtSignature" not in parts[0]:
            parts[0] |= {"thoughtSignature": self.signature}
            self.signature = ""
        return parts

    def add_text(self, event: TextDelta) -> list[Part]:
        if self.calls.calls:
            return [*self.encode_calls(self.calls.settle()), {"text": event.text}]
        return [{"text": event.text}]

    def add_reasoning(self, event: ReasoningDelta) -> list[Part]:
        """Reasoning is sent only if the client asked for it."""
        return [{"text": event.text, "thought": True}] if self.thoughts else []

    def keep_signature(self, event: ReasoningSigned) -> list[Part]:
        """A signature waits for the part after the reasoning. If another one follows, it gets a part of its own."""
        waiting, self.signature = self.signature, write_signature(event.signature, event.kind)
        return [{**NOTHING, "thoughtSignature": waiting}] if waiting else []

    def start(self, event: CallStarted) -> None:
        self.calls.start(event)

    def add_arguments(self, event: CallArguments) -> None:
        self.calls.add_arguments(event)

    def end_call(self, event: CallEnded) -> list[Part]:
        return self.encode_calls(self.calls.end(event))

    def encode_calls(self, calls: list[CompleteCall]) -> list[Part]:
        parts: list[Part] = []
        for call, text in calls:
            if find_fault(text):
                self.refused = f"{call.name}: {text}"
            else:
                encoded = {"id": call.id, "name": call.name, "args": read_arguments(text)}
                parts.append({"functionCall": encoded})
        return parts

    def carry(self, event: ProviderEvent) -> list[Part]:
        return [dict(event.data)] if event.wire == NAME else []

    def close(self) -> list[Part]:
        """The remaining parts: calls after one that never ended, and a signature that nothing followed."""
        parts = self.encode_calls(self.calls.drain())
        signature, self.signature = self.signature, ""
        return [*parts, {**NOTHING, "thoughtSignature": signature}] if signature else parts

    def finish(self, event: Finished) -> dict[str, Any]:
        """The fields of the last candidate other than its content."""
        if event.reason in FINISHES:
            return {"finishReason": FINISHES[event.reason]}
        if self.refused:
            return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": f"Malformed call: {self.refused}"}
        return {"finishReason": "STOP"}


_TAKEN: Mapping[type, Callable[[EventEncoder, Any], list[Part] | None]] = {
    TextDelta: EventEncoder.add_text,
    ReasoningDelta: EventEncoder.add_reasoning,
    ReasoningSigned: EventEncoder.keep_signature,
    CallStarted: EventEncoder.start,
    CallArguments: EventEncoder.add_arguments,
    CallEnded: EventEncoder.end_call,
    ProviderEvent: EventEncoder.carry,
}


class StreamEncoder:
    """Encodes one streamed response, as server-sent events or as a list."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.encoder = EventEncoder(request)
        self.listed = request.memory.get("list", False)
        self.count = 0
        self.tail = {"modelVersion": identity.model, "responseId": identity.id}

    def write(self, events: Iterable[Event]) -> bytes:
        """Encode the events as joined chunks."""
        out: list[bytes] = []
        for event in events:
            if isinstance(event, Finished):
                out.append(self.finish(event))
            elif isinstance(event, Failed):
                out.append(self.encode_event(encode_failure(event.kind, event.message), last=True))
            else:
                out += [self.encode_event(self.piece([part])) for part in self.encoder.take(event)]
        return b"".join(out)

    def resume(self, place: object) -> None:
        """Nothing to do: chunks do not depend on each other."""

    def heartbeat(self) -> bytes:
        """A chunk without content; in a list, whitespace."""
        return b"\n" if self.listed else self.encode_event(self.piece([NOTHING]))

    def finish(self, event: Finished) -> bytes:
        last = self.encoder.close() or [NOTHING]
        encoded = self.piece(last, **self.encoder.finish(event)) | {"usageMetadata": encode_usage(event.usage)}
        return self.encode_event(encoded, last=True)

    def piece(self, parts: list[dict[str, Any]], **end: Any) -> dict[str, Any]:
        return {"candidates": [_encode_candidate(parts, end)], **self.tail}

    def encode_event(self, encoded: dict[str, Any], last: bool = False) -> bytes:
        data = encode(encoded)
        self.count += 1
        if self.listed:
            return (b"[" if self.count == 1 else b",\r\n") + data + (b"]\n" if last else b"")
        return b"data: %b\n\n" % data


def encode_response(events: Iterable[Event], identity: ResponseIdentity, request: ClientRequest) -> bytes:
    """Encode a non-streamed response; calls that never ended are left out."""
    encoder = EventEncoder(request)
    parts: list[Part] = []
    finished = Finished("stop")
    for event in events:
        if isinstance(event, Finished):
            finished = event
            continue
        for part in encoder.take(event):
            joined = _join(parts[-1], part) if parts else None
            parts[-1:] = [joined] if joined else [*parts[-1:], part]
    parts += encoder.close()
    return encode(
        {
            "candidates": [_encode_candidate(parts, encoder.finish(finished))],
            "usageMetadata": encode_usage(finished.usage),
            "modelVersion": identity.model,
            "responseId": identity.id,
        }
    )


def _encode_candidate(parts: list[dict[str, Any]], end: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, **end, "index": 0}


def _join(last: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Join two parts if both are text of the same kind and the second has no signature."""
    if not ("text" in last and "text" in part) or "thoughtSignature" in part:
        return None
    return {**last, "text": last["text"] + part["text"]} if last.get("thought") == part.get("thought") else None


def encode_usage(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    thought, cached = find_count(usage.reported, REASONED), find_count(usage.reported, CACHED)
    searched = find_count(usage.reported, ((SEARCHED,),))
    encoded = {
        "promptTokenCount": max(0, usage.input_tokens - searched),
        "candidatesTokenCount": max(0, usage.output_tokens - thought),
        "totalTokenCount": usage.total_tokens or usage.input_tokens + usage.output_tokens,
    }
    encoded |= {"thoughtsTokenCount": thought} if thought else {}
    encoded |= {SEARCHED: searched} if searched else {}
    return encoded | {"cachedContentTokenCount": cached} if cached else encoded

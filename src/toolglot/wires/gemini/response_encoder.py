"""Answers on the Gemini wire, whole and streamed, written from events.

    data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"index":0}],"modelVersion":"m",
           "responseId":"1"}

Strategy. Arguments are objects here, so a call is told when it is complete, and one that never ends is not told. One
whose arguments are no object has no form: the answer ends with the reason that the wire has for it. Every piece holds a
part, even a heartbeat, because the vendor's package throws away the whole turn of a chat if one piece has none, and
stops at a comment.
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
from toolglot.wires.gemini.errors import tell_failure
from toolglot.wires.gemini.field_names import NAME, write_seal
from toolglot.wires.json_fields import find_fault, read_arguments
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.translation import CACHED, THOUGHT, count_told
from toolglot.wires.whole_calls import Told, WholeCalls

FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
NOTHING = {"text": ""}
Part: TypeAlias = dict[str, Any]


class EventEncoder:
    """One answer as parts, and how it ends."""

    def __init__(self, asked: ClientRequest) -> None:
        self.thoughts = asked.memory.get("thoughts", False)
        self.calls = WholeCalls()
        self.seal = ""
        self.refused = ""

    def take(self, event: Event) -> list[Part]:
        """The parts that an event completes."""
        taken = _TAKEN.get(type(event))
        parts = taken(self, event) if taken is not None else None
        if not parts:
            return []
        if self.seal and "thoughtSignature" not in parts[0]:
            parts[0] |= {"thoughtSignature": self.seal}
            self.seal = ""
        return parts

    def say(self, event: TextDelta) -> list[Part]:
        if self.calls.calls:
            return [*self.tell(self.calls.settle()), {"text": event.text}]
        return [{"text": event.text}]

    def think(self, event: ReasoningDelta) -> list[Part]:
        """Thoughts are told only to those who asked for them."""
        return [{"text": event.text, "thought": True}] if self.thoughts else []

    def keep_seal(self, event: ReasoningSigned) -> list[Part]:
        """A seal waits for the part behind the thoughts. If another one comes first, it has a part of its own."""
        waiting, self.seal = self.seal, write_seal(event.seal, event.kind)
        return [{**NOTHING, "thoughtSignature": waiting}] if waiting else []

    def start(self, event: CallStarted) -> None:
        self.calls.start(event)

    def argue(self, event: CallArguments) -> None:
        self.calls.argue(event)

    def end_call(self, event: CallEnded) -> list[Part]:
        return self.tell(self.calls.end(event))

    def tell(self, calls: list[Told]) -> list[Part]:
        parts: list[Part] = []
        for call, text in calls:
            if find_fault(text):
                self.refused = f"{call.name}: {text}"
            else:
                told = {"id": call.id, "name": call.name, "args": read_arguments(text)}
                parts.append({"functionCall": told})
        return parts

    def carry(self, event: ProviderEvent) -> list[Part]:
        return [dict(event.data)] if event.wire == NAME else []

    def close(self) -> list[Part]:
        """What is left at the end: calls behind one that never ended, and a seal that nothing followed."""
        parts = self.tell(self.calls.drain())
        seal, self.seal = self.seal, ""
        return [*parts, {**NOTHING, "thoughtSignature": seal}] if seal else parts

    def finish(self, event: Finished) -> dict[str, Any]:
        """The last candidate, as far as it is not content."""
        if event.reason in FINISHES:
            return {"finishReason": FINISHES[event.reason]}
        if self.refused:
            return {"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": f"Malformed call: {self.refused}"}
        return {"finishReason": "STOP"}


_TAKEN: Mapping[type, Callable[[EventEncoder, Any], list[Part] | None]] = {
    TextDelta: EventEncoder.say,
    ReasoningDelta: EventEncoder.think,
    ReasoningSigned: EventEncoder.keep_seal,
    CallStarted: EventEncoder.start,
    CallArguments: EventEncoder.argue,
    CallEnded: EventEncoder.end_call,
    ProviderEvent: EventEncoder.carry,
}


class StreamEncoder:
    """Writes one streamed answer, as events or as a list."""

    def __init__(self, answerer: ResponseIdentity, asked: ClientRequest) -> None:
        self.telling = EventEncoder(asked)
        self.listed = asked.memory.get("list", False)
        self.count = 0
        self.tail = {"modelVersion": answerer.model, "responseId": answerer.id}

    def write(self, events: Iterable[Event]) -> bytes:
        """The pieces for these events, in one piece."""
        out: list[bytes] = []
        for event in events:
            if isinstance(event, Finished):
                out.append(self.finish(event))
            elif isinstance(event, Failed):
                out.append(self.frame(tell_failure(event.kind, event.message), last=True))
            else:
                out += [self.frame(self.piece([part])) for part in self.telling.take(event)]
        return b"".join(out)

    def resume(self, place: object) -> None:
        """Somebody else wrote the beginning of this answer: every piece stands for itself."""

    def heartbeat(self) -> bytes:
        """A piece that says nothing; in a list, white space."""
        return b"\n" if self.listed else self.frame(self.piece([NOTHING]))

    def finish(self, event: Finished) -> bytes:
        last = self.telling.close() or [NOTHING]
        told = self.piece(last, **self.telling.finish(event)) | {"usageMetadata": tell_usage(event.usage)}
        return self.frame(told, last=True)

    def piece(self, parts: list[dict[str, Any]], **end: Any) -> dict[str, Any]:
        return {"candidates": [_tell_candidate(parts, end)], **self.tail}

    def frame(self, told: dict[str, Any], last: bool = False) -> bytes:
        data = encode(told)
        self.count += 1
        if self.listed:
            return (b"[" if self.count == 1 else b",\r\n") + data + (b"]\n" if last else b"")
        return b"data: %b\n\n" % data


def encode_response(events: Iterable[Event], answerer: ResponseIdentity, asked: ClientRequest) -> bytes:
    """A whole answer. Calls that were cut are not in it."""
    telling = EventEncoder(asked)
    parts: list[Part] = []
    finished = Finished("stop")
    for event in events:
        if isinstance(event, Finished):
            finished = event
            continue
        for part in telling.take(event):
            joined = _join(parts[-1], part) if parts else None
            parts[-1:] = [joined] if joined else [*parts[-1:], part]
    parts += telling.close()
    return encode(
        {
            "candidates": [_tell_candidate(parts, telling.finish(finished))],
            "usageMetadata": tell_usage(finished.usage),
            "modelVersion": answerer.model,
            "responseId": answerer.id,
        }
    )


def _tell_candidate(parts: list[dict[str, Any]], end: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, **end, "index": 0}


def _join(last: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Two parts as one, if both are text of the same kind and the second has no seal."""
    if not ("text" in last and "text" in part) or "thoughtSignature" in part:
        return None
    return {**last, "text": last["text"] + part["text"]} if last.get("thought") == part.get("thought") else None


def tell_usage(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    thought, cached = count_told(usage.told, THOUGHT), count_told(usage.told, CACHED)
    told = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": max(0, usage.output_tokens - thought),
        "totalTokenCount": usage.total_tokens or usage.input_tokens + usage.output_tokens,
    }
    told |= {"thoughtsTokenCount": thought} if thought else {}
    return told | {"cachedContentTokenCount": cached} if cached else told

"""Encode events as responses of the Messages wire, streamed or not.

    event: content_block_start
    data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"read",
           "input":{}}}

Strategy. A response is a list of blocks, numbered without a gap, with one open at a time. Events may interleave calls,
so a later block is buffered until the open one is complete: text, once something else follows; a call, when it has
ended or its arguments are complete. All deltas of a block share a prefix and a suffix around the escaped string.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

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
from toolglot.wires.anthropic_messages.errors import encode_failure
from toolglot.wires.anthropic_messages.ids import NAME, REDACTED, BlockPosition, Ids, write_signature
from toolglot.wires.anthropic_messages.response_decoder import FINISHES as READ_FINISHES
from toolglot.wires.json_fields import read_arguments, text_at
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.translation import CACHED, REASONED, find_count
from toolglot.wires.vendor_fields import level

STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
CACHES = ("cache_creation_input_tokens", "cache_read_input_tokens")
_BLOCK = level("type", "text", "thinking", "signature", "data", "id", "name", "input")
_TEXT = level("type", "text")
_GIVEN = {**_BLOCK, **level("tool_use_id", "is_error", "source", content=_TEXT)}
_TOOL = level("type", "name", "description", "input_schema")
KNOWN_REQUEST = level(system=_TEXT, tools=_TOOL, messages=level("role", content=_GIVEN))
"""The fields of messages and tools that the encoder of requests writes."""
_USAGE = level("input_tokens", "output_tokens", *CACHES)
_STOP = {"stop_reason": lambda reason: READ_FINISHES.get(reason, "stop")}
_MESSAGE = level("id", "type", "role", "model", content=_BLOCK, usage=_USAGE, **_STOP)
_DELTA = level("type", "text", "thinking", "signature", "partial_json", "citation", **_STOP)
KNOWN_FIELDS = _MESSAGE | level("index", "error", message=_MESSAGE, content_block=_BLOCK, delta=_DELTA)
"""The fields of an answer that this wire's encoder writes; see ``vendor_fields``."""
PING = b'event: ping\ndata: {"type":"ping"}\n\n'
STOP = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{'
END = b"}}\n\n"


class Block:
    """One content block: its start, its buffered deltas, and whether it is complete."""

    __slots__ = ("arguments", "complete", "kind", "opening", "prefix", "waiting")

    def __init__(self, kind: str, opening: Mapping[str, Any]) -> None:
        self.kind = kind
        self.opening = opening
        self.prefix = b""
        self.waiting: list[bytes] = []
        self.arguments: list[str] = []
        self.complete = False

    def may_close(self) -> bool:
        if self.complete or self.kind != "tool_use":
            return True
        try:
            json.loads("".join(self.arguments))
        except ValueError:
            return False
        return True


class StreamEncoder:
    """Encodes one streamed response."""

    def __init__(self, identity: ResponseIdentity, request: ClientRequest) -> None:
        self.ids = Ids(request.memory.get("ids", ()), identity.id)
        self.identity = identity
        self.begun = False
        self.numbered = 0
        self.open: Block | None = None
        self.queue: deque[Block] = deque()
        self.last: Block | None = None
        self.calls: dict[int, Block] = {}

    def write(self, events: Iterable[Event]) -> bytes:
        """Encode the events as joined server-sent events."""
        out: list[bytes] = []
        for event in events:
            step = _STEPS.get(type(event))
            if step is not None:
                if not self.begun and type(event) is not Failed:
                    self.begin(out)
                step(self, event, out)
        return b"".join(out)

    def resume(self, place: BlockPosition) -> None:
        """Continue after a beginning that was passed through."""
        self.begun, self.numbered = True, place.begun
        if place.kind:
            self.open = self.last = block = Block(place.kind, {})
            block.prefix = DELTA % (place.begun - 1)
            block.arguments.append("")
            self.calls[place.call] = block

    def heartbeat(self) -> bytes:
        """The wire has a ping event."""
        out: list[bytes] = []
        if not self.begun:
            self.begin(out)
        return b"".join((*out, PING))

    def begin(self, out: list[bytes]) -> None:
        self.begun = True
        message = _empty_message(self.identity) | {"usage": {"input_tokens": 0, "output_tokens": 0}}
        out += (b'event: message_start\ndata: {"type":"message_start","message":', encode(message), b"}\n\n")

    # -- events --------------------------------------------------------------------------------------------------------

    def add_text(self, event: TextDelta, out: list[bytes]) -> None:
        block = self.continue_or_add("text", {"type": "text", "text": ""}, out)
        self.put(block, b'"type":"text_delta","text":' + encode(event.text), out)

    def add_reasoning(self, event: ReasoningDelta, out: list[bytes]) -> None:
        block = self.continue_or_add("thinking", THINKING, out)
        self.put(block, b'"type":"thinking_delta","thinking":' + encode(event.text), out)

    def add_signature(self, event: ReasoningSigned, out: list[bytes]) -> None:
        if event.kind == REDACTED:
            block = self.add(Block("redacted", {"type": "redacted_thinking", "data": event.signature}), out)
        else:
            block = self.continue_or_add("thinking", THINKING, out)
            signature = write_signature(event.kind, event.signature)
            self.put(block, b'"type":"signature_delta","signature":' + encode(signature), out)
        self.complete(block, out)

    def start_call(self, event: CallStarted, out: list[bytes]) -> None:
        opening = {"type": "tool_use", "id": self.ids.give(event.id), "name": event.name, "input": {}}
        self.calls[event.index] = block = Block("tool_use", opening)
        self.add(block, out)

    def add_arguments(self, event: CallArguments, out: list[bytes]) -> None:
        block = self.calls[event.index]
        block.arguments.append(event.fragment)
        self.put(block, b'"type":"input_json_delta","partial_json":' + encode(event.fragment), out)

    def end_call(self, event: CallEnded, out: list[bytes]) -> None:
        block = self.calls[event.index]
        if not block.arguments:
            self.add_arguments(CallArguments(event.index, "{}"), out)
        self.complete(block, out)

    def carry(self, event: ProviderEvent, out: list[bytes]) -> None:
        """A block that only this wire knows, or a delta of such a kind (under the key ``delta``)."""
        if event.wire != NAME:
            return
        if "delta" not in event.data:
            self.add(Block(text_at(event.data, "type"), event.data), out)
        elif self.last is not None:
            self.put(self.last, encode(event.data["delta"])[1:-1], out)

    def finish(self, event: Finished, out: list[bytes]) -> None:
        while self.open or self.queue:
            self.close(out)
            self.advance(out)
        delta = {"stop_reason": STOPS.get(event.reason, "end_turn"), "stop_sequence": None}
        encoded = {"type": "message_delta", "delta": delta, "usage": _encode_usage(event.usage)}
        out += (b"event: message_delta\ndata: ", encode(encoded), b"\n\n", STOP)

    def fail(self, event: Failed, out: list[bytes]) -> None:
        """Open blocks stay open, so that no client takes a call for complete."""
        out.append(interject(event, begun=self.begun))

    # -- blocks --------------------------------------------------------------------------------------------------------

    def continue_or_add(self, kind: str, opening: Mapping[str, Any], out: list[bytes]) -> Block:
        """The last block if it has this kind and is not complete, or a new one."""
        last = self.last
        if last is not None and last.kind == kind and not last.complete:
            return last
        return self.add(Block(kind, opening), out)

    def add(self, block: Block, out: list[bytes]) -> Block:
        self.last = block
        self.queue.append(block)
        self.advance(out)
        return block

    def put(self, block: Block, delta: bytes, out: list[bytes]) -> None:
        if block is self.open:
            out += (block.prefix, delta, END)
        elif block.prefix:
            # arguments after a complete object: the block is closed already
            pass
        else:
            block.waiting.append(delta)

    def complete(self, block: Block, out: list[bytes]) -> None:
        block.complete = True
        if block is self.open:
            self.close(out)
            self.advance(out)

    def advance(self, out: list[bytes]) -> None:
        """Open buffered blocks while the block before them may be closed."""
        while self.queue and (self.open is None or self.open.may_close()):
            self.close(out)
            self.open = block = self.queue.popleft()
            encoded = {"type": "content_block_start", "index": self.numbered, "content_block": block.opening}
            out += (b"event: content_block_start\ndata: ", encode(encoded), b"\n\n")
            block.prefix = DELTA % self.numbered
            self.numbered += 1
            for delta in block.waiting:
                self.put(block, delta, out)
            if block.complete:
                self.close(out)

    def close(self, out: list[bytes]) -> None:
        if self.open is not None:
            encoded = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
            out.append(encoded % (self.numbered - 1))
            self.open = None


def interject(failure: Failed | None, *, begun: bool) -> bytes:
    """A heartbeat or a failure inside a relayed stream; it starts no second message."""
    if failure is None:
        return PING
    return b"event: error\ndata: " + encode_failure(failure.kind, failure.message) + b"\n\n"


THINKING = {"type": "thinking", "thinking": "", "signature": ""}
_STEPS: Mapping[type, Callable[[StreamEncoder, Any, list[bytes]], None]] = {
    TextDelta: StreamEncoder.add_text,
    ReasoningDelta: StreamEncoder.add_reasoning,
    ReasoningSigned: StreamEncoder.add_signature,
    CallStarted: StreamEncoder.start_call,
    CallArguments: StreamEncoder.add_arguments,
    CallEnded: StreamEncoder.end_call,
    ProviderEvent: StreamEncoder.carry,
    Finished: StreamEncoder.finish,
    Failed: StreamEncoder.fail,
}


def encode_response(events: Iterable[Event], identity: ResponseIdentity, request: ClientRequest) -> bytes:
    """Encode a non-streamed response; calls that never ended are left out."""
    content: list[dict[str, Any]] = []
    calls: dict[int, tuple[dict[str, Any], list[str]]] = {}
    cut: dict[int, dict[str, Any]] = {}
    ids = Ids(request.memory.get("ids", ()), identity.id)
    finished = Finished("stop")
    for event in events:
        match event:
            case TextDelta(text=text):
                _last(content, "text", {"type": "text", "text": ""})["text"] += text
            case ReasoningDelta(text=text):
                _last(content, "thinking", THINKING)["thinking"] += text
            case ReasoningSigned(signature=signature, kind=kind) if kind == REDACTED:
                content.append({"type": "redacted_thinking", "data": signature})
            case ReasoningSigned(signature=signature, kind=kind):
                _last(content, "thinking", THINKING)["signature"] = write_signature(kind, signature)
            case CallStarted(index=index):
                cut[index] = {"type": "tool_use", "id": ids.give(event.id), "name": event.name, "input": {}}
                calls[index] = (cut[index], [])
                content.append(cut[index])
            case CallArguments(index=index):
                calls[index][1].append(event.fragment)
            case CallEnded(index=index):
                call, fragments = calls[index]
                call["input"] = read_arguments("".join(fragments))
                del cut[index]
            case ProviderEvent(wire=wire, data=data) if wire == NAME and "delta" not in data:
                content.append(data)
            case Finished():
                finished = event
    encoded = [block for block in content if not any(block is call for call in cut.values())]
    stop = STOPS.get(finished.reason, "end_turn")
    return encode(
        _empty_message(identity) | {"content": encoded, "stop_reason": stop, "usage": _encode_usage(finished.usage)}
    )


def _last(content: list[dict[str, Any]], kind: str, opening: Mapping[str, Any]) -> dict[str, Any]:
    """The last block if it has this kind and no signature, or a new one."""
    if not content or content[-1]["type"] != kind or content[-1].get("signature"):
        content.append(dict(opening))
    return content[-1]


def _empty_message(identity: ResponseIdentity) -> dict[str, Any]:
    return {
        "id": f"msg_{identity.id}",
        "type": "message",
        "role": "assistant",
        "model": identity.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _encode_usage(usage: Usage | None) -> dict[str, Any]:
    """This wire counts cached input and reasoning apart."""
    usage = usage or Usage()
    caches = {key: usage.reported[key] for key in CACHES if isinstance(usage.reported.get(key), int)}
    if not caches and (cached := find_count(usage.reported, CACHED)):
        caches = {CACHES[1]: cached}
    given = max(0, usage.input_tokens - sum(caches.values()))
    encoded: dict[str, Any] = {"input_tokens": given, "output_tokens": usage.output_tokens, **caches}
    thought = find_count(usage.reported, REASONED)
    return encoded | {"output_tokens_details": {"thinking_tokens": thought}} if thought else encoded

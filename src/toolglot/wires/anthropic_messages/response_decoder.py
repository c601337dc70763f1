"""Decode responses of the Messages wire, streamed or not, into events.

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I'll "}}

Strategy. A non-streamed response is decoded as a stream of complete blocks. The wire ends a block also where the token
limit truncated it, so whether a call is complete follows from its arguments; if they are not JSON, the finish reason
decides whether the call was truncated or is rejected.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolglot.core.events import (
    CallArguments,
    CallEnded,
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
from toolglot.wires.anthropic_messages.errors import describe
from toolglot.wires.anthropic_messages.ids import NAME, REDACTED, REFERENCES, BlockPosition, read_signature
from toolglot.wires.call_ids import CallIds
from toolglot.wires.control_characters import ControlEscaper
from toolglot.wires.json_fields import count_at, dicts_in, end_call, find_fault, parse_object, text_at, write_arguments
from toolglot.wires.protocol import DecodedResponse, HandedOut
from toolglot.wires.sse import EventStream

FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
EVENT = b"event:"
NAMELESS = -1
"""The index of a call without a name, which cannot be made: its text is kept."""
INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Call:
    """A call being decoded: its index, its initial input, the fragments so far."""

    __slots__ = ("escaper", "index", "input", "pieces")

    def __init__(self, index: int, given: object) -> None:
        self.index = index
        self.input = given
        self.pieces: list[str] = []
        self.escaper = ControlEscaper()

    def add(self, fragment: str) -> str:
        """Add a fragment of the input; return it as valid JSON."""
        if not fragment.isprintable():
            fragment = self.escaper.escape(self.pieces, fragment)
        self.pieces.append(fragment)
        return fragment

    def is_complete(self) -> bool:
        try:
            return isinstance(json.loads("".join(self.pieces)), dict)
        except ValueError:
            return False

    def find_fault(self) -> Reason | None:
        return find_fault("".join(self.pieces))


class PayloadDecoder:
    """Decodes the JSON payloads of one response; ``whole``: it is not streamed."""

    whole = True

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.ids = CallIds(new_id)
        self.over = False
        self.finish_reason = ""
        self.usage: dict[str, Any] = {}
        self.blocks: dict[object, _Call] = {}
        self.signatures: dict[object, list[str]] = {}
        self.unfinished: list[_Call] = []
        self.calls = 0
        self.tidy = True
        self.place = BlockPosition()
        self.handed_out: HandedOut | None = None

    def read(self, data: bytes, events: list[Event]) -> None:
        payload = parse_object(data)
        if payload is None:
            text = data.decode(errors="replace")[:80]
            self.fail(events, "upstream_invalid", f"The upstream sent no reply but {text!r}.")
            return
        step = _STEPS.get(text_at(payload, "type"))
        if step is not None:
            step(self, payload, events)
        elif "error" in payload:
            self.read_error(payload, events)

    # -- the steps of a stream -----------------------------------------------------------------------------------------

    def start(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        message = payload.get("message")
        message = message if isinstance(message, dict) else {}
        events.append(Started(text_at(message, "id"), text_at(message, "model")))
        self.tidy = self.tidy and self.place.begun < 0
        self.place = BlockPosition(0)
        self.count(message)
        self.note_ids({"container": message.get("container")})

    def start_block(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        block = payload.get("content_block")
        if not isinstance(block, dict):
            self.tidy = False
            return
        self.step_to(payload.get("index"), block)
        match text_at(block, "type"):
            case "text":
                self.add_text(TextDelta, text_at(block, "text"), events)
            case "thinking":
                self.add_text(ReasoningDelta, text_at(block, "thinking"), events)
                self.sign(payload, text_at(block, "signature"))
            case "redacted_thinking":
                events.append(ReasoningSigned(text_at(block, "data"), REDACTED))
            case "tool_use":
                self.start_call(payload.get("index"), block, events)
            case kind:
                if not kind.startswith("mcp_"):  # others wrote it
                    self.note_ids(block)
                events.append(ProviderEvent(NAME, block))

    def start_call(self, index: object, block: Mapping[str, Any], events: list[Event]) -> None:
        given, name = text_at(block, "id"), text_at(block, "name")
        self.blocks[index] = _Call(self.calls if name else NAMELESS, block.get("input"))
        self.tidy = self.tidy and not self.ids.repeats(given)
        if name:
            events.append(CallStarted(self.calls, self.ids.choose(given), name))
            self.calls += 1

    def step_to(self, index: object, block: Mapping[str, Any]) -> None:
        """A block starts; in a tidy response the previous one has ended and the indexes have no gap."""
        kind, call = text_at(block, "type"), -1
        if kind == "tool_use":
            call = self.calls
            given = isinstance(block.get("input"), dict) if self.whole else not block.get("input")
            self.tidy = self.tidy and bool(text_at(block, "id") and text_at(block, "name")) and given
        self.tidy = self.tidy and not self.place.kind and index == self.place.begun
        self.place = BlockPosition(self.place.begun + 1, kind, call)

    def check(self, payload: Mapping[str, Any]) -> None:
        """Check that a delta or an end belongs to the open block."""
        if not self.place.kind or payload.get("index") != self.place.begun - 1:
            self.tidy = False

    def sign(self, payload: Mapping[str, Any], signature: str) -> None:
        if signature:
            self.signatures.setdefault(payload.get("index"), []).append(signature)

    def add_text(self, kind: type[TextDelta] | type[ReasoningDelta], text: str, events: list[Event]) -> None:
        if text:
            events.append(kind(text))

    def continue_block(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        delta = payload.get("delta")
        self.check(payload)
        if not isinstance(delta, dict):
            return
        match delta.get("type"):
            case "text_delta":
                self.add_text(TextDelta, text_at(delta, "text"), events)
            case "thinking_delta":
                self.add_text(ReasoningDelta, text_at(delta, "thinking"), events)
            case "signature_delta":
                self.sign(payload, text_at(delta, "signature"))
            case "input_json_delta":
                call, piece = self.blocks.get(payload.get("index")), text_at(delta, "partial_json")
                if call is not None and piece:
                    fragment = call.add(piece)
                    self.tidy = self.tidy and fragment == piece
                    events.append(TextDelta(piece) if call.index == NAMELESS else CallArguments(call.index, fragment))
                elif call is None and piece:
                    events.append(ProviderEvent(NAME, {"delta": delta}))
            case _:
                events.append(ProviderEvent(NAME, {"delta": delta}))

    def stop_block(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        self.check(payload)
        self.place = BlockPosition(self.place.begun)
        call = self.blocks.pop(payload.get("index"), None)
        if call is not None:
            self.stop_call(call, events)
        kind, signature = read_signature("".join(self.signatures.pop(payload.get("index"), ())))
        if signature:
            events.append(ReasoningSigned(signature, kind))

    def stop_call(self, call: _Call, events: list[Event]) -> None:
        if call.index == NAMELESS:
            events += [TextDelta(write_arguments(call.input))] if call.input and not call.pieces else []
            return
        if not call.pieces:
            # some servers send the whole input with the start of the block
            call.pieces.append(write_arguments(call.input))
            events.append(CallArguments(call.index, call.pieces[0]))
        if call.is_complete():
            events.append(CallEnded(call.index))
        else:
            self.unfinished.append(call)
            self.tidy = False

    def sum_up(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        delta = payload.get("delta")
        reason = text_at(delta, "stop_reason") if isinstance(delta, dict) else ""
        self.finish_reason = reason or self.finish_reason
        self.count(payload)
        self.note_ids({"container": delta.get("container")} if isinstance(delta, dict) else {})

    def note_ids(self, holder: Mapping[str, object]) -> None:
        """Note what the upstream stores for this answer: its container, and files that its tools have made."""
        if found := REFERENCES.find(holder):
            known = self.handed_out.ids if self.handed_out else ()
            self.handed_out = HandedOut(ids=(*known, *(one.id for one in found)))

    def read_error(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        self.fail(events, *describe(payload))

    def end(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        """The upstream has ended the response."""
        if self.over:
            return
        self.over = True
        self.tidy = self.tidy and bool(self.finish_reason)
        finish = FINISHES.get(self.finish_reason, "stop")
        if finish != "length":
            self.stop_open_calls(finish, events)
            faults = {call.index: call.find_fault() for call in (*self.unfinished, *self.blocks.values())}
            stopped = [call.index for call in self.unfinished]
            if finish == "content_filter":
                stopped = [index for index in stopped if faults[index] is not Reason.TRUNCATED]
            events += [end_call(index, faults[index]) for index in stopped]
            if Reason.TRUNCATED in faults.values() and finish != "content_filter":
                finish, self.tidy = "length", False
        events.append(Finished(finish, _read_usage(self.usage) if self.usage else None))

    def stop_open_calls(self, finish: str, events: list[Event]) -> None:
        """End the calls whose blocks the upstream left open although it ended its answer with a reason."""
        self.blocks = {at: call for at, call in self.blocks.items() if call.index != NAMELESS}
        if not self.finish_reason or finish == "content_filter":
            return
        for index in [index for index, call in self.blocks.items() if not call.pieces or call.is_complete()]:
            self.tidy = False
            self.stop_call(self.blocks.pop(index), events)

    def read_message(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        """Decode a non-streamed response."""
        self.start({"message": payload}, events)
        content = payload.get("content")
        if isinstance(content, str):
            content, self.tidy = [{"type": "text", "text": content}], False
        for at, block in enumerate(dicts_in(content)):
            self.start_block({"index": at, "content_block": block}, events)
            self.stop_block({"index": at}, events)
        self.sum_up({"delta": payload}, events)
        self.end(payload, events)

    # -- shared --------------------------------------------------------------------------------------------------------

    def count(self, holder: Mapping[str, Any]) -> None:
        usage = holder.get("usage")
        if isinstance(usage, dict):
            self.usage |= {key: value for key, value in usage.items() if value is not None}

    def fail(self, events: list[Event], kind: str, message: str) -> None:
        self.over, self.tidy = True, False
        events.append(Failed(kind, message))


_STEPS: Mapping[str, Callable[[PayloadDecoder, Mapping[str, Any], list[Event]], None]] = {
    "message_start": PayloadDecoder.start,
    "content_block_start": PayloadDecoder.start_block,
    "content_block_delta": PayloadDecoder.continue_block,
    "content_block_stop": PayloadDecoder.stop_block,
    "message_delta": PayloadDecoder.sum_up,
    "message_stop": PayloadDecoder.end,
    "message": PayloadDecoder.read_message,
    "error": PayloadDecoder.read_error,
}


class StreamDecoder(PayloadDecoder):
    """Decodes a streamed response."""

    whole = False
    read_text = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        super().__init__(new_id)
        self.stream = EventStream()

    def feed(self, piece: bytes) -> list[Event]:
        if self.place.begun < 0 and not self.stream.waiting and not EVENT.startswith(piece[: len(EVENT)]):
            self.tidy = False  # clients of this wire need event names
        return self.take(self.stream.feed(piece))

    @property
    def between(self) -> bool:
        """A signature is emitted with the end of its block."""
        return not (self.finish_reason or self.stream.waiting or self.signatures)

    def measure(self, pieces: Sequence[bytes]) -> int:
        return 0 if self.finish_reason or self.signatures else self.stream.measure(pieces)

    def close(self) -> list[Event]:
        """End of the connection. A response without its own end was truncated and fails."""
        events = self.take(self.stream.close())
        self.tidy = self.tidy and self.over
        if self.finish_reason:
            self.end({}, events)
        elif not self.over:
            self.fail(events, "upstream_closed", "The upstream closed the connection in the middle of its answer.")
        return events

    def take(self, pieces: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for data in pieces:
            if not self.over and data != b"[DONE]":
                self.read(data, events)
        return events


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """Decode a non-streamed response."""
    reader = PayloadDecoder(new_id)
    events: list[Event] = []
    reader.read(body, events)
    if not reader.over:
        reader.fail(events, "upstream_invalid", "The upstream's answer is no message.")
    tidy = reader.tidy and bool(reader.finish_reason)
    return DecodedResponse(events, tidy, handed_out=reader.handed_out)


def _read_usage(payload: Mapping[str, Any]) -> Usage:
    """This wire counts cached input apart; ``Usage`` includes it."""
    given, made = sum(count_at(payload, key) for key in INPUTS), count_at(payload, "output_tokens")
    return Usage(input_tokens=given, output_tokens=made, total_tokens=given + made, reported=payload)

"""Decode responses of the Responses wire, streamed or not, into events.

    data: {"type":"response.output_item.added","output_index":1,
           "item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"read","arguments":""}}

Strategy. Deltas are emitted as they arrive. The end of an item emits whatever no delta contained, and the end of the
response whatever no item contained, so servers may leave out steps. A non-streamed response is decoded as the end of a
response.
"""

from __future__ import annotations

import json
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
from toolglot.wires.control_characters import ControlEscaper
from toolglot.wires.json_fields import count_at, dicts_in, end_call, find_fault, parse_object, text_at, write_arguments
from toolglot.wires.openai_responses.errors import describe, read_failure
from toolglot.wires.openai_responses.previous_responses import list_ids
from toolglot.wires.openai_responses.request_decoder import NAME
from toolglot.wires.openai_responses.stream_position import PositionTracker, StreamPosition
from toolglot.wires.openai_responses.tools import INPUT, flatten_name
from toolglot.wires.protocol import DecodedResponse, HandedOut
from toolglot.wires.sse import EventStream
from toolglot.wires.translation import table_at, unwrap_signature

OPENING, CLOSING = f'{{"{INPUT}":"', '"}'
EVENT = b"event:"
CUT = {"max_output_tokens": "length", "content_filter": "content_filter"}


class PayloadDecoder:
    """Decodes the JSON payloads of one response; ``whole``: it is not streamed."""

    whole = False

    def __init__(self, new_id: Callable[[], str]) -> None:
        self.ids = CallIds(new_id)
        self.started = False
        self.over = False
        self.tidy = True
        self.handed_out: HandedOut | None = None
        self.with_deltas: set[object] = set()
        self.ended: set[object] = set()
        self.calls: dict[object, int] = {}
        self.filled: dict[int, list[str]] = {}
        self.cut = False
        self.open: dict[int, bool] = {}
        self.escapers: dict[int, ControlEscaper] = {}
        self.channel = ""

    def read(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        """Decode one step."""
        taken = _STEPS.get(text_at(payload, "type"))
        if taken is not None and not self.over:
            taken(self, payload, events)

    def start(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        if not self.started:
            self.started = True
            response = table_at(payload, "response")
            events.append(Started(text_at(response, "id"), text_at(response, "model")))

    # -- deltas --------------------------------------------------------------------------------------------------------

    def add_text(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        if text := text_at(payload, "delta"):
            self.with_deltas.add(_key(payload))
            events.append(TextDelta(text))

    def add_reasoning(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        """Reasoning may arrive in full and as a summary; only the first of both is emitted."""
        channel = text_at(payload, "type").partition(".")[2].partition("_text")[0]
        self.channel = self.channel or channel
        if channel == self.channel and (text := text_at(payload, "delta")):
            self.with_deltas.add(_key(payload))
            events.append(ReasoningDelta(text))

    def separate_reasoning(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        if payload.get("summary_index") and _key(payload) in self.with_deltas and self.channel == "reasoning_summary":
            events.append(ReasoningDelta("\n\n"))

    def add_arguments(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        index = self.calls.get(_key(payload))
        text = text_at(payload, "delta")
        if index is None or not text:
            return
        if self.open.get(index):
            text = _escape(text)
        self.fill(index, text, events)

    def fill(self, index: int, text: str, events: list[Event]) -> None:
        pieces = self.filled.setdefault(index, [])
        if not text.isprintable():
            given, text = text, self.escapers.setdefault(index, ControlEscaper()).escape(pieces, text)
            self.tidy = self.tidy and text == given
        pieces.append(text)
        events.append(CallArguments(index, text))

    # -- items ---------------------------------------------------------------------------------------------------------

    def add_item(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        item = table_at(payload, "item")
        if item.get("type") in ("function_call", "custom_tool_call"):
            self.start_call(item, _key(payload), events)

    def start_call(self, item: Mapping[str, Any], key: object, events: list[Event]) -> int | None:
        """The index of the call; None while it has no name."""
        index = self.calls.get(key)
        if index is None:
            name, given = flatten_name(text_at(item, "namespace"), text_at(item, "name")), text_at(item, "call_id")
            self.tidy = self.tidy and bool(name) and (not self.whole or bool(given)) and not self.ids.repeats(given)
            if not name:
                return None
            index = self.calls[key] = len(self.calls)
            raw = self.open[index] = item.get("type") == "custom_tool_call"
            events.append(CallStarted(index, self.ids.choose(given), name))
            if raw:
                events.append(CallArguments(index, OPENING))
        return index

    def end_item(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        item, key = table_at(payload, "item"), _key(payload)
        if key in self.ended:
            return
        self.ended.add(key)
        taken = _ITEMS.get(text_at(item, "type"))
        if taken is not None:
            taken(self, item, key, events)
        elif item:
            events.append(ProviderEvent(NAME, item))

    def end_call(self, item: Mapping[str, Any], key: object, events: list[Event]) -> None:
        index = self.start_call(item, key, events)
        if index is None:
            # a call without a name cannot be made; keep its text
            rest = item.get("input") or item.get("arguments")
            events += [TextDelta(write_arguments(rest))] if rest else []
            return
        if index not in self.filled:
            rest = item.get("input" if self.open[index] else "arguments")
            text = write_arguments(rest) if rest else ""
            if text:
                self.tidy = self.tidy and self.whole
                self.fill(index, _escape(text) if self.open[index] else text, events)
        if item.get("status") != "incomplete":
            self.close_call(index, events)

    def close_call(self, index: int, events: list[Event]) -> None:
        """The server ends a call; its arguments may still be truncated."""
        raw = self.open.pop(index)
        fault = None if raw else find_fault("".join(self.filled.get(index, ())))
        self.tidy = self.tidy and fault is None
        self.cut = self.cut or fault is Reason.TRUNCATED
        if raw or index not in self.filled:
            events.append(CallArguments(index, CLOSING if raw else "{}"))
        events.append(end_call(index, fault))

    def end_message(self, item: Mapping[str, Any], key: object, events: list[Event]) -> None:
        if key not in self.with_deltas:
            parts = dicts_in(item.get("content"))
            text = "".join(text_at(part, "text") or text_at(part, "refusal") for part in parts)
            self.tidy = self.tidy and (self.whole or not text)
            events += [TextDelta(text)] if text else []

    def end_reasoning(self, item: Mapping[str, Any], key: object, events: list[Event]) -> None:
        if key not in self.with_deltas:
            listed = dicts_in(item.get("summary")) or dicts_in(item.get("content"))
            text = "\n\n".join(text_at(part, "text") for part in listed)
            self.tidy = self.tidy and (self.whole or not text)
            events += [ReasoningDelta(text)] if text else []
        if signature := text_at(item, "encrypted_content"):
            events.append(ReasoningSigned(*unwrap_signature(signature, NAME)))

    # -- end of response -----------------------------------------------------------------------------------------------

    def complete(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        self.start(payload, events)
        response = table_at(payload, "response")
        stepped = bool(self.ended or self.with_deltas or self.calls)
        for at, item in enumerate(response.get("output") or ()):
            if isinstance(item, dict) and not stepped:
                self.end_item({"output_index": at, "item": item}, events)
        reason = text_at(table_at(response, "incomplete_details"), "reason")
        finish = CUT.get(reason, "length" if text_at(payload, "type") == "response.incomplete" else "")
        self.tidy = self.tidy and (stepped or self.whole or not response.get("output")) and not self.open
        if not finish:
            for index in list(self.open):
                self.close_call(index, events)
        self.over = True
        events.append(Finished(finish or self.conclude(), _read_usage(response.get("usage"))))
        self.sum_up(response)

    def conclude(self) -> str:
        return "length" if self.cut else "tool_calls" if self.calls else "stop"

    def sum_up(self, response: Mapping[str, Any]) -> None:
        given, items = text_at(response, "id"), dicts_in(response.get("output"))
        is_stored = response.get("store") is True
        ids = [given, *(text_at(item, "id") for item in items)] if is_stored else []
        ids += list_ids(items)
        self.handed_out = HandedOut(None if is_stored else (given, items), tuple(filter(None, ids)))

    def fail(self, payload: Mapping[str, Any], events: list[Event]) -> None:
        response = table_at(payload, "response")
        code, message = read_failure(response) if response else describe(payload)[:2]
        self.over, self.tidy = True, False
        events.append(Failed(code, message))


_Step = Callable[[PayloadDecoder, Mapping[str, Any], list[Event]], None]
_STEPS: Mapping[str, _Step] = {
    "response.created": PayloadDecoder.start,
    "response.in_progress": PayloadDecoder.start,
    "response.output_text.delta": PayloadDecoder.add_text,
    "response.refusal.delta": PayloadDecoder.add_text,
    "response.reasoning_summary_part.added": PayloadDecoder.separate_reasoning,
    "response.reasoning_summary_text.delta": PayloadDecoder.add_reasoning,
    "response.reasoning_text.delta": PayloadDecoder.add_reasoning,
    "response.output_item.added": PayloadDecoder.add_item,
    "response.function_call_arguments.delta": PayloadDecoder.add_arguments,
    "response.custom_tool_call_input.delta": PayloadDecoder.add_arguments,
    "response.output_item.done": PayloadDecoder.end_item,
    "response.completed": PayloadDecoder.complete,
    "response.incomplete": PayloadDecoder.complete,
    "response.failed": PayloadDecoder.fail,
    "error": PayloadDecoder.fail,
}
_ITEMS: Mapping[str, Callable[[PayloadDecoder, Mapping[str, Any], object, list[Event]], None]] = {
    "message": PayloadDecoder.end_message,
    "reasoning": PayloadDecoder.end_reasoning,
    "function_call": PayloadDecoder.end_call,
    "custom_tool_call": PayloadDecoder.end_call,
}


def _key(payload: Mapping[str, Any]) -> object:
    """The key of the item that a step belongs to."""
    at = payload.get("output_index")
    return at if at is not None else payload.get("item_id") or table_at(payload, "item").get("id")


class WholeDecoder(PayloadDecoder):
    whole = True


class StreamDecoder(PayloadDecoder):
    """Decodes a streamed response."""

    finish_reason = None
    read_text = None

    def __init__(self, new_id: Callable[[], str]) -> None:
        super().__init__(new_id)
        self.stream = EventStream()
        self.tracker = PositionTracker()

    @property
    def place(self) -> StreamPosition:
        return self.tracker.place

    @property
    def between(self) -> bool:
        return self.tracker.settled and not self.stream.waiting

    def measure(self, pieces: Sequence[bytes]) -> int:
        return self.stream.measure(pieces) if self.tracker.settled else 0

    def feed(self, piece: bytes) -> list[Event]:
        if not self.started and not self.stream.waiting and not EVENT.startswith(piece[: len(EVENT)]):
            self.tidy = False  # clients of this wire need event names
        events: list[Event] = []
        for data in self.stream.feed(piece):
            self.accept(data, events)
        return events

    def accept(self, data: bytes, events: list[Event]) -> None:
        if data.strip() == b"[DONE]":
            return
        payload = _parse(data)
        if payload.get("error") and "type" not in payload:
            payload = {"type": "error", **payload}
        if self.tidy:
            self.tracker.follow(payload)
            self.tidy = self.tracker.tidy
        self.read(payload, events)

    def close(self) -> list[Event]:
        """End of the connection. A response without its own end was truncated and fails."""
        events: list[Event] = []
        for data in self.stream.close():
            self.accept(data, events)
        if not self.over:
            self.over, self.tidy = True, False
            problem = "The upstream closed the connection in the middle of its answer."
            events.append(Failed("upstream_closed", problem))
        return events


def decode_response(body: bytes, new_id: Callable[[], str]) -> DecodedResponse:
    """Decode a non-streamed response."""
    payload = _parse(body)
    reader, events = WholeDecoder(new_id), list[Event]()
    status = payload.get("status")
    if payload.get("type") == "error" or (payload.get("error") and status in (None, "failed")):
        reader.fail({"response": payload} if payload.get("object") == "response" else payload, events)
        return DecodedResponse(events)
    if status not in (None, "completed", "incomplete"):
        return DecodedResponse(
            [Failed("upstream_closed", f"The upstream's answer is not finished: its status is {status!r}.")]
        )
    reader.complete({"type": f"response.{payload.get('status', 'completed')}", "response": payload}, events)
    if "output" not in payload:
        return DecodedResponse([Failed("upstream_invalid", "The upstream's answer holds neither text nor calls.")])
    called = [item for item in dicts_in(payload["output"]) if item.get("type") == "function_call"]
    functions = frozenset([text_at(item, "name") for item in called if not item.get("namespace")])
    return DecodedResponse(events, reader.tidy and status is not None, functions, reader.handed_out)


def _escape(text: str) -> str:
    """Escape raw text for a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _parse(data: bytes) -> dict[str, Any]:
    payload = parse_object(data)
    if payload is not None:
        return payload
    text = data.decode(errors="replace")[:80]
    return {"type": "error", "code": "upstream_invalid", "message": f"The upstream sent no reply but {text!r}."}


def _read_usage(payload: object) -> Usage | None:
    if not isinstance(payload, dict):
        return None
    given, made, total = (count_at(payload, key) for key in ("input_tokens", "output_tokens", "total_tokens"))
    return Usage(input_tokens=given, output_tokens=made, total_tokens=total, reported=payload)

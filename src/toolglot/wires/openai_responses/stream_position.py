"""Track the position in a Responses stream, so that an encoder can continue it in place of the upstream.

Strategy. Every added or finished item and every delta is appended to a list that only grows, so a position is a length.
A response can be resumed between two items or between deltas of a text; not while an item is being opened or closed,
nor inside items without deltas of their own here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, field

from toolglot.wires.json_fields import text_at

CALL = "function_call"
TEXT_ITEMS = ("message", "reasoning")


class StreamMark(NamedTuple):
    """A change of the item at an index: it was added or done (the item), or got a delta (a text)."""

    at: int
    change: Mapping[str, Any] | str
    done: bool = False


class StreamPosition(NamedTuple):
    """Position in a response: the next sequence number, the response object, and the changes of its items."""

    number: int
    response: Mapping[str, Any]
    marks: list[StreamMark]
    length: int


class PositionTracker(Struct):
    """The state of a stream. ``tidy``: nothing unusual so far; ``settled``: an encoder can resume here."""

    tidy: bool = True
    settled: bool = False
    number: int = 0
    response: Mapping[str, Any] = field(default_factory=dict)
    marks: list[StreamMark] = field(default_factory=list)
    items: int = 0
    text_open: bool = False

    @property
    def place(self) -> StreamPosition:
        return StreamPosition(self.number, self.response, self.marks, len(self.marks))

    def follow(self, payload: Mapping[str, Any]) -> None:
        number = payload.get("sequence_number")
        if not isinstance(number, int):
            self.tidy = False
            return
        self.number = number + 1
        step = _STEPS.get(text_at(payload, "type"))
        if step is not None:
            step(self, payload)

    def begin(self, payload: Mapping[str, Any]) -> None:
        response = payload.get("response")
        self.tidy = self.tidy and isinstance(response, dict)
        self.response = response if isinstance(response, dict) else {}
        self.settled = True

    def add(self, payload: Mapping[str, Any]) -> None:
        item, at = payload.get("item"), payload.get("output_index")
        if not isinstance(item, dict) or at != self.items or not text_at(item, "id") or self.text_open:
            self.tidy = False
            return
        kind = text_at(item, "type")
        if kind == CALL and not (text_at(item, "call_id") and text_at(item, "name")):
            self.tidy = False
        self.items += 1
        self.text_open = kind in TEXT_ITEMS
        self.marks.append(StreamMark(at, item))
        self.settled = kind == CALL

    def add_delta(self, payload: Mapping[str, Any]) -> None:
        at, text = payload.get("output_index"), payload.get("delta")
        if not isinstance(at, int) or at >= self.items or not isinstance(text, str):
            self.tidy = False
            return
        self.marks.append(StreamMark(at, text))
        self.settled = True

    def part(self, payload: Mapping[str, Any]) -> None:
        """Only messages with a single text can be resumed."""
        part = payload.get("part")
        if payload.get("content_index") or not isinstance(part, dict) or part.get("type") != "output_text":
            self.tidy = False
        self.settled = False

    def wait(self, payload: Mapping[str, Any]) -> None:
        self.settled = False

    def end(self, payload: Mapping[str, Any]) -> None:
        item, at = payload.get("item"), payload.get("output_index")
        if not isinstance(item, dict) or not isinstance(at, int) or at >= self.items:
            self.tidy = False
            return
        if text_at(item, "type") in TEXT_ITEMS:
            self.text_open = False
        self.marks.append(StreamMark(at, item, done=True))
        self.settled = True


_STEPS: Mapping[str, Callable[[PositionTracker, Mapping[str, Any]], None]] = {
    "response.created": PositionTracker.begin,
    "response.output_item.added": PositionTracker.add,
    "response.output_item.done": PositionTracker.end,
    "response.output_text.delta": PositionTracker.add_delta,
    "response.reasoning_summary_text.delta": PositionTracker.add_delta,
    "response.reasoning_text.delta": PositionTracker.add_delta,
    "response.function_call_arguments.delta": PositionTracker.add_delta,
    "response.content_part.added": PositionTracker.part,
    "response.custom_tool_call_input.delta": PositionTracker.wait,
    "response.output_text.done": PositionTracker.wait,
    "response.content_part.done": PositionTracker.wait,
    "response.reasoning_summary_part.added": PositionTracker.wait,
    "response.reasoning_summary_text.done": PositionTracker.wait,
    "response.reasoning_summary_part.done": PositionTracker.wait,
    "response.reasoning_text.done": PositionTracker.wait,
    "response.function_call_arguments.done": PositionTracker.wait,
}

"""The steps that an upstream has taken in a stream of the Responses wire, as far as a writer must know them to take the
next one in its place.

Strategy. Every item that was added or done and every delta is kept in a row that only grows, so a place is a length. An
answer may be taken up between two items, or while the text of one is coming; not while an item is being opened or
closed, nor inside of items that have no deltas of their own here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolglot.wires.json_fields import text_at

CALL = "function_call"
TALKING = ("message", "reasoning")


class StreamMark(NamedTuple):
    """Something that happened to the item at a place: it was added or done (the item), or said more (a text)."""

    at: int
    told: Mapping[str, Any] | str
    done: bool = False


class StreamPosition(NamedTuple):
    """How far an answer has come: the number of the next step, the response, and what happened to its items."""

    number: int
    response: Mapping[str, Any]
    marks: list[StreamMark]
    length: int


@dataclass(slots=True)
class PositionTracker:
    """What was told so far. ``tidy``: nothing unusual; ``settled``: somebody else could go on from here."""

    tidy: bool = True
    settled: bool = False
    number: int = 0
    response: Mapping[str, Any] = field(default_factory=dict)
    marks: list[StreamMark] = field(default_factory=list)
    items: int = 0
    talking: bool = False

    @property
    def place(self) -> StreamPosition:
        return StreamPosition(self.number, self.response, self.marks, len(self.marks))

    def follow(self, told: Mapping[str, Any]) -> None:
        number = told.get("sequence_number")
        if not isinstance(number, int):
            self.tidy = False
            return
        self.number = number + 1
        step = _STEPS.get(text_at(told, "type"))
        if step is not None:
            step(self, told)

    def begin(self, told: Mapping[str, Any]) -> None:
        response = told.get("response")
        self.tidy = self.tidy and isinstance(response, dict)
        self.response = response if isinstance(response, dict) else {}
        self.settled = True

    def add(self, told: Mapping[str, Any]) -> None:
        item, at = told.get("item"), told.get("output_index")
        if not isinstance(item, dict) or at != self.items or not text_at(item, "id") or self.talking:
            self.tidy = False
            return
        kind = text_at(item, "type")
        if kind == CALL and not (text_at(item, "call_id") and text_at(item, "name")):
            self.tidy = False
        self.items += 1
        self.talking = kind in TALKING
        self.marks.append(StreamMark(at, item))
        self.settled = kind == CALL

    def say(self, told: Mapping[str, Any]) -> None:
        at, text = told.get("output_index"), told.get("delta")
        if not isinstance(at, int) or at >= self.items or not isinstance(text, str):
            self.tidy = False
            return
        self.marks.append(StreamMark(at, text))
        self.settled = True

    def part(self, told: Mapping[str, Any]) -> None:
        """Only messages of one text can be taken up."""
        part = told.get("part")
        if told.get("content_index") or not isinstance(part, dict) or part.get("type") != "output_text":
            self.tidy = False
        self.settled = False

    def wait(self, told: Mapping[str, Any]) -> None:
        self.settled = False

    def end(self, told: Mapping[str, Any]) -> None:
        item, at = told.get("item"), told.get("output_index")
        if not isinstance(item, dict) or not isinstance(at, int) or at >= self.items:
            self.tidy = False
            return
        if text_at(item, "type") in TALKING:
            self.talking = False
        self.marks.append(StreamMark(at, item, done=True))
        self.settled = True


_STEPS: Mapping[str, Callable[[PositionTracker, Mapping[str, Any]], None]] = {
    "response.created": PositionTracker.begin,
    "response.output_item.added": PositionTracker.add,
    "response.output_item.done": PositionTracker.end,
    "response.output_text.delta": PositionTracker.say,
    "response.reasoning_summary_text.delta": PositionTracker.say,
    "response.reasoning_text.delta": PositionTracker.say,
    "response.function_call_arguments.delta": PositionTracker.say,
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

"""Texts that recovery appends to tool results: where they belong, and the messages with them.

An annotation depends only on the messages up to its result, so a later request with the same history has the same
annotations, and the prompt stays stable from turn to turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from toolglot.core.conversation import Message, Part, Text, ToolCall, ToolResult


class Annotation(Struct, frozen=True, kw_only=True):
    """A text for the result at ``part`` of the message ``at``. ``note`` is for the record."""

    at: int
    part: int
    text: str
    note: str


class Step(Struct):
    """A turn with calls: each call with its result, and the position of the results."""

    calls: list[ToolCall] = field(default_factory=list)
    results: dict[str, ToolResult] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


def list_steps(messages: Sequence[Message]) -> Iterator[Step | None]:
    """The turns with calls of a healed history, in order; None for an answer without calls."""
    step: Step | None = None
    for at, message in enumerate(messages):
        if message.role == "assistant":
            if step is not None:
                yield step
                step = None
            calls = list(message.calls)
            if calls:
                step = Step(calls)
            else:
                yield None
        elif message.role == "tool" and step is not None:
            for number, part in enumerate(message.parts):
                if isinstance(part, ToolResult):
                    step.results[part.call_id] = part
                    step.places[part.call_id] = at, number
    if step is not None:
        yield step


def text_of(result: ToolResult) -> str:
    return "".join([part.text for part in result.content if isinstance(part, Text)])


def read_arguments(call: ToolCall) -> Mapping[str, object]:
    """The arguments of a call; empty if they are not a JSON object."""
    try:
        arguments = msgspec.json.decode(call.arguments.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


def append_to_result(result: ToolResult, text: str) -> ToolResult:
    """The result with more text, in its last part if that is text: many servers take a single text only."""
    *before, last = result.content or (Text(""),)
    if isinstance(last, Text):
        return replace(result, content=(*before, Text(f"{last.text}\n\n{text}" if last.text else text)))
    return replace(result, content=(*before, last, Text(text)))


def annotate(messages: Sequence[Message], annotations: Iterable[Annotation]) -> tuple[Message, ...]:
    """The messages with these texts at the end of their results."""
    annotated = list(messages)
    for one in annotations:
        parts: list[Part] = list(annotated[one.at].parts)
        result = parts[one.part]
        if isinstance(result, ToolResult):
            parts[one.part] = append_to_result(result, one.text)
            annotated[one.at] = Message("tool", tuple(parts))
    return tuple(annotated)


def find_last_turn(messages: Sequence[Message]) -> int:
    """Where the last answer stands; -1 if there is none."""
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "assistant"), -1)

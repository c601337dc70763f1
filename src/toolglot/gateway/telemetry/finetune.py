"""Training examples from stored records, in OpenAI's format for fine-tuning.

An example is the client's request in the form of Chat Completions, whatever its wire, and the answer as the client got
it: ``{"messages": [...], "tools": [...]}``.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import count
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Part, ProviderPart, Reasoning, Text, ToolCall
from toolglot.core.errors import ToolglotError
from toolglot.core.events import CallEnded, Event, Failed, Finished
from toolglot.gateway.recovery.history import heal_history
from toolglot.reading.reader import collect
from toolglot.store.interface import OK, RecordRow
from toolglot.wires import all_wires, openai_chat
from toolglot.wires.protocol import SUCCESS_REASONS, ClientRequest, Wire
from toolglot.wires.translation import drop_empty_texts

EXAMPLE_FIELDS: Final = ("messages", "tools", "parallel_tool_calls")


class Skipped(StrEnum):
    """Why a record makes no example."""

    NOT_ANSWERED = "not answered"
    NO_BODIES = "no bodies"
    INCOMPLETE = "incomplete or truncated"
    REFERENCE = "refers to an earlier answer"
    FOREIGN_PARTS = "has parts that only its wire knows"


def make_example(row: RecordRow) -> dict[str, object] | Skipped:
    """The example of a record that was read with its bodies, or why there is none."""
    if row.outcome != OK:
        return Skipped.NOT_ANSWERED
    if not row.bodies.get("request") or not row.bodies.get("answer"):
        return Skipped.NO_BODIES
    wire = all_wires()[row.wire]
    try:
        request: ClientRequest = wire.decode_request(row.bodies["request"], {"model": row.model})
        answer = _read_answer(row, wire)
        healed = heal_history(request.conversation.messages)
    except (ToolglotError, ValueError, RecursionError):
        return Skipped.INCOMPLETE
    if request.same_wire_only is not None:
        return Skipped.REFERENCE
    if healed.healings:
        return Skipped.INCOMPLETE
    conversation, messages = request.conversation, healed.messages
    if any(isinstance(part, ProviderPart) for message in messages for part in message.parts):
        return Skipped.FOREIGN_PARTS
    if answer is None:
        return Skipped.INCOMPLETE
    messages = (*drop_empty_texts(_without_reasoning(messages)), answer)
    encoded = openai_chat.WIRE.encode_request(
        Conversation(conversation.model, messages, conversation.tools, sampling=conversation.sampling),
        stream=False,
        wants_usage=False,
    )
    fields = msgspec.json.decode(encoded)
    return {name: fields[name] for name in EXAMPLE_FIELDS if name in fields}


def _without_reasoning(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(
        replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Reasoning)))
        for message in messages
    )


def _read_answer(row: RecordRow, wire: Wire) -> Message | None:
    """The answer as a message; None if it is not complete."""
    events = _decode_answer(row, wire)
    last = events[-1] if events else None
    if isinstance(last, Failed) or not isinstance(last, Finished) or last.reason not in SUCCESS_REASONS:
        return None
    reading = collect(events)
    if len(reading.calls) != sum(isinstance(event, CallEnded) for event in events):
        return None
    parts: list[Part] = [Text(reading.text)] if reading.text else []
    parts += [ToolCall(call.id, call.name, call.arguments) for call in reading.calls]
    return Message("assistant", tuple(parts)) if parts else None


def _decode_answer(row: RecordRow, wire: Wire) -> list[Event]:
    numbers = count(1)
    body = row.bodies["answer"]
    if not msgspec.json.decode(row.data)["stream"]:
        return wire.decode_response(body, lambda: f"call_{next(numbers)}").events
    if body.lstrip()[:1] == b"[":  # a stream of Gemini as one list
        payloads = msgspec.json.decode(body, type=list[msgspec.Raw])
        body = b"".join(b"data: %b\n\n" % bytes(payload).replace(b"\n", b" ") for payload in payloads)
    decoder = wire.open_decoder(lambda: f"call_{next(numbers)}")
    return [*decoder.feed(body), *decoder.close()]

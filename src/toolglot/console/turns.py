"""One recorded turn as the session view shows it: requests, the model's own text, what the client got, and when.

*Strategy.* What was recorded is bytes; everything that explains them is worked out here, when it is looked at: the text
is read again for its segments, the answer is decoded again, write by write, with the wire of the client. If a body was
redacted or cut, the recorded sizes no longer fit; then times are those of the same share of the body.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import msgspec

from toolglot.clients.xml.session import detect_session
from toolglot.config import Settings
from toolglot.console.spans import Segment, read_text
from toolglot.core.conversation import Conversation, Message, Tool
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    merge_deltas,
)
from toolglot.core.options import make_options
from toolglot.gateway.storage import describe_record
from toolglot.gateway.telemetry.trace import REASONING, TEXT, NativeCall, StoredTrace
from toolglot.store.interface import RecordRow
from toolglot.wires import all_wires
from toolglot.wires.protocol import Wire

MAX_EVENTS: Final = 4000
"""Events of one answer that are listed; more are joined."""
SENT: Final = "upstream_request"
LISTS: Final = ("messages", "input", "contents")
"""Where the messages of a request are, whatever its wire."""
SUMMARY: Final = (
    *("request_id", "time", "wire", "model", "upstream", "upstream_model", "mode", "dialect", "client", "agent"),
    *("stream", "offered", "status", "calls", "tools", "repairs", "rejected", "notes", "bytes", "first_chunk"),
    *("duration", "finish", "usage", "error", "outcome", "attempts", "prompt_bytes", "stable_bytes", "unstable_at"),
    *("replay_of", "read_as", "arms"),
)


def summarize(row: RecordRow) -> dict[str, object]:
    """A turn as a line of the timeline."""
    record = describe_record(row)
    summary: dict[str, object] = {"id": row.id, "session": row.session}
    return summary | {name: record[name] for name in SUMMARY if name in record}


def describe_turn(row: RecordRow, settings: Settings) -> dict[str, object]:
    """A turn in full. ``recorded``: its bodies are there."""
    record = describe_record(row)
    record.pop("bodies", None)
    turn: dict[str, object] = {"id": row.id, "session": row.session, "record": record, "recorded": bool(row.bodies)}
    if not row.bodies:
        return turn
    bodies = {kind: body.decode("utf-8", "replace") for kind, body in row.bodies.items()}
    trace = read_trace(row.bodies.get("trace", b""))
    wire = all_wires().get(row.wire)
    conversation = decode_conversation(wire, row.bodies.get("request", b""), row.model)
    sent = list_sent(bodies)
    events = list(decode_answer(wire, bodies.get("answer", ""), trace.client, stream=bool(record["stream"])))
    if record["mode"] == "relay":  # its bytes passed unread: the client got what the model wrote
        bodies.setdefault("model", "".join(str(event["text"]) for event in events if event["kind"] == "text"))
    return turn | {
        "request": bodies.get("request", ""),
        "answer": bodies.get("answer", ""),
        "reasoning": bodies.get("reasoning", ""),
        "attempts": list(list_attempts(bodies, sent, trace, read_with(conversation, record, settings))),
        "events": events,
        "pieces": trace.upstream,
        "tools": [tool.name for tool in conversation.tools],
    }


def read_trace(data: bytes) -> StoredTrace:
    try:
        return msgspec.json.decode(data, type=StoredTrace)
    except msgspec.DecodeError:
        return StoredTrace()


def decode_conversation(wire: Wire | None, body: bytes, model: str) -> Conversation:
    """The recorded request. One that was cut, or refused, has no messages and tools here."""
    try:
        if wire is not None and wire.routes:
            return wire.decode_request(body, {"model": model}).conversation
    except (ToolglotError, ValueError, RecursionError):
        pass
    return Conversation(model, ())


def find_tools(conversation: Conversation, agent: str, setting: str) -> tuple[Tool, ...]:
    """The tools of a request; those of an XML client are in its prompt."""
    if conversation.tools or not conversation.messages:
        return conversation.tools
    session = detect_session(conversation, {"user-agent": agent} if agent else None, setting)
    return session.tools if session is not None else ()


def read_with(
    conversation: Conversation, record: Mapping[str, object], settings: Settings
) -> Callable[[str], list[Segment]]:
    """How the answers to a request are read."""
    reading = settings.reading
    tools = find_tools(conversation, str(record.get("agent", "")), settings.clients.xml)
    supported = () if tools else settings.tool_calling.supported_tools
    syntax = reading.shell_syntax, reading.shell_cwd
    options = make_options(
        reading.unknown_tools,
        reading.min_confidence,
        True,
        supported,
        reading.shell,
        *syntax,
        patterns=settings.compiled_patterns,
    )
    messages: tuple[Message, ...] = conversation.messages
    dialect = str(record.get("dialect", ""))
    return lambda text: read_text(text, tools, messages, dialect, options).segments


# -- attempts ----------------------------------------------------------------------------------------------------------


def list_sent(bodies: Mapping[str, str]) -> list[str]:
    """What the upstream was sent, in order."""
    earlier = sorted(
        (kind for kind in bodies if kind.startswith(f"{SENT}.")), key=lambda kind: int(kind.rpartition(".")[2])
    )
    return [bodies[kind] for kind in earlier] + ([bodies[SENT]] if SENT in bodies else [])


def list_attempts(
    bodies: Mapping[str, str], sent: Sequence[str], trace: StoredTrace, read: Callable[[str], list[Segment]]
) -> Iterator[dict[str, object]]:
    """The attempts of a turn: what was sent, what of it is feedback, and what the model wrote."""
    number = max(len(sent), len(trace.attempts) + 1)
    texts = divide(bodies.get("model", ""), trace, TEXT, number)
    thoughts = divide(bodies.get("reasoning", ""), trace, REASONING, number)
    calls = read_calls(bodies.get("native_calls", ""))
    for at in range(number):
        request = sent[at] if at < len(sent) else ""
        yield {
            "request": request,
            "feedback": find_added(sent[at - 1], request) if 0 < at < len(sent) else [],
            "text": texts[at],
            "segments": read(texts[at]) if texts[at] else [],
            "reasoning": thoughts[at],
            "calls": [{"name": call.name, "arguments": call.arguments} for call in calls if call.attempt == at],
            "ended": trace.attempts[at] if at < len(trace.attempts) else None,
        }


def divide(text: str, trace: StoredTrace, kind: str, number: int) -> list[str]:
    """The part of a text that belongs to each attempt."""
    sizes = [0] * number
    for piece in trace.upstream:
        if piece.kind == kind and piece.attempt < number:
            sizes[piece.attempt] += piece.size
    texts, at = [], 0
    for size in sizes[:-1]:
        texts.append(text[at : at + size])
        at += size
    return [*texts, text[at:]]


def read_calls(data: str) -> list[NativeCall]:
    """The native calls of the model."""
    try:
        return msgspec.json.decode(data, type=list[NativeCall])
    except msgspec.DecodeError:
        return []


def find_added(before: str, after: str) -> list[dict[str, str]]:
    """The messages of a request that the one before did not have: how the model was asked again."""
    old, new = list_messages(before), list_messages(after)
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return [
        {"role": str(message.get("role", "")) if isinstance(message, dict) else "", "text": find_text(message)}
        for message in new[same:]
    ]


def list_messages(body: str) -> list[Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return []
    found = [fields[name] for name in LISTS if isinstance(fields, dict) and isinstance(fields.get(name), list)]
    return found[0] if found else []


def find_text(message: object) -> str:
    """The texts in a message of any wire; the message as JSON if there are none."""
    texts: list[str] = []

    def walk(value: object, depth: int = 0) -> None:
        if isinstance(value, dict) and depth < 10:
            for name in ("content", "text", "parts", "output"):
                if isinstance(value.get(name), str):
                    texts.append(value[name])
                else:
                    walk(value.get(name), depth + 1)
        elif isinstance(value, list):
            for item in value:
                walk(item, depth + 1)

    walk(message)
    return "\n".join(texts) or json.dumps(message, ensure_ascii=False, indent=2)


# -- what the client got -----------------------------------------------------------------------------------------------


def decode_answer(
    wire: Wire | None, answer: str, writes: Sequence[tuple[int, int]], *, stream: bool
) -> Iterator[dict[str, object]]:
    """The events of an answer, each with the time at which it was written, in milliseconds."""
    if wire is None or not answer:
        return
    timed: list[tuple[int | None, Event]] = []
    numbers = count(1)
    try:
        if stream:
            decoder = wire.open_decoder(lambda: f"call_{next(numbers)}")
            for time, piece in cut(answer.encode(), writes):
                timed += [(time, event) for event in merge_deltas(decoder.feed(piece))]
        else:
            decoded = wire.decode_response(answer.encode(), lambda: f"call_{next(numbers)}")
            last = writes[-1][0] if writes else None
            timed = [(last, event) for event in decoded.events]
    except (ToolglotError, ValueError, KeyError, TypeError, RecursionError):
        pass  # an error, or an answer that was cut: it is shown as it is
    if len(timed) > MAX_EVENTS:
        timed = list[tuple[int | None, Event]]((None, one) for one in merge_deltas([event for _, event in timed]))
    for time, event in timed[:MAX_EVENTS]:
        if described := describe_event(event):
            yield {"time": time, **described}


def cut(body: bytes, writes: Sequence[tuple[int, int]]) -> Iterator[tuple[int | None, bytes]]:
    """The body in the pieces in which it was written."""
    total = sum(size for _, size in writes)
    if not total:
        yield None, body
        return
    scale, done, at = len(body) / total, 0, 0
    for time, size in writes:
        done += size
        end = done if total == len(body) else int(done * scale)
        yield time, body[at:end]
        at = end
    if at < len(body):
        yield writes[-1][0], body[at:]


def describe_event(event: Event) -> dict[str, object]:
    match event:
        case TextDelta(text=text):
            return {"kind": "text", "text": text}
        case ReasoningDelta(text=text):
            return {"kind": "reasoning", "text": text}
        case CallStarted(index=index, name=name, id=call_id):
            return {"kind": "call", "text": name, "index": index, "call_id": call_id}
        case CallArguments(index=index, fragment=fragment):
            return {"kind": "arguments", "text": fragment, "index": index}
        case CallEnded(index=index):
            return {"kind": "call_end", "text": "", "index": index}
        case CallRejected(raw=raw, reason=reason):
            return {"kind": "rejected", "text": f"{reason}: {raw}"}
        case Finished(reason=reason):
            return {"kind": "finish", "text": reason}
        case Failed(kind=kind, message=message):
            return {"kind": "failed", "text": f"{kind}: {message}"}
    return {}

"""All faults by name, and the implementation of those on the wire rather than in the text.

A fault belongs to the stage that produces it: the call, its JSON and its marks (``damage.py``), the deltas, the events,
the end of the stream, the connection, or an HTTP error instead of an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from toolglot.sim.answer import Delta
from toolglot.sim.damage import CALL_FAULTS, JSON_FAULTS, MARK_FAULTS


class Interruption(Enum):
    """What the server does to the connection instead of sending more."""

    HANG = "nothing more is sent, and the connection stays open"
    DROP = "the connection is closed in the middle"


Step: TypeAlias = bytes | Interruption


# Refusals: an HTTP error instead of an answer


@dataclass(frozen=True, slots=True)
class Refusal:
    about: str
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def _refuse(status: int, kind: str, message: str, **headers: str) -> Refusal:
    body = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": status}}).encode()
    return Refusal(f"HTTP {status} instead of an answer", status, body, headers=headers)


REFUSALS = {
    "http_400": _refuse(400, "invalid_request_error", "The simulated model does not like this request."),
    "http_401": _refuse(401, "authentication_error", "The simulated model does not know this key."),
    "http_404": _refuse(404, "invalid_request_error", "There is no such simulated model."),
    "http_429": _refuse(429, "rate_limit_error", "The simulated model is tired.", **{"retry-after": "1"}),
    "http_500": _refuse(500, "server_error", "The simulated model has failed."),
    "http_502_html": Refusal(
        "HTTP 502 with an HTML page instead of an answer",
        502,
        b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>",
        "text/html",
    ),
    "http_503": _refuse(503, "overloaded_error", "The simulated model is overloaded.", **{"retry-after": "1"}),
}


# Refusals of requests with native tools

PARSE_FAILURE = "Failed to parse input at pos 12: <tool_call>"
REFUSALS |= {
    "no_tools_400": _refuse(400, "api_error", "The simulated model does not support tools"),
    "no_parser_400": _refuse(
        400,
        "BadRequestError",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    ),
    "parse_500": _refuse(500, "server_error", PARSE_FAILURE),
}
NATIVE_FAULTS = {"no_tools_400", "no_parser_400", "parse_500", "parse_error", "parse_error_late"}
"""Faults of a server's native tool support; they do not apply to requests whose tools are in the prompt."""


# Deltas: the increments of a streamed message


def role_every_chunk(deltas: list[Delta]) -> list[Delta]:
    """every event repeats the role"""
    return [{"role": "assistant", **delta} for delta in deltas]


def no_role(deltas: list[Delta]) -> list[Delta]:
    """no event has the role"""
    return [{key: value for key, value in delta.items() if key != "role"} for delta in deltas]


def null_fields(deltas: list[Delta]) -> list[Delta]:
    """every event has all fields, null where there is no value"""
    empty = {"content": None, "refusal": None, "tool_calls": None, "function_call": None, "reasoning_content": None}
    return [empty | delta for delta in deltas]


def no_index(deltas: list[Delta]) -> list[Delta]:
    """native calls have no index"""
    return _edit_calls(deltas, lambda call: call.pop("index"))


def same_index(deltas: list[Delta]) -> list[Delta]:
    """all native calls have index 0"""
    return _edit_calls(deltas, lambda call: call.update(index=0))


def no_id(deltas: list[Delta]) -> list[Delta]:
    """native calls have no id"""
    return _edit_calls(deltas, lambda call: call.pop("id", None))


def no_type(deltas: list[Delta]) -> list[Delta]:
    """native calls have no type"""
    return _edit_calls(deltas, lambda call: call.pop("type", None))


def repeat_id(deltas: list[Delta]) -> list[Delta]:
    """native calls repeat id and name in every event"""
    first_deltas: dict[int, Delta] = {}

    def repeat(call: Delta) -> None:
        first = first_deltas.setdefault(call["index"], call)
        call.update(id=first["id"], type=first["type"])
        call["function"]["name"] = first["function"]["name"]

    return _edit_calls(deltas, repeat)


def object_arguments(deltas: list[Delta]) -> list[Delta]:
    """native arguments are an object instead of text"""

    def unpack(call: Delta) -> None:
        try:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        except ValueError:
            return

    return _edit_calls(one_delta(deltas), unpack)


def one_delta(deltas: list[Delta]) -> list[Delta]:
    """a whole native call comes in one event"""
    whole: list[Delta] = []
    calls: dict[int, Delta] = {}
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            if call["index"] in calls:
                calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
            else:
                calls[call["index"]] = call
                whole.append(delta)
        if "tool_calls" not in delta:
            whole.append(delta)
    return whole


def _edit_calls(deltas: list[Delta], edit: Callable[[Delta], object]) -> list[Delta]:
    for delta in deltas:
        for call in delta.get("tool_calls", ()):
            edit(call)
    return deltas


DELTA_FAULTS: dict[str, Callable[[list[Delta]], list[Delta]]] = {
    fault.__name__: fault
    for fault in (
        role_every_chunk,
        no_role,
        null_fields,
        no_index,
        same_index,
        no_id,
        no_type,
        repeat_id,
        one_delta,
        object_arguments,
    )
}


# Events: the bytes of the stream

BROKEN_EVENT = b'data: {"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"brok\n\n'
ERROR_BODY = (
    b'{"message":"The simulated model has failed in the middle.","type":"server_error","param":null,"code":500}'
)

PARSE_ERROR = b'{"error":{"code":500,"message":"' + PARSE_FAILURE.encode() + b'","type":"server_error"}}'


def bad_frame(events: list[Step]) -> list[Step]:
    """one event is not JSON"""
    half = len(events) // 2
    return [*events[:half], BROKEN_EVENT, *events[half:]]


def error_after_first(events: list[Step]) -> list[Step]:
    """an error event after the first text, then the end"""
    return [*events[:2], b'data: {"error":' + ERROR_BODY + b"}\n\n"]


def event_error(events: list[Step]) -> list[Step]:
    """an error event with an event name and a flat body after the first text, then the end"""
    return [*events[:2], b"event: error\ndata: " + ERROR_BODY + b"\n\n"]


def parse_error(events: list[Step]) -> list[Step]:
    """instead of text, an event reports that the call could not be parsed; only with native tools"""
    return [*events[:1], b"data: " + PARSE_ERROR + b"\n\n"]


def parse_error_late(events: list[Step]) -> list[Step]:
    """like parse_error, after the first text"""
    return [*events[:2], b"data: " + PARSE_ERROR + b"\n\n"]


def empty_data(events: list[Step]) -> list[Step]:
    """one event has no data"""
    return [*events[:1], b"data:\n\n", *events[1:]]


def comments(events: list[Step]) -> list[Step]:
    """a comment before every event, as a keep-alive"""
    return [step for event in events for step in (b": still here\n\n", event)]


def cut_mid_call(events: list[Step]) -> list[Step]:
    """the connection is closed in the middle of the call"""
    return [*events, Interruption.DROP]


def hang_mid(events: list[Step]) -> list[Step]:
    """the stream stalls in the middle of the call"""
    return [*events, Interruption.HANG]


def hang_after_headers(events: list[Step]) -> list[Step]:
    """the stream stalls after the headers"""
    return [Interruption.HANG]


def crlf(events: list[Step]) -> list[Step]:
    """lines end with CR LF"""
    return [event.replace(b"\n", b"\r\n") if isinstance(event, bytes) else event for event in events]


EVENT_FAULTS: dict[str, Callable[[list[Step]], list[Step]]] = {
    fault.__name__: fault
    for fault in (
        bad_frame,
        error_after_first,
        event_error,
        parse_error,
        parse_error_late,
        empty_data,
        comments,
        cut_mid_call,
        hang_mid,
        hang_after_headers,
        crlf,
    )
}
CUTTING_FAULTS = {"cut_mid_call", "hang_mid", "length"}
"""Faults that cut the answer off in the middle of its call."""

OTHER_FAULTS = {
    "no_finish": "the stream has no finish reason",
    "no_done": "the stream has no [DONE]",
    "no_usage": "the answer has no usage",
    "usage_in_finish": "usage comes in the event of the finish reason",
    "stop_finish": "the finish reason is stop although there are native calls",
    "length": "the answer ends in the middle of the call with finish reason length",
    "empty_answer": "the answer has no content",
    "json_instead_of_sse": "a whole JSON body although a stream was requested",
    "no_content_type": "the answer has no useful content type",
    "slow_drip": "a few bytes at a time",
    "hang_before_headers": "the server never sends headers",
    "reset": "the connection is closed before the headers",
}

_FUNCTIONS = CALL_FAULTS | JSON_FAULTS | MARK_FAULTS | DELTA_FAULTS | EVENT_FAULTS
FAULTS: dict[str, str] = (
    {name: refusal.about for name, refusal in REFUSALS.items()}
    | {name: fault.__doc__ or "" for name, fault in _FUNCTIONS.items()}
    | OTHER_FAULTS
)
"""Every fault with its description."""

"""Plan the response to a request: its deltas, events or whole body as bytes, and when to send each.

All bytes are encoded before the first one is sent, so that encoding does not distort the timing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any

from toolglot.sim.answer import Delta, RenderedAnswer
from toolglot.sim.faults import (
    BROKEN_EVENT,
    CUTTING_FAULTS,
    DELTA_FAULTS,
    ERROR_BODY,
    EVENT_FAULTS,
    PARSE_ERROR,
    REFUSALS,
    Interruption,
    Refusal,
    Step,
)
from toolglot.sim.options import SimOptions

MODEL, FINGERPRINT = "sim", "toolglot-sim"
SIM_HEADERS = {"x-toolglot-sim": "1"}
STREAM_TYPE, WHOLE_TYPE = "text/event-stream; charset=utf-8", "application/json"
DRIP_BYTES, DRIP_PACE = 16, 10
WRITE_BYTES = 65536

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_delta(delta: Delta) -> str:
    """Encode a delta as JSON. Plain text, the usual case, takes a third of the time."""
    text = delta.get("content")
    return f'{{"content":{encode_basestring(text)}}}' if text and len(delta) == 1 else encode(delta)


@dataclass(frozen=True, slots=True)
class ResponsePlan:
    """What the server does for one request. Times are in seconds; ``before`` replaces the whole response."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    latency: float = 0
    pace: float = 0
    before: Interruption | None = None
    streamed: bool = False

    @property
    def size(self) -> int:
        return sum(len(step) for step in self.steps if isinstance(step, bytes))


@dataclass(frozen=True, slots=True)
class AnswerIdentity:
    """The fields that every event of one answer repeats. ``answer`` is its number, so that ids are never reused."""

    session: str
    answer: int
    created: int

    @property
    def id(self) -> str:
        return f"chatcmpl-sim-{self.session}-{self.answer}"

    def call_id(self, index: int) -> str:
        return f"call_sim_{self.session}_{self.answer}_{index}"

    def head(self, kind: str) -> str:
        head = {"id": self.id, "object": kind, "created": self.created, "model": MODEL}
        return encode(head | {"system_fingerprint": FINGERPRINT})[:-1]


@dataclass(frozen=True, slots=True)
class Usage:
    """Estimated token counts: four characters per token."""

    prompt: int
    completion: int

    def to_json(self) -> dict[str, int]:
        total = self.prompt + self.completion
        return {"prompt_tokens": self.prompt, "completion_tokens": self.completion, "total_tokens": total}


def count_usage(asked_bytes: int, rendered: RenderedAnswer) -> Usage:
    content = len(rendered.content) + len(rendered.reasoning)
    called = sum(len(call.name) + len(call.arguments) for call in rendered.calls)
    return Usage(asked_bytes // 4, (content + called + 3) // 4)


def plan_refusal(refusal: Refusal, options: SimOptions) -> ResponsePlan:
    headers = SIM_HEADERS | {"content-type": refusal.content_type} | refusal.headers
    return ResponsePlan(refusal.status, headers, (refusal.body,), latency=options.latency / 1000)


def plan_answer(
    rendered: RenderedAnswer,
    identity: AnswerIdentity,
    usage: Usage,
    options: SimOptions,
    *,
    stream: bool,
    wants_usage: bool,
) -> ResponsePlan:
    """Plan an answer that is sent, with the faults that happen on the wire."""
    faults = options.faults
    streamed = stream and "json_instead_of_sse" not in faults
    if CUTTING_FAULTS.intersection(faults):
        rendered = rendered.cut()
    if streamed:
        steps = list(_stream(rendered, identity, usage if wants_usage else None, options))
    else:
        steps = _whole_body(rendered, identity, usage, faults)
    drip = "slow_drip" in faults
    headers = dict(SIM_HEADERS)
    if "no_content_type" not in faults:
        headers["content-type"] = STREAM_TYPE if streamed else WHOLE_TYPE
    if streamed:
        headers["cache-control"] = "no-cache"
    size = options.chunk_bytes or (DRIP_BYTES if drip else 0)
    pace = options.pace or (DRIP_PACE if drip else 0)
    sent = tuple(split_steps(steps, size, bool(pace)))
    cut = any(isinstance(step, Interruption) for step in sent)
    return ResponsePlan(200, headers, sent, options.latency / 1000, pace / 1000, streamed=streamed or cut)


def plan_no_response(faults: Collection[str]) -> ResponsePlan | None:
    """Plan a request that gets no response at all; None if it gets one."""
    if "hang_before_headers" in faults:
        return ResponsePlan(before=Interruption.HANG)
    if "reset" in faults:
        return ResponsePlan(before=Interruption.DROP)
    return None


def find_refusal(faults: Collection[str]) -> Refusal | None:
    return next((REFUSALS[fault] for fault in faults if fault in REFUSALS), None)


# Streamed


def _stream(
    rendered: RenderedAnswer, identity: AnswerIdentity, usage: Usage | None, options: SimOptions
) -> Iterator[Step]:
    faults = options.faults
    deltas = list(_make_deltas(rendered, identity, options.chunk))
    for fault in faults:
        if fault in DELTA_FAULTS:
            deltas = DELTA_FAULTS[fault](deltas)
    head = f'data: {identity.head("chat.completion.chunk")},"choices":[{{"index":0,"delta":'
    tail = ',"finish_reason":null}]}\n\n'
    events: list[Step] = [f"{head}{encode_delta(delta)}{tail}".encode("utf-8", "replace") for delta in deltas]
    if rendered.error:
        events.append(f"data: {rendered.error}\n\n".encode("utf-8", "replace"))
    elif not CUTTING_FAULTS.intersection(faults) or "length" in faults:
        events += _closing_events(rendered, identity, usage, faults)
    for fault in faults:
        if fault in EVENT_FAULTS:
            events = EVENT_FAULTS[fault](events)
    yield from events


def _make_deltas(rendered: RenderedAnswer, identity: AnswerIdentity, size: int) -> Iterator[Delta]:
    yield {"role": "assistant", "content": ""}
    for piece in split_text(rendered.reasoning, size):
        yield {"reasoning_content": piece}
    for piece in split_text(rendered.content, size):
        yield {"content": piece}
    for index, call in enumerate(rendered.calls):
        function = {"name": call.name, "arguments": ""}
        yield {
            "tool_calls": [{"index": index, "id": identity.call_id(index), "type": "function", "function": function}]
        }
        for piece in split_text(call.arguments, size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def split_text(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _closing_events(
    rendered: RenderedAnswer, identity: AnswerIdentity, usage: Usage | None, faults: Collection[str]
) -> Iterator[Step]:
    """The events after the content: finish reason, usage, [DONE]."""
    head = f"data: {identity.head('chat.completion.chunk')}"
    usage_json = encode(usage.to_json()) if usage and "no_usage" not in faults else ""
    early = f',"usage":{usage_json}' if usage_json and "usage_in_finish" in faults else ""
    if "no_finish" not in faults:
        choice = {"index": 0, "delta": {}, "finish_reason": choose_finish_reason(rendered, faults)}
        yield f'{head},"choices":[{encode(choice)}]{early}}}\n\n'.encode()
    if usage_json and not early:
        yield f'{head},"choices":[],"usage":{usage_json}}}\n\n'.encode()
    if "no_done" not in faults:
        yield b"data: [DONE]\n\n"


def choose_finish_reason(rendered: RenderedAnswer, faults: Collection[str]) -> str:
    if "length" in faults:
        return "length"
    return "stop" if "stop_finish" in faults else rendered.finish_reason


# Whole


def _whole_body(
    rendered: RenderedAnswer, identity: AnswerIdentity, usage: Usage, faults: Collection[str]
) -> list[Step]:
    message: dict[str, Any] = {"role": "assistant", "content": rendered.content or None}
    if rendered.reasoning:
        message["reasoning_content"] = rendered.reasoning
    if rendered.calls:
        message["tool_calls"] = [
            {
                "id": identity.call_id(index),
                "type": "function",
                "function": _encode_call(call.name, call.arguments, faults),
            }
            for index, call in enumerate(rendered.calls)
        ]
    finish = None if "no_finish" in faults else choose_finish_reason(rendered, faults)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage_json = "" if "no_usage" in faults else f',"usage":{encode(usage.to_json())}'
    body = f'{identity.head("chat.completion")},"choices":[{encode(choice)}]{usage_json}}}'.encode("utf-8", "replace")
    half = len(body) // 2
    if "bad_frame" in faults:
        return [BROKEN_EVENT]
    if {"error_after_first", "event_error"}.intersection(faults):
        return [b'{"error":' + ERROR_BODY + b"}"]
    if {"parse_error", "parse_error_late"}.intersection(faults):
        return [PARSE_ERROR]
    if "cut_mid_call" in faults:
        return [body[:half], Interruption.DROP]
    if {"hang_mid", "hang_after_headers"}.intersection(faults):
        return [body[:half], Interruption.HANG]
    return [body]


def _encode_call(name: str, arguments: str, faults: Collection[str]) -> dict[str, Any]:
    if "object_arguments" in faults:
        try:
            return {"name": name, "arguments": json.loads(arguments)}
        except ValueError:
            pass
    return {"name": name, "arguments": arguments}


# Network writes


def split_steps(steps: Iterable[Step], size: int, paced: bool) -> Iterator[Step]:
    """Split steps into network writes: pieces of this size, or whole events (joined if there is no pace)."""
    if not size and paced:
        yield from steps
        return
    size = size or WRITE_BYTES
    pending: list[bytes] = []

    def pieces() -> Iterator[bytes]:
        whole = b"".join(pending)
        pending.clear()
        return (whole[start : start + size] for start in range(0, len(whole), size))

    for step in steps:
        if isinstance(step, bytes):
            pending.append(step)
        else:
            yield from pieces()
            yield step
    yield from pieces()

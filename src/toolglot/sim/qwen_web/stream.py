"""Plan an answer of the web chat: its events as bytes, with the faults of the stream.

*Strategy.* An answer becomes deltas, phase by phase; deltas become events with usage and ids; events become bytes. Each
fault changes one of these lists. Every event keeps the text that it adds to the answer, so that a stopped answer is
stored as far as it was sent.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, zip_longest
from typing import Any

from toolglot.sim.answer import Delta, SimCall
from toolglot.sim.faults import Interruption, Step
from toolglot.sim.qwen_web.errors import ChatError
from toolglot.sim.qwen_web.faults import COMPLETION, find_error
from toolglot.sim.qwen_web.interception import Interception, intercept_calls
from toolglot.sim.qwen_web.options import ChatSimOptions
from toolglot.sim.response_plan import DRIP_BYTES, DRIP_PACE, SIM_HEADERS, STREAM_TYPE, split_steps, split_text

ANSWER = "answer"
DEFAULT_THOUGHT = "The user asks something.\nA short answer is enough."
PLATFORM_CALL = ("bash", '{"command": "date"}', "Thu Jan  1 00:00:00 UTC 1970")
OTHER_ANSWER = "Another answer: "
"""How the second of two answers starts."""


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """The ids of one answer. ``user_id`` is the message that it answers, ``other_id`` the second answer if there are
    two, ``prompt`` the characters that the model reads."""

    chat_id: str
    user_id: str
    response_id: str
    other_id: str
    prompt: int


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event, the text that it adds to the stored answer, and whether the answer ends with it."""

    payload: dict[str, Any]
    text: str = ""
    raw: bytes = b""
    is_end: bool = False

    def encode(self) -> bytes:
        if self.raw:
            return self.raw
        data = json.dumps(self.payload, ensure_ascii=False, separators=(",", ":"))
        space = " " if "response.created" in self.payload else ""
        return f"data: {data}{space}\n\n".encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """What the server sends for one completion. Times are in seconds; ``before`` replaces the whole response.

    ``ends`` and ``texts`` are the byte offset after each event and the text that it adds. ``final_at`` is the offset of
    the event that ends the answer, if there is one: a client that has read it may go on in the same chat.
    """

    steps: tuple[Step, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    latency: float = 0
    pace: float = 0
    before: Interruption | None = None
    ends: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    final_at: int | None = None

    def text_after(self, sent: int) -> str:
        """The text of the answer in the first ``sent`` bytes; an event counts if it is complete."""
        return "".join(self.texts[: bisect_right(self.ends, sent)])

    @property
    def text(self) -> str:
        return "".join(self.texts)


def plan_no_response(faults: Collection[str]) -> StreamPlan | None:
    """The plan of a request that gets no response at all; None if it gets one."""
    before = {"hang_before_headers": Interruption.HANG, "reset": Interruption.DROP}
    return next((StreamPlan(before=before[fault]) for fault in faults if fault in before), None)


def plan_stream(
    content: str, reasoning: str, identity: StreamIdentity, options: ChatSimOptions, *, thinking: str, incremental: bool
) -> StreamPlan:
    """Plan a streamed answer. ``thinking`` is the phase in which the model thinks, or empty."""
    faults = options.faults
    deltas = _make_deltas(content, reasoning, thinking, options)
    if not incremental or "cumulative" in faults:
        deltas = _accumulate(deltas)
    events = _make_events(deltas, identity, identity.response_id, faults)
    if "dual_response" in faults:
        events = _add_other_answer(events, content, identity, options)
    else:
        events = [_created(identity, identity.response_id, 0), *events]
    events, interruption = _cut(events, identity, faults)
    return _encode_plan([*_decorate(events, identity, faults)], interruption, options)


def plan_whole(content: str, identity: StreamIdentity, options: ChatSimOptions) -> StreamPlan:
    """Plan an answer to ``stream: false``."""
    message = {"role": "assistant", "content": content, "phase": ANSWER, "status": "finished"}
    data = {
        "chat_id": identity.chat_id,
        "parent_id": identity.user_id,
        "response_id": identity.response_id,
        "choices": [{"message": message}],
    }
    body = json.dumps({"success": True, "request_id": options.new_id(), "data": data}, ensure_ascii=False)
    event = StreamEvent({}, content, body.encode("utf-8", "replace"))
    plan = _encode_plan([event], None, options)
    return replace(plan, headers=tuple((SIM_HEADERS | {"content-type": "application/json"}).items()))


def plan_nothing(identity: StreamIdentity, options: ChatSimOptions) -> StreamPlan:
    """Plan a stream that opens and ends without an answer."""
    return _encode_plan([_created(identity, identity.response_id, 0)], None, options)


def encode_stopped(identity: StreamIdentity) -> bytes:
    """The last event of an answer that was stopped."""
    ids = {"chat_id": identity.chat_id, "response_id": identity.response_id}
    return StreamEvent({"response.stopped": ids}).encode()


# Deltas


@dataclass(frozen=True, slots=True)
class PhaseDelta:
    """The delta of one event, the text that it adds to the stored answer, and the characters that the model wrote."""

    delta: Delta
    text: str = ""
    written: int = 0


def _make_deltas(content: str, reasoning: str, thinking: str, options: ChatSimOptions) -> list[PhaseDelta]:
    faults = options.faults
    forced = {"thinking": "think", "thinking_summary": "thinking_summary"}
    thinking = next((forced[fault] for fault in faults if fault in forced), thinking)
    if thinking and not reasoning and forced.keys() & set(faults):
        reasoning = DEFAULT_THOUGHT
    deltas: list[PhaseDelta] = []
    if thinking and reasoning:
        think = _think if thinking == "think" else _think_in_summary
        deltas += think(reasoning, options.chunk)
    if "web_search" in faults:
        deltas += _search()
    if "platform_tool" in faults:
        deltas += _run_platform_tool(options.new_id()[:8])
    parts = Interception(content) if "no_interception" in faults else intercept_calls(content)
    deltas += _write(parts.text, ANSWER, options.chunk)
    deltas += _report_calls(parts, options.chunk)
    deltas += _write(parts.apology, ANSWER, options.chunk)
    return [*deltas, _finish(ANSWER, faults)]


def _typing(phase: str, content: str = "", **more: Any) -> Delta:
    return {"role": "assistant", "content": content, "phase": phase, "status": "typing", **more}


def _finish(phase: str, faults: Collection[str] = ()) -> PhaseDelta:
    if "finish_reason" in faults:
        return PhaseDelta({"content": "", "role": "assistant", "phase": phase})
    return PhaseDelta({"content": "", "role": "assistant", "status": "finished", "phase": phase})


def _write(text: str, phase: str, size: int) -> Iterator[PhaseDelta]:
    for piece in split_text(text, size):
        yield PhaseDelta(_typing(phase, piece), piece if phase == ANSWER else "", len(piece))


def _think(reasoning: str, size: int) -> Iterator[PhaseDelta]:
    yield from _write(reasoning, "think", size)
    yield _finish("think")


def _think_in_summary(reasoning: str, size: int) -> Iterator[PhaseDelta]:
    """Titles and thoughts as arrays that grow: every event has all entries so far."""
    thoughts = [line for line in reasoning.splitlines() if line.strip()]
    titles = [f"Step {number}" for number in range(1, len(thoughts) + 1)]
    for number, thought in enumerate(thoughts):
        for shown in (number, number + 1):
            extra = {
                "summary_title": {"content": titles[: number + 1]},
                "summary_thought": {"content": thoughts[:shown]},
            }
            written = len(thought) if shown > number else 0
            yield PhaseDelta(_typing("thinking_summary", extra=extra), written=written)
    yield _finish("thinking_summary")


def _search() -> Iterator[PhaseDelta]:
    results = [{"title": "A page", "url": "https://example.invalid/", "snippet": "Nothing of interest."}]
    yield PhaseDelta(_typing("web_search", extra={"web_search_info": results}))
    yield _finish("web_search")


def _run_platform_tool(number: str) -> Iterator[PhaseDelta]:
    name, arguments, result = PLATFORM_CALL
    function_id = f"round_0_call_{number}"
    for snapshot in ("", arguments, arguments):
        call = {"name": name, "arguments": snapshot}
        yield PhaseDelta(_typing(name, function_call=call, function_id=function_id))
    extra = {"tool_result": [{"type": "text", "content": result}]}
    delta = {"role": "function", "name": name, "content": "", "phase": name, "status": "finished"}
    yield PhaseDelta(delta | {"function_id": function_id, "extra": extra})


def _report_calls(parts: Interception, size: int) -> Iterator[PhaseDelta]:
    """Each native call as snapshots of its arguments, the last one twice; then a result for each."""
    for call in parts.calls:
        snapshots = ["", *accumulate(split_text(call.arguments, size))]
        for number, snapshot in enumerate([*snapshots, snapshots[-1]]):
            function = {"name": call.name, "arguments": snapshot}
            delta = _typing(ANSWER, function_call=function, extra={"display_position": ANSWER})
            is_last = number == len(snapshots)
            yield PhaseDelta(delta, _write_native(call) if is_last else "", size if number else 0)
    for call, result in zip(parts.calls, parts.results, strict=True):
        yield PhaseDelta({"role": "function", "name": call.name, "content": result, "phase": ANSWER}, f"\n{result}\n")


def _write_native(call: SimCall) -> str:
    return f'<tool_call>\n{{"name": {json.dumps(call.name)}, "arguments": {call.arguments}}}\n</tool_call>'


def _accumulate(deltas: Iterable[PhaseDelta]) -> list[PhaseDelta]:
    """Make the content of each event all text of its phase so far."""
    so_far: dict[str, str] = {}
    found: list[PhaseDelta] = []
    for entry in deltas:
        delta = entry.delta
        if delta["role"] == "assistant" and "function_call" not in delta:
            phase = delta["phase"]
            so_far[phase] = so_far.get(phase, "") + delta["content"]
            entry = replace(entry, delta=delta | {"content": so_far[phase]})
        found.append(entry)
    return found


# Events


def _created(identity: StreamIdentity, response_id: str, index: int) -> StreamEvent:
    ids = {"chat_id": identity.chat_id, "parent_id": identity.user_id, "response_id": response_id}
    return StreamEvent({"response.created": ids | {"response_index": str(index)}})


def _make_events(
    deltas: Sequence[PhaseDelta], identity: StreamIdentity, response_id: str, faults: Collection[str]
) -> list[StreamEvent]:
    events: list[StreamEvent] = []
    written = thought = 0
    last = len(deltas) - 1
    for number, entry in enumerate(deltas):
        delta = entry.delta
        written += entry.written
        thought += entry.written if str(delta["phase"]).startswith("think") else 0
        if "no_phase" in faults and delta["phase"] == ANSWER:
            delta = {key: value for key, value in delta.items() if key != "phase"}
        choice: dict[str, Any] = {"delta": delta}
        if number == last and "finish_reason" in faults:
            choice["finish_reason"] = "stop"
        payload: dict[str, Any] = {"choices": [choice]}
        if number < last and "no_usage" not in faults:
            payload["usage"] = _count_usage(identity.prompt, written, thought)
        if "no_response_id" not in faults:
            payload["response_id"] = response_id
        events.append(StreamEvent(payload, entry.text, is_end=number == last))
    return events


def _count_usage(prompt: int, written: int, thought: int) -> dict[str, Any]:
    """Usage so far, with four characters per token."""
    read, answered, reasoned = (-(-characters // 4) for characters in (prompt, written, thought))
    details = {"text_tokens": answered} | ({"reasoning_tokens": reasoned} if thought else {})
    return {
        "input_tokens": read,
        "output_tokens": answered,
        "characters": 0,
        "total_tokens": read + answered,
        "input_tokens_details": {"text_tokens": read},
        "output_tokens_details": details,
        "cached_tokens": 0,
    }


def _add_other_answer(
    events: list[StreamEvent], content: str, identity: StreamIdentity, options: ChatSimOptions
) -> list[StreamEvent]:
    """Two answers in one stream, their events in turn. Only the text of the first one is stored."""
    deltas = [*_write(OTHER_ANSWER + content, ANSWER, options.chunk), _finish(ANSWER)]
    other = _make_events(deltas, identity, identity.other_id, options.faults)
    mixed = chain.from_iterable(zip_longest(events, (replace(event, text="", is_end=False) for event in other)))
    created = [_created(identity, identity.response_id, 0), _created(identity, identity.other_id, 1)]
    return [*created, *(event for event in mixed if event is not None)]


def _cut(
    events: list[StreamEvent], identity: StreamIdentity, faults: Collection[str]
) -> tuple[list[StreamEvent], Interruption | None]:
    """Apply the faults that end the stream early: an error event, a missing end, an interruption."""
    half = max(2, len(events) // 2)
    if fault := find_error(faults, COMPLETION, "first"):
        return [events[0], _error_event(fault.error, identity)], None
    if fault := find_error(faults, COMPLETION, "mid"):
        return [*events[:half], _error_event(fault.error, identity)], None
    if "no_finish" in faults:
        return events[:-1], None
    interruptions = {
        "cut_mid": (half, Interruption.DROP),
        "hang_mid": (half, Interruption.HANG),
        "hang_after_headers": (0, Interruption.HANG),
    }
    kept, interruption = next((interruptions[fault] for fault in faults if fault in interruptions), (len(events), None))
    return events[:kept], interruption


def _error_event(error: object, identity: StreamIdentity) -> StreamEvent:
    if not isinstance(error, ChatError):
        raise TypeError("only an error of the service comes inside a stream")
    return StreamEvent({"error": error.to_json(), "response_id": identity.response_id}, is_end=True)


def _decorate(
    events: Iterable[StreamEvent], identity: StreamIdentity, faults: Collection[str]
) -> Iterator[StreamEvent]:
    """Add the events that have no content."""
    info = {"chat_id": identity.chat_id, "response_id": identity.response_id, "status": "running"}
    between = {
        "keep_alive": StreamEvent({"response.info": info}),
        "ping": StreamEvent({}, raw=b"event: ping\ndata: {}\n\n"),
        "comments": StreamEvent({}, raw=b": still here\n\n"),
    }
    added = [between[fault] for fault in faults if fault in between]
    if "bad_frame" in faults:
        yield from (event for number, event in enumerate(events) for event in _break_second(number, event))
    else:
        for event in events:
            yield event
            yield from added
    if "done" in faults:
        yield StreamEvent({}, raw=b"data: [DONE]\n\n")


def _break_second(number: int, event: StreamEvent) -> Iterator[StreamEvent]:
    if number == 1:
        yield StreamEvent({}, raw=b'data: {"choices":[{"delta":{"content":"brok\n\n')
    yield event


def _encode_plan(
    events: Sequence[StreamEvent], interruption: Interruption | None, options: ChatSimOptions
) -> StreamPlan:
    faults = options.faults
    encoded = _encode_events(events, faults)
    drip = "slow_drip" in faults
    size = options.chunk_bytes or (DRIP_BYTES if drip else 0)
    pace = options.pace or (DRIP_PACE if drip else 0)
    steps: list[Step] = [*encoded, *([interruption] if interruption else [])]
    headers = SIM_HEADERS | {"cache-control": "no-cache"}
    if "no_content_type" not in faults:
        headers["content-type"] = STREAM_TYPE
    ends = [0, *accumulate(map(len, encoded))]
    finals = [start for start, event in zip(ends, events, strict=False) if event.is_end]
    return StreamPlan(
        tuple(split_steps(steps, size, bool(pace))),
        tuple(headers.items()),
        options.latency / 1000,
        pace / 1000,
        ends=tuple(ends[1:]),
        texts=tuple(event.text for event in events),
        final_at=finals[0] if finals else None,
    )


def _encode_events(events: Sequence[StreamEvent], faults: Collection[str]) -> list[bytes]:
    encoded = [event.encode() for event in events]
    if "no_blank_lines" in faults:
        encoded = [data.removesuffix(b"\n") for data in encoded]
    if "crlf" in faults:
        encoded = [data.replace(b"\n", b"\r\n") for data in encoded]
    return encoded

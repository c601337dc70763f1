"""The other wires that the simulated model serves: their requests as chat completions, and its answers in their form.

*Strategy.* Of a request only that is taken which a model sees: texts, tools, whether a call is required, whether the
answer streams. An answer is text and native calls; the faults of chat completions do not apply. Nothing here uses
toolglot's wires, so that the simulated model can judge them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from toolglot.sim.answer import RenderedAnswer
from toolglot.sim.defects import parse_object
from toolglot.sim.faults import Refusal
from toolglot.sim.options import SimOptions
from toolglot.sim.response_plan import SIM_HEADERS, AnswerIdentity, ResponsePlan, encode, split_steps, split_text

Body: TypeAlias = Mapping[str, Any]
Event: TypeAlias = dict[str, Any]
MODEL = "sim"


@dataclass(frozen=True, slots=True)
class ServedWire:
    """``decode`` makes a chat completions request of a body, ``stream`` and ``whole`` encode an answer; ``fail`` is the
    body of an error. ``lines``: a stream has a JSON object on each line, not server-sent events."""

    decode: Callable[[Body], Event]
    stream: Callable[[RenderedAnswer, AnswerIdentity, int], Iterable[Event]]
    whole: Callable[[RenderedAnswer, AnswerIdentity], Event]
    fail: Callable[[str], Event]
    lines: bool = False


def plan_served(
    wire: ServedWire, rendered: RenderedAnswer, identity: AnswerIdentity, options: SimOptions, *, stream: bool
) -> ResponsePlan:
    """Plan the response of one answer."""
    if not stream:
        steps = [encode(wire.whole(rendered, identity)).encode("utf-8", "replace")]
        return ResponsePlan(200, {**SIM_HEADERS, "content-type": "application/json"}, tuple(steps))
    events = list(wire.stream(rendered, identity, options.chunk))
    if rendered.error:
        events = [*_without_end(events), wire.fail(json.loads(rendered.error)["error"]["message"])]
    headers = {**SIM_HEADERS, "content-type": "application/x-ndjson" if wire.lines else "text/event-stream"}
    sent = split_steps((_frame(event, wire.lines) for event in events), options.chunk_bytes, bool(options.pace))
    return ResponsePlan(200, headers, tuple(sent), options.latency / 1000, options.pace / 1000, streamed=True)


def refuse_served(wire: ServedWire, refusal: Refusal) -> Refusal:
    """A refusal with its message in the form of the wire."""
    return replace(refusal, body=encode(wire.fail(json.loads(refusal.body)["error"]["message"])).encode())


def _frame(event: Event, lines: bool) -> bytes:
    data = encode(event)
    if lines:
        return f"{data}\n".encode("utf-8", "replace")
    named = f"event: {event['type']}\n" if "type" in event else ""
    return f"{named}data: {data}\n\n".encode("utf-8", "replace")


ENDS = ("message_delta", "message_stop", "response.completed")


def _without_end(events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.get("type") not in ENDS]


def _function(name: Any, description: Any, parameters: Any) -> Event:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _choose(kind: Any, name: Any = None) -> Any:
    """A tool choice of chat completions."""
    if name:
        return {"type": "function", "function": {"name": name}}
    kinds = {"any": "required", "required": "required", "none": "none"}
    return kinds.get(kind.lower(), "auto") if isinstance(kind, str) else "auto"


# Messages of content blocks: "anthropic_messages"


def _decode_blocks(body: Body) -> Event:
    messages = [{"role": "system", "content": body.get("system") or ""}]
    for message in body.get("messages", ()):
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        results = [block for block in blocks if block["type"] == "tool_result"]
        messages += [{"role": "tool", "content": result.get("content") or ""} for result in results]
        if texts := [block for block in blocks if block["type"] == "text"]:
            messages.append({"role": message["role"], "content": texts})
    tools = [_function(tool["name"], tool.get("description"), tool["input_schema"]) for tool in body.get("tools", ())]
    choice = body.get("tool_choice") or {}
    return {
        "model": body.get("model"),
        "messages": messages,
        "tools": tools,
        "tool_choice": _choose(choice.get("type"), choice.get("name")),
        "stream": body.get("stream") is True,
    }


def _whole_blocks(rendered: RenderedAnswer, identity: AnswerIdentity) -> Event:
    content: list[Event] = [{"type": "text", "text": rendered.content}] if rendered.content else []
    for index, call in enumerate(rendered.calls):
        made = {"id": identity.call_id(index), "name": call.name, "input": parse_object(call.arguments) or {}}
        content.append({"type": "tool_use", **made})
    reason = "tool_use" if rendered.calls else "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": identity.id, "type": "message", "role": "assistant", "model": MODEL, "content": content}
    return {**message, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _stream_blocks(rendered: RenderedAnswer, identity: AnswerIdentity, size: int) -> Iterator[Event]:
    whole = _whole_blocks(rendered, identity)
    yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    texts = ["text"] if rendered.content else []
    calls = {len(texts) + at: call for at, call in enumerate(rendered.calls)}
    for index, block in enumerate(whole["content"]):
        call = calls.get(index)
        empty: Event = {"input": {}} if call else {"text": ""}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        kind, key = ("input_json_delta", "partial_json") if call else ("text_delta", "text")
        for piece in split_text(call.arguments if call else rendered.content, size):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}
        yield {"type": "content_block_stop", "index": index}
    reason = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


# Output items: "openai_responses"


def _decode_items(body: Body) -> Event:
    asked = body.get("input") or ""
    items = [{"type": "message", "role": "user", "content": asked}] if isinstance(asked, str) else asked
    messages = [{"role": "system", "content": body.get("instructions") or ""}]
    for item in items:
        if item.get("type") == "function_call_output":
            messages.append({"role": "tool", "content": item["output"]})
        elif "role" in item:
            messages.append({"role": item["role"], "content": item["content"]})
    tools = [
        _function(tool["name"], tool.get("description"), tool.get("parameters"))
        for tool in body.get("tools", ())
        if tool.get("type") == "function"
    ]
    choice = body.get("tool_choice")
    chosen = _choose(None, choice.get("name")) if isinstance(choice, Mapping) else _choose(choice)
    return {
        "model": body.get("model"),
        "messages": messages,
        "tools": tools,
        "tool_choice": chosen,
        "stream": body.get("stream") is True,
    }


def _whole_items(rendered: RenderedAnswer, identity: AnswerIdentity) -> Event:
    part = {"type": "output_text", "text": rendered.content, "annotations": []}
    message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    output: list[Event] = [message] if rendered.content else []
    for index, call in enumerate(rendered.calls):
        item = {"type": "function_call", "id": f"fc_{index}", "call_id": identity.call_id(index), "status": "completed"}
        output.append({**item, "name": call.name, "arguments": call.arguments})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    head = {"id": identity.id, "object": "response", "created_at": identity.created, "status": "completed"}
    return {**head, "model": MODEL, "output": output, "usage": usage}


def _stream_items(rendered: RenderedAnswer, identity: AnswerIdentity, size: int) -> Iterator[Event]:
    whole = _whole_items(rendered, identity)
    begun = whole | {"status": "in_progress", "output": []}
    events: list[Event] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        place = {"item_id": item["id"], "output_index": index}
        is_call = item["type"] == "function_call"
        empty: Event = {"arguments": ""} if is_call else {"content": []}
        started = item | {"status": "in_progress"} | empty
        events.append({"type": "response.output_item.added", "output_index": index, "item": started})
        events += _stream_call(item, place, size) if is_call else _stream_message(item, place, size)
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return ({**event, "sequence_number": number} for number, event in enumerate(events))


def _stream_call(item: Event, place: Event, size: int) -> Iterator[Event]:
    kind = "response.function_call_arguments"
    for piece in split_text(item["arguments"], size):
        yield {"type": f"{kind}.delta", **place, "delta": piece}
    yield {"type": f"{kind}.done", **place, "arguments": item["arguments"]}


def _stream_message(item: Event, place: Event, size: int) -> Iterator[Event]:
    (part,) = item["content"]
    where = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **where, "part": part | {"text": ""}}
    for piece in split_text(part["text"], size):
        yield {"type": "response.output_text.delta", **where, "delta": piece}
    yield {"type": "response.output_text.done", **where, "text": part["text"]}
    yield {"type": "response.content_part.done", **where, "part": part}


# Candidates: "gemini"


def _decode_contents(body: Body) -> Event:
    system = body.get("systemInstruction") or {}
    messages = [{"role": "system", "content": system.get("parts", [])}]
    for content in body.get("contents", ()):
        parts = content.get("parts", ())
        results = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        messages += [{"role": "tool", "content": json.dumps(result)} for result in results]
        role = "assistant" if content.get("role") == "model" else "user"
        if texts := [part for part in parts if "text" in part]:
            messages.append({"role": role, "content": texts})
    return {"model": MODEL, "messages": messages, **_decode_declarations(body), "stream": body.get("stream")}


def _decode_declarations(body: Body) -> Event:
    declared = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
    tools = [
        _function(one["name"], one.get("description"), one.get("parametersJsonSchema") or one.get("parameters"))
        for one in declared
    ]
    calling = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    names = calling.get("allowedFunctionNames") or []
    return {"tools": tools, "tool_choice": _choose(calling.get("mode"), names[0] if len(names) == 1 else None)}


def _whole_candidate(rendered: RenderedAnswer, identity: AnswerIdentity) -> Event:
    calls = [{"functionCall": {"name": call.name, "args": parse_object(call.arguments)}} for call in rendered.calls]
    return _candidate([*([{"text": rendered.content}] if rendered.content else []), *calls], identity, "STOP")


def _stream_candidates(rendered: RenderedAnswer, identity: AnswerIdentity, size: int) -> Iterator[Event]:
    for piece in split_text(rendered.content, size):
        yield _candidate([{"text": piece}], identity)
    yield _whole_candidate(replace(rendered, text="", written=""), identity)


def _candidate(parts: list[Event], identity: AnswerIdentity, finish: str = "") -> Event:
    candidate: Event = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    ended = {"finishReason": finish} if finish else {}
    return {"candidates": [candidate | ended], "usageMetadata": usage, "modelVersion": MODEL, "responseId": identity.id}


# Lines of JSON: "ollama"


def _decode_lines(body: Body) -> Event:
    shape = {"response_format": {"type": "json_schema"}} if body.get("format") else {}
    return {**body, "stream": body.get("stream") is not False, **shape}


def _whole_line(rendered: RenderedAnswer, identity: AnswerIdentity, *, done: bool = True) -> Event:
    message: Event = {"role": "assistant", "content": rendered.content}
    if rendered.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": parse_object(call.arguments)}} for call in rendered.calls
        ]
    ended = {"done_reason": "stop", "prompt_eval_count": 1, "eval_count": 1} if done else {}
    return {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done, **ended}


def _stream_lines(rendered: RenderedAnswer, identity: AnswerIdentity, size: int) -> Iterator[Event]:
    for piece in split_text(rendered.content, size):
        yield _whole_line(RenderedAnswer(piece), identity, done=False)
    if rendered.calls:
        yield _whole_line(RenderedAnswer(calls=rendered.calls), identity, done=False)
    yield _whole_line(RenderedAnswer(), identity)


SERVED_WIRES: Mapping[str, ServedWire] = {
    "anthropic_messages": ServedWire(
        _decode_blocks,
        _stream_blocks,
        _whole_blocks,
        lambda message: {"type": "error", "error": {"type": "api_error", "message": message}},
    ),
    "openai_responses": ServedWire(
        _decode_items,
        _stream_items,
        _whole_items,
        lambda message: {
            "type": "error",
            "code": "server_error",
            "message": message,
            "error": {"message": message, "type": "server_error", "param": None, "code": 500},
        },
    ),
    "gemini": ServedWire(
        _decode_contents,
        _stream_candidates,
        _whole_candidate,
        lambda message: {"error": {"code": 500, "message": message, "status": "INTERNAL"}},
    ),
    "ollama": ServedWire(_decode_lines, _stream_lines, _whole_line, lambda message: {"error": message}, lines=True),
}
"""Every wire beside chat completions."""

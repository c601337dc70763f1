"""Requests and upstream answers of every wire, written by hand: nothing here uses toolglot's own encoders.

An answer is a list of network events. ``content`` of them come before the first one that ends the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

WIRES: Final = ("openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama")
STREAM_TYPES: Final = dict.fromkeys(WIRES, "text/event-stream") | {"ollama": "application/x-ndjson"}
ROOTS: Final = dict.fromkeys(WIRES, "/v1") | {"gemini": "/v1beta", "ollama": "/api"}

TOOL: Final = "read"
SCHEMA: Final = {"type": "object", "properties": {"filePath": {"type": "string"}}, "required": ["filePath"]}
DESCRIPTION: Final = {"name": TOOL, "description": "Read a file"}

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Answer:
    """The whole response of an upstream, in one wire."""

    events: tuple[bytes, ...]
    content: int


# -- requests ----------------------------------------------------------------------------------------------------------


def make_request(
    wire: str,
    model: str,
    *,
    stream: bool,
    tools: bool,
    question: str = "Read the file.",
    functions: Sequence[Mapping[str, Any]] = ({**DESCRIPTION, "parameters": SCHEMA},),
) -> tuple[str, dict[str, Any]]:
    """Path and body of a request. ``functions`` are the tools, if it has any."""
    message = {"role": "user", "content": question}
    plain: dict[str, Any] = {"model": model, "messages": [message], "stream": stream}
    match wire:
        case "openai_chat" | "ollama":
            offered = {"tools": [{"type": "function", "function": one} for one in functions]} if tools else {}
            return "/v1/chat/completions" if wire == "openai_chat" else "/api/chat", plain | offered
        case "anthropic_messages":
            renamed = [{"input_schema" if key == "parameters" else key: one[key] for key in one} for one in functions]
            return "/v1/messages", {**plain, "max_tokens": 1000, **({"tools": renamed} if tools else {})}
        case "openai_responses":
            offered = {"tools": [{"type": "function", **one} for one in functions]} if tools else {}
            return "/v1/responses", {"model": model, "input": [message], "stream": stream, **offered}
        case "gemini":
            declared = {"tools": [{"functionDeclarations": list(functions)}]} if tools else {}
            method = "streamGenerateContent?alt=sse" if stream else "generateContent"
            contents = [{"role": "user", "parts": [{"text": message["content"]}]}]
            return f"/v1beta/models/{model}:{method}", {"contents": contents, **declared}
    raise ValueError(wire)


# -- answers -----------------------------------------------------------------------------------------------------------


def make_answer(wire: str, pieces: Sequence[str], call: Call | None, *, stream: bool) -> Answer:
    """An answer of some pieces of text and perhaps a native call."""
    if stream:
        return STREAMS[wire](pieces, call)
    body = json.dumps(BODIES[wire]("".join(pieces), call)).encode()
    quarter = len(body) // 4
    return Answer((body[:quarter], body[quarter : 2 * quarter], body[2 * quarter : -1], body[-1:]), 3)


def _sse(*events: Mapping[str, Any], named: bool = False) -> list[bytes]:
    return [
        (b"event: %b\n" % one["type"].encode() if named else b"") + b"data: %b\n\n" % json.dumps(one).encode()
        for one in events
    ]


def _chat_stream(pieces: Sequence[str], call: Call | None) -> Answer:
    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}

    received = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": piece}) for piece in pieces)]
    if call:
        first, second = _halves(call)
        received.append(
            chunk(
                {
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": call[0], "arguments": first},
                        }
                    ]
                }
            )
        )
        received.append(chunk({"tool_calls": [{"index": 0, "function": {"arguments": second}}]}))
    end = _sse(chunk({}, "tool_calls" if call else "stop"))
    return Answer((*_sse(*received), *end, b"data: [DONE]\n\n"), len(received))


def _chat_body(text: str, call: Call | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _responses_body(text: str, call: Call | None, status: str = "completed") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    output: list[dict[str, Any]] = [
        {"type": "message", "id": "msg_1", "status": status, "role": "assistant", "content": [part]}
    ]
    if call:
        output.append(
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": call[0],
                "arguments": json.dumps(call[1]),
                "status": status,
            }
        )
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "m",
        "output": output,
        "usage": usage,
    }


def _responses_stream(pieces: Sequence[str], call: Call | None) -> Answer:
    text = "".join(pieces)
    body = _responses_body(text, call)
    begun = body | {"status": "in_progress", "output": []}
    where = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    empty = {"type": "output_text", "text": "", "annotations": []}
    payload: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": body["output"][0] | {"status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **where, "part": empty},
        *({"type": "response.output_text.delta", **where, "delta": piece} for piece in pieces),
        {"type": "response.output_text.done", **where, "text": text},
        {"type": "response.content_part.done", **where, "part": empty | {"text": text}},
        {"type": "response.output_item.done", "output_index": 0, "item": body["output"][0]},
    ]
    if call:
        first, second = _halves(call)
        item, at = body["output"][1], {"item_id": "fc_1", "output_index": 1}
        payload += [
            {
                "type": "response.output_item.added",
                "output_index": 1,
                "item": item | {"arguments": "", "status": "in_progress"},
            },
            {"type": "response.function_call_arguments.delta", **at, "delta": first},
            {"type": "response.function_call_arguments.delta", **at, "delta": second},
            {"type": "response.function_call_arguments.done", **at, "arguments": first + second},
            {"type": "response.output_item.done", "output_index": 1, "item": item},
        ]
    end = {"type": "response.completed", "response": body}
    numbered = [one | {"sequence_number": number} for number, one in enumerate([*payload, end])]
    return Answer(tuple(_sse(*numbered, named=True)), len(payload))


def _anthropic_body(text: str, call: Call | None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if call:
        content.append({"type": "tool_use", "id": "toolu_1", "name": call[0], "input": call[1]})
    usage = {"input_tokens": 1, "output_tokens": 1}
    reason = "tool_use" if call else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage,
    }


def _anthropic_stream(pieces: Sequence[str], call: Call | None) -> Answer:
    body = _anthropic_body("", call)
    payload: list[dict[str, Any]] = [
        {"type": "message_start", "message": body | {"content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in pieces
        ),
        {"type": "content_block_stop", "index": 0},
    ]
    if call:
        payload.append({"type": "content_block_start", "index": 1, "content_block": body["content"][1] | {"input": {}}})
        payload += [
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": half}}
            for half in _halves(call)
        ]
        payload.append({"type": "content_block_stop", "index": 1})
    end: list[dict[str, Any]] = [
        {
            "type": "message_delta",
            "delta": {"stop_reason": body["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    ]
    return Answer(tuple(_sse(*payload, *end, named=True)), len(payload))


def _gemini_body(text: str, call: Call | None, finish: str | None = "STOP") -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": text}] if text or not call else []
    if call:
        parts.append({"functionCall": {"name": call[0], "args": call[1]}})
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


def _gemini_stream(pieces: Sequence[str], call: Call | None) -> Answer:
    received = [_gemini_body(piece, None, None) for piece in pieces]
    if call:
        received.append(_gemini_body("", call, None))
    return Answer(tuple(_sse(*received, _gemini_body("", None))), len(received))


def _ollama_body(text: str, call: Call | None, *, done: bool = True) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if call:
        message["tool_calls"] = [{"function": {"name": call[0], "arguments": call[1]}}]
    head = {"model": "m", "created_at": "2025-01-01T00:00:00Z", "message": message, "done": done}
    return head | ({"done_reason": "stop", "prompt_eval_count": 1, "eval_count": 1} if done else {})


def _ollama_stream(pieces: Sequence[str], call: Call | None) -> Answer:
    received = [_ollama_body(piece, None, done=False) for piece in pieces]
    if call:
        received.append(_ollama_body("", call, done=False))
    lines = [json.dumps(one).encode() + b"\n" for one in (*received, _ollama_body("", None))]
    return Answer(tuple(lines), len(received))


def _halves(call: Call) -> tuple[str, str]:
    arguments = json.dumps(call[1])
    return arguments[:8], arguments[8:]


STREAMS: Final[Mapping[str, Callable[[Sequence[str], Call | None], Answer]]] = {
    "openai_chat": _chat_stream,
    "openai_responses": _responses_stream,
    "anthropic_messages": _anthropic_stream,
    "gemini": _gemini_stream,
    "ollama": _ollama_stream,
}
BODIES: Final[Mapping[str, Callable[[str, Call | None], dict[str, Any]]]] = {
    "openai_chat": _chat_body,
    "openai_responses": _responses_body,
    "anthropic_messages": _anthropic_body,
    "gemini": _gemini_body,
    "ollama": _ollama_body,
}

ERROR_BODIES: Final[Mapping[str, bytes]] = {
    "openai_chat": b'{"error": {"message": "It failed.", "type": "server_error", "param": null, "code": null}}',
    "openai_responses": b'{"error": {"message": "It failed.", "type": "server_error", "param": null, "code": null}}',
    "anthropic_messages": b'{"type": "error", "error": {"type": "api_error", "message": "It failed."}}',
    "gemini": b'{"error": {"code": 500, "message": "It failed.", "status": "INTERNAL"}}',
    "ollama": b'{"error": "It failed."}',
}

"""Anthropic Messages, written and read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.oracle.records import (
    Answer,
    Call,
    Image,
    JsonObject,
    Num,
    Reasoning,
    Request,
    Result,
    Text,
    Tool,
    Turn,
    Usage,
    WireError,
    add_result,
    dump,
    event,
    load,
    numbers,
    pieces,
    read_events,
    settings,
)


def anthropic_request(asked: Request) -> JsonObject:
    messages: list[JsonObject] = []
    for turn in asked.turns:
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = [anthropic_part(part) for part in turn.parts]
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    body: JsonObject = {
        "model": "m",
        "messages": messages,
        "stream": asked.stream,
        "max_tokens": Num(asked.limit or 4096),
    }
    if asked.system:
        body["system"] = asked.system
    if asked.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": load(t.schema)} for t in asked.tools
        ]
    if asked.effort:
        body["output_config"] = {"effort": asked.effort}
    return body | settings(replace(asked, limit=0), "", "temperature", "")


def anthropic_part(part: Any) -> JsonObject:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image", "source": {"type": "base64", "media_type": part.media, "data": part.data}}
        case Call():
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": load(part.arguments)}
        case _:
            return {"type": "tool_result", "tool_use_id": part.call_id, "content": part.text}


def read_anthropic_request(body: JsonObject) -> Request:
    turns: list[Turn] = []
    for at, message in enumerate(body["messages"]):
        if message["role"] != ("user", "assistant")[at % 2]:
            raise WireError("roles do not alternate")
        content = message["content"]
        blocks: list[JsonObject] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        parts: list[Any] = []
        for block in blocks:
            match block["type"]:
                case "text":
                    if not block["text"].strip():
                        raise WireError("a text of white space")
                    parts.append(Text(block["text"]))
                case "image":
                    parts.append(Image(block["source"]["media_type"], block["source"]["data"]))
                case "tool_use":
                    parts.append(Call(block["id"], block["name"], dump(block["input"])))
                case "tool_result":
                    given = block["content"]
                    given = given if isinstance(given, str) else "".join(piece["text"] for piece in given)
                    add_result(turns, Result(block["tool_use_id"], "", given))
        if parts:
            turns.append(Turn(message["role"], tuple(parts)))
    system = body.get("system") or ""
    system = system if isinstance(system, str) else "".join(block["text"] for block in system)
    tools = tuple(Tool(t["name"], t.get("description", ""), dump(t["input_schema"])) for t in body.get("tools", ()))
    effort = (body.get("output_config") or {}).get("effort", "")
    limit = int(body["max_tokens"])
    return Request(tuple(turns), tools, system, limit, body.get("temperature", ""), effort, body["stream"])


def anthropic_usage(usage: Usage) -> JsonObject:
    return numbers(
        {
            "input_tokens": usage.input - usage.cached,
            "output_tokens": usage.output,
            "cache_read_input_tokens": usage.cached,
            "cache_creation_input_tokens": 0,
            "output_tokens_details": {"thinking_tokens": usage.reasoning},
        }
    )


STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}


def anthropic_answer(answer: Answer, stream: bool, size: int) -> bytes:
    blocks = [
        {"type": "thinking", "thinking": part.text, "signature": "c2lnbmVk"}
        if isinstance(part, Reasoning)
        else anthropic_part(part)
        for part in answer.parts
    ]
    head = {"id": "msg_oracle", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    usage = anthropic_usage(answer.usage)
    if not stream:
        return dump(head | {"content": blocks, "stop_reason": STOPS[answer.finish], "usage": usage}).encode()
    start: JsonObject = head | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": Num(1)}}
    steps: list[JsonObject] = [{"type": "message_start", "message": start}]
    for at, (block, part) in enumerate(zip(blocks, answer.parts, strict=True)):
        kind, key = {
            Text: ("text_delta", "text"),
            Reasoning: ("thinking_delta", "thinking"),
            Call: ("input_json_delta", "partial_json"),
        }[type(part)]
        empty: JsonObject = {"text": ""} if isinstance(part, Text) else {"thinking": "", "signature": ""}
        empty = {"input": {}} if isinstance(part, Call) else empty
        steps.append({"type": "content_block_start", "index": Num(at), "content_block": block | empty})
        answer_text = part.arguments if isinstance(part, Call) else part.text
        for piece in pieces(answer_text, size):
            steps.append({"type": "content_block_delta", "index": Num(at), "delta": {"type": kind, key: piece}})
        if isinstance(part, Reasoning):
            signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
            steps.append({"type": "content_block_delta", "index": Num(at), "delta": signed})
        steps.append({"type": "content_block_stop", "index": Num(at)})
    end = {"stop_reason": STOPS[answer.finish], "stop_sequence": None}
    steps.append({"type": "message_delta", "delta": end, "usage": usage})
    steps.append({"type": "message_stop"})
    return "".join(event(step, step["type"]) for step in steps).encode()


def read_anthropic_answer(body: bytes, stream: bool) -> Answer:
    if stream:
        parts, stop, usage = read_anthropic_steps(body)
    else:
        whole = load(body)
        stop, usage = whole["stop_reason"], whole["usage"]
        parts = [read_anthropic_block(block) for block in whole["content"]]
    if any(isinstance(part, Text) and not part.text for part in parts):
        raise WireError("an empty text")
    cached = int(usage.get("cache_read_input_tokens") or 0)
    created = int(usage.get("cache_creation_input_tokens") or 0)
    thought = int((usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0)
    received = Usage(int(usage["input_tokens"]) + cached + created, int(usage["output_tokens"]), cached, thought)
    parts = [part for part in parts if not isinstance(part, Reasoning) or part.text]
    return Answer(tuple(parts), {stop_word: word for word, stop_word in STOPS.items()}[stop], received)


def read_anthropic_steps(body: bytes) -> tuple[list[Any], str, JsonObject]:
    parts: list[Any] = []
    usage: JsonObject = {}
    stop, opened, ended = "", False, False
    for step in read_events(body):
        match step["type"]:
            case "message_start":
                usage = step["message"]["usage"]
            case "content_block_start":
                if opened or step["index"] != str(len(parts)):
                    raise WireError("blocks out of order")
                opened = True
                part = read_anthropic_block(step["content_block"])
                parts.append(replace(part, arguments="") if isinstance(part, Call) else part)
            case "content_block_delta":
                if not opened or step["index"] != str(len(parts) - 1):
                    raise WireError("a delta of no open block")
                parts[-1] = continue_block(parts[-1], step["delta"])
            case "content_block_stop":
                opened = False
            case "message_delta":
                stop, usage = step["delta"]["stop_reason"], usage | (step.get("usage") or {})
            case "message_stop":
                ended = True
            case "error":
                raise WireError(f"failed: {step}")
    if not ended or opened:
        raise WireError("no end")
    return parts, stop, usage


def continue_block(part: Any, delta: JsonObject) -> Any:
    match delta["type"]:
        case "input_json_delta":
            return replace(part, arguments=part.arguments + delta["partial_json"])
        case "text_delta":
            return Text(part.text + delta["text"])
        case "thinking_delta":
            return Reasoning(part.text + delta["thinking"])
    return part


def read_anthropic_block(block: JsonObject) -> Any:
    match block["type"]:
        case "text":
            return Text(block["text"])
        case "thinking":
            return Reasoning(block["thinking"])
        case "redacted_thinking":
            return Reasoning("")
        case _:
            return Call(block["id"], block["name"], dump(block["input"]))

"""Ollama, written and read."""

from __future__ import annotations

from typing import Any

from support.oracle.chat import chat_request, read_chat_request
from support.oracle.records import (
    Answer,
    Call,
    Image,
    JsonObject,
    Reasoning,
    Request,
    Result,
    Text,
    Turn,
    Usage,
    WireError,
    add_result,
    dump,
    escape,
    load,
    merged,
    numbers,
    pieces,
    settings,
    text_of,
)


def ollama_request(asked: Request) -> JsonObject:
    messages: list[JsonObject] = [{"role": "system", "content": asked.system}] if asked.system else []
    for turn in asked.turns:
        if turn.role == "tool":
            messages += [{"role": "tool", "tool_name": r.name, "content": r.text} for r in turn.parts]
            continue
        calls = [ollama_call(part) for part in turn.parts if isinstance(part, Call)]
        images = [part.data for part in turn.parts if isinstance(part, Image)]
        message: JsonObject = {
            "role": turn.role,
            "content": "\n\n".join(p.text for p in turn.parts if isinstance(p, Text)),
        }
        messages.append(message | ({"tool_calls": calls} if calls else {}) | ({"images": images} if images else {}))
    body: JsonObject = {"model": "m", "messages": messages, "stream": asked.stream}
    if asked.tools:
        body["tools"] = chat_request(asked)["tools"]
    if asked.effort:
        body["think"] = asked.effort
    options = settings(asked, "num_predict", "temperature", "")
    return body | ({"options": options} if options else {})


def ollama_call(call: Call) -> JsonObject:
    return {"function": {"name": call.name, "arguments": load(call.arguments)}}


def read_ollama_request(body: JsonObject) -> Request:
    turns: list[Turn] = []
    system = ""
    for message in body["messages"]:
        content = message.get("content") or ""
        if message["role"] == "system":
            system += content
        elif message["role"] == "tool":
            add_result(turns, Result(message.get("tool_call_id", ""), message.get("tool_name", ""), content))
        else:
            parts: list[Any] = [Text(content)] if content else []
            parts += [Image("", data) for data in message.get("images") or ()]
            for call in message.get("tool_calls") or ():
                parts.append(Call(call.get("id", ""), call["function"]["name"], dump(call["function"]["arguments"])))
            turns.append(Turn(message["role"], tuple(parts)))
    options = body.get("options") or {}
    tools = read_chat_request({"messages": [], "tools": body.get("tools", ()), "stream": False}).tools
    think = body.get("think") or ""
    limit = int(options.get("num_predict") or 0)
    effort = think if isinstance(think, str) else "on"
    return Request(tuple(turns), tools, system, limit, options.get("temperature", ""), effort, body["stream"])


def ollama_answer(answer: Answer, stream: bool, size: int) -> bytes:
    head = {"model": "m", "created_at": "2025-01-01T00:00:00.123456789Z"}
    counts = {"prompt_eval_count": answer.usage.input, "eval_count": answer.usage.output, "total_duration": 123456789}
    end = {"done": True, "done_reason": "length" if answer.finish == "length" else "stop"} | numbers(counts)
    calls = [part for part in answer.parts if isinstance(part, Call)]
    if not stream:
        message: JsonObject = {"role": "assistant", "content": text_of(answer.parts)}
        thinking = "".join(part.text for part in answer.parts if isinstance(part, Reasoning))
        if thinking:
            message["thinking"] = thinking
        if calls:
            message["tool_calls"] = [ollama_call(call) for call in calls]
        return dump(head | {"message": message} | end).encode()
    messages: list[JsonObject] = []
    for part in answer.parts:
        if isinstance(part, Call):
            messages.append({"content": "", "tool_calls": [ollama_call(part)]})
        else:
            for piece in pieces(part.text, size):
                messages.append({"content": piece} if isinstance(part, Text) else {"content": "", "thinking": piece})
    lines = [{**head, "message": {"role": "assistant"} | message, "done": False} for message in messages]
    lines.append({**head, "message": {"role": "assistant", "content": ""}, **end})
    return "".join(escape(dump(line)) + "\n" for line in lines).encode()


def read_ollama_answer(body: bytes, stream: bool) -> Answer:
    lines = [load(line) for line in body.decode().splitlines()] if stream else [load(body)]
    parts: list[Any] = []
    for line in lines:
        if "error" in line:
            raise WireError(f"failed: {line}")
        message = line["message"]
        if message.get("thinking"):
            parts.append(Reasoning(message["thinking"]))
        if message.get("content"):
            parts.append(Text(message["content"]))
        for call in message.get("tool_calls") or ():
            parts.append(Call(call.get("id", ""), call["function"]["name"], dump(call["function"]["arguments"])))
    last = lines[-1]
    if not last["done"]:
        raise WireError("the last line is not done")
    usage = Usage(int(last.get("prompt_eval_count") or 0), int(last.get("eval_count") or 0))
    ended = "tool_calls" if any(isinstance(part, Call) for part in parts) else "stop"
    return Answer(merged(parts), "length" if last["done_reason"] == "length" else ended, usage)

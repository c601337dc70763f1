"""OpenAI Chat Completions, written and read."""

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
    merged,
    numbers,
    pieces,
    read_address,
    read_events,
    settings,
    text_of,
)


def chat_request(asked: Request) -> JsonObject:
    messages: list[JsonObject] = [{"role": "system", "content": asked.system}] if asked.system else []
    for turn in asked.turns:
        if turn.role == "tool":
            messages += [{"role": "tool", "tool_call_id": r.call_id, "content": r.text} for r in turn.parts]
        elif turn.role == "user":
            messages.append({"role": "user", "content": [chat_part(part) for part in turn.parts]})
        else:
            calls = [chat_call(part) for part in turn.parts if isinstance(part, Call)]
            content = text_of(turn.parts)
            messages.append({"role": "assistant", "content": content} | ({"tool_calls": calls} if calls else {}))
    body: JsonObject = {"model": "m", "messages": messages, "stream": asked.stream}
    if asked.stream:
        body["stream_options"] = {"include_usage": True}
    if asked.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": t.name, "description": t.description, "parameters": load(t.schema)},
            }
            for t in asked.tools
        ]
    return body | settings(asked, "max_completion_tokens", "temperature", "reasoning_effort")


def chat_part(part: Any) -> JsonObject:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": f"data:{part.media};base64,{part.data}"}}
    return {"type": "text", "text": part.text}


def chat_call(call: Call) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def read_chat_request(body: JsonObject) -> Request:
    turns: list[Turn] = []
    system = ""
    for message in body["messages"]:
        content = message.get("content")
        parts: list[Any] = [Text(content)] if isinstance(content, str) and content else []
        for part in content if isinstance(content, list) else ():
            parts.append(Text(part["text"]) if part["type"] == "text" else read_address(part["image_url"]["url"]))
        if message["role"] in ("system", "developer"):
            system += text_of(tuple(parts))
            continue
        if message["role"] == "tool":
            add_result(turns, Result(message["tool_call_id"], "", text_of(tuple(parts))))
            continue
        for call in message.get("tool_calls") or ():
            parts.append(Call(call["id"], call["function"]["name"], call["function"]["arguments"]))
        turns.append(Turn(message["role"], tuple(parts)))
    tools = tuple(
        Tool(f["name"], f.get("description", ""), dump(f["parameters"]))
        for f in (t["function"] for t in body.get("tools", ()))
    )
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    return Request(
        tuple(turns),
        tools,
        system,
        int(limit),
        body.get("temperature", ""),
        body.get("reasoning_effort", ""),
        body["stream"],
    )


def chat_usage(usage: Usage) -> JsonObject:
    return numbers(
        {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }
    )


def read_chat_usage(usage: JsonObject | None) -> Usage:
    usage = usage or {}
    return Usage(
        int(usage.get("prompt_tokens", 0)),
        int(usage.get("completion_tokens", 0)),
        int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0),
        int((usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0),
    )


CHAT_HEAD: JsonObject = {
    "id": "chatcmpl-oracle",
    "created": Num("1700000000"),
    "model": "m",
    "system_fingerprint": "fp_oracle",
}


def chat_answer(answer: Answer, stream: bool, size: int) -> bytes:
    calls = [part for part in answer.parts if isinstance(part, Call)]
    reasoning = "".join(part.text for part in answer.parts if isinstance(part, Reasoning))
    if not stream:
        message: JsonObject = {"role": "assistant", "content": text_of(answer.parts)}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            message["tool_calls"] = [chat_call(call) for call in calls]
        choice = {"index": Num(0), "message": message, "finish_reason": answer.finish, "logprobs": None}
        return dump(
            CHAT_HEAD | {"object": "chat.completion", "choices": [choice], "usage": chat_usage(answer.usage)}
        ).encode()
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    number = 0
    for part in answer.parts:
        if isinstance(part, Call):
            head = chat_call(replace(part, arguments=""))
            deltas.append({"tool_calls": [{"index": Num(number)} | head]})
            for piece in pieces(part.arguments, size):
                deltas.append({"tool_calls": [{"index": Num(number), "function": {"arguments": piece}}]})
            number += 1
        else:
            key = "content" if isinstance(part, Text) else "reasoning_content"
            deltas += [{key: piece} for piece in pieces(part.text, size)]
    head = CHAT_HEAD | {"object": "chat.completion.chunk"}
    answer_text = [event(head | {"choices": [{"index": Num(0), "delta": d, "finish_reason": None}]}) for d in deltas]
    answer_text.append(event(head | {"choices": [{"index": Num(0), "delta": {}, "finish_reason": answer.finish}]}))
    answer_text.append(event(head | {"choices": [], "usage": chat_usage(answer.usage)}))
    return "".join([*answer_text, event("[DONE]")]).encode()


def read_chat_answer(body: bytes, stream: bool) -> Answer:
    if not stream:
        answer = load(body)
        message, finish = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
        parts: list[Any] = []
        if message.get("reasoning_content"):
            parts.append(Reasoning(message["reasoning_content"]))
        if message.get("content"):
            parts.append(Text(message["content"]))
        for call in message.get("tool_calls") or ():
            parts.append(Call(call["id"], call["function"]["name"], call["function"]["arguments"]))
        return Answer(tuple(parts), finish, read_chat_usage(answer.get("usage")))
    if not body.endswith(b"data: [DONE]\n\n"):
        raise WireError("no [DONE]")
    parts, finish, usage = [], "", Usage()
    places: dict[str, int] = {}
    for chunk in read_events(body):
        if chunk.get("usage"):
            usage = read_chat_usage(chunk["usage"])
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("reasoning_content"):
                parts.append(Reasoning(delta["reasoning_content"]))
            if delta.get("content"):
                parts.append(Text(delta["content"]))
            for piece in delta.get("tool_calls") or ():
                if piece["index"] not in places:
                    places[piece["index"]] = len(parts)
                    parts.append(Call(piece["id"], piece["function"]["name"], ""))
                call = parts[places[piece["index"]]]
                parts[places[piece["index"]]] = replace(
                    call, arguments=call.arguments + (piece["function"].get("arguments") or "")
                )
            finish = choice.get("finish_reason") or finish
    return Answer(merged(parts), finish, usage)

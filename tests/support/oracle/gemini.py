"""Gemini, written and read."""

from __future__ import annotations

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
    read_events,
    settings,
)


def gemini_request(asked: Request) -> JsonObject:
    contents: list[JsonObject] = []
    for turn in asked.turns:
        role = "model" if turn.role == "assistant" else "user"
        parts = [gemini_part(part) for part in turn.parts]
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        else:
            contents.append({"role": role, "parts": parts})
    body: JsonObject = {"contents": contents}
    if asked.system:
        body["systemInstruction"] = {"parts": [{"text": asked.system}]}
    if asked.tools:
        body["tools"] = [
            {
                "functionDeclarations": [
                    {"name": t.name, "description": t.description, "parametersJsonSchema": load(t.schema)}
                    for t in asked.tools
                ]
            }
        ]
    thinking: JsonObject = {"includeThoughts": True}
    if asked.effort:
        thinking["thinkingLevel"] = asked.effort.upper()
    body["generationConfig"] = settings(asked, "maxOutputTokens", "temperature", "") | {"thinkingConfig": thinking}
    return body


def gemini_part(part: Any) -> JsonObject:
    match part:
        case Text():
            return {"text": part.text}
        case Reasoning():
            return {"text": part.text, "thought": True}
        case Image():
            return {"inlineData": {"mimeType": part.media, "data": part.data}}
        case Call():
            return {"functionCall": {"id": part.id, "name": part.name, "args": load(part.arguments)}}
        case _:
            given = load(part.text) if part.text.startswith("{") else {"output": part.text}
            return {"functionResponse": {"id": part.call_id, "name": part.name, "response": given}}


def read_gemini_request(body: JsonObject, stream: bool) -> Request:
    turns: list[Turn] = []
    for content in body["contents"]:
        parts: list[Any] = []
        for part in content["parts"]:
            if "functionResponse" in part:
                given = part["functionResponse"]
                text = given["response"]
                text = text["output"] if set(text) == {"output"} and not isinstance(text["output"], Num) else text
                text = text if isinstance(text, str) else dump(text)
                add_result(turns, Result(given.get("id", ""), given["name"], text))
                continue
            read = read_gemini_part(part)
            if not isinstance(read, Call | Image) and not read.text:
                raise WireError("an empty part")
            parts.append(read)
        if parts:
            turns.append(Turn("assistant" if content["role"] == "model" else "user", tuple(parts)))
    system = "".join(part["text"] for part in (body.get("systemInstruction") or {"parts": []})["parts"])
    tools = []
    for group in body.get("tools", ()):
        for one in group["functionDeclarations"]:
            tools.append(Tool(one["name"], one.get("description", ""), dump(one["parametersJsonSchema"])))
    config = body.get("generationConfig") or {}
    effort = (config.get("thinkingConfig") or {}).get("thinkingLevel", "").lower()
    limit = int(config.get("maxOutputTokens") or 0)
    return Request(tuple(turns), tuple(tools), system, limit, config.get("temperature", ""), effort, stream)


def read_gemini_part(part: JsonObject) -> Any:
    if "functionCall" in part:
        call = part["functionCall"]
        return Call(call.get("id", ""), call["name"], dump(call.get("args") or {}))
    if "inlineData" in part:
        return Image(part["inlineData"]["mimeType"], part["inlineData"]["data"])
    return Reasoning(part["text"]) if part.get("thought") else Text(part["text"])


def gemini_answer(answer: Answer, stream: bool, size: int) -> bytes:
    usage = answer.usage
    received = numbers(
        {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.reasoning,
            "thoughtsTokenCount": usage.reasoning,
            "cachedContentTokenCount": usage.cached,
            "totalTokenCount": usage.input + usage.output,
        }
    )
    head = {"modelVersion": "m", "responseId": "gem_oracle"}
    reason = "MAX_TOKENS" if answer.finish == "length" else "STOP"
    if not stream:
        content = {"role": "model", "parts": [gemini_part(part) for part in answer.parts]}
        candidate = {"content": content, "finishReason": reason, "index": Num(0), "avgLogprobs": Num("-0.250")}
        return dump(head | {"candidates": [candidate], "usageMetadata": received}).encode()
    parts: list[JsonObject] = []
    for part in answer.parts:
        cut = [part] if isinstance(part, Call) else [type(part)(piece) for piece in pieces(part.text, size)]
        parts += map(gemini_part, cut)
    chunks: list[JsonObject] = [
        head | {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": Num(0)}]} for part in parts
    ]
    chunks[-1]["candidates"][0]["finishReason"] = reason
    chunks[-1]["usageMetadata"] = received
    return "".join(map(event, chunks)).encode()


def read_gemini_answer(body: bytes, stream: bool) -> Answer:
    chunks = list(read_events(body)) if stream else [load(body)]
    parts: list[Any] = []
    finish = ""
    usage: JsonObject = {}
    for chunk in chunks:
        if "error" in chunk:
            raise WireError(f"failed: {chunk}")
        usage = chunk.get("usageMetadata") or usage
        for candidate in chunk.get("candidates") or ():
            read = [read_gemini_part(part) for part in candidate.get("content", {}).get("parts", ())]
            if not stream and any(isinstance(part, Text) and not part.text for part in read):
                raise WireError("an empty part")
            parts += [part for part in read if isinstance(part, Call) or part.text]
            finish = candidate.get("finishReason") or finish
    if not finish:
        raise WireError("no finishReason")
    thoughts = int(usage.get("thoughtsTokenCount") or 0)
    received = Usage(
        int(usage.get("promptTokenCount") or 0),
        int(usage.get("candidatesTokenCount") or 0) + thoughts,
        int(usage.get("cachedContentTokenCount") or 0),
        thoughts,
    )
    ended = "tool_calls" if any(isinstance(part, Call) for part in parts) else "stop"
    return Answer(merged(parts), "length" if finish == "MAX_TOKENS" else ended, received)

"""OpenAI Responses, written and read."""

from __future__ import annotations

from typing import Any

from support.oracle.records import (
    Answer,
    Call,
    Image,
    Json,
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
    read_address,
    read_events,
    settings,
    text_of,
)


def responses_request(asked: Request) -> JsonObject:
    items: list[JsonObject] = []
    for turn in asked.turns:
        for part in turn.parts:
            if isinstance(part, Call):
                items.append(
                    {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
                )
            elif isinstance(part, Result):
                items.append({"type": "function_call_output", "call_id": part.call_id, "output": part.text})
            elif turn.role == "assistant":
                content = [{"type": "output_text", "text": part.text, "annotations": []}]
                items.append({"type": "message", "role": "assistant", "content": content})
            else:
                piece = (
                    {"type": "input_image", "image_url": f"data:{part.media};base64,{part.data}", "detail": "auto"}
                    if isinstance(part, Image)
                    else {"type": "input_text", "text": part.text}
                )
                if part is turn.parts[0]:
                    items.append({"type": "message", "role": "user", "content": []})
                items[-1]["content"].append(piece)
    body: JsonObject = {"model": "m", "input": items, "stream": asked.stream, "store": False}
    if asked.system:
        body["instructions"] = asked.system
    if asked.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": t.name,
                "description": t.description,
                "parameters": load(t.schema),
                "strict": False,
            }
            for t in asked.tools
        ]
    if asked.effort:
        body["reasoning"] = {"effort": asked.effort}
    return body | settings(asked, "max_output_tokens", "temperature", "")


def read_responses_request(body: JsonObject) -> Request:
    turns: list[Turn] = []
    system = body.get("instructions") or ""
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call_output":
            add_result(turns, Result(item["call_id"], "", read_output(item["output"])))
            continue
        if kind == "function_call":
            load(item["arguments"])
            part: Any = (Call(item["call_id"], item["name"], item["arguments"]),)
            role = "assistant"
        else:
            role, content = item["role"], item["content"]
            content = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
            if role == "assistant" and not text_of(tuple(Text(piece.get("text", "")) for piece in content)):
                raise WireError("an empty message")
            part = tuple(
                read_address(piece["image_url"]) if piece["type"] == "input_image" else Text(piece["text"])
                for piece in content
            )
        if role in ("system", "developer"):
            system += text_of(part)
        elif role == "assistant" and turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", (*turns[-1].parts, *part))
        else:
            turns.append(Turn(role, part))
    tools = tuple(Tool(t["name"], t.get("description", ""), dump(t["parameters"])) for t in body.get("tools", ()))
    effort = (body.get("reasoning") or {}).get("effort", "")
    limit = int(body.get("max_output_tokens") or 0)
    return Request(tuple(turns), tools, system, limit, body.get("temperature", ""), effort, body["stream"])


def read_output(output: Json) -> str:
    return output if isinstance(output, str) else "".join(part["text"] for part in output)


def responses_items(answer: Answer, cut: bool = False) -> list[JsonObject]:
    items: list[JsonObject] = []
    for at, part in enumerate(answer.parts):
        match part:
            case Reasoning():
                summary = [{"type": "summary_text", "text": part.text}]
                items.append({"type": "reasoning", "id": f"rs_{at}", "summary": summary})
            case Text():
                content = [{"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}]
                items.append(
                    {
                        "type": "message",
                        "id": f"msg_{at}",
                        "role": "assistant",
                        "status": "completed",
                        "content": content,
                    }
                )
            case Call():
                items.append(
                    {"type": "function_call", "id": f"fc_{at}", "call_id": part.id, "name": part.name}
                    | {"arguments": part.arguments, "status": "completed"}
                )
    return items


def responses_whole(answer: Answer) -> JsonObject:
    usage = answer.usage
    cut = answer.finish == "length"
    return {
        "id": "resp_oracle",
        "object": "response",
        "created_at": Num("1700000000"),
        "model": "m",
        "service_tier": "default",
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": responses_items(answer),
        "usage": numbers(
            {
                "input_tokens": usage.input,
                "input_tokens_details": {"cached_tokens": usage.cached},
                "output_tokens": usage.output,
                "output_tokens_details": {"reasoning_tokens": usage.reasoning},
                "total_tokens": usage.input + usage.output,
            }
        ),
    }


def responses_answer(answer: Answer, stream: bool, size: int) -> bytes:
    whole = responses_whole(answer)
    if not stream:
        return dump(whole).encode()
    steps: list[JsonObject] = []

    def step(kind: str, **fields: Json) -> None:
        steps.append({"type": kind, "sequence_number": Num(len(steps)), **fields})

    begun = whole | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    step("response.created", response=begun)
    for at, item in enumerate(whole["output"]):
        place: JsonObject = {"output_index": Num(at), "item_id": item["id"]}
        empty = item | {"status": "in_progress"}
        match item["type"]:
            case "reasoning":
                step("response.output_item.added", output_index=Num(at), item=empty | {"summary": []})
                place["summary_index"] = Num(0)
                step("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""})
                for piece in pieces(item["summary"][0]["text"], size):
                    step("response.reasoning_summary_text.delta", **place, delta=piece)
                step("response.reasoning_summary_text.done", **place, text=item["summary"][0]["text"])
                step("response.reasoning_summary_part.done", **place, part=item["summary"][0])
            case "message":
                step("response.output_item.added", output_index=Num(at), item=empty | {"content": []})
                place["content_index"] = Num(0)
                step("response.content_part.added", **place, part=item["content"][0] | {"text": ""})
                for piece in pieces(item["content"][0]["text"], size):
                    step("response.output_text.delta", **place, delta=piece, logprobs=[])
                step("response.output_text.done", **place, text=item["content"][0]["text"], logprobs=[])
                step("response.content_part.done", **place, part=item["content"][0])
            case _:
                step("response.output_item.added", output_index=Num(at), item=empty | {"arguments": ""})
                for piece in pieces(item["arguments"], size):
                    step("response.function_call_arguments.delta", **place, delta=piece)
                step("response.function_call_arguments.done", **place, arguments=item["arguments"])
        step("response.output_item.done", output_index=Num(at), item=item)
    step("response.incomplete" if answer.finish == "length" else "response.completed", response=whole)
    return "".join(event(one, one["type"]) for one in steps).encode()


def read_responses_items(items: list[JsonObject]) -> list[Any]:
    parts: list[Any] = []
    for item in items:
        match item["type"]:
            case "reasoning":
                answer_text = "".join(piece["text"] for piece in item["summary"]) or "".join(
                    piece["text"] for piece in item.get("content") or ()
                )
                if answer_text:
                    parts.append(Reasoning(answer_text))
            case "message":
                text = "".join(piece["text"] for piece in item["content"])
                if not text:
                    raise WireError("an empty message")
                parts.append(Text(text))
            case "function_call":
                parts.append(Call(item["call_id"], item["name"], item["arguments"]))
    return parts


def read_responses_answer(body: bytes, stream: bool) -> Answer:
    if not stream:
        whole = load(body)
    else:
        payload: dict[str, JsonObject] = {}
        streamed: dict[str, str] = {}
        whole = {}
        for at, step in enumerate(read_events(body)):
            if step["sequence_number"] != str(at):
                raise WireError("steps are not numbered in order")
            kind = step["type"]
            if kind == "response.output_item.added":
                if step["output_index"] != str(len(payload)):
                    raise WireError("items out of order")
                payload[step["output_index"]] = {}
            elif kind == "response.output_item.done":
                payload[step["output_index"]] = step["item"]
            elif kind.endswith(
                (".output_text.delta", ".function_call_arguments.delta", "reasoning_summary_text.delta")
            ):
                streamed[step["output_index"]] = streamed.get(step["output_index"], "") + step["delta"]
            elif kind in ("response.completed", "response.incomplete"):
                whole = step["response"]
            elif kind in ("response.failed", "error"):
                raise WireError(f"failed: {step}")
        if not whole:
            raise WireError("no end")
        if list(payload.values()) != whole["output"]:
            raise WireError("the items of the stream are not those of the response")
        for place, item in payload.items():
            one = read_responses_items([item])
            if one and streamed.get(place, "") != (one[0].arguments if isinstance(one[0], Call) else one[0].text):
                raise WireError("the pieces do not make the item")
    usage = whole.get("usage") or {}
    encode_usage = Usage(
        int(usage.get("input_tokens", 0)),
        int(usage.get("output_tokens", 0)),
        int((usage.get("input_tokens_details") or {}).get("cached_tokens") or 0),
        int((usage.get("output_tokens_details") or {}).get("reasoning_tokens") or 0),
    )
    parts = read_responses_items(whole["output"])
    finish = "tool_calls" if any(isinstance(part, Call) for part in parts) else "stop"
    return Answer(tuple(parts), "length" if whole["status"] == "incomplete" else finish, encode_usage)

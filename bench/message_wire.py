"""Chat requests and answers on the Messages wire, for a client of that wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def to_messages_request(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A chat request with tools as a request of the Messages wire."""
    system = "\n\n".join(each["content"] for each in asked["messages"] if each["role"] == "system")
    tools = [each["function"] for each in asked["tools"]]
    return {
        **{name: value for name, value in asked.items() if name not in ("messages", "tools")},
        **({"system": system} if system else {}),
        "messages": list(_convert(asked["messages"])),
        "tools": [
            {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
            for each in tools
        ],
    }


def _convert(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages with blocks; the results of one turn share one message."""
    results: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            results.append(
                {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
            )
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if message["role"] == "assistant":
            yield {"role": "assistant", "content": [*_blocks(message)]}
        elif message["role"] == "user":
            yield {"role": "user", "content": message["content"]}
    if results:
        yield {"role": "user", "content": results}


def _blocks(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if message.get("content"):
        yield {"type": "text", "text": message["content"]}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        arguments = json.loads(function["arguments"])
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def from_messages_answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The message of a chat answer."""
    blocks = answer["content"]
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}

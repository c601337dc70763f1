"""The rules of the strictest servers of each wire about calls and results in a request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ANTHROPIC_ID = re.compile(r"[a-zA-Z0-9_-]+")


def check_chat(request: Mapping[str, Any]) -> list[str]:
    """Results follow right behind the message with their calls, one for each. Returns all ids in order."""
    ids: list[str] = []
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            assert isinstance(message["content"], str)
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, f"calls without results: {waiting}"
        for call in message.get("tool_calls", ()):
            check_arguments(call["function"]["arguments"])
            waiting.append(call["id"])
        ids += waiting
    assert not waiting
    return check_ids(ids)


def check_anthropic(request: Mapping[str, Any]) -> list[str]:
    """Roles alternate, and results are the first blocks behind the turn with their calls."""
    ids: list[str] = []
    waiting: list[str] = []
    before = ""
    for message in request["messages"]:
        assert message["role"] != before
        before = message["role"]
        blocks = message["content"]
        results = [block for block in blocks if block["type"] == "tool_result"]
        assert blocks[: len(results)] == results
        assert sorted(block["tool_use_id"] for block in results) == sorted(waiting)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use")
        ids += waiting
    assert not waiting
    assert all(ANTHROPIC_ID.fullmatch(one) for one in ids)
    return check_ids(ids)


def check_gemini(request: Mapping[str, Any]) -> list[str]:
    """A content with as many responses as calls follows each content with calls."""
    ids: list[str] = []
    waiting: list[tuple[str, str]] = []
    for content in request["contents"]:
        results = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        assert sorted((one["id"], one["name"]) for one in results) == sorted(waiting)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        assert all(isinstance(call["args"], dict) for call in calls)
        waiting = [(call["id"], call["name"]) for call in calls]
        ids += [call["id"] for call in calls]
    assert not waiting
    return check_ids(ids)


def check_responses(request: Mapping[str, Any]) -> list[str]:
    """Every call has one output behind it, before the next message."""
    ids: list[str] = []
    waiting: list[str] = []
    for item in request["input"]:
        if item["type"] == "function_call":
            check_arguments(item["arguments"])
            waiting.append(item["call_id"])
            ids.append(item["call_id"])
        elif item["type"] == "function_call_output":
            waiting.remove(item["call_id"])
        elif item.get("role") != "assistant":
            assert not waiting
    assert not waiting
    return check_ids(ids)


def check_ollama(request: Mapping[str, Any]) -> list[str]:
    ids: list[str] = []
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        calls = message.get("tool_calls", ())
        assert all(isinstance(call["function"]["arguments"], dict) for call in calls)
        waiting = [call["id"] for call in calls]
        ids += waiting
    assert not waiting
    return check_ids(ids)


CHECKS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "openai_chat": check_chat,
    "anthropic_messages": check_anthropic,
    "gemini": check_gemini,
    "openai_responses": check_responses,
    "ollama": check_ollama,
}


def check_ids(ids: Iterable[str]) -> list[str]:
    listed = list(ids)
    assert len(set(listed)) == len(listed) and all(listed), f"ids are not unique: {listed}"
    return listed


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def check_arguments(text: str) -> None:
    """The text is a JSON object for a parser without extensions."""
    value = json.loads(text, parse_constant=_refuse)
    assert isinstance(value, dict)
    json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair


def check_request(wire: str, body: bytes) -> list[str]:
    """Check a request as the strictest server of its wire does. Returns the ids of its calls."""
    return CHECKS[wire](json.loads(body))

"""Strict clients of every wire, which use none of toolglot's decoders: the content of an answer, and how it ended.

An answer ends in one of these ways: ``ok``; ``truncated`` (the wire says that the limit cut it); ``error`` (an HTTP error in the format of the wire); ``error_event`` (an error inside of a stream); ``cut`` (the connection broke, visibly);
``unfinished`` (everything was fine but for the end, which is missing); ``bad_call`` (a call whose arguments no client can
read, which is how a call is taken back that had begun to stream); ``malformed`` (nothing a client could read).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final


class MalformedError(Exception):
    """What came is no answer of the wire."""


class BadCallError(Exception):
    """The arguments of a call are no JSON."""


@dataclass
class Outcome:
    end: str
    text: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    closed: list[tuple[str, str]] = field(default_factory=list)
    """Calls that a stream declared complete, with their arguments as text, whatever came behind them."""
    begun: list[tuple[str, str]] = field(default_factory=list)
    """Calls that a stream began, with as much of their arguments as came, where they come in pieces."""
    status: int = 0
    why: str = ""


def read_answer(wire: str, status: int, body: bytes, *, stream: bool, complete: bool) -> Outcome:
    """``complete``: whether the body is complete according to HTTP."""
    outcome = Outcome("unfinished", status=status)
    try:
        if status >= 400:
            check_error(wire, json.loads(body))
            outcome.end = "error" if complete else "cut"
        elif stream:
            STREAM_READERS[wire](_events(wire, body), outcome)
            if not complete and outcome.end not in ("error_event",):
                outcome.end = "cut"
        else:
            BODY_READERS[wire](json.loads(body), outcome)
            outcome.end = outcome.end if complete else "cut"
    except BadCallError as error:
        outcome.end, outcome.why = ("bad_call" if complete else "cut"), str(error)
    except (MalformedError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        outcome.end, outcome.why = ("malformed" if complete else "cut"), f"{type(error).__name__}: {error}"
    return outcome


def check_error(wire: str, expected: Any) -> None:
    error = expected["error"]
    message = error if wire == "ollama" else error["message"]
    if not isinstance(message, str) or not message:
        raise MalformedError("an error without a message")
    if wire == "anthropic_messages" and (expected["type"] != "error" or not error["type"]):
        raise MalformedError("no error of this wire")
    if wire == "gemini" and not (isinstance(error["code"], int) and error["status"]):
        raise MalformedError("no error of this wire")


def _events(wire: str, body: bytes) -> Iterator[Any]:
    """The events of a stream; what is not ended by a blank line is lost, as the standard requires."""
    if wire == "ollama":
        lines = body.split(b"\n")
        if lines[-1]:
            raise MalformedError("the last line is not ended")
        yield from (json.loads(line) for line in lines if line)
        return
    *events, rest = body.replace(b"\r\n", b"\n").split(b"\n\n")
    for event in events:
        data = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
        if received := b"\n".join(data):
            yield received if received == b"[DONE]" else json.loads(received)
    if rest.strip():
        raise MalformedError("the last event is not ended")


def _finish_call(name: str, arguments: str) -> tuple[str, Any]:
    try:
        return name, json.loads(arguments or "{}")
    except ValueError:
        raise BadCallError(arguments) from None


def _read_chat_stream(events: Iterator[Any], out: Outcome) -> None:
    calls: dict[int, list[str]] = {}
    finish = ""
    for event in events:
        if out.end != "unfinished":
            raise MalformedError("something comes behind the end")
        if event == b"[DONE]":
            out.end = {"": "unfinished", "length": "truncated"}.get(finish, "ok")
            out.why = finish
            continue
        if "error" in event:
            check_error("openai_chat", event)
            out.end = "error_event"
            continue
        for choice in event["choices"]:
            delta = choice["delta"]
            out.text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                known = calls.setdefault(call["index"], ["", ""])
                known[0] += call["function"].get("name") or ""
                known[1] += call["function"].get("arguments") or ""
            finish = choice["finish_reason"] or finish
    out.begun = [(name, arguments) for name, arguments in calls.values()]
    if finish == "tool_calls":
        out.closed = [(name, arguments) for name, arguments in calls.values()]
        out.calls = [_finish_call(*call) for call in calls.values()]


def _read_chat_body(expected: Any, out: Outcome) -> None:
    (choice,) = expected["choices"]
    message = choice["message"]
    out.text = message.get("content") or ""
    out.calls = [
        _finish_call(call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    out.end = {"length": "truncated", None: "unfinished"}.get(choice["finish_reason"], "ok")


def _read_responses_stream(events: Iterator[Any], out: Outcome) -> None:
    for event in events:
        if out.end != "unfinished" and not (out.end == "error_event" and event["type"] in ("response.failed", "error")):
            raise MalformedError("something comes behind the end")
        match event["type"]:
            case "response.output_text.delta":
                out.text += event["delta"]
            case "response.function_call_arguments.delta":
                out.begun.append(("", (out.begun.pop()[1] if out.begun else "") + event["delta"]))
            case "response.output_item.done" if event["item"]["type"] == "function_call":
                out.closed.append((event["item"]["name"], event["item"]["arguments"]))
            case "response.completed":
                text, out.text = out.text, ""
                _read_responses_body(event["response"], out)
                if text != out.text:
                    raise MalformedError("the deltas are not the text")
            case "response.incomplete":
                out.end = "truncated"
            case "response.failed" | "error":
                out.end = "error_event"


def _read_responses_body(expected: Any, out: Outcome) -> None:
    for item in expected["output"]:
        if item["type"] == "message":
            out.text += "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
        elif item["type"] == "function_call":
            out.calls.append(_finish_call(item["name"], item["arguments"]))
    out.end = {"completed": "ok", "incomplete": "truncated", "failed": "error"}[expected["status"]]


def _read_anthropic_stream(events: Iterator[Any], out: Outcome) -> None:
    blocks: dict[int, dict[str, Any]] = {}
    written: dict[int, str] = {}
    ended: list[int] = []
    reason = None
    for event in events:
        if out.end != "unfinished":
            raise MalformedError("something comes behind the end")
        match event["type"]:
            case "content_block_start":
                blocks[event["index"]], written[event["index"]] = event["content_block"], ""
            case "content_block_delta":
                delta = event["delta"]
                out.text += delta.get("text", "")
                written[event["index"]] += delta.get("partial_json", "")
            case "content_block_stop":
                ended.append(event["index"])
                if blocks[event["index"]]["type"] == "tool_use":
                    out.closed.append((blocks[event["index"]]["name"], written[event["index"]]))
            case "message_delta":
                reason = event["delta"]["stop_reason"]
            case "message_stop":
                out.end = {None: "unfinished", "max_tokens": "truncated"}.get(reason, "ok")
            case "error":
                check_error("anthropic_messages", event)
                out.end = "error_event"
    out.begun = [(blocks[at]["name"], written[at]) for at in blocks if blocks[at]["type"] == "tool_use"]
    if out.end == "ok":
        calls = [at for at in ended if blocks[at]["type"] == "tool_use"]
        out.calls = [_finish_call(blocks[at]["name"], written[at]) for at in calls]


def _read_anthropic_body(expected: Any, out: Outcome) -> None:
    for block in expected["content"]:
        if block["type"] == "text":
            out.text += block["text"]
        elif block["type"] == "tool_use":
            out.calls.append((block["name"], block["input"]))
    out.end = {None: "unfinished", "max_tokens": "truncated"}.get(expected["stop_reason"], "ok")


def _read_gemini_stream(events: Iterator[Any], out: Outcome) -> None:
    for event in events:
        if out.end != "unfinished":
            raise MalformedError("something comes behind the end")
        if "error" in event:
            check_error("gemini", event)
            out.end = "error_event"
        else:
            _read_gemini_body(event, out)


def _read_gemini_body(expected: Any, out: Outcome) -> None:
    (candidate,) = expected["candidates"]
    for part in candidate.get("content", {}).get("parts", ()):
        if "functionCall" in part:
            out.calls.append((part["functionCall"]["name"], part["functionCall"].get("args", {})))
            out.closed.append((out.calls[-1][0], json.dumps(out.calls[-1][1])))
        else:
            out.text += part["text"]
    finish = candidate.get("finishReason")
    ends = {None: "unfinished", "STOP": "ok", "MAX_TOKENS": "truncated", "MALFORMED_FUNCTION_CALL": "bad_call"}
    out.end = ends.get(finish, "error_event")


def _read_ollama_stream(events: Iterator[Any], out: Outcome) -> None:
    for event in events:
        if out.end != "unfinished":
            raise MalformedError("something comes behind the end")
        if "error" in event:
            check_error("ollama", event)
            out.end = "error_event"
        else:
            _read_ollama_body(event, out)


def _read_ollama_body(expected: Any, out: Outcome) -> None:
    message = expected["message"]
    out.text += message["content"]
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    out.calls += calls
    out.closed += [(name, json.dumps(arguments)) for name, arguments in calls]
    if expected["done"]:
        out.end = "truncated" if expected["done_reason"] == "length" else "ok"


STREAM_READERS: Final[Mapping[str, Callable[[Iterator[Any], Outcome], None]]] = {
    "openai_chat": _read_chat_stream,
    "openai_responses": _read_responses_stream,
    "anthropic_messages": _read_anthropic_stream,
    "gemini": _read_gemini_stream,
    "ollama": _read_ollama_stream,
}
BODY_READERS: Final[Mapping[str, Callable[[Any, Outcome], None]]] = {
    "openai_chat": _read_chat_body,
    "openai_responses": _read_responses_body,
    "anthropic_messages": _read_anthropic_body,
    "gemini": _read_gemini_body,
    "ollama": _read_ollama_body,
}

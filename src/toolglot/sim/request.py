"""Parse a chat completions request into what a model would see of it.

The tools come only from the request itself: from ``tools``, or from the system prompt if it describes some. The
question is the last text of the user; a result is what a tool returned, natively or as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolglot.core.conversation import Tool
from toolglot.core.errors import ClientError
from toolglot.sim.prompt_parsers import find_tools
from toolglot.sim.prompt_reading import detect_choice, split_result


@dataclass(frozen=True, slots=True)
class SimRequest:
    """``choice`` is none, auto or required, or the name of the one tool that must be called. ``prompt`` is the system
    prompt if the tools are not native. ``limit`` is in tokens. ``inputs`` are the texts that did not come from the
    model, in order: questions and results. ``constrained``: the answer must follow a grammar or a schema. ``folder`` is
    the working directory that the client names, if any."""

    model: str
    question: str
    tools: tuple[Tool, ...]
    native: bool
    prompt: str = ""
    result: str | None = None
    choice: str = "auto"
    stream: bool = False
    wants_usage: bool = False
    limit: int | None = None
    inputs: tuple[str, ...] = ()
    constrained: bool = False
    folder: str = ""


FOLDER = re.compile(r"[Ww]ork(?:ing|space) (?:in the )?[Dd]irector(?:y|ies)(?: is)?[:*\s-]+(/[^\n\"'`<>]*)")
CONSTRAINTS = ("grammar", "json_schema", "structural_tag", "structured_outputs", "guided_json", "guided_grammar")
"""Fields of servers that constrain an answer; ``response_format`` does it with any type but ``text``."""


def parse_request(body: Any) -> SimRequest:
    """Parse a request body.

    Raises: ``ClientError`` if it is not an object with messages.
    """
    if not isinstance(body, Mapping):
        raise ClientError("the request body must be a JSON object")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(entry, Mapping) for entry in messages):
        raise ClientError("'messages' must be a list of messages, at least one")
    native = read_tools(body.get("tools"))
    prompt = "\n\n".join(read_text(entry) for entry in messages if entry.get("role") in ("system", "developer"))
    tools = native or find_tools(prompt)
    question, result = _read_turn(messages)
    options = body.get("stream_options")
    return SimRequest(
        model=str(body.get("model") or ""),
        question=question,
        tools=tools,
        native=bool(native),
        prompt="" if native else prompt,
        result=result,
        choice=_read_choice(body.get("tool_choice")) if native else detect_choice(prompt),
        stream=body.get("stream") is True,
        wants_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        limit=_read_limit(body),
        inputs=tuple(_read_inputs(messages)),
        folder=_find_folder([read_text(message) for message in messages]),
        constrained=_is_constrained(body),
    )


def read_text(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a string, parts, or null."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))


def read_tools(tools: Any) -> tuple[Tool, ...]:
    """The function tools of a request; like servers, it ignores other entries."""
    found: dict[str, Tool] = {}
    for entry in tools if isinstance(tools, list) else []:
        function = entry.get("function") if isinstance(entry, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(function, Mapping) and isinstance(name, str) and name.strip():
            parameters = function.get("parameters")
            schema = parameters if isinstance(parameters, Mapping) else {}
            found.setdefault(name, Tool(name, str(function.get("description") or ""), schema))
    return tuple(found.values())


def _read_turn(messages: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """The last question of the user, and the tool results after it, or None."""
    result: str | None = None
    for number, message in reversed(list(enumerate(messages))):
        role, text = message.get("role"), read_text(message)
        if role in ("tool", "function"):
            result = text if result is None else f"{text}\n{result}"
        elif role == "user":
            is_reply = any(earlier.get("role") == "assistant" for earlier in messages[:number])
            question, found = split_result(text) if is_reply else (text, None)
            if found is None or question:
                return question, result
            result = found if result is None else f"{found}\n{result}"
    return "", result


def _read_inputs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The texts of users and tools, results apart from the question behind them."""
    for message in messages:
        text = read_text(message)
        if message.get("role") in ("tool", "function"):
            yield text
        elif message.get("role") == "user":
            question, result = split_result(text)
            yield from (found for found in (result, question) if found)


def _find_folder(texts: Sequence[str]) -> str:
    """The working directory that a client names in its prompt."""
    found = next(filter(None, map(FOLDER.search, texts)), None)
    return found[1].rstrip(" .,;") if found else ""


def _is_constrained(body: Mapping[str, Any]) -> bool:
    shape = body.get("response_format")
    shaped = isinstance(shape, Mapping) and shape.get("type") != "text"
    return shaped or any(body.get(name) for name in CONSTRAINTS)


def _read_choice(choice: Any) -> str:
    if isinstance(choice, Mapping):
        function = choice.get("function")
        return str(function.get("name")) if isinstance(function, Mapping) else "auto"
    return choice if isinstance(choice, str) else "auto"


def _read_limit(body: Mapping[str, Any]) -> int | None:
    limits = [body.get(name) for name in ("max_completion_tokens", "max_tokens")]
    return next((limit for limit in limits if isinstance(limit, int) and limit > 0), None)

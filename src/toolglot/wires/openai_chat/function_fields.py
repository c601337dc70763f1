"""The older fields of the chat wire: ``functions`` and ``function_call``, before there were tools.

    {"model": "m", "functions": [{"name": "tell_time", "parameters": {"type": "object"}}], "function_call": "auto",
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "content": null, "function_call": {"name": "tell_time", "arguments": "{}"}},
                  {"role": "function", "name": "tell_time", "content": "12:00"}]}

Strategy. Upstreams get tools and calls with ids in their place, since many know nothing else: a call is numbered by its
message, and a result belongs to the last call of its name. A client that offers functions gets ``function_call`` back;
such an answer has at most one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Message, Part, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.errors import RequestError
from toolglot.wires.json_fields import Offer, check_choice, read_functions, text_at

FUNCTIONS, CHOICE = "functions", "function_call"
"""The older fields for tools, and for a call or a choice."""

OLDER_FIELDS = (FUNCTIONS, CHOICE)
HINT = CHOICE.encode()
"""What is in every request with older fields that offers no functions."""


def is_older(fields: Mapping[str, Any], messages: Sequence[object]) -> bool:
    """Whether a request uses the older fields, in its settings or in its history."""
    if FUNCTIONS in fields or CHOICE in fields:
        return True
    return any(isinstance(each, dict) and each.get(CHOICE) for each in messages)


def decode_functions(functions: object) -> Offer:
    """Decode the functions as tools; unusable ones are skipped with a note."""
    if functions is not None and not isinstance(functions, list):
        raise RequestError(f"{FUNCTIONS} must be a list.", FUNCTIONS)
    tools, notes = read_functions([{"type": "function", "function": each} for each in functions or ()])
    return tools, tuple(note.replace("tools[", f"{FUNCTIONS}[", 1) for note in notes)


def decode_function_choice(choice: object, tools: tuple[Tool, ...]) -> ToolChoice:
    """Decode the choice among functions; ``RequestError`` if it cannot be met."""
    if choice in (None, "auto"):
        return ToolChoice()
    if choice == "none":
        return ToolChoice("none")
    name = text_at(choice, "name") if isinstance(choice, dict) else ""
    if not name.strip():
        raise RequestError(f"{CHOICE} must be none, auto, or an object with a name.", CHOICE)
    return check_choice(ToolChoice.one(name), tools, CHOICE)


def assign_ids(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give ids to calls that have none, and to results those of their calls."""
    waiting: dict[str, str] = {}
    return tuple(
        replace(message, parts=tuple([_assign(part, f"call_{at}", waiting) for part in message.parts]))
        for at, message in enumerate(messages)
    )


def _assign(part: Part, call_id: str, waiting: dict[str, str]) -> Part:
    if isinstance(part, ToolCall) and not part.id:
        waiting[part.name] = call_id
        return replace(part, id=call_id)
    if isinstance(part, ToolResult) and not part.call_id and waiting:
        named = waiting.get(part.name)
        return replace(part, call_id=next(reversed(waiting.values())) if named is None else named)
    return part

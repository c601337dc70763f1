"""Output formats of a request: fields that hold the model to a grammar, a tag or a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Text
from toolglot.prompting.conversation import PromptedConversation

_FIELDS = frozenset(
    (
        "ebnf",
        "format",
        "grammar",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "json_schema",
        "regex",
        "response_format",
        "structured_outputs",
    )
)
"""The fields with which clients ask servers for an output format. No server takes two of them."""


_ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
_RULE = "If you do not call a tool, your whole answer must be {form}, without a code block and without other text"


def state_output_format(conversation: Conversation) -> tuple[Conversation, tuple[str, ...]]:
    """Ask for the client's JSON format in the system prompt instead of enforcing it, where tools are text: a model that
    is held to the format could never call one.

    Returns: the conversation, and notes on what was replaced."""
    if not conversation.tools or conversation.choice.mode == "none":
        return conversation, ()
    schemas = {name: _find_schema(name, conversation.extra[name]) for name in _FIELDS & conversation.extra.keys()}
    name, schema = next(((name, schema) for name, schema in schemas.items() if schema is not None), ("", None))
    if schema is None:
        return conversation, ()
    rule = _RULE.format(form="one JSON object") + "."
    if schema != _ANY_OBJECT:
        written = json.dumps(schema, ensure_ascii=False, default=str)
        rule = _RULE.format(form="JSON that this JSON Schema allows") + f":\n{written}"
    messages = conversation.messages
    leading = len(list(takewhile(lambda message: message.role == "system", messages)))
    stated = (*messages[:leading], Message("system", (Text(rule),)), *messages[leading:])
    extra = {key: value for key, value in conversation.extra.items() if key != name}
    note = f"{name} is stated in the prompt: a model held to it could not call a tool"
    return replace(conversation, messages=stated, extra=extra), (note,)


def _find_schema(field: str, value: object) -> Mapping[str, Any] | None:
    """The JSON Schema that a field holds the model to; None for every other kind of format, and for plain text."""
    if field == "response_format" and isinstance(value, dict):
        given = value.get("json_schema") if value.get("type") == "json_schema" else value
        schema = given.get("schema") if isinstance(given, dict) else None
        if isinstance(schema, dict):
            return schema
        return _ANY_OBJECT if value.get("type") in ("json_object", "json_schema") else None
    if field == "format" and value == "json":
        return _ANY_OBJECT
    return value if field in ("format", "guided_json", "json_schema") and isinstance(value, dict) else None


def has_output_format(conversation: Conversation) -> bool:
    """Whether the client asks for an output format itself."""
    return not _FIELDS.isdisjoint(conversation.extra)


def add_output_format(prompted: PromptedConversation, fields: Mapping[str, Any]) -> PromptedConversation | None:
    """Add the fields of an output format to a request; None if the client asks for one itself."""
    conversation = prompted.conversation
    if has_output_format(conversation):
        return None
    return replace(prompted, conversation=replace(conversation, extra={**conversation.extra, **fields}))

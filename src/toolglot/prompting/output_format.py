"""Output formats of a request: fields that hold the model to a grammar, a tag or a schema."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Text
from toolglot.core.json_numbers import encode
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

_SCHEMA_FIELDS = ("guided_json", "json_schema")
"""Those of them that are a JSON Schema and belong to certain servers."""

_RULE = "our whole answer must be {form}, without a code block and without other text"
_NO_SCHEMA: Mapping[str, Any] = {}


def state_output_format(
    conversation: Conversation, fields: Collection[str] = (), *, with_tools: bool = True
) -> tuple[Conversation, tuple[str, ...]]:
    """Ask for the client's JSON format in the system prompt instead of enforcing it, because a model that is held to it
    could not call a tool, or because the upstream cannot enforce it.

    Parameters: ``fields`` are those in which clients of this wire ask for it; dots lead into objects. ``with_tools``:
    only where the model may call one.

    Returns: the conversation, and notes on what was replaced."""
    calls = bool(conversation.tools) and conversation.choice.mode != "none"
    name, schema = _find_format(conversation)
    if schema is None or (with_tools and not calls):
        return conversation, ()
    rule = ("If you do not call a tool, y" if calls else "Y") + _RULE
    if schema:
        written = encode(schema).decode()
        rule = rule.format(form="JSON that this JSON Schema allows") + f":\n{written}"
    else:
        rule = rule.format(form="one JSON object") + "."
    messages = conversation.messages
    leading = len(list(takewhile(lambda message: message.role == "system", messages)))
    stated = (*messages[:leading], Message("system", (Text(rule),)), *messages[leading:])
    extra = conversation.extra
    for field in (name, *fields):
        left = _without(extra, field.split("."))
        name, extra = name if left == extra else field, left
    reason = "a model held to it could not call a tool" if calls else "the upstream cannot enforce it"
    sampling = conversation.sampling.without_format()
    return replace(conversation, messages=stated, extra=extra, sampling=sampling), (
        f"{name} is stated in the prompt: {reason}",
    )


def _find_format(conversation: Conversation) -> tuple[str, Mapping[str, Any] | None]:
    """The setting that asks for JSON and its schema, which is empty for any object; None if there is no such setting,
    or one of another kind."""
    sampling = conversation.sampling
    if sampling.json_schema is not None:
        return "json_schema", sampling.json_schema.schema
    if sampling.json_object:
        return "json_object", _NO_SCHEMA
    for name in _SCHEMA_FIELDS:
        if isinstance(schema := conversation.extra.get(name), dict):
            return name, schema
    return "", None


def _without(settings: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    """The settings without the one at a path; objects that it leaves empty go, too."""
    key, *rest = path
    if key not in settings or (rest and not isinstance(settings[key], dict)):
        return settings
    inner = _without(settings[key], rest) if rest else {}
    return {name: inner if name == key else value for name, value in settings.items() if name != key or inner}


def has_output_format(conversation: Conversation) -> bool:
    """Whether the client asks for an output format itself."""
    sampling = conversation.sampling
    return bool(sampling.json_object or sampling.json_schema) or not _FIELDS.isdisjoint(conversation.extra)


def add_output_format(prompted: PromptedConversation, fields: Mapping[str, Any]) -> PromptedConversation | None:
    """Add the fields of an output format to a request; None if the client asks for one itself."""
    conversation = prompted.conversation
    if has_output_format(conversation):
        return None
    return replace(prompted, conversation=replace(conversation, extra={**conversation.extra, **fields}))

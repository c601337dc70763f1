"""Lessons for a model that is too small to follow instructions: it is shown calls, and held to them.

Strategy. Three things make the embedded model useful, all of them measured (``bench/local.py``). A grammar makes its
calls valid. Examples make it choose and fill in: a few turns in which a user names a tool's purpose and some values and
the assistant calls it, made from the tools themselves and put before the conversation. And because a grammar that
leaves the choice between a call and text is answered with text by such a model, the choice is made here (``decide``).
Nothing is drawn at random, so the same request is answered the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolglot.constraint import grammar
from toolglot.conversation import Conversation, Message, Text, Tool
from toolglot.examples import properties_of, type_of
from toolglot.speaking import Speech, speak, write_call

ROUNDS = 2
"""Examples of each tool: with one, values of the example are taken for the answer more often."""

MOST_EXAMPLES = 16
"""Reading an example costs the embedded model half a second."""

_WORDS: tuple[tuple[str, tuple[str, str]], ...] = (
    (r"city|town|place|location", ("Paris", "Madrid")),
    (r"country", ("Kenya", "Peru")),
    (r"dir|directory|folder|cwd", ("docs", "src/lib")),
    (r"path|file|filename", ("docs/plan.txt", "a/b.md")),
    (r"command|cmd", ("echo hi", "make all")),
    (r"query|question|search|keywords?|topic", ("blue whales", "old maps")),
    (r"url|uri|link", ("https://example.com/a", "https://example.org/b")),
    (r"email|to|recipient|address", ("ann@example.com", "zoe@example.org")),
    (r"language|lang", ("Italian", "Dutch")),
    (r"pattern|glob|regex", ("*.py", "*.md")),
    (r"date|day", ("2025-06-01", "2024-12-24")),
    (r"name|user|person", ("Ann", "Zoe")),
    (r"content|contents|text|body|message|input", ("some words", "hi there")),
)
_OTHER_TEXT = ("blue", "green")
_NUMBERS = (3, 40)
_SENTENCE = re.compile(r"[^\n]{1,100}?(?=[.:;]\s|[.:;]?$|\n)|[^\n]{1,100}")
_SPOKEN_FOR = frozenset(("grammar", "json_schema", "response_format"))


def decide(conversation: Conversation) -> bool:
    """Whether the answer has to be a call.

    Where the client leaves the choice to the model, a question of the user is answered with a call, and results are
    answered with text. That is right for the usual short exchange and wrong for small talk and for tasks of several
    steps, which a model of this size does not manage either way.
    """
    choice = conversation.choice
    if not conversation.tools or choice.mode == "none":
        return False
    return choice.mode == "required" or (bool(conversation.messages) and conversation.messages[-1].role == "user")


def coach(conversation: Conversation, dialect: str) -> Speech:
    """What ``speak`` gives, with examples and a grammar where a call is due."""
    limits = conversation.limits
    if limits.temperature is None:
        limits = replace(limits, temperature=0.0)
    speech = speak(replace(conversation, limits=limits), dialect)
    if not speech.tools or not decide(conversation):
        return speech
    spoken = speech.conversation
    at = next((at for at, message in enumerate(spoken.messages) if message.role != "system"), len(spoken.messages))
    shown = tuple(_show(speech.tools, dialect))
    messages = (*spoken.messages[:at], *shown, *spoken.messages[at:])
    extra = dict(spoken.extra)
    held = grammar(speech.tools, dialect, required=True, parallel=False)
    if held is not None and _SPOKEN_FOR.isdisjoint(extra):
        extra["grammar"] = held
    return replace(speech, conversation=replace(spoken, messages=messages, extra=extra))


def _show(tools: Sequence[Tool], dialect: str) -> Iterator[Message]:
    """Turns in which the tools are asked for and called."""
    rounds = max(1, min(ROUNDS, MOST_EXAMPLES // len(tools)))
    for number in range(rounds):
        for tool in tools[:MOST_EXAMPLES]:
            values = {key: _value(key, schema, number) for key, schema in _needed(tool).items()}
            yield Message("user", (Text(_ask(tool, values)),))
            yield Message("assistant", (Text(write_call(dialect, tool.name, json.dumps(values), tools)),))


def _needed(tool: Tool) -> dict[str, Mapping[str, Any]]:
    """The required parameters: a model that sees others filled in fills them in too."""
    required = tool.parameters.get("required")
    names = required if isinstance(required, (list, tuple)) else ()
    return {key: schema for key, schema in properties_of(tool.parameters, tool.parameters).items() if key in names}


def _ask(tool: Tool, values: Mapping[str, Any]) -> str:
    told = _SENTENCE.match(tool.description.strip())
    purpose = told[0].rstrip(".:; ") if told else tool.name.replace("_", " ")
    named = [f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
    return ", ".join([purpose, *named]) + "."


def _value(key: str, schema: Mapping[str, Any], number: int) -> Any:
    """A plausible value, another one in each round."""
    if "const" in schema:
        return schema["const"]
    options = schema.get("enum")
    if isinstance(options, (list, tuple)) and options:
        return options[number % len(options)]
    match type_of(schema):
        case "object":
            inner = properties_of(schema, schema)
            return {name: _value(name, each, number) for name, each in inner.items() if name in schema["required"]}
        case "array":
            items = schema.get("items")
            return [_value(key.removesuffix("s"), items, number)] if isinstance(items, Mapping) else []
        case "integer" | "number":
            return _NUMBERS[number % len(_NUMBERS)]
        case "boolean":
            return number % 2 == 0
        case "null":
            return None
    return _text(key)[number % ROUNDS]


def _text(key: str) -> tuple[str, str]:
    words = set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()))
    fitting = (values for pattern, values in _WORDS if any(re.fullmatch(pattern, word) for word in words))
    return next(fitting, _OTHER_TEXT)

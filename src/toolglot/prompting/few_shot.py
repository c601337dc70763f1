"""Lessons for a model that is too small to follow instructions: it is shown calls, and held to them.

Strategy. Two things make the embedded model useful, and both were measured (``bench/local.py``). A grammar makes its
calls valid. Examples make it choose and fill in: a few turns in which a user names a tool's purpose and some values and
the assistant calls it, made from the tools themselves and put before the conversation. Some small talk among them
shows that not everything is a call; without any example such a model answers everything with text. With examples a line
for each tool teaches as much as its schema, and is read in half the time. Nothing is drawn at random, so the same
request is answered the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolChoice
from toolglot.prompting.conversation import PromptedConversation, list_offered, render_as_text, write_call
from toolglot.prompting.grammar import grammar
from toolglot.prompting.sample_arguments import properties_of, type_of

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
_SMALL_TALK = (("Hello!", "Hello! What can I do for you?"), ("Thanks.", "You are welcome."))
_RULE = "Answer with a call if one of them fits the request, else with text."
_NO_TAGS = "root ::= [^<]+\n"
_SPOKEN_FOR = frozenset(("grammar", "json_schema", "response_format"))


class Need(StrEnum):
    """What an answer has to be."""

    CALL = "a call"
    EITHER = "a call or text"
    TEXT = "text"


def decide(conversation: Conversation) -> Need:
    """What the answer has to be, as far as the model is not to be trusted with it.

    A user may be answered with a call or with text. Results are answered with text, because a model of this size would
    call again and again: so tasks of several steps end after the first, unless the client requires a call.
    """
    if not conversation.tools or conversation.choice.mode == "none":
        return Need.TEXT
    if conversation.choice.mode == "required":
        return Need.CALL
    answers_results = bool(conversation.messages) and conversation.messages[-1].role == "tool"
    return Need.TEXT if answers_results else Need.EITHER


def coach(conversation: Conversation, dialect: str) -> PromptedConversation:
    """The conversation as a very small model can follow it: with few words, examples, a grammar and without chance."""
    limits = conversation.limits
    if limits.temperature is None:
        conversation = replace(conversation, limits=replace(limits, temperature=0.0))
    tools = list_offered(conversation, dialect)
    # the tools are told of here, or not at all where they must not be called
    untaught = render_as_text(replace(conversation, choice=ToolChoice("none")), dialect)
    speech = replace(untaught, tools=tools)
    if not tools:
        return speech
    need = decide(conversation)
    if need is Need.TEXT:
        return add_grammar(speech, _NO_TAGS)
    messages = _begin(speech.conversation.messages, *_prepare(tools, dialect, need))
    taught = replace(speech, conversation=replace(speech.conversation, messages=messages))
    return add_grammar(taught, grammar(tools, dialect, required=need is Need.CALL, parallel=False))


@lru_cache(maxsize=16)
def _prepare(tools: tuple[Tool, ...], dialect: str, need: Need) -> tuple[str, tuple[Message, ...]]:
    """What is told of the tools, and the lesson: the same in every turn of a conversation."""
    return _list_briefly(tools), tuple(_show(tools, dialect, _SMALL_TALK if need is Need.EITHER else ()))


def _begin(messages: Sequence[Message], section: str, lesson: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the section at the end of the system prompt, and the lesson behind it."""
    if messages and messages[0].role == "system":
        return (Message("system", (*messages[0].parts, Text(f"\n\n{section}"))), *lesson, *messages[1:])
    return (Message("system", (Text(section),)), *lesson, *messages)


def _list_briefly(tools: Sequence[Tool]) -> str:
    """Every word costs the embedded model a fiftieth of a second, and schemas tell it nothing."""
    lines = (
        f"- {tool.name}({', '.join(properties_of(tool.parameters, tool.parameters))}): {_purpose(tool)}"
        for tool in tools
    )
    return "\n".join(["You can call these tools:", *lines, _RULE])


def add_grammar(speech: PromptedConversation, text: str | None) -> PromptedConversation:
    """A client that has its own idea of what the answer looks like keeps it."""
    spoken = speech.conversation
    if text is None or not _SPOKEN_FOR.isdisjoint(spoken.extra):
        return speech
    return replace(speech, conversation=replace(spoken, extra={**spoken.extra, "grammar": text}))


def _show(tools: Sequence[Tool], dialect: str, small_talk: Sequence[tuple[str, str]]) -> Iterator[Message]:
    """Turns in which the tools are asked for and called, each round begun by some small talk."""
    rounds = max(1, min(ROUNDS, MOST_EXAMPLES // len(tools)))
    for number in range(rounds):
        for said, answered in small_talk[number : number + 1]:
            yield from _turn(said, answered)
        for tool in tools[:MOST_EXAMPLES]:
            values = {key: _value(key, schema, number) for key, schema in _needed(tool.parameters).items()}
            yield from _turn(_ask(tool, values), write_call(dialect, tool.name, json.dumps(values), tools))


def _turn(said: str, answered: str) -> Iterator[Message]:
    yield Message("user", (Text(said),))
    yield Message("assistant", (Text(answered),))


def _needed(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The required members: a model that sees others filled in fills them in too."""
    required = schema.get("required")
    names = required if isinstance(required, (list, tuple)) else ()
    return {key: inner for key, inner in properties_of(schema, schema).items() if key in names}


def _ask(tool: Tool, values: Mapping[str, Any]) -> str:
    named = [f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
    return ", ".join([_purpose(tool), *named]) + "."


def _purpose(tool: Tool) -> str:
    """The first sentence of the description."""
    told = _SENTENCE.match(tool.description.strip())
    return told[0].rstrip(".:; ") if told else tool.name.replace("_", " ")


def _value(key: str, schema: Mapping[str, Any], number: int) -> Any:
    """A plausible value, another one in each round."""
    if "const" in schema:
        return schema["const"]
    options = schema.get("enum")
    if isinstance(options, (list, tuple)) and options:
        return options[number % len(options)]
    match type_of(schema):
        case "object":
            return {name: _value(name, inner, number) for name, inner in _needed(schema).items()}
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

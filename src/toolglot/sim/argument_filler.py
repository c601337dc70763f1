"""Fill in the arguments of a call from a user message, by the name, type and description of each parameter.

*Strategy.* First facts are extracted from the message: what an intent found (a path, a command, content), then quoted
texts, paths, numbers and places. The words of a parameter's name give its kind (``filePath`` is a path), and it takes
the fact of that kind. Without a fact, an optional parameter is left out and a required one gets a simple made-up value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from toolglot.core.conversation import Tool
from toolglot.prompting.example_arguments import properties_of, resolve_schema, type_of

Schema: TypeAlias = Mapping[str, Any]

KINDS = (
    ("old", {"old", "before", "find"}),
    ("new", {"new", "replacement", "after"}),
    ("url", {"url", "uri", "link", "website", "href"}),
    ("command", {"command", "cmd", "commands", "shell"}),
    ("path", {"path", "file", "filename", "filepath", "directory", "dir", "folder", "files", "paths"}),
    ("pattern", {"pattern", "query", "regex", "search", "keyword", "keywords", "term", "question", "q", "sql"}),
    ("place", {"location", "city", "place", "town", "country", "room", "destination"}),
    ("content", {"content", "contents", "text", "body", "data", "note", "message", "code", "input", "value"}),
    ("summary", {"description", "title", "explanation", "reason", "summary", "purpose", "subject", "prompt", "task"}),
)
"""Kinds of parameters and the words in their names; the first match counts."""

NAME_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
FENCED = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.S)
QUOTED = re.compile(r"(?<!\w)(?:\"([^\"]*)\"|'([^']*)'|`([^`]+)`|“([^”]*)”)(?!\w)", re.S)
PATH = re.compile(r"(?<![\w:/])(?:~?/|\.{1,2}/)?[\w@.-]*(?:/[\w@.-]+)*(?:\.[A-Za-z]\w*|/[\w@.-]+)/?")
URL = re.compile(r"https?://[^\s\"'`<>)]+")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")
PLACE = re.compile(r"\b(?:in|for|at|of|to|near|from)\s+(?:the\s+)?([A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*)")
LAST_PLACE = re.compile(r"\b(?:in|at|near)\s+(?:the\s+)?([a-z][\w'-]+)\s*[.?!]?\s*\Z")
MAX_DEPTH = 6
SUMMARY_LENGTH = 60


def split_words(name: str) -> list[str]:
    """Split a name into lowercase words: ``filePath`` and ``file_path`` give file and path."""
    return [word.lower() for word in NAME_PART.findall(name)]


@dataclass(slots=True)
class Facts:
    """What a message contains. ``named`` has the facts by kind; the lists are consumed from the front."""

    message: str
    named: dict[str, str] = field(default_factory=dict)
    quoted: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)
    """The parameters whose values had to be made up."""


def extract_facts(message: str, named: Mapping[str, str]) -> Facts:
    """Extract the facts of a message; ``named`` are those that an intent has found, which take precedence."""
    known = dict(named)
    bare = FENCED.sub(" ", message)
    taken = set(known.values())
    quoted = [next(filter(None, found.groups()), "") for found in QUOTED.finditer(bare)]
    fenced = [found[1] for found in FENCED.finditer(message)]
    rest = QUOTED.sub(" ", bare)
    if url := URL.search(message):
        known.setdefault("url", url[0].rstrip(".,;"))
    path = PATH.search(URL.sub(" ", rest))
    if path or (quoted and PATH.fullmatch(quoted[-1])):
        known.setdefault("path", path[0].rstrip(".,") if path else quoted[-1])
    if place := PLACE.search(rest) or LAST_PLACE.search(rest):
        known.setdefault("place", place[1])
    quoted = [text for text in [*fenced, *quoted] if text not in taken]
    return Facts(message, known, quoted, NUMBER.findall(URL.sub(" ", rest)))


def fill_arguments(tool: Tool, facts: Facts) -> dict[str, Any]:
    """Arguments for a tool: all required ones, and the optional ones that the message mentions."""
    return _fill_object(tool.parameters, facts, tool.parameters, MAX_DEPTH)


def kind_of(name: str) -> str:
    """The kind of a parameter by the words of its name, or "" if none matches."""
    words = set(split_words(name))
    return next((kind for kind, kind_words in KINDS if kind_words & words), "")


def _fill_object(schema: Schema, facts: Facts, root: Schema, depth: int) -> dict[str, Any]:
    listed = schema.get("required")
    required = listed if isinstance(listed, list) else []
    filled: dict[str, Any] = {}
    for name, known in properties_of(schema, root).items() if depth > 0 else ():
        if name in required:
            filled[name] = _fill_value(name, known, facts, root, depth - 1)
        elif (value := _find_mentioned(name, known, facts)) is not None:
            filled[name] = value
    return filled


def _find_mentioned(name: str, schema: Schema, facts: Facts) -> Any:
    """The value of an optional parameter if the message mentions it, else None."""
    pattern = "[ _-]?".join(map(re.escape, split_words(name)))
    kind = type_of(schema)
    if not pattern:
        return None
    if isinstance(values := schema.get("enum"), list):
        return next(iter(_mentioned_values(values, facts.message)), None)
    if kind in ("integer", "number"):
        found = re.search(rf"\b{pattern}\b(?: of| to| is|:| =|=)? *(-?\d+(?:\.\d+)?)", facts.message, re.I)
        return _as_number(found[1], kind) if found else None
    if kind == "boolean":
        return True if re.search(rf"\b{pattern}(?:ly)?\b", facts.message, re.I) else None
    if kind == "string" and kind_of(name) == "path" and "path" in facts.named:
        return facts.named["path"]
    return None


def _fill_value(name: str, schema: Schema, facts: Facts, root: Schema, depth: int) -> Any:
    if "const" in schema:
        return schema["const"]
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return next(iter(_mentioned_values(values, facts.message)), values[0])
    match type_of(schema):
        case "integer" | "number" as kind:
            return _fill_number(name, schema, facts, kind)
        case "boolean":
            return _find_mentioned(name, schema, facts) or bool(schema.get("default", False))
        case "array":
            return _fill_array(name, schema, facts, root, depth)
        case "object":
            return _fill_object(schema, facts, root, depth)
    return _fill_string(name, schema, facts)


def _mentioned_values(values: list[Any], message: str) -> list[Any]:
    return [value for value in values if re.search(rf"(?<!\w){re.escape(str(value))}(?!\w)", message, re.I)]


def _fill_number(name: str, schema: Schema, facts: Facts, kind: str) -> int | float:
    mentioned = _find_mentioned(name, schema, facts)
    if isinstance(mentioned, int | float):
        return mentioned
    if facts.numbers:
        return _as_number(facts.numbers.pop(0), kind)
    fallback = schema.get("default", schema.get("minimum", 1))
    return fallback if isinstance(fallback, int | float) else 1


def _as_number(text: str, kind: str) -> int | float:
    return int(float(text)) if kind == "integer" or "." not in text else float(text)


def _fill_array(name: str, schema: Schema, facts: Facts, root: Schema, depth: int) -> list[Any]:
    items = resolve_schema(schema.get("items"), root)
    if type_of(items) in ("integer", "number"):
        numbers, facts.numbers = facts.numbers, []
        return [_as_number(number, type_of(items)) for number in numbers]
    if type_of(items) == "string" and facts.quoted and not kind_of(name):
        quoted, facts.quoted = facts.quoted, []
        return quoted
    return [_fill_value(name, items, facts, root, depth - 1)] if depth > 0 else []


def _fill_string(name: str, schema: Schema, facts: Facts) -> str:
    kind = kind_of(name)
    if kind in facts.named:
        return facts.named[kind]
    if kind == "summary":
        return _shorten(facts.message)
    if facts.quoted:
        return facts.quoted.pop(0)
    if not kind and "place" in facts.named:
        return facts.named["place"]
    if isinstance(schema.get("default"), str):
        return str(schema["default"])
    facts.invented.append(name)
    return "." if kind == "path" else _shorten(facts.message)


def _shorten(message: str) -> str:
    line = next(iter(message.strip().splitlines()), "")
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 3].rstrip() + "..."

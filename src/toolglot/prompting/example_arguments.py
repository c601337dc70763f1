"""Plausible argument values for the example calls in prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct

from toolglot.core.schema.compile import read_types

_TEXTS: tuple[tuple[str, str, str], ...] = (
    # key, another parameter of the same tool, value
    (r"file_path", r"", "/src/app.js"),
    (r"(old|search|find).*(string|str|text)|search|old", r"", "const port = 3000"),
    (r"(new|replace).*(string|str|text)|replace(ment)?|new", r"", "const port = 8080"),
    (r"(.*_)?(content|contents|file_?text|code|body)", r"", "console.log('Hello World');"),
    (r".*(command|cmd)", r"", "npm install axios"),
    (r"description", r".*(command|cmd)", "Install axios package for HTTP requests"),
    (r".*(file_?path|filename|file_?name)|file", r"", "/path/to/file.js"),
    (r".*(dir(ectory)?|cwd|folder|workdir)", r"", "/path/to/project"),
    (r".*path.*", r"", "/path/to/file.js"),
    (r".*(url|uri|link|endpoint|href)", r"", "https://example.com/docs"),
    (r".*(pattern|glob|regex|include|exclude)", r"", "*.js"),
    (r".*(query|question|search.*|keywords?)", r"", "how to read a file"),
    (r".*(city|location|place|town)", r"", "Oslo"),
    (r".*country", r"", "Norway"),
    (r".*e?mail.*", r"", "ann@example.com"),
    (r".*(date|day|deadline)", r"", "2025-06-01"),
    (r".*time", r"", "09:30"),
    (r".*(lang|language|locale)", r"", "en"),
    (r".*(title|subject|summary)", r"", "A short title"),
    (r".*(description|reason|explanation|comment|note)", r"", "What this is for, in a few words"),
    (r".*(message|prompt|text|input)", r"", "Hello"),
    (r".*name", r"", "example"),
    (r".*id", r"", "abc123"),
)
_FORMATS = {
    "date": "2025-06-01",
    "date-time": "2025-06-01T09:30:00Z",
    "time": "09:30:00",
    "email": "ann@example.com",
    "uri": "https://example.com/docs",
    "url": "https://example.com/docs",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "hostname": "example.com",
}
_NUMBERS: tuple[tuple[str, int], ...] = (
    (r".*timeout.*", 30000),
    (r".*(offset|start|begin).*", 10),
    (r".*(limit|max|count|size|top_?k).*", 50),
    (r".*port", 8080),
    (r".*year", 2025),
    (r".*(temperature|celsius|degrees).*", 21),
)
MakeScalar: TypeAlias = Callable[[str, str, int], Any]
"""Makes the text or number of a key and a type; another number gives another value."""
_CONSTANTS = {"boolean": True, "null": None}
_DEEPEST = 4


def make_example_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Example values for all parameters of a tool, in the order of the schema."""
    return _members(schema, schema, 0)


class RequiredArguments(Struct, frozen=True):
    """Makes values for required parameters only: a model copies optional ones that it sees filled in.

    Attributes: ``number`` selects among the values, so that another number gives other ones.
    """

    root: Mapping[str, Any]
    number: int
    make_scalar: MakeScalar

    def make(self) -> dict[str, Any]:
        """The arguments of a tool whose parameters are ``root``."""
        return self._members(self.root, 0)

    def _members(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required") if depth < _DEEPEST else ()
        names = required if isinstance(required, (list, tuple)) else ()
        inner = properties_of(schema, self.root)
        return {key: self._value(key, value, depth) for key, value in inner.items() if key in names}

    def _value(self, key: str, schema: Mapping[str, Any], depth: int) -> Any:
        if "const" in schema:
            return schema["const"]
        options = schema.get("enum")
        if isinstance(options, (list, tuple)) and options:
            return options[self.number % len(options)]
        match kind := type_of(schema):
            case "object":
                return self._members(schema, depth + 1)
            case "array":
                items = resolve_schema(schema.get("items"), self.root)
                return [self._value(key.removesuffix("s"), items, depth + 1)] if depth < _DEEPEST else []
            case "boolean":
                return self.number % 2 == 0
            case "null":
                return None
        return self.make_scalar(key, kind, self.number)


def properties_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The resolved schemas of an object's properties; empty if it declares none."""
    found = schema.get("properties")
    members = found.items() if isinstance(found, Mapping) else ()
    return {str(key): resolve_schema(inner, root) for key, inner in members if isinstance(inner, (Mapping, bool))}


def resolve_schema(schema: object, root: Mapping[str, Any], steps: int = 8) -> Mapping[str, Any]:
    """Follow references and take the first alternative that is not null.

    Parameters: ``root`` is the schema that references point into, ``steps`` limits nested references. Returns ``{}``
    for anything that is not a schema.
    """
    if not isinstance(schema, Mapping) or not steps:
        return {}
    target = schema.get("$ref")
    if isinstance(target, str) and target.startswith("#"):
        return resolve_schema(_follow(target, root), root, steps - 1)
    options = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(options, (list, tuple)) or "type" in schema:
        return schema
    real = (option for option in options if isinstance(option, Mapping) and option.get("type") != "null")
    rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
    return {**resolve_schema(next(real, None), root, steps - 1), **rest}


def _follow(target: str, root: Mapping[str, Any]) -> object:
    node: object = root
    for step in target.lstrip("#/").split("/") if target not in ("#", "#/") else ():
        key = step.replace("~1", "/").replace("~0", "~")
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def type_of(schema: Mapping[str, Any]) -> str:
    """The type of a schema: the first that is not null, or the one its keywords imply, or string."""
    kinds = read_types(schema.get("type"))
    if kinds:
        return next((kind for kind in kinds if kind != "null"), kinds[0])
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _example(key: str, schema: Mapping[str, Any], root: Mapping[str, Any], beside: str, depth: int) -> Any:
    for given in (schema.get("const"), schema.get("default"), *_values_in_schema(schema)):
        if given is not None:
            return given
    kind = type_of(schema)
    if kind == "object":
        return _members(schema, root, depth + 1)
    if kind == "array":
        items = resolve_schema(schema.get("items"), root)
        return [_example(key.removesuffix("s"), items, root, beside, depth + 1)] if depth < _DEEPEST else []
    if kind in ("number", "integer"):
        return _number(key, schema)
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    return _text(key, schema, beside)


def _values_in_schema(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Values that the schema lists itself."""
    for keyword in ("examples", "enum"):
        options = schema.get(keyword)
        if isinstance(options, (list, tuple)):
            yield from options[:1]


def _members(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    inner = properties_of(schema, root) if depth < _DEEPEST else {}
    beside = " ".join(map(_snake, inner))
    return {key: _example(key, value, root, beside, depth) for key, value in inner.items()}


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower().replace("-", "_")


def _text(key: str, schema: Mapping[str, Any], beside: str) -> str:
    if isinstance(form := schema.get("format"), str) and form in _FORMATS:
        return _FORMATS[form]
    pattern, values = _select_texts(beside)
    # a camel-case key must not match "file_path", which has its own example
    for spelled in dict.fromkeys((key, _snake(key).replace("file_path", "filepath"))):
        found = re.fullmatch(pattern, spelled)
        if found is not None and found.lastgroup:
            return values[found.lastgroup]
    return "text"


@lru_cache(maxsize=64)
def _select_texts(beside: str) -> tuple[str, Mapping[str, str]]:
    """One expression for the keys of all texts that fit a tool with these parameters, and the texts by its groups."""
    fitting = {
        f"text_{number}": (pattern, value)
        for number, (pattern, other, value) in enumerate(_TEXTS)
        if not other or any(re.fullmatch(other, word) for word in beside.split())
    }
    keys = "|".join(f"(?P<{group}>{pattern})" for group, (pattern, _) in fitting.items())
    return keys, {group: value for group, (_, value) in fitting.items()}


def _number(key: str, schema: Mapping[str, Any]) -> int | float:
    spelled = _snake(key)
    value: int | float = next((value for pattern, value in _NUMBERS if re.fullmatch(pattern, spelled)), 1)
    for keyword, bound in (("minimum", max), ("maximum", min)):
        limit = schema.get(keyword)
        value = bound(value, limit) if isinstance(limit, (int, float)) else value
    return value

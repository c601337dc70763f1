"""Argument values for the example calls in prompts, all of them recognisable as made up.

Strategy. A value that the schema lists itself (an enum, a default, an example) is the client's own and used as it is.
Everything else is put together from the words and numbers of ``core.made_up_values``, in a form that fits the name of
the parameter, because small models copy the form of what they see: a path looks like a path, a query has several words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.core.conversation import Tool
from toolglot.core.made_up_values import FIXED, make_number, make_word
from toolglot.core.schema.compile import read_types

_FRAMES: Final[tuple[tuple[str, str], ...]] = (
    # words of the key, the form of the value
    (r"url|uri|link|endpoint|href", "https://{0}.example/{1}"),
    (r"e?mail|recipient", "{0}@{1}.example"),
    (r"dir|directory|folder|cwd|workdir", "{0}/{1}"),
    (r"path|file|filename", "{0}/{1}.txt"),
    (r"city|town|place|location|country|name|user|person|id|lang|language|locale", "{0}"),
    (r"pattern|glob|regex|include|exclude", "*{0}*"),
    (r"query|question|content|contents|text|body|message|reason|topic", "{0} {1} {2}"),
)
_PHRASE: Final = "{0} {1}"
"""A model that sees single words shortens what the user says to one."""
_FORMATS: Final = {
    "date": FIXED[0],
    "date-time": f"{FIXED[0]}T19:07:21Z",
    "uuid": FIXED[1],
    "ipv6": FIXED[2],
    "ipv4": FIXED[3],
    "time": "19:07:21.{number}Z",
    "duration": "P{number}D",
    "email": "{0}@{1}.example",
    "uri": "https://{0}.example/{1}",
    "url": "https://{0}.example/{1}",
    "hostname": "{0}.example",
}
_OTHER_FORMS: Final = ("{0}", "{number}", "/{0}", "{0}.txt", "{0}1", *_FORMATS.values())
"""What is tried if a pattern does not allow the usual form."""
_ABSOLUTE: Final = re.compile(r"\babsolute\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DEEPEST: Final = 4


class ExampleArguments(Struct, frozen=True):
    """Makes the arguments of an example call.

    Attributes: ``number`` selects among the values, so that another number gives other ones. ``only_required``: a model
    copies optional arguments that it sees filled in.
    """

    tool: Tool
    number: int = 0
    only_required: bool = True

    def make(self) -> dict[str, Any]:
        """The arguments, in the order of the schema."""
        return self._members(self.tool.parameters, 0)

    def _members(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required")
        names = required if isinstance(required, (list, tuple)) else ()
        inner = properties_of(schema, self.tool.parameters) if depth < _DEEPEST else {}
        return {
            key: self._value(key, value, depth)
            for key, value in inner.items()
            if key in names or not self.only_required
        }

    def _value(self, key: str, schema: Mapping[str, Any], depth: int) -> Any:
        for given in _values_in_schema(schema):
            return given[self.number % len(given)]
        match type_of(schema):
            case "object":
                return self._members(schema, depth + 1)
            case "array":
                items = resolve_schema(schema.get("items"), self.tool.parameters)
                return [self._value(key.removesuffix("s"), items, depth + 1)] if depth < _DEEPEST else []
            case "boolean":
                return self.number % 2 == 0
            case "null":
                return None
            case "integer" | "number":
                return _limit(make_number(self.tool.name, key, number=self.number), schema)
        return self._text(key, schema)

    def _text(self, key: str, schema: Mapping[str, Any]) -> str:
        words = [make_word(self.tool.name, key, str(at), number=self.number).capitalize() for at in range(3)]
        number = make_number(self.tool.name, key, number=self.number)
        absolute = "/" * bool(_ABSOLUTE.search(str(schema.get("description", ""))))
        form = _FORMATS.get(str(schema.get("format"))) or _find_frame(key)
        for tried in (absolute + form if form.endswith((".txt", "/{1}")) else form, *_OTHER_FORMS):
            text = tried.format(*words, number=number)
            if _admits(schema, text):
                return text
        return words[0]


def _values_in_schema(schema: Mapping[str, Any]) -> Iterator[list[Any] | tuple[Any, ...]]:
    """Values that the schema lists itself."""
    for keyword in ("const", "default"):
        if schema.get(keyword) is not None:
            yield [schema[keyword]]
    for keyword in ("examples", "enum"):
        options = schema.get(keyword)
        if isinstance(options, (list, tuple)) and options:
            yield options


def _find_frame(key: str) -> str:
    """The form of the texts for a key, by its words; the last one says most."""
    words = [word.lower() for word in _WORD.findall(key)]
    fitting = (frame for word in reversed(words) for pattern, frame in _FRAMES if re.fullmatch(pattern, word))
    return next(fitting, _PHRASE)


def _admits(schema: Mapping[str, Any], text: str) -> bool:
    """Whether the pattern and the length of a schema allow a text; patterns of another notation allow any."""
    longest, pattern = schema.get("maxLength"), schema.get("pattern")
    if isinstance(longest, int) and len(text) > longest:
        return False
    try:
        return not isinstance(pattern, str) or re.search(pattern, text) is not None
    except re.error:
        return True


def _limit(value: int | float, schema: Mapping[str, Any]) -> int | float:
    """The nearest number that the schema allows."""
    for keyword, bound in (("minimum", max), ("maximum", min)):
        limit = schema.get(keyword)
        value = bound(value, limit) if isinstance(limit, (int, float)) else value
    return value


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

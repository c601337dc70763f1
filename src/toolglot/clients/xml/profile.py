"""Data types of an XML client profile: tools, parameters, and how a value is decoded.

These clients have no JSON Schema and no escape character. A value is the text between two tags. It is trimmed in one of
two ways, and some values are un-escaped, depending on tool, parameter, model id and file path. ``ClientParameter``
holds all of that for one parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from msgspec import Struct

from toolglot.core import conversation
from toolglot.core.lenient_json import Value

# the characters that JavaScript's trim() removes
JS_WHITESPACE = (
    "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


class ValueKind(StrEnum):
    """Type of a value, which decides how it is written between its tags."""

    TEXT = "text"
    BLOCK = "block"
    """Multi-line text: a line break separates it from each tag."""
    NUMBER = "number"
    FLAG = "flag"
    JSON = "json"
    """A JSON object as text."""
    LIST = "list"
    """A JSON array of strings as text."""
    FILES = "files"
    """Nested elements, repeated: ``<file><path>..</path><line_range>1-9</line_range></file>``."""
    SUGGESTIONS = "suggestions"
    """Nested elements, repeated: ``<suggest mode="code">..</suggest>``."""


class Tolerance(StrEnum):
    """Which changes of a value are accepted, provided they are recorded. All others are refused."""

    EXACT = "exact"
    TAIL = "tail"
    """Whitespace at the end may be lost."""
    ENDS = "ends"
    """Whitespace at both ends may be lost."""
    PROSE = "prose"
    """Text for people: whitespace at both ends may be lost, and a tag inside may be broken by an invisible
    character."""


class ContentRewrite(StrEnum):
    """Further changes that a client makes to file content, meant as corrections."""

    FENCES = "fences"
    """Drops a first line that starts with ```, and a last line that ends with it."""
    FENCES_TRIMMED = "fences_trimmed"
    """As ``FENCES``, and trims the remainder."""
    LINE_NUMBERS = "line_numbers"
    """Drops prefixes like ``12 | `` if every line has one."""
    BYTE_ORDER_MARK = "byte_order_mark"
    """Drops one at the beginning."""
    ESCAPED_MENTIONS = "escaped_mentions"
    """Drops one of two backslashes before ``@``."""


class Unescaping(Struct, frozen=True):
    """Replacements that a client applies to a value, in this order, and the condition for them."""

    entities: tuple[tuple[str, str], ...] = ()
    deleted: str = ""
    """A character that is deleted afterwards."""
    only: str = ""
    """Applies only if the model id contains this."""
    unless: str = ""
    """Does not apply if the model id contains this."""
    raw_suffixes: tuple[str, ...] = ()
    """Entities are kept in files with these suffixes."""

    def for_request(self, model: str, path: str) -> Unescaping:
        """The part that applies to this model and file path."""
        if self.only not in model or (self.unless and self.unless in model):
            return NO_UNESCAPING
        if self.raw_suffixes and path.lower().endswith(self.raw_suffixes):
            return Unescaping(deleted=self.deleted)
        return self

    def unescape(self, text: str) -> str:
        for entity, character in self.entities:
            text = text.replace(entity, character)
        return text.replace(self.deleted, "") if self.deleted else text


NO_UNESCAPING = Unescaping()

_SCHEMAS: Mapping[ValueKind, Mapping[str, Any]] = {
    ValueKind.TEXT: {"type": "string"},
    ValueKind.BLOCK: {"type": "string"},
    ValueKind.NUMBER: {"type": "integer"},
    ValueKind.FLAG: {"type": "boolean"},
    ValueKind.JSON: {"type": "object"},
    ValueKind.LIST: {"type": "array", "items": {"type": "string"}},
    ValueKind.FILES: {
        "type": "object",
        "properties": {
            "file": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "line_range": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["path"],
                },
            }
        },
        "required": ["file"],
    },
    ValueKind.SUGGESTIONS: {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"text": {"type": "string"}, "mode": {"type": "string"}},
            "required": ["text"],
        },
    },
}


class ClientParameter(Struct, frozen=True):
    """One parameter of a tool. Its name is both the XML tag and the key of the JSON argument."""

    name: str
    description: str = ""
    required: bool = True
    kind: ValueKind = ValueKind.TEXT
    tolerance: Tolerance = Tolerance.ENDS
    unescaping: Unescaping = NO_UNESCAPING
    rewrites: tuple[ContentRewrite, ...] = ()
    aliases: tuple[str, ...] = ()
    """Alternative keys that models use."""
    default: str | None = None
    """Value to write if the model omits the argument."""
    counts_lines_of: str = ""
    """The parameter whose lines this one counts; the count that the model gives is ignored."""
    may_be_empty: bool = False
    may_be_missing: bool = False
    """Documented as required, but the client runs the call without it."""
    values: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        schema = dict(_SCHEMAS[self.kind])
        if self.description:
            schema["description"] = self.description
        if self.values:
            schema["enum"] = list(self.values)
        return schema


class ClientTool(Struct, frozen=True):
    name: str
    description: str
    parameters: tuple[ClientParameter, ...] = ()
    one_of: tuple[str, ...] = ()
    """Any one of these parameters is enough, although only the first is documented."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Other parameter sets with which the client runs the call. They are never rendered."""

    def find_parameter(self, key: str) -> ClientParameter | None:
        """Find a parameter by its name or an alias."""
        named = next((one for one in self.parameters if one.name == key), None)
        return named or next((one for one in self.parameters if key in one.aliases), None)

    def as_tool(self, lenient: bool = False) -> conversation.Tool:
        """The tool definition for a model. ``lenient`` is for reading what models wrote: it accepts aliases, and
        requires nothing that has an alias, a default or a substitute; the renderer decides then."""
        properties = {one.name: one.schema for one in self.parameters}
        required = [
            one.name
            for one in self.parameters
            if one.required and not one.counts_lines_of and one.name not in self.one_of
        ]
        if lenient:
            for one in self.parameters:
                schema = {} if one.kind in _NESTED else one.schema
                properties.update({key: schema for key in (one.name, *one.aliases)})
            required = [one.name for one in self.parameters if one.name in required and _is_plain(one)]
        parameters: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            parameters["required"] = required
        return conversation.Tool(self.name, self.description, parameters)


_NESTED = (ValueKind.JSON, ValueKind.LIST, ValueKind.FILES, ValueKind.SUGGESTIONS)


def _is_plain(parameter: ClientParameter) -> bool:
    return not (parameter.aliases or parameter.counts_lines_of) and parameter.default is None


class ArgumentLimits(Struct, frozen=True):
    """Limits in UTF-16 units, as the clients count. 0: no limit."""

    parameter: int = 0
    message: int = 0
    call: int = 0
    """Largest call that toolglot sends: the parser of Roo takes seconds for much less than it allows."""


class PromptLayout(Struct, frozen=True):
    """How a system prompt lists its tools, and how the entry of a tool begins."""

    name: str
    markers: tuple[str, ...]
    """Any of these sentences in a system prompt identifies the layout."""
    section: str
    """The heading of the tool list."""
    tool: str
    """How the entry of a tool begins, with ``{name}`` for its name."""
    description: str
    parameters: str
    parameter: str
    usage: str


class XmlTextBlock(Struct, frozen=True):
    """Text as the client displays it."""

    text: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class XmlCallBlock:
    """A call as the client runs it: ``tags`` as its parser reads them, ``params`` as its tool uses them.

    A ``partial`` call was not closed; clients run it anyway when the stream ends. ``complaint`` is set if the tool
    would report an error because a value is malformed.
    """

    name: str
    params: Mapping[str, Value] = field(hash=False)
    partial: bool = False
    tags: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    complaint: str = ""


XmlBlock = XmlTextBlock | XmlCallBlock

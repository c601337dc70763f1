"""What there is to know about an XML client, as data: its tools, their parameters, and what happens to a value.

A client writes no JSON Schema and has no escape characters. A value stands between two tags as it is, is trimmed in one
of two ways, and some values are un-escaped afterwards, depending on the tool, the parameter, the id of the model and
the path of the file. ``ClientParameter`` says all of that for one parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from toolglot.core import conversation
from toolglot.core.lenient_json import Value

# what JavaScript's trim() takes away
JS_WHITESPACE = (
    "\t\n\v\f\r \xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


class ValueKind(StrEnum):
    """What a value is, and so how it stands between its tags."""

    TEXT = "text"
    BLOCK = "block"
    """Text with lines of its own: tags and value are separated by line breaks."""
    NUMBER = "number"
    FLAG = "flag"
    JSON = "json"
    """A JSON object as text."""
    LIST = "list"
    """A JSON array of strings as text."""
    FILES = "files"
    """Nested elements: ``<file><path>..</path><line_range>1-9</line_range></file>``, several of them."""
    SUGGESTIONS = "suggestions"
    """Nested elements: ``<suggest mode="code">..</suggest>``, several of them."""


class Tolerance(StrEnum):
    """What may happen to a value on its way, if it is told to the record. Nothing else ever may."""

    EXACT = "exact"
    TAIL = "tail"
    """Whitespace at the end may be lost."""
    ENDS = "ends"
    """Whitespace at both ends may be lost."""
    PROSE = "prose"
    """Read by people: whitespace at both ends may be lost, and a tag inside may be broken by an invisible character."""


class ContentRewrite(StrEnum):
    """What else a client does to the content of a file, meaning well."""

    FENCES = "fences"
    """A first line that starts with ``` is dropped, and a last line that ends so."""
    FENCES_TRIMMED = "fences_trimmed"
    """The same, and what remains is trimmed."""
    LINE_NUMBERS = "line_numbers"
    """If every line starts like ``12 | ``, these beginnings are dropped."""
    BYTE_ORDER_MARK = "byte_order_mark"
    """One at the beginning is dropped."""
    ESCAPED_MENTIONS = "escaped_mentions"
    """Of two backslashes before ``@`` one is dropped."""


@dataclass(frozen=True, slots=True)
class Unescaping:
    """What is replaced in a value before the client uses it, in this order, and when that happens."""

    entities: tuple[tuple[str, str], ...] = ()
    deleted: str = ""
    """A character that is deleted afterwards."""
    only: str = ""
    """The model's id must contain this."""
    unless: str = ""
    """The model's id must not contain this."""
    raw_suffixes: tuple[str, ...] = ()
    """Paths that end so keep their entities."""

    def for_request(self, model: str, path: str) -> Unescaping:
        """What remains of it for this model and this file."""
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


@dataclass(frozen=True, slots=True)
class ClientParameter:
    """One parameter of one tool. Its name is the tag, and the key of the JSON argument."""

    name: str
    description: str = ""
    required: bool = True
    kind: ValueKind = ValueKind.TEXT
    tolerance: Tolerance = Tolerance.ENDS
    unescaping: Unescaping = NO_UNESCAPING
    rewrites: tuple[ContentRewrite, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other keys that models use for it."""
    default: str | None = None
    """Written where the model left the argument out."""
    counts_lines_of: str = ""
    """The parameter whose lines it counts; what the model counted does not matter then."""
    may_be_empty: bool = False
    may_be_missing: bool = False
    """Documented as required, but the client makes the call without it."""
    values: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        schema = dict(_SCHEMAS[self.kind])
        if self.description:
            schema["description"] = self.description
        if self.values:
            schema["enum"] = list(self.values)
        return schema


@dataclass(frozen=True, slots=True)
class ClientTool:
    name: str
    description: str
    parameters: tuple[ClientParameter, ...] = ()
    one_of: tuple[str, ...] = ()
    """Parameters of which any one is enough, although the documentation only has the first."""
    alternatives: tuple[tuple[str, ...], ...] = ()
    """Other sets of parameters with which the client makes the call. They are never rendered."""

    def find_parameter(self, key: str) -> ClientParameter | None:
        """The parameter that this key of the arguments means."""
        named = next((one for one in self.parameters if one.name == key), None)
        return named or next((one for one in self.parameters if key in one.aliases), None)

    def as_tool(self, lenient: bool = False) -> conversation.Tool:
        """The tool as models are offered it. ``lenient`` is for reading what they wrote: other keys are known too, and
        nothing is required that has another key, a default or a substitute; rendering decides then."""
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


@dataclass(frozen=True, slots=True)
class ArgumentLimits:
    """In UTF-16 units, as the clients count. 0 is no limit."""

    parameter: int = 0
    message: int = 0
    call: int = 0
    """What we send at most in one call: the parser of Roo takes seconds for much less than it allows."""


@dataclass(frozen=True, slots=True)
class PromptLayout:
    """How a client's system prompt documents its tools: where they stand and how one begins."""

    name: str
    markers: tuple[str, ...]
    """Any of these in a system prompt tells this layout."""
    section: str
    """The line that opens the list of tools."""
    tool: str
    """How the documentation of one tool begins; the name stands at ``{name}``."""
    description: str
    parameters: str
    parameter: str
    usage: str


@dataclass(frozen=True, slots=True)
class XmlTextBlock:
    """Text as the client shows it."""

    text: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class XmlCallBlock:
    """A call as the client runs it: ``tags`` as its parser read them, ``params`` as its tool uses them.

    ``partial`` calls were not closed. Clients run them all the same when the stream ends. ``complaint`` is set where
    the tool would answer with an error because a value is not in its form.
    """

    name: str
    params: Mapping[str, Value] = field(hash=False)
    partial: bool = False
    tags: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    complaint: str = ""


XmlBlock = XmlTextBlock | XmlCallBlock

"""Conversation: a client's request, independent of wire and dialect.

A ``Conversation`` holds messages, the tools on offer, the tool choice and the sampling parameters. A ``Message`` is a
role and its parts; ``PARTS_OF_ROLE`` lists the parts that a role may hold. Tool results always have a message of their
own, of role ``tool``, wherever a wire puts them.

All types are immutable values. Constructors raise ``ValueError`` for contradictory fields.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct
from msgspec.structs import replace

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Mode: TypeAlias = Literal["none", "auto", "required"]

_MODES = get_args(Mode)


class Text(Struct, frozen=True):
    text: str


class Image(Struct, frozen=True):
    """An image: either a URL, or base64 data with its media type."""

    url: str = ""
    data: str = ""
    media_type: str = ""
    detail: str = ""

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.data):
            raise ValueError("an image has either a url or data")
        if self.data and not self.media_type:
            raise ValueError("an image given as data needs a media type")


class Reasoning(Struct, frozen=True):
    """Reasoning of an earlier turn. The signature proves its origin and is returned unchanged; ``kind`` names the
    signer."""

    text: str
    signature: str = ""
    kind: str = ""


class ToolCall(Struct, frozen=True):
    """A tool call of an earlier turn. The arguments are unparsed JSON text, as the model wrote it."""

    id: str
    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        _require_name("a call", self.name)


class ToolResult(Struct, frozen=True):
    """The result of one call. The name is empty if the wire only sends the id."""

    call_id: str
    name: str = ""
    content: tuple[Text | Image, ...] = ()
    error: bool = False


class ProviderPart(Struct, frozen=True):
    """A part that only its own wire understands: passed through there, rejected on other wires."""

    wire: str
    data: Mapping[str, Any] = {}

    def __hash__(self) -> int:
        return hash(self.wire)


Part: TypeAlias = Text | Image | Reasoning | ToolCall | ToolResult | ProviderPart

PARTS_OF_ROLE: Mapping[str, tuple[type[Part], ...]] = {
    "system": (Text, Image, ProviderPart),
    "user": (Text, Image, ProviderPart),
    "assistant": (Text, Image, Reasoning, ToolCall, ProviderPart),
    "tool": (ToolResult,),
}


class Message(Struct, frozen=True):
    role: Role
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        allowed = PARTS_OF_ROLE.get(self.role)
        if allowed is None:
            raise ValueError(f"{self.role!r} is not a role; roles are {', '.join(PARTS_OF_ROLE)}")
        for part in self.parts:
            if type(part) not in allowed:
                raise ValueError(f"a message of role {self.role} cannot hold {type(part).__name__}")

    @property
    def text(self) -> str:
        """The plain text of the message, concatenated."""
        parts = self.parts
        if len(parts) == 1 and isinstance(only := parts[0], Text):
            return only.text
        return "".join([part.text for part in parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])


class Tool(Struct, frozen=True):
    """A tool on offer. ``parameters`` is its JSON Schema, as the client sent it; ``strict`` asks the upstream to hold
    the model to it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}
    strict: bool = False

    def __post_init__(self) -> None:
        _require_name("a tool", self.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tool):
            return NotImplemented
        same = (self.name, self.description, self.strict) == (other.name, other.description, other.strict)
        return same and self.parameters == other.parameters and _are_identical(self.parameters, other.parameters)

    def __hash__(self) -> int:
        return hash((self.name, self.description))

    def digest(self) -> bytes:
        """A digest of what calls to the tool depend on: its name and parameters."""
        return sha256(json.dumps((self.name, self.parameters), default=str).encode()).digest()


def _are_identical(one: object, other: object) -> bool:
    """Whether two equal values serialize identically. Python ignores key order and treats 1, 1.0 and True as equal;
    models and schemas do not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(map(_are_identical, one.values(), other.values()))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return all(map(_are_identical, one, other))
    return type(one) is type(other) or not isinstance(one, int | float)


class Tools(tuple[Tool, ...]):
    """A tuple of tools with an index by name and a cached hash.

    The tools are the key of caches that are looked up on every turn; hashing each tool again would be slow."""

    by_name: Mapping[str, Tool]
    digests: dict[str, bytes]
    """The digests that were asked for, by the name of the tool."""
    hash: int

    def __new__(cls, tools: Iterable[Tool] = ()) -> Tools:
        made = super().__new__(cls, tools)
        made.by_name = {tool.name: tool for tool in made}
        made.digests = {}
        made.hash = super().__hash__(made)
        _require_unique_names(made.by_name, made)
        return made

    def __hash__(self) -> int:
        return self.hash


class ToolChoice(Struct, frozen=True):
    """Whether the model may, must or must not call a tool, and which ones are allowed (``only``; empty: all).

    ``ToolChoice.one(name)`` requires a call of that tool.
    """

    mode: Mode = "auto"
    only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise ValueError(f"{self.mode!r} is not a choice; choices are {', '.join(_MODES)}")
        if self.mode == "none" and self.only:
            raise ValueError("the choice none leaves no tool to choose from")
        for name in self.only:
            _require_name("a choice", name)
        if len(set(self.only)) != len(self.only):
            raise ValueError("a choice names a tool twice")

    @classmethod
    def one(cls, name: str) -> ToolChoice:
        """Require a call of this tool."""
        return cls("required", (name,))

    def allows(self, name: str) -> bool:
        """Whether a call of the tool with this name is allowed."""
        return self.mode != "none" and (not self.only or name in self.only)


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Reasoning efforts, as the wires name them."""


class JsonSchema(Struct, frozen=True):
    """The JSON Schema that a whole answer has to fit. ``strict`` is None on wires where a schema is always enforced."""

    schema: Mapping[str, Any]
    name: str = ""
    description: str = ""
    strict: bool | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.description, self.strict))


class Sampling(Struct, frozen=True, kw_only=True):
    """Sampling parameters. ``None`` leaves the decision to the upstream. ``effort`` is one of ``EFFORTS``. The answer
    has to be any JSON object (``json_object``) or to fit a schema (``json_schema``), never both."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    parallel_calls: bool | None = None
    effort: str = ""
    json_object: bool | None = None
    json_schema: JsonSchema | None = None

    def without_format(self) -> Sampling:
        return replace(self, json_object=None, json_schema=None)


class Conversation(Struct, frozen=True):
    """One request. ``extra`` holds fields that are not modelled, under their original names."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = ToolChoice()
    sampling: Sampling = Sampling()
    extra: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        if self.tools and not isinstance(self.tools, Tools):
            _require_unique_names({tool.name for tool in self.tools}, self.tools)

    def __hash__(self) -> int:
        return hash((self.model, self.messages, self.tools, self.choice, self.sampling))


def _require_unique_names(names: Collection[str], tools: tuple[Tool, ...]) -> None:
    if len(names) != len(tools):
        raise ValueError("two tools have the same name")


def _require_name(what: str, name: str) -> None:
    if not name.strip():
        raise ValueError(f"{what} needs the name of a tool")

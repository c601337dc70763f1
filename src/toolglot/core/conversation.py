"""What a client asks, neutral between every wire and every dialect.

A ``Conversation`` is a sequence of messages, the tools on offer, a choice among them and limits on the answer.
A ``Message`` is a role and its parts; which parts a role may hold stands in ``PARTS_OF_ROLE``. Results always have
a message of their own, of role ``tool``, wherever a wire puts them.

All of these are pure values. A constructor raises ``ValueError`` when it is asked for something that cannot be meant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
Mode: TypeAlias = Literal["none", "auto", "required"]

_MODES = get_args(Mode)


class Text(Struct, frozen=True):
    text: str


class Image(Struct, frozen=True):
    """A picture: either an address, or base64 text together with its media type."""

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
    """Thinking of an earlier turn. The seal proves its origin and goes back unchanged; ``kind`` says whose it is."""

    text: str
    seal: str = ""
    kind: str = ""


class ToolCall(Struct, frozen=True):
    """A tool call of an earlier turn. Arguments are JSON text as the model wrote it, not parsed."""

    id: str
    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        _require_name("a call", self.name)


class ToolResult(Struct, frozen=True):
    """What a tool gave back for one call. The name may be empty where a wire only tells the id."""

    call_id: str
    name: str = ""
    content: tuple[Text | Image, ...] = ()
    error: bool = False


class ProviderPart(Struct, frozen=True):
    """A part that only its own wire understands: it is carried there unchanged, and refused everywhere else."""

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
        """All the plain text of the message, joined."""
        parts = self.parts
        if len(parts) == 1 and isinstance(only := parts[0], Text):
            return only.text
        return "".join([part.text for part in parts if isinstance(part, Text)])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([part for part in self.parts if isinstance(part, ToolCall)])


class Tool(Struct, frozen=True):
    """A tool on offer. ``parameters`` is its JSON Schema, as the client wrote it."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        _require_name("a tool", self.name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tool):
            return NotImplemented
        same = (self.name, self.description, self.parameters) == (other.name, other.description, other.parameters)
        return same and _are_alike(self.parameters, other.parameters)

    def __hash__(self) -> int:
        return hash((self.name, self.description))


def _are_alike(one: object, other: object) -> bool:
    """Whether values that are equal are written the same: to Python 1, 1.0 and True are equal, and the order of keys is
    of no account; to a model and to a schema they are not."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(map(_are_alike, one.values(), other.values()))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return all(map(_are_alike, one, other))
    return type(one) is type(other) or not isinstance(one, int | float)


class Tools(tuple[Tool, ...]):
    """Tools that know their names and their hash: by them is found what is made once for all turns of an agent, and to
    hash each of its tools again would be a good part of a turn."""

    by_name: Mapping[str, Tool]
    hash: int

    def __new__(cls, tools: Iterable[Tool] = ()) -> Tools:
        made = super().__new__(cls, tools)
        made.by_name = {tool.name: tool for tool in made}
        made.hash = super().__hash__(made)
        _require_difference(made.by_name, made)
        return made

    def __hash__(self) -> int:
        return self.hash


class ToolChoice(Struct, frozen=True):
    """Whether the model may, must or must not call, and which tools it may choose from (``only``; empty: all).

    One named tool is ``ToolChoice.one(name)``: a call is required and there is only that tool to choose.
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
        """The model must call this tool."""
        return cls("required", (name,))

    def allows(self, name: str) -> bool:
        """Whether a call to the tool of this name respects the choice."""
        return self.mode != "none" and (not self.only or name in self.only)


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model is to think, in the words that the wires have for it."""


class Sampling(Struct, frozen=True):
    """Bounds on the answer. ``None`` leaves the decision to the upstream. ``effort`` is a word of ``EFFORTS``."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    parallel_calls: bool | None = None
    effort: str = ""


class Conversation(Struct, frozen=True):
    """One request. ``extra`` carries settings that are not modelled, under the names the client gave them."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice = ToolChoice()
    limits: Sampling = Sampling()
    extra: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        if self.tools and not isinstance(self.tools, Tools):
            _require_difference({tool.name for tool in self.tools}, self.tools)

    def __hash__(self) -> int:
        return hash((self.model, self.messages, self.tools, self.choice, self.limits))


def _require_difference(names: Collection[str], tools: tuple[Tool, ...]) -> None:
    if len(names) != len(tools):
        raise ValueError("two tools have the same name")


def _require_name(what: str, name: str) -> None:
    if not name.strip():
        raise ValueError(f"{what} needs the name of a tool")

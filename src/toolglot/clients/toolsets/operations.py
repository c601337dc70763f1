"""Editing operations, neutral between tool sets; and what a tool set is.

Strategy. Every tool set expresses the same few operations: show lines of a file, list a folder, write a file, replace a
text, insert lines, run a command. A ``ToolAdapter`` is one tool of a set in both directions: ``read`` converts its
arguments to operations, ``write`` an operation to its arguments. So each set is defined once, and any two of them can
be mapped.

Nothing is guessed. What has no equivalent on the other side raises ``Untranslatable`` with a sentence that explains
why, and the call is refused with that sentence. What is dropped because it cannot change the outcome is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from msgspec import Struct

from toolglot.core.conversation import Tool
from toolglot.core.lenient_json import NotJsonError, Number, Value, parse


class Untranslatable(ValueError):
    """Something without an equivalent in the other tool set; the message is a sentence for people and models."""


class View(Struct, frozen=True):
    """Show lines ``first`` to ``last`` of a file, counted from 1; ``None``: to its end."""

    path: str
    first: int = 1
    last: int | None = None


class List(Struct, frozen=True):
    """List a folder."""

    path: str


class Create(Struct, frozen=True):
    """Write a whole file."""

    path: str
    text: str


class Replace(Struct, frozen=True):
    """Replace a text, which must occur exactly once unless ``every`` is set."""

    path: str
    old: str
    new: str
    every: bool = False


class Insert(Struct, frozen=True):
    """Insert lines after line ``after``; 0 is the top of the file."""

    path: str
    after: int
    text: str


class Run(Struct, frozen=True):
    """Run a command; ``timeout`` is in milliseconds."""

    command: str
    timeout: int | None = None
    description: str | None = None


Operation: TypeAlias = View | List | Create | Replace | Insert | Run
OperationType: TypeAlias = type[Operation]
WrittenArguments: TypeAlias = dict[str, Value]


class Arguments:
    """The arguments of one call, taken one by one; any left over cannot be translated. ``null`` counts as absent."""

    def __init__(self, tool: str, text: str) -> None:
        self.tool = tool
        self.notes: list[str] = []
        try:
            parsed = parse(text)
        except NotJsonError as error:
            raise Untranslatable(f"the arguments of {tool} are not JSON") from error
        if parsed.repairs or not isinstance(parsed.value, dict):
            raise Untranslatable(f"the arguments of {tool} are not a JSON object")
        self.left = {key: value for key, value in parsed.value.items() if value is not None}

    def __contains__(self, key: str) -> bool:
        return key in self.left

    def take(self, key: str) -> Value:
        if key not in self.left:
            raise Untranslatable(f"{self.tool} needs {key}")
        return self.left.pop(key)

    def take_text(self, key: str, default: str | None = None) -> str:
        value = default if default is not None and key not in self.left else self.take(key)
        if type(value) is not str:
            raise Untranslatable(f"{key} of {self.tool} must be text")
        return value

    def take_path(self, key: str) -> str:
        path = self.take_text(key)
        if not path:
            raise Untranslatable(f"{key} of {self.tool} is empty")
        return path

    def take_integer(self, key: str) -> int | None:
        """An integer, or None if absent; XML clients write numbers as text."""
        if key not in self.left:
            return None
        return parse_integer(self.take(key), f"{key} of {self.tool}")

    def take_flag(self, key: str) -> bool:
        value = self.left.pop(key, False)
        if type(value) is str and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise Untranslatable(f"{key} of {self.tool} must be true or false")
        return value

    def finish(self) -> None:
        for key in self.left:
            raise Untranslatable(f"{key} of {self.tool} has no equivalent")


def parse_integer(value: Value, what: str) -> int:
    digits = str(value) if isinstance(value, str) else ""
    if not digits.removeprefix("-").isascii() or not digits.removeprefix("-").isdigit():
        raise Untranslatable(f"{what} must be a whole number")
    return int(digits)


def to_number(value: int) -> Number:
    return Number(str(value))


class Target(Struct, frozen=True):
    """The declared tool that a call is read from or written for.

    ``model`` is the model id that the client uses. ``verified``: the written call is parsed back as the client does, so
    values that the client changes are escaped or refused there.
    """

    tool: Tool
    model: str = ""
    verified: bool = False

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.tool.parameters.get("properties")
        return found if isinstance(found, Mapping) else {}

    def declares(self, *keys: str) -> bool:
        """Whether the tool declares these arguments; a tool without any declaration is identified by its name alone."""
        return not self.properties or all(key in self.properties for key in keys)

    def takes_objects(self, key: str) -> bool:
        """Whether the tool declares this argument as an object."""
        found = self.properties.get(key)
        return isinstance(found, Mapping) and found.get("type") == "object"

    def requires(self, key: str) -> bool:
        return key in (self.tool.parameters.get("required") or ())

    def describe(self, key: str) -> str:
        found = self.properties.get(key)
        return str(found.get("description") or "") if isinstance(found, Mapping) else ""


@dataclass(frozen=True, slots=True)
class ToolAdapter:
    """One tool of a set.

    ``keys`` must be declared for a client's tool to match, and one of ``any_of``. ``make_tool`` builds the definition
    for a model, for the operation types that the client supports. ``fields`` maps the parts of the operation to
    argument names if the arguments express nothing else: two tools with the same parts differ in names only.
    """

    tool: str
    keys: tuple[str, ...]
    read: Callable[[Arguments, Target], tuple[Operation, ...]]
    write: Mapping[OperationType, Callable[[Any, Target], WrittenArguments]]
    make_tool: Callable[[frozenset[OperationType]], Tool]
    any_of: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def kinds(self) -> frozenset[OperationType]:
        return frozenset(self.write)

    def fits(self, tool: Tool) -> bool:
        """Whether this adapter is for the given tool of a client."""
        if tool.name != self.tool:
            return False
        target = Target(tool)
        return target.declares(*self.keys) and (not self.any_of or any(map(target.declares, self.any_of)))


class ToolSet(Struct, frozen=True):
    """The tools of one client or vendor. The first that can write an operation does; ``taught`` are offered to models,
    the others are only recognised in clients."""

    name: str
    adapters: tuple[ToolAdapter, ...]
    taught: tuple[str, ...]


def define_tool(name: str, description: str, properties: Mapping[str, Any], optional: Iterable[str] = ()) -> Tool:
    """A tool definition; every argument is required except ``optional`` ones."""
    omittable = set(optional)
    required = [key for key in properties if key not in omittable]
    return Tool(name, description, {"type": "object", "properties": dict(properties), "required": required})


def string_schema(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def integer_schema(description: str) -> dict[str, str]:
    return {"type": "integer", "description": description}


def view_range(first: int | None, last: int | None, path: str) -> View:
    """A view of these lines; ``None``: not given."""
    start = 1 if first is None else first
    if start < 1 or (last is not None and last < start):
        raise Untranslatable(f"there are no lines from {start} to {last}")
    return View(path, start, last)


# -- folders, for tools that show both files and folders ---------------------------------------------------------------

RELATIVE_FOLDERS = (".", "..")


def is_folder(path: str) -> bool:
    """Whether a path means a folder. It cannot be known, so models are taught to end a folder with a slash."""
    return path.endswith("/") or path in RELATIVE_FOLDERS


def list_folder(path: str) -> List:
    return List(path.rstrip("/") or "/")


def folder_path(path: str) -> str:
    return path if path == "/" or path in RELATIVE_FOLDERS else path + "/"


def refuse_crlf(operation: Replace, tool: str) -> None:
    if "\r\n" in operation.old + operation.new:
        raise Untranslatable(f"{tool} does not keep line ends of CR LF as they are written")

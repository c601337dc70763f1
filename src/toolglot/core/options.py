"""Options of the reader, and the interface to clients that parse calls themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from toolglot.core.call_patterns import ALL_ON, Patterns
from toolglot.core.errors import UsageError

UNKNOWN_TOOLS = ("allow", "text", "reject")
SHELL_SYNTAX = ("pipes", "redirects", "substitution", "chains")


class Boundary(Protocol):
    """Finds the end of one call in streamed text."""

    def feed(self, piece: str) -> int:
        """Return how many characters of the next piece belong to the call if it ends there, else -1."""
        ...


class Element(Struct, frozen=True):
    """A call as a client parses it: its values by parameter. ``is_valid`` if the client's tool accepts the values;
    ``is_incomplete`` if a required one is missing."""

    values: Mapping[str, str]
    is_valid: bool = True
    is_incomplete: bool = False


class ElementCalls(Protocol):
    """How a client parses calls written as ``<tool>..</tool>``, where the client's own parser decides."""

    @property
    def reasoning_tags(self) -> frozenset[str]:
        """Tags around reasoning that the client expects in the text: they stay there, with their content."""
        ...

    def open(self, name: str) -> Boundary | None:
        """Return what finds the end of a call after its opening tag; None if the client has no such tool."""
        ...

    def read(self, text: str) -> Element | None:
        """Parse the text as the client does; None if the client would not find a call in it."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """How strict the reader is.

    ``unknown_tools``: what happens to a well-formed call in a marked dialect to a tool that was not offered:
    ``allow`` delivers it, ``text`` leaves it in the text, ``reject`` reports it. With ``text`` every call that
    cannot be delivered (truncated, required argument missing, value outside the schema) stays in the text too;
    otherwise it is reported as rejected.
    ``min_confidence``: calls with less confidence are not delivered.
    ``parallel``: deliver every call of an answer, or only the first.
    ``supported_tools``: further tool names that count as known, without a schema.
    ``shell``: commands that a shell fence may run (the first token of each); none by default.
    ``thresholds``: minimum confidence per dialect, instead of ``min_confidence``.
    ``shell_syntax``: shell features such a command may use; ``shell_cwd``: its working directory, if the tool has one.
    ``elements``: the client's parser of elements named after a tool; it takes precedence over all dialects.
    ``patterns``: switches and confidences of dialects that also occur in ordinary text (``read_patterns``).
    """

    unknown_tools: str = "allow"
    min_confidence: float = 0.9
    parallel: bool = True
    supported_tools: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    shell_syntax: tuple[str, ...] = ()
    shell_cwd: str = ""
    thresholds: Mapping[str, float] = field(default_factory=dict, hash=False)
    patterns: Patterns = ALL_ON
    elements: ElementCalls | None = None

    def __post_init__(self) -> None:
        if self.unknown_tools not in UNKNOWN_TOOLS:
            raise UsageError(f"unknown_tools is {self.unknown_tools!r}; it can be {', '.join(UNKNOWN_TOOLS)}")
        check_confidence(self.min_confidence, "min_confidence")
        check_flag(self.parallel, "parallel")
        for name in ("supported_tools", "shell", "shell_syntax"):
            object.__setattr__(self, name, check_names(getattr(self, name), name))
        for name in self.shell_syntax:
            if name not in SHELL_SYNTAX:
                raise UsageError(f"shell_syntax has {name!r}; it can have {', '.join(SHELL_SYNTAX)}")
        check_type(self.shell_cwd, str, "shell_cwd", "a path")
        check_type(self.thresholds, Mapping, "thresholds", "a mapping of dialects to numbers from 0 to 1")
        for dialect, least in self.thresholds.items():
            check_type(dialect, str, "a key of thresholds", "the name of a dialect")
            check_confidence(least, f"thresholds[{dialect!r}]")
        check_type(self.patterns, Patterns, "patterns", "made by read_patterns")


make_options = lru_cache(maxsize=64)(Options)
"""Validated options, cached: most requests have the same."""


def check_type(given: object, kind: type | tuple[type, ...], what: str, wanted: str) -> None:
    """Raise ``UsageError`` unless an argument of the public API has the right type. ``wanted``: what it must be."""
    if not isinstance(given, kind):
        raise UsageError(f"{what} is {given!r}; it must be {wanted}")


def check_dialect(given: object) -> None:
    """Raise ``UsageError`` unless a dialect is given by name, which may be the name of a model."""
    check_type(given, str, "dialect", "the name of a dialect or of a model")


def check_flag(given: object, what: str) -> None:
    """Raise ``UsageError`` unless the argument is a boolean: ``"no"`` and ``[]`` would be misread."""
    check_type(given, bool, what, "True or False")


def check_confidence(given: object, what: str) -> None:
    """Raise ``UsageError`` unless the argument is a number from 0 to 1; a boolean is none."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise UsageError(f"{what} is {given!r}; it must be a number from 0 to 1")


def check_names(given: Collection[str] | bool | None, what: str) -> tuple[str, ...]:
    """Return a collection of names as a tuple. Raises ``UsageError`` for a single string, which is a common mistake."""
    if given is None or given is False:
        return ()
    if (
        isinstance(given, (str, bytes, bool))
        or not isinstance(given, Collection)
        or not all(isinstance(name, str) for name in given)
    ):
        raise UsageError(f"{what} takes a collection of names, not {given!r}")
    return tuple(given)

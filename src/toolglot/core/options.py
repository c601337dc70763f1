"""What a caller may choose about reading, in one frozen place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from toolglot.core.call_patterns import ALL_ON, Patterns
from toolglot.core.errors import UsageError

UNKNOWN_TOOLS = ("allow", "text", "reject")
SHELL_SYNTAX = ("pipes", "redirects", "substitution", "chains")


class Boundary(Protocol):
    """Finds the end of one call whose text arrives in pieces."""

    def feed(self, piece: str) -> int:
        """How many characters of the next piece belong to the call if it ends there, else -1."""
        ...


@dataclass(frozen=True, slots=True)
class Element:
    """A call as a client reads it: its values by parameter. ``sound`` if the client's tool does not complain of one;
    ``lacking`` if it misses one."""

    values: Mapping[str, str]
    sound: bool = True
    lacking: bool = False


class ElementCalls(Protocol):
    """How a client reads calls that are written as ``<tool>..</tool>``, where its own reading decides."""

    @property
    def asides(self) -> frozenset[str]:
        """Tags around reasoning that the client looks for in the text: they stay there, with what is between them."""
        ...

    def open(self, name: str) -> Boundary | None:
        """What finds the end of a call behind its opening tag; None if the client has no such tool."""
        ...

    def read(self, text: str) -> Element | None:
        """The call as the client reads it, or None if the client would not make the call from this text."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """How strict reading is.

    ``unknown_tools``: what becomes of a well-formed call in a marked dialect to a tool that was not offered:
    ``allow`` delivers it, ``text`` leaves it in the text, ``reject`` reports it. With ``text`` every call that
    cannot be delivered (cut, required argument missing, value outside the schema) stays in the text as well;
    otherwise it is reported as rejected.
    ``min_confidence``: calls read with less confidence are not delivered.
    ``parallel``: deliver every call of an answer, or only the first.
    ``supported_tools``: further names that count as known, without a schema.
    ``shell``: commands that a shell fence may run (their first words); none by default.
    ``thresholds``: the least confidence for single dialects, instead of ``min_confidence``.
    ``shell_syntax``: what else such a line may do; ``shell_cwd``: where it is run, if the tool can be told.
    ``elements``: who reads a call that is written as an element named after its tool, before anybody else does.
    ``patterns``: switches and confidences of ways of writing calls that ordinary text has too (``read_patterns``).
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
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"min_confidence is {self.min_confidence!r}; it must lie between 0 and 1")
        for name in self.shell_syntax:
            if name not in SHELL_SYNTAX:
                raise UsageError(f"shell_syntax has {name!r}; it can have {', '.join(SHELL_SYNTAX)}")


make_options = lru_cache(maxsize=64)(Options)
"""Options that are checked once; most requests have the same."""


def names(given: Collection[str] | bool | None, what: str) -> tuple[str, ...]:
    """A collection of names as a tuple; a lone string is an easy slip and is refused."""
    if given is None or given is False:
        return ()
    if isinstance(given, (str, bool)) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{what} takes a collection of names, not {given!r}")
    return tuple(given)

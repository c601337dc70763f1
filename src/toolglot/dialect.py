"""What a dialect is: a record of marks, and which codec reads what stands between them.

A dialect is written down as it looks. ``wrap`` are the marks around one or several calls, ``call`` how one call is
written. The reader takes the records apart: any call shape is read inside any wrapper, because models mix them; the
pair that was found decides which dialect it is called.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from toolglot.draft import Frame
from toolglot.pattern import Match
from toolglot.scanner import Steps


class Place(Enum):
    """Where the header of a call counts."""

    ANYWHERE = "anywhere in the text"
    LINE = "at the start of a line"
    WRAPPED = "only inside a wrapper"


class Commitment(Enum):
    MARKED = "its marks are never ordinary text"
    TENTATIVE = "its marks are ordinary text too: the tool must be known and the arguments must fit"
    WHOLE = "the same, and nothing of it leaves before all of it is read"


class Body(Protocol):
    """A codec: reads what follows a header."""

    def accepts(self, head: str) -> bool:
        """Whether a body of this kind can begin with this character ("" is the end of the text)."""
        ...

    def read(self, frame: Frame, call: Call, found: Match) -> Steps[bool]:
        """Read one call (or several) into the frame; False when this is no call after all."""
        ...


@dataclass(frozen=True, slots=True)
class Wrap:
    """Marks around calls, in all their spellings; ``repair`` names what is wrong with damaged ones.

    Inside a marked wrapper any call shape counts, because models mix them. A wrapper that is ordinary text, such as a
    code fence, holds only the calls of its own dialects.
    """

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    place: Place = Place.ANYWHERE
    commitment: Commitment = Commitment.MARKED
    repair: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """How one call is written: its header, what follows, and what closes it."""

    header: tuple[str, ...]
    body: Body
    close: tuple[str, ...] = ()
    place: Place = Place.ANYWHERE
    repair: str = ""

    def at(self, place: Place) -> Call:
        return replace(self, place=place)


class Channel(Enum):
    REASONING = "reasoning"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Region:
    """Marks around text that is reasoning, or plainly text; the marks themselves are nobody's to read."""

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    channel: Channel = Channel.REASONING
    place: Place = Place.LINE


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way of writing tool calls in text.

    ``also`` are damaged or drifted shapes of the call, ``regions`` its marks for reasoning and plain text, ``results``
    the marks of tool results (a model that writes one has made it up), ``noise`` marks that may follow a call and mean
    nothing, ``models`` globs of model ids that speak it.
    """

    name: str
    call: Call
    sample: str
    wrap: tuple[Wrap, ...] = ()
    also: tuple[Call, ...] = ()
    confidence: float = 1.0
    commitment: Commitment = Commitment.MARKED
    regions: tuple[Region, ...] = ()
    results: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    family: str = ""
    file: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        return (self.call, *self.also)

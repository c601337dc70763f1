"""What a dialect is: a record of marks, and which codec reads what stands between them.

A dialect is written down as it looks. ``wrap`` are the marks around one or several calls, ``call`` how one call is
written. The reader takes the records apart: any call shape is read inside any wrapper, because models mix them; the
pair that was found decides which dialect it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from toolglot.core.lenient_json import Value
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.patterns import Match
from toolglot.dialects.scanner import Steps


class Position(Enum):
    """Where the header of a call counts."""

    ANYWHERE = "anywhere in the text"
    LINE = "at the start of a line"
    START = "at the start of the answer"
    WRAPPED = "only inside a wrapper"


class Commitment(Enum):
    MARKED = "its marks are never ordinary text"
    TENTATIVE = "its marks are ordinary text too: the tool must be known and the arguments must fit"
    WHOLE = "the same, and nothing of it leaves before all of it is read"
    ALONE = "the same, and it counts only if the answer says nothing else"


class Body(Protocol):
    """A codec: reads what follows a header, and writes it the way a sample does."""

    def accepts(self, head: str) -> bool:
        """Whether a body of this kind can begin with this character ("" is the end of the text)."""
        ...

    def read(self, frame: CallBlock, call: CallSyntax, found: Match) -> Steps[bool]:
        """Read one call (or several) into the frame; False when this is no call after all."""
        ...

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """The call in the form of the sample, then in other forms that carry what the first one may not."""
        ...


@dataclass(frozen=True, slots=True)
class Wrap:
    """Marks around calls, in all their spellings; ``repair`` names what is wrong with damaged ones.

    Inside a marked wrapper any call shape counts, because models mix them. A wrapper that is ordinary text, such as a
    code fence, holds only the calls of its own dialects.
    """

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    position: Position = Position.ANYWHERE
    commitment: Commitment = Commitment.MARKED
    repair: str = ""

    def __hash__(self) -> int:
        # the rest of it hardly ever tells two apart, and takes long
        return hash(self.open)


_TAG = re.compile(r"<((?:\{ns\})?[\w:]+)>")
_BRACKETS = re.compile(r"\[([/\w ]+)\]")


def loosen_opener(mark: str) -> str:
    """The opening mark of a wrapper as models vary it, with attributes; nothing for other marks."""
    if (tag := _TAG.fullmatch(mark)) is not None:
        return f"<{tag[1]}{{attributes}}{{gt}}"
    word = _BRACKETS.fullmatch(mark)
    return f"[{word[1]}{{bracket_attributes}}]" if word is not None else ""


def loosen_closer(mark: str) -> tuple[str, ...]:
    """The same for a closing mark, with quotes too many and brackets that only look like one."""
    if mark.startswith("</") and (tag := _TAG.fullmatch("<" + mark[2:])) is not None:
        return (f"</ {tag[1]} {{junk}} {{gt}}", f"＜/{tag[1]} {{gt}}", f"<\\/{tag[1]}>", f"<{tag[1]}/>")
    word = _BRACKETS.fullmatch(mark)
    return (f"[{word[1]} {{junk}} ]", f"[{word[1]}{{bracket_attributes}}]") if word is not None else ()


def loosen_closers(close: tuple[str, ...]) -> tuple[str, ...]:
    """Closing marks, and behind them the same as models vary them."""
    return (*close, *(closer for mark in close for closer in loosen_closer(mark)))


def loosen_wrap(wrap: Wrap) -> tuple[Wrap, ...]:
    """A wrapper whose marks are never ordinary text, as it is and with damaged marks."""
    openers = tuple(filter(None, map(loosen_opener, wrap.open)))
    if wrap.commitment is not Commitment.MARKED or not openers:
        return (wrap,)
    close = loosen_closers(wrap.close)
    return replace(wrap, close=close), Wrap(openers, close, wrap.position, repair="damaged_opener")


@dataclass(frozen=True, slots=True)
class CallSyntax:
    """How one call is written: its header, what follows, and what closes it."""

    header: tuple[str, ...]
    body: Body
    close: tuple[str, ...] = ()
    position: Position = Position.ANYWHERE
    repair: str = ""

    def at(self, position: Position) -> CallSyntax:
        return replace(self, position=position)


def loosen_call(call: CallSyntax) -> CallSyntax:
    """A call with the closing marks that models vary."""
    return replace(call, close=loosen_closers(call.close))


class Channel(Enum):
    REASONING = "reasoning"
    TEXT = "text"
    ANSWER = "text for the user, in which JSON is no call"


@dataclass(frozen=True, slots=True)
class Region:
    """Marks around text that is reasoning, or plainly text; the marks themselves are nobody's to read.

    Marks that are ordinary text too begin no reasoning behind an answer, unless they have a line of their own.
    """

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    channel: Channel = Channel.REASONING
    position: Position = Position.LINE
    commitment: Commitment = Commitment.TENTATIVE


class ToolListing(Enum):
    """How tools are shown to a model."""

    LINES = "one JSON definition per line"
    ARRAY = "one JSON list of definitions"
    DOCUMENTS = "headings, parameters by lines, and a filled example for each"
    NUMBERED = "numbered sections with parameters by lines"
    ELEMENTS = "elements for name, description and parameters"
    TYPES = "a TypeScript namespace"
    STUBS = "Python functions without a body"
    DECLARATIONS = "declarations with bare keys"


@dataclass(frozen=True, slots=True)
class ToolPromptStyle:
    """How a dialect's models are told of tools: the way to show them, and what stands around the list and each tool."""

    listing: ToolListing = ToolListing.LINES
    open: str = "<tools>"
    close: str = "</tools>"
    each: tuple[str, str] = ("", "")


RESULT = "{verdict} from {name}:\n{content}"
"""A tool's result where a dialect has no form of its own. The verdict is "Tool Result", or says that it is an error."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A way of writing tool calls in text.

    ``also`` are damaged or drifted shapes of the call, ``regions`` its marks for reasoning and plain text, ``results``
    the marks of tool results (a model that writes one has made it up), ``turns`` marks that end a turn or begin one
    of the model's own, ``noise`` marks that may follow a call and mean nothing, ``models`` globs of model ids that
    speak it. ``sample`` is ``get_weather(city="Oslo")`` as the dialect writes it, and the form of everything that is
    written in it; ``between`` is what parts several calls that share a wrapper, or a list in it (None: each has its
    own). ``teach`` is how its models are told of tools and ``returns`` how they are given a result; its slots are
    ``{name}``, ``{content}``, ``{json}`` (the content as a JSON string) and ``{verdict}``.
    """

    name: str
    call: CallSyntax
    sample: str
    wrap: tuple[Wrap, ...] = ()
    also: tuple[CallSyntax, ...] = ()
    confidence: float = 1.0
    commitment: Commitment = Commitment.MARKED
    regions: tuple[Region, ...] = ()
    results: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    between: str | None = None
    teach: ToolPromptStyle = ToolPromptStyle()
    returns: str = RESULT
    family: str = ""
    file: str = ""

    @property
    def calls(self) -> tuple[CallSyntax, ...]:
        return (self.call, *self.also)

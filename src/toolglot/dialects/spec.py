"""Dialect records: the marks of a format, and the codec that parses what is between them.

Marks are written as they look (``mark_templates``). ``wrap`` are the marks around one or several calls, ``call`` is the
syntax of one call. The reader combines the dialects: any call syntax is accepted inside any wrapper, because models mix
them; the pair that was found determines the name of the dialect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Protocol

from msgspec import Struct, structs
from msgspec.structs import replace

from toolglot.core.lenient_json import Value
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.patterns import Match
from toolglot.dialects.scanner import Steps


class Position(Enum):
    """Where a mark is recognized."""

    ANYWHERE = "anywhere in the text"
    LINE = "at the start of a line"
    START = "at the start of the answer"
    WRAPPED = "only inside a wrapper"


class Commitment(Enum):
    MARKED = "its marks are never ordinary text"
    TENTATIVE = "its marks are ordinary text too: the tool must be known and the arguments must fit"
    WHOLE = "the same, and nothing of it is emitted before all of it is read"
    ALONE = "the same, and it counts only if the answer contains nothing else"


class Body(Protocol):
    """A codec: parses what follows a header, and writes it in the form of a sample."""

    def accepts(self, head: str) -> bool:
        """Whether a body of this kind can begin with this character ("" is the end of the text)."""
        ...

    def read(self, block: CallBlock, call: CallSyntax, found: Match) -> Steps[bool]:
        """Parse one or several calls into the block; return False if this is no call after all."""
        ...

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """Yield the call in the form of the sample, then in forms that can represent what the first one cannot."""
        ...


class Wrap(Struct, frozen=True, cache_hash=True):
    """Marks around calls, in all spellings; ``repair`` names the damage of damaged ones.

    Inside a marked wrapper any call syntax is accepted, because models mix them. A wrapper that is ordinary text, such
    as a code fence, contains only calls of its own dialects.
    """

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    position: Position = Position.ANYWHERE
    commitment: Commitment = Commitment.MARKED
    repair: str = ""


_TAG = re.compile(r"<((?:\{ns\})?[\w:]+)>")
_BRACKETS = re.compile(r"\[([/\w ]+)\]")


def loosen_opener(mark: str) -> str:
    """Return the opening mark of a wrapper with optional attributes; "" if it is neither a tag nor in brackets."""
    if (tag := _TAG.fullmatch(mark)) is not None:
        return f"<{tag[1]}{{attributes}}{{gt}}"
    word = _BRACKETS.fullmatch(mark)
    return f"[{word[1]}{{bracket_attributes}}]" if word is not None else ""


def loosen_closer(mark: str) -> tuple[str, ...]:
    """Return variants of a closing mark: stray quotes, lookalike brackets."""
    if mark.startswith("</") and (tag := _TAG.fullmatch("<" + mark[2:])) is not None:
        return (f"</ {tag[1]} {{junk}} {{gt}}", f"＜/{tag[1]} {{gt}}", f"<\\/{tag[1]}>", f"<{tag[1]}/>")
    word = _BRACKETS.fullmatch(mark)
    return (f"[{word[1]} {{junk}} ]", f"[{word[1]}{{bracket_attributes}}]") if word is not None else ()


def loosen_closers(close: tuple[str, ...]) -> tuple[str, ...]:
    """Return closing marks followed by their variants."""
    return (*close, *(closer for mark in close for closer in loosen_closer(mark)))


def loosen_wrap(wrap: Wrap) -> tuple[Wrap, ...]:
    """Return a wrapper and, if its marks are never ordinary text, one with damaged marks."""
    openers = tuple(filter(None, map(loosen_opener, wrap.open)))
    if wrap.commitment is not Commitment.MARKED or not openers:
        return (wrap,)
    close = loosen_closers(wrap.close)
    return structs.replace(wrap, close=close), Wrap(openers, close, wrap.position, repair="damaged_opener")


class CallSyntax(Struct, frozen=True):
    """The syntax of one call: its header, the codec of its body, and its closing marks."""

    header: tuple[str, ...]
    body: Body
    close: tuple[str, ...] = ()
    position: Position = Position.ANYWHERE
    repair: str = ""

    def at(self, position: Position) -> CallSyntax:
        return replace(self, position=position)


def loosen_call(call: CallSyntax) -> CallSyntax:
    """Return the call syntax with variants of its closing marks."""
    return replace(call, close=loosen_closers(call.close))


class Channel(Enum):
    REASONING = "reasoning"
    TEXT = "text"
    MESSAGE = "text for the user in a frame of its own, in which only marks of the same dialect mean anything"


class Region(Struct, frozen=True):
    """Marks around reasoning or plain text; the marks themselves are dropped.

    Marks that occur in ordinary text open no reasoning after answer text, unless they have a line of their own.
    """

    open: tuple[str, ...]
    close: tuple[str, ...] = ()
    channel: Channel = Channel.REASONING
    position: Position = Position.LINE
    commitment: Commitment = Commitment.TENTATIVE

    @property
    def is_frame(self) -> bool:
        """Whether its marks are never ordinary text, so that marks of other dialects inside it are."""
        return self.commitment is Commitment.MARKED or self.channel is Channel.MESSAGE


class ToolListing(Enum):
    """How tools are listed in the prompt."""

    LINES = "one JSON definition per line"
    ARRAY = "one JSON list of definitions"
    DOCUMENTS = "headings, parameters by lines, and a filled example for each"
    NUMBERED = "numbered sections with parameters by lines"
    ELEMENTS = "elements for name, description and parameters"
    TYPES = "a TypeScript namespace"
    STUBS = "Python functions without a body"
    DECLARATIONS = "declarations with bare keys"


class ToolPromptStyle(Struct, frozen=True):
    """How the prompt lists tools: the format, and the text around the list and around each tool."""

    listing: ToolListing = ToolListing.LINES
    open: str = "<tools>"
    close: str = "</tools>"
    each: tuple[str, str] = ("", "")


RESULT = "{verdict} from {name}:\n{content}"
"""A tool result in dialects without a form of their own. The verdict is "Tool Result", or names it an error."""


class Dialect(Struct, frozen=True):
    """A way of writing tool calls in text.

    ``also``: damaged or drifted variants of the call. ``regions``: marks of reasoning and plain text. ``results``:
    marks of tool results (one written by a model is fabricated). ``turns``: marks that end a turn or begin one of the
    model's own. ``noise``: meaningless marks that may follow a call. ``models``: globs of the ids of models that use
    the dialect. ``sample``: ``get_weather(city="Oslo")`` in the dialect, the template of every call that is written.
    ``between``: the separator of calls that share a wrapper, or a list in it (None: one wrapper per call). ``teach``:
    how the prompt lists tools. ``returns``: the template of a tool result, with the slots ``{name}``, ``{content}``,
    ``{json}`` (the content as a JSON string) and ``{verdict}``.
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

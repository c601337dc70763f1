"""Text in, calls out: the public face of reading.

Whole text and streams are the same code: ``read`` feeds everything and closes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from toolglot.core.call_patterns import read_patterns
from toolglot.core.errors import UsageError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    Reason,
    ReasoningDelta,
    Span,
    TextDelta,
)
from toolglot.core.options import Options, check_names
from toolglot.core.provenance import NO_QUOTATIONS, Quotations, find_quotations
from toolglot.core.schema.toolset import CompiledTools, compile_declared
from toolglot.dialects.partial_call import AnswerState
from toolglot.dialects.records import all_dialects
from toolglot.reading.dialect_index import DialectIndex
from toolglot.reading.state_machine import StateMachine


@cache
def vocabulary() -> DialectIndex:
    """All dialects, compiled once."""
    return DialectIndex(all_dialects())


class Reader:
    """Reads one answer as it arrives: ``feed`` the pieces, then ``close``; both return the events so far.

    ``tools`` is the OpenAI tools array (plain function objects will do), or a ``CompiledTools`` of them. ``dialect`` is
    ``"auto"``, the name of a dialect or a model id; a name only breaks ties. The options are explained at
    ``toolglot.Options``. ``new_id`` makes the ids of calls; by default they count: ``call_1``, ``call_2``. ``quoted``
    are texts that the answer may quote, such as the tool results and user messages of the conversation: a call that
    stands in one of them stays text, unless the answer is nothing but this call.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]] | CompiledTools | None = None,
        dialect: str = "auto",
        *,
        unknown_tools: str = "allow",
        min_confidence: float = 0.9,
        parallel: bool = True,
        supported_tools: Collection[str] = (),
        shell: Collection[str] = (),
        shell_syntax: Collection[str] = (),
        shell_cwd: str = "",
        thresholds: Mapping[str, float] | None = None,
        patterns: Mapping[str, bool | float | None] | None = None,
        new_id: Callable[[], str] | None = None,
        quoted: Collection[str] = (),
    ) -> None:
        if not isinstance(dialect, str):
            raise UsageError(f"dialect is the name of a dialect or a model, not {dialect!r}")
        options = Options(
            unknown_tools,
            min_confidence,
            parallel,
            check_names(supported_tools, "supported_tools"),
            check_names(shell, "shell"),
            check_names(shell_syntax, "shell_syntax"),
            shell_cwd,
            thresholds or {},
            read_patterns(patterns),
        )
        numbers = count(1)
        toolbox = tools if isinstance(tools, CompiledTools) else compile_declared(tools, options.supported_tools)
        found = find_quotations(check_names(quoted, "quoted"), toolbox.names, bool(options.shell))
        self._begin(toolbox, dialect, options, new_id or (lambda: f"call_{next(numbers)}"), found)

    @classmethod
    def prepared(
        cls,
        toolbox: CompiledTools,
        dialect: str,
        options: Options,
        new_id: Callable[[], str],
        quotations: Quotations = NO_QUOTATIONS,
    ) -> Reader:
        """A reader with tools that are compiled, options that are checked and quotations that are found."""
        reader = cls.__new__(cls)
        reader._begin(toolbox, dialect, options, new_id, quotations)
        return reader

    def _begin(
        self, toolbox: CompiledTools, dialect: str, options: Options, new_id: Callable[[], str], quotations: Quotations
    ) -> None:
        known = vocabulary()
        self._ledger = AnswerState(new_id, quotations)
        machine = StateMachine(known, toolbox, options, self._ledger, known.resolve_hint(dialect) or "")
        self._machine = machine
        self._source = machine.source
        self._sink = machine.sink
        self._steps = machine.run()
        self._closed = False
        self.audited = bool(options.shell)
        """Whether calls may be read for which somebody has to answer."""

    def feed(self, chunk: str) -> list[Event]:
        """Take the next piece of the answer; what it made known."""
        source = self._source
        try:
            run = source.run
            if run is not None and (events := run(chunk)) is not None:
                source.pass_through(chunk)
                return events
        except TypeError:
            raise UsageError(f"the answer is text, not {type(chunk).__name__}") from None
        if self._closed:
            raise UsageError("the reader is closed: one reader reads one answer")
        if not isinstance(chunk, str):
            raise UsageError(f"the answer is text, not {type(chunk).__name__}")
        if chunk:
            source.push(chunk)
            next(self._steps, None)
        return self._sink.drain()

    def close(self, truncated: bool = False) -> list[Event]:
        """The answer is over; ``truncated`` when the upstream says that it was cut. What that made known."""
        if self._closed:
            raise UsageError("the reader is closed: one reader reads one answer")
        self._closed = True
        self._source.end(truncated)
        next(self._steps, None)
        return self._sink.drain()

    def tell_as_text(self, source: str) -> list[Event]:
        """Tell as text all that was not told as text or reasoning so far, calls included.

        For callers that hold calls back and then find that they do not count. ``source`` is everything that was fed.
        """
        return self._machine.tell_as_text(source)

    def tell_waiting(self) -> list[Event]:
        """Tell text that waits for what comes next, because what comes next is no text; then read on behind it.

        What may still become a call waits on.
        """
        source, sink, machine = self._source, self._sink, self._machine
        unread = source.left or source.pos < len(source.text)
        if not (unread or sink.held_whitespace) or source.is_kept or machine.region is not None or machine.held.frames:
            return []
        if rest := source.take_rest():
            machine.say(rest)
            machine.line_start = False
        sink.release_whitespace()
        source.run = None
        self._steps = machine.run()
        return sink.drain()

    @property
    def left(self) -> list[tuple[str, Reason]]:
        """Calls that were left in the text without a word: their dialects, and why."""
        return self._ledger.left_as_text

    @property
    def missed(self) -> list[str]:
        """The dialects of near misses: text that was meant as a call and cannot be read as one."""
        return self._ledger.near_misses


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A complete call. ``arguments`` is compact JSON text, keys in the order the model wrote."""

    id: str
    name: str
    arguments: str
    dialect: str
    confidence: float
    repairs: tuple[str, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """Text that set out to be a call and was not delivered, and why."""

    raw: str
    reason: Reason
    tool: str | None
    defects: tuple[Defect, ...]
    dialect: str
    span: Span | None


@dataclass(slots=True)
class Reading:
    """What an answer said."""

    text: str = ""
    reasoning: str = ""
    calls: list[ParsedCall] = field(default_factory=list)
    rejected: list[RejectedCall] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class _Gathering:
    """A reading while its events are gathered."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.started: dict[int, CallStarted] = {}
        self.fragments: dict[int, list[str]] = {}
        self.calls: list[ParsedCall] = []
        self.rejected: list[RejectedCall] = []

    def take(self, event: Event) -> None:
        match event:
            case TextDelta(text=piece):
                self.text.append(piece)
            case ReasoningDelta(text=piece):
                self.reasoning.append(piece)
            case CallStarted(index=index):
                self.started[index], self.fragments[index] = event, []
            case CallArguments(index=index, fragment=fragment):
                self.fragments[index].append(fragment)
            case CallEnded():
                self.end(event)
            case CallRejected():
                self.reject(event)

    def end(self, event: CallEnded) -> None:
        call, arguments = self.started[event.index], "".join(self.fragments[event.index])
        manner = (event.dialect, event.confidence, event.repairs, event.span)
        self.calls.append(ParsedCall(call.id, call.name, arguments, *manner))

    def reject(self, event: CallRejected) -> None:
        raw, span = event.raw, event.span
        whole = self.source[span[0] : span[1]] if self.source and span else raw
        self.rejected.append(RejectedCall(whole, event.reason, event.tool, event.defects, event.dialect, span))


def gather(events: Iterable[Event], source: str = "") -> Reading:
    """What a sequence of events says; with the source text, rejected calls show all of theirs."""
    gathering = _Gathering(source)
    told = list(events)
    for event in told:
        gathering.take(event)
    text, reasoning = "".join(gathering.text), "".join(gathering.reasoning)
    return Reading(text, reasoning, gathering.calls, gathering.rejected, told)


def read(
    text: str,
    tools: Sequence[Mapping[str, Any]] | CompiledTools | None = None,
    dialect: str = "auto",
    truncated: bool = False,
    **options: Any,
) -> Reading:
    """Read a whole answer. The options are those of ``Reader``."""
    reader = Reader(tools, dialect, **options)
    events = reader.feed(text)
    return gather([*events, *reader.close(truncated)], text)

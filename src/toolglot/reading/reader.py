"""The public API of reading: text in, calls out.

Whole texts and streams use the same code: ``read`` feeds everything and closes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, TypedDict, Unpack

from msgspec import Struct, field

from toolglot.core.call_patterns import read_patterns
from toolglot.core.errors import UsageError
from toolglot.core.events import (
    PIECE,
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    NearMiss,
    Reason,
    ReasoningDelta,
    Span,
    TextDelta,
    merge_deltas,
)
from toolglot.core.options import Options, check_dialect, check_names, check_type
from toolglot.core.provenance import NO_QUOTATIONS, Quotations, find_quotations
from toolglot.core.schema.toolset import CompiledTools, compile_declared
from toolglot.dialects.partial_call import AnswerState
from toolglot.reading.dialect_index import DialectIndex
from toolglot.reading.missed_calls import find_examples, find_missed_call
from toolglot.reading.plugins import known_dialects, list_call_marks
from toolglot.reading.state_machine import StateMachine


@cache
def dialect_index() -> DialectIndex:
    """The index of all dialects, compiled once."""
    return DialectIndex(known_dialects())


class ReadOptions(TypedDict, total=False):
    """The keyword arguments of ``Reader`` and ``read`` that make up ``Options``; explained there."""

    unknown_tools: str
    min_confidence: float
    parallel: bool
    supported_tools: Collection[str]
    shell: Collection[str]
    shell_syntax: Collection[str]
    shell_cwd: str
    thresholds: Mapping[str, float] | None
    patterns: Mapping[str, bool | float | None] | None


def build_options(*, patterns: Mapping[str, bool | float | None] | None = None, **others: Any) -> Options:
    """Build ``Options`` from keyword arguments. Raises ``UsageError`` for a wrong value."""
    unknown = others.keys() - ReadOptions.__annotations__
    if unknown:
        raise TypeError(f"Reader() got an unexpected keyword argument {min(unknown)!r}")
    if others.get("thresholds", {}) is None:
        del others["thresholds"]
    return Options(patterns=read_patterns(patterns), **others)


class Reader:
    """Reads one answer as it arrives: ``feed`` the chunks, then ``close``; both return the new events.

    ``tools`` is the OpenAI tools array (plain function objects will do), or a ``CompiledTools`` of them. ``dialect`` is
    ``"auto"``, the name of a dialect or a model id; a name only breaks ties. ``options`` is an ``Options`` object, or
    its fields are given as keyword arguments. ``new_id`` makes the ids of calls; by default they count: ``call_1``,
    ``call_2``. ``quoted`` are texts that the answer may quote, such as the tool results and user messages of the
    conversation: a call that occurs in one of them, or in pieces of several, stays text, unless the answer is nothing
    but this call.

    Raises ``UsageError`` for wrong options and ``ToolSchemaError`` for tools that cannot be compiled.
    """

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]] | CompiledTools | None = None,
        dialect: str = "auto",
        options: Options | None = None,
        *,
        new_id: Callable[[], str] | None = None,
        quoted: Collection[str] = (),
        **keywords: Unpack[ReadOptions],
    ) -> None:
        check_dialect(dialect)
        if options is None:
            options = build_options(**keywords)
        elif keywords:
            raise UsageError("options are given as an Options object or as keyword arguments, not as both")
        check_type(options, Options, "options", "an Options object")
        if new_id is not None and not callable(new_id):
            raise UsageError(f"new_id is {new_id!r}; it must be a function that returns an id")
        numbers = count(1)
        compiled = tools if isinstance(tools, CompiledTools) else compile_declared(tools, options.supported_tools)
        found = find_quotations(check_names(quoted, "quoted"), compiled.names, bool(options.shell), list_call_marks())
        self._start(compiled, dialect, options, new_id or (lambda: f"call_{next(numbers)}"), found)

    @classmethod
    def prepared(
        cls,
        tools: CompiledTools,
        dialect: str,
        options: Options,
        new_id: Callable[[], str],
        quotations: Quotations = NO_QUOTATIONS,
        refuses_examples: bool = False,
    ) -> Reader:
        """Make a reader from compiled tools, checked options and quotations found before. ``refuses_examples``: a call
        with a value that the examples of toolglot's own prompts make up is rejected."""
        reader = cls.__new__(cls)
        reader._start(tools, dialect, options, new_id, quotations)
        reader._source.refuses_examples = refuses_examples
        return reader

    def _start(
        self, tools: CompiledTools, dialect: str, options: Options, new_id: Callable[[], str], quotations: Quotations
    ) -> None:
        dialects = dialect_index()
        self._answer = AnswerState(new_id, quotations)
        machine = StateMachine(dialects, tools, options, self._answer, dialects.resolve_hint(dialect) or "")
        self._machine = machine
        self._source = machine.source
        self._buffer = machine.buffer
        self._steps = machine.run()
        self._closed = False
        self._tools = tools
        self.left = self._answer.left_as_text
        """Calls that stay in the text on purpose, without an event: their dialects, and why."""
        self.missed = self._answer.near_misses
        """Near misses: text that was meant as a call but cannot be read as one, with its tool and its defects if they
        are known."""
        self.audited = bool(options.shell)
        """Whether shell fences may be read as calls, which are logged."""

    def feed(self, chunk: str) -> list[Event]:
        """Read the next chunk of the answer and return the new events. Raises ``UsageError`` after ``close``."""
        source = self._source
        try:
            if (events := source.pass_through(chunk)) is not None:
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
        return self._buffer.drain()

    def close(self, truncated: bool = False) -> list[Event]:
        """End the answer and return the last events; ``truncated``: the upstream reports that it was cut."""
        return self.feed_last("", truncated)

    def feed_last(self, chunk: str, truncated: bool = False) -> list[Event]:
        """Read the last chunk and end the answer: as ``feed`` and ``close``, with less work."""
        if self._closed:
            raise UsageError("the reader is closed: one reader reads one answer")
        if not isinstance(truncated, bool):
            raise UsageError(f"truncated is {truncated!r}; it must be True or False")
        if not isinstance(chunk, str):
            raise UsageError(f"the answer is text, not {type(chunk).__name__}")
        before: list[Event] = []
        if len(chunk) > PIECE:
            *pieces, chunk = (chunk[at : at + PIECE] for at in range(0, len(chunk), PIECE))
            before = [event for piece in pieces for event in self.feed(piece)]
        if chunk:
            self._source.push(chunk)
        self._closed = True
        self._source.end(truncated)
        next(self._steps, None)
        if not truncated and (missed := self._find_missed_call()) is not None:
            self.missed.append(missed)
        return list(merge_deltas([*before, *self._buffer.drain()])) if before else self._buffer.drain()

    @property
    def is_stuck(self) -> bool:
        """Whether reading made no progress, so that the rest of the answer is text: an error in the reader."""
        return self._answer.is_stuck

    @property
    def is_inside_call(self) -> bool:
        """Whether the text so far ends inside of what may be a call."""
        return self._source.is_kept

    def _find_missed_call(self) -> NearMiss | None:
        """Find the call at the end of an answer without calls and near misses that no dialect has read."""
        answer = self._answer
        if answer.delivered or answer.near_misses or self._machine.thinking or not self._tools.names:
            return None
        text = self._machine.shown.join()
        return find_missed_call(text, self._tools, self._machine.blocks.hint) or self._find_example(text)

    def _find_example(self, text: str) -> NearMiss | None:
        """Find the whole call that ends a text, after a phrase that introduces an example."""
        for example in find_examples(text):
            reader = Reader.prepared(self._tools, "auto", self._machine.blocks.options, str)
            reading = collect(reader.feed_last(example))
            if reading.calls and not reading.text.strip():
                call = reading.calls[-1]
                return NearMiss(call.dialect, call.name, (), example)
        return None

    def emit_all_as_text(self, source: str) -> list[Event]:
        """Return as text all that was not emitted as text or reasoning so far, calls included.

        For callers that hold calls back and then find that they do not count. ``source`` is everything that was fed.
        """
        return self._machine.emit_all_as_text(source)

    def flush_text(self) -> list[Event]:
        """Return pending text because what comes next in the stream is not text; reading goes on after it.

        Text that may still become a call stays pending.
        """
        source, buffer, machine = self._source, self._buffer, self._machine
        unread = source.left or source.pos < len(source.text)
        if not (unread or buffer.whitespace) or source.is_kept or machine.region is not None or machine.deferred.blocks:
            return []
        if rest := source.take_rest():
            machine.emit_text(rest)
            machine.line_start = False
        buffer.release_whitespace()
        source.run = None
        self._steps = machine.run()
        return buffer.drain()


class ParsedCall(Struct, frozen=True, kw_only=True):
    """A complete call. ``arguments`` is compact JSON text, keys in the order of the model."""

    id: str
    name: str
    arguments: str
    dialect: str
    confidence: float
    repairs: tuple[str, ...]
    span: Span | None


class RejectedCall(Struct, frozen=True, kw_only=True):
    """Text that began as a call and was not delivered, and why."""

    raw: str
    reason: Reason
    tool: str | None
    defects: tuple[Defect, ...]
    dialect: str
    span: Span | None


class Reading(Struct, kw_only=True):
    """The content of an answer."""

    text: str = ""
    reasoning: str = ""
    calls: list[ParsedCall] = field(default_factory=list)
    rejected: list[RejectedCall] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


class _EventCollector:
    """Collects events into a ``Reading``."""

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
        parsed = ParsedCall(
            id=call.id,
            name=call.name,
            arguments=arguments,
            dialect=event.dialect,
            confidence=event.confidence,
            repairs=event.repairs,
            span=event.span,
        )
        self.calls.append(parsed)

    def reject(self, event: CallRejected) -> None:
        raw, span = event.raw, event.span
        whole = self.source[span[0] : span[1]] if self.source and span else raw
        self.rejected.append(
            RejectedCall(
                raw=whole, reason=event.reason, tool=event.tool, defects=event.defects, dialect=event.dialect, span=span
            )
        )


def collect(events: Iterable[Event], source: str = "") -> Reading:
    """Collect events into a ``Reading``; with the source text, rejected calls have their whole text."""
    collector = _EventCollector(source)
    collected = list(events)
    for event in collected:
        collector.take(event)
    text, reasoning = "".join(collector.text), "".join(collector.reasoning)
    return Reading(text=text, reasoning=reasoning, calls=collector.calls, rejected=collector.rejected, events=collected)


def read(
    text: str,
    tools: Sequence[Mapping[str, Any]] | CompiledTools | None = None,
    dialect: str = "auto",
    truncated: bool = False,
    options: Options | None = None,
    **keywords: Any,
) -> Reading:
    """Read a whole answer. ``options`` and the keyword arguments are those of ``Reader``."""
    reader = Reader(tools, dialect, options, **keywords)
    return collect(reader.feed_last(text, truncated), text)

"""Map the model's calls in an answer to the client's tools.

Strategy. Text passes. A call to a tool outside the mapping passes, and one that differs in names only streams. Any
other call is held until it is complete, because its last argument may decide which tool of the client it becomes. A
call that cannot be mapped becomes text with the reason, so that a person sees it and the model finds it in its history;
if part of such a call was already sent, the answer fails with the reason. Calls are renumbered, as one may become none
or several. A mapped call does not occur in the model's text, so it has no span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from toolglot.clients.toolsets.argument_renamer import ArgumentRenamer
from toolglot.clients.toolsets.operations import Untranslatable
from toolglot.clients.toolsets.tool_mapper import ToolMapping, derive_call_id
from toolglot.core.error_guide import make_failure
from toolglot.core.events import CallArguments, CallEnded, CallRejected, CallStarted, Event, Failed, Finished, TextDelta


class _HeldCall(Struct):
    """A call that is held until its end."""

    started: CallStarted
    fragments: list[str] = field(default_factory=list)


class _SentCall(Struct):
    """A call being sent under this index. ``renamer`` is None once the rest of it is dropped."""

    index: int
    name: str
    renamer: ArgumentRenamer | None
    plain: bool


class ResponseMapper:
    """Maps one answer. Refused and dropped parts are added to ``notes``.

    If a call that was partly sent cannot be mapped, a streamed answer fails; a whole answer states it in its text.
    ``shown`` formats the arguments of a refused call.
    """

    def __init__(
        self,
        mapping: ToolMapping,
        notes: list[str] | None = None,
        streamed: bool = True,
        shown: Callable[[str], str] = str,
    ) -> None:
        self.mapping = mapping
        self.notes = [] if notes is None else notes
        self.streamed = streamed
        self.shown = shown
        self.calls: dict[int, _HeldCall | _SentCall] = {}
        self.started = 0
        self.failures: list[str] = []
        """Reasons why partly sent calls cannot be mapped."""
        self.has_output = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """The events for the client."""
        out: list[Event] = []
        for event in events:
            match event:
                case CallStarted():
                    self.start(event, out)
                case CallArguments(index=index):
                    self.add(self.calls[index], event.fragment, out)
                case CallEnded(index=index):
                    self.end(self.calls.pop(index), event, out)
                case CallRejected(index=int(index)):
                    self.reject(self.calls.pop(index), event, out)
                case Finished() | Failed():
                    self.close(event, out)
                case _:
                    out.append(event)
        self.has_output = self.has_output or bool(out)
        return out

    def start(self, event: CallStarted, out: list[Event]) -> None:
        if not self.mapping.maps_tool(event.name):
            self.calls[event.index] = self.start_call(event, None, out)
        elif renamed := self.mapping.make_renamer(event.name):
            self.calls[event.index] = self.start_call(replace(event, name=renamed[0]), renamed[1], out)
        else:
            self.calls[event.index] = _HeldCall(event)

    def start_call(self, event: CallStarted, renamer: ArgumentRenamer | None, out: list[Event]) -> _SentCall:
        index, self.started = self.started, self.started + 1
        out.append(replace(event, index=index))
        return _SentCall(index, event.name, renamer, renamer is None)

    def add(self, call: _HeldCall | _SentCall, fragment: str, out: list[Event]) -> None:
        if isinstance(call, _HeldCall):
            call.fragments.append(fragment)
        elif call.plain:
            out.append(CallArguments(call.index, fragment))
        elif call.renamer is not None:
            try:
                renamed = call.renamer.feed(fragment)
            except Untranslatable as error:
                self.notes.append(f"a call was refused: {error}")
                self.failures.append(f"The call of {call.name} was not made: {error}.")
                call.renamer, renamed = None, ""
            if renamed:
                out.append(CallArguments(call.index, renamed))

    def end(self, call: _HeldCall | _SentCall, event: CallEnded, out: list[Event]) -> None:
        if isinstance(call, _HeldCall):
            self.release(call, lambda index: replace(event, index=index, span=None), out)
        elif call.plain:
            out.append(replace(event, index=call.index))
        elif call.renamer is not None:
            out.append(replace(event, index=call.index, span=None))

    def release(self, call: _HeldCall, end: Callable[[int], Event], out: list[Event]) -> None:
        started, arguments = call.started, "".join(call.fragments)
        try:
            mapped = self.mapping.map_call_to_client(started.name, arguments)
        except Untranslatable as error:
            self.refuse(started.name, arguments, str(error), out)
            return
        self.notes += mapped.notes
        for at, (name, arguments) in enumerate(mapped.calls):
            index = self.start_call(CallStarted(0, derive_call_id(started.id, at), name), None, out).index
            out += (CallArguments(index, arguments), end(index))

    def refuse(self, name: str, arguments: str, why: str, out: list[Event]) -> None:
        self.notes.append(f"a call to {name} was refused: {why}")
        self.add_text(f"The call {name} {self.shown(arguments)} was not made: {why}.", out)

    def add_text(self, text: str, out: list[Event]) -> None:
        out.append(TextDelta("\n\n" + text if out or self.has_output else text))

    def reject(self, call: _HeldCall | _SentCall, event: CallRejected, out: list[Event]) -> None:
        if isinstance(call, _SentCall):
            out.append(replace(event, index=call.index))
        else:
            out.append(replace(event, index=None))

    def close(self, event: Finished | Failed, out: list[Event]) -> None:
        """Finish the answer. A held call that never ended is refused."""
        for call in self.calls.values():
            if isinstance(call, _HeldCall) and self.streamed:
                self.refuse(call.started.name, "".join(call.fragments), "it does not end", out)
        if isinstance(event, Finished) and event.reason == "tool_calls" and not self.started:
            event = replace(event, reason="stop")
        if self.failures and isinstance(event, Finished):
            why = " ".join(self.failures)
            if self.streamed:
                event = make_failure("refused_call", why)
            else:
                self.add_text(f"({why})", out)
        out.append(event)


def map_response(mapping: ToolMapping, events: Iterable[Event], notes: list[str] | None = None) -> list[Event]:
    """Map a whole answer."""
    return ResponseMapper(mapping, notes, streamed=False).feed(events)

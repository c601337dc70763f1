"""An answer on its way back: the model's calls in the client's words.

Strategy. Text passes. A call to a tool that is not for editing passes, and one of which only names change streams. Any
other call is held until it is whole, because which tool of the client it becomes may stand at its end. What cannot be
carried over is told as text with the reason, so that a person sees it and the model finds it in its history; where a
part of such a call was sent, the answer fails with the reason. Calls are numbered anew, as one may become none
or several. A call in other words than the model's stands nowhere in its text, so it has no span.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec.structs import replace

from toolglot.clients.toolsets.argument_renamer import ArgumentRenamer
from toolglot.clients.toolsets.operations import Untranslatable
from toolglot.clients.toolsets.tool_mapper import ToolMapping, derive_call_id
from toolglot.core.events import CallArguments, CallEnded, CallRejected, CallStarted, Event, Failed, Finished, TextDelta


@dataclass(slots=True)
class _Held:
    """A call that waits for its end."""

    started: CallStarted
    fragments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Passing:
    """A call that has left, under this number. ``renamer`` is gone when the rest of it is dropped."""

    index: int
    name: str
    renamer: ArgumentRenamer | None
    plain: bool


class ResponseMapper:
    """One answer. Notes on what was refused or dropped are put into ``notes``.

    Where a call that was begun cannot be carried over, a stream fails; an answer that is given whole says so in its
    text. ``shown`` gives the arguments of a refused call as they are told.
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
        self.calls: dict[int, _Held | _Passing] = {}
        self.started = 0
        self.lost: list[str] = []
        """What cannot be carried over of calls that have begun to leave."""
        self.said = False

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """What the client is told of these events."""
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
        self.said = self.said or bool(out)
        return out

    def start(self, event: CallStarted, out: list[Event]) -> None:
        if not self.mapping.maps_tool(event.name):
            self.calls[event.index] = self.let_go(event, None, out)
        elif renamed := self.mapping.make_renamer(event.name):
            self.calls[event.index] = self.let_go(replace(event, name=renamed[0]), renamed[1], out)
        else:
            self.calls[event.index] = _Held(event)

    def let_go(self, event: CallStarted, renamer: ArgumentRenamer | None, out: list[Event]) -> _Passing:
        index, self.started = self.started, self.started + 1
        out.append(replace(event, index=index))
        return _Passing(index, event.name, renamer, renamer is None)

    def add(self, call: _Held | _Passing, fragment: str, out: list[Event]) -> None:
        if isinstance(call, _Held):
            call.fragments.append(fragment)
        elif call.plain:
            out.append(CallArguments(call.index, fragment))
        elif call.renamer is not None:
            try:
                renamed = call.renamer.feed(fragment)
            except Untranslatable as loss:
                self.notes.append(f"a call was refused: {loss}")
                self.lost.append(f"The call of {call.name} was not made: {loss}.")
                call.renamer, renamed = None, ""
            if renamed:
                out.append(CallArguments(call.index, renamed))

    def end(self, call: _Held | _Passing, event: CallEnded, out: list[Event]) -> None:
        if isinstance(call, _Held):
            self.release(call, lambda index: replace(event, index=index, span=None), out)
        elif call.plain:
            out.append(replace(event, index=call.index))
        elif call.renamer is not None:
            out.append(replace(event, index=call.index, span=None))

    def release(self, call: _Held, end: Callable[[int], Event], out: list[Event]) -> None:
        started, arguments = call.started, "".join(call.fragments)
        try:
            carried = self.mapping.map_call_to_client(started.name, arguments)
        except Untranslatable as loss:
            self.refuse(started.name, arguments, str(loss), out)
            return
        self.notes += carried.notes
        for at, (name, told) in enumerate(carried.calls):
            index = self.let_go(CallStarted(0, derive_call_id(started.id, at), name), None, out).index
            out += (CallArguments(index, told), end(index))

    def refuse(self, name: str, arguments: str, why: str, out: list[Event]) -> None:
        self.notes.append(f"a call to {name} was refused: {why}")
        self.tell(f"The call {name} {self.shown(arguments)} was not made: {why}.", out)

    def tell(self, words: str, out: list[Event]) -> None:
        out.append(TextDelta("\n\n" + words if out or self.said else words))

    def reject(self, call: _Held | _Passing, event: CallRejected, out: list[Event]) -> None:
        if isinstance(call, _Passing):
            out.append(replace(event, index=call.index))
        else:
            out.append(replace(event, index=None))

    def close(self, event: Finished | Failed, out: list[Event]) -> None:
        """A call that was held and never ended was cut or refused: it does not leave as one."""
        for call in self.calls.values():
            if isinstance(call, _Held) and self.streamed:
                self.refuse(call.started.name, "".join(call.fragments), "it does not end", out)
        if isinstance(event, Finished) and event.reason == "tool_calls" and not self.started:
            event = replace(event, reason="stop")
        if self.lost and isinstance(event, Finished):
            why = " ".join(self.lost)
            if self.streamed:
                event = Failed("refused_call", why)
            else:
                self.tell(f"({why})", out)
        out.append(event)


def map_response(mapping: ToolMapping, events: Iterable[Event], notes: list[str] | None = None) -> list[Event]:
    """A whole answer in the client's words."""
    return ResponseMapper(mapping, notes, streamed=False).feed(events)

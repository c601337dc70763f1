"""Events on their way out."""

from __future__ import annotations

from toolglot.core.events import CallArguments, CallStarted, Event, ReasoningDelta, TextDelta

_TEXT, _REASONING = -1, -2
"""Channels, beside the indices of calls."""


MESSAGE_BREAK = "\n\n"
"""What parts the texts of two messages."""


class EventBuffer:
    """Events on their way out; adjacent deltas are joined, layout around calls is held."""

    __slots__ = ("_channel", "_layout", "_marks", "_parted", "_parts", "aside", "called", "events", "spoken", "used")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._parts: list[str] = []
        self._channel = _TEXT
        self._layout: list[str] = []
        self._marks: list[str] = []
        self._parted = False
        self.aside = False
        """Whether reasoning goes on in the text, marks and all, because the client looks for it there."""
        self.spoken = False
        self.called = False
        self.used = False

    def text(self, piece: str) -> None:
        if self._layout or self._parted:
            piece = self._put_layout_before(piece)
        if self._channel != _TEXT:
            if self._parts:
                self._flush()
            self._channel = _TEXT
        self.spoken = True
        self._parts.append(piece)

    def _put_layout_before(self, piece: str) -> str:
        """The piece behind the blanks that were held, or behind a blank line where two messages would touch."""
        if self._layout:
            if self.spoken or not self.called:
                piece = "".join(self._layout) + piece
            self._layout.clear()
        if self._parted and piece:
            self._parted = False
            return piece if piece[0].isspace() else MESSAGE_BREAK + piece
        return piece

    def part(self) -> None:
        """The text so far ends a message: if more text follows and no blanks part them, a blank line does."""
        self._parted = True

    def reasoning(self, piece: str) -> None:
        if self.aside:
            spoken = self.spoken
            self.text(piece)
            self.spoken = spoken
            return
        if self._channel != _REASONING:
            if self._parts:
                self._flush()
            self._channel = _REASONING
        self._parts.append(piece)

    def arguments(self, index: int, fragment: str) -> None:
        if self._channel != index:
            if self._parts:
                self._flush()
            self._channel = index
        self._parts.append(fragment)

    @property
    def blanks(self) -> str:
        """The layout that is held."""
        return "".join(self._layout)

    def drop_layout(self) -> None:
        self._layout.clear()

    def layout(self, blanks: str) -> None:
        """Blanks or marks of turns that are text only if more text follows; marks before a call are nobody's."""
        self._layout.append(blanks)

    def settle(self) -> None:
        """What comes next will not be a call: the layout before it is text, in its place."""
        if self._layout and (self.spoken or not self.called):
            self.text("")

    def event(self, event: Event) -> None:
        self.used = True
        if self._parts:
            self._flush()
        if self._layout and isinstance(event, CallStarted):
            self._layout = list(filter(str.isspace, self._layout))
        self.events.append(event)

    def thought(self, piece: str) -> Event:
        """A piece of reasoning that goes out at once."""
        return TextDelta(piece) if self.aside else ReasoningDelta(piece)

    def pass_mark(self, mark: str, aside: bool = False) -> None:
        """A mark nobody reads; an answer of nothing else is text after all. With ``aside`` it stays in the text, and so
        does the reasoning that it opens."""
        self.aside = self.aside or aside
        if self.aside:
            self.reasoning(mark)
        elif not self.used:
            self._marks.append(mark)

    def end(self) -> None:
        """The answer is over: layout behind a call is nobody's, other layout is text."""
        if not self.used and not self._parts and self._marks:
            self.text("".join(self._marks))
        elif self._layout and not (self.called and all(map(str.isspace, self._layout))):
            self.text("")

    def drain(self) -> list[Event]:
        if self._parts:
            self._flush()
        events = self.events
        self.events = []
        return events

    def _flush(self) -> None:
        """What was joined so far becomes an event; there is something."""
        self.used = True
        joined = "".join(self._parts)
        self._parts = []
        if not joined:
            return
        channel = self._channel
        if channel == _TEXT:
            self.events.append(TextDelta(joined))
        elif channel == _REASONING:
            self.events.append(ReasoningDelta(joined))
        else:
            self.events.append(CallArguments(channel, joined))

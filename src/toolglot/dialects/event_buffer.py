"""The event buffer collects the events of an answer between two reads; ``VisibleText`` the text emitted so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from toolglot.core.events import CallArguments, CallStarted, Event, ReasoningDelta, TextDelta

_TEXT, _REASONING = -1, -2
"""Channels, besides the indices of calls."""


MESSAGE_BREAK = "\n\n"
"""Separates the texts of two messages."""
TAIL_SIZE = 240
"""How many characters before a call are searched for an introduction."""

TAIL_LIMIT = 450
"""The remembered end of the text is cut back to ``TAIL_SIZE`` when it reaches this size."""

MAX_PIECES = 8192
"""How many pieces of the text are kept."""


class EventBuffer:
    """Joins adjacent deltas, and holds whitespace around calls until it is clear whether it is text."""

    __slots__ = (
        "_channel",
        "_marks",
        "_message_ended",
        "_parts",
        "anything_emitted",
        "call_emitted",
        "events",
        "reasoning_as_text",
        "text_emitted",
        "whitespace",
    )

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._parts: list[str] = []
        self._channel = _TEXT
        self.whitespace: list[str] = []
        self._marks: list[str] = []
        self._message_ended = False
        self.reasoning_as_text = False
        """Whether reasoning stays in the text, marks included, because the client expects it there."""
        self.text_emitted = False
        self.call_emitted = False
        self.anything_emitted = False

    def add_text(self, piece: str) -> None:
        if self.whitespace or self._message_ended:
            piece = self._prepend_whitespace(piece)
        if self._channel != _TEXT:
            if self._parts:
                self._flush()
            self._channel = _TEXT
        self.text_emitted = True
        self._parts.append(piece)

    def _prepend_whitespace(self, piece: str) -> str:
        """Prepend the held whitespace, or a blank line where two messages would touch."""
        if self.whitespace:
            if self.text_emitted or not self.call_emitted:
                piece = "".join(self.whitespace) + piece
            self.whitespace.clear()
        if self._message_ended and piece:
            self._message_ended = False
            return piece if piece[0].isspace() else MESSAGE_BREAK + piece
        return piece

    def end_message(self) -> None:
        """End a message: if more text follows without whitespace, a blank line is inserted."""
        self._message_ended = True

    def add_reasoning(self, piece: str) -> None:
        if self.reasoning_as_text:
            text_emitted = self.text_emitted
            self.add_text(piece)
            self.text_emitted = text_emitted
            return
        if self._channel != _REASONING:
            if self._parts:
                self._flush()
            self._channel = _REASONING
        self._parts.append(piece)

    def add_arguments(self, index: int, fragment: str) -> None:
        if self._channel != index:
            if self._parts:
                self._flush()
            self._channel = index
        self._parts.append(fragment)

    def drop_whitespace(self) -> None:
        self.whitespace.clear()

    def hold_whitespace(self, blanks: str) -> None:
        """Hold whitespace or turn marks: they are text only if more text follows; marks before a call are dropped."""
        self.whitespace.append(blanks)

    def release_whitespace(self) -> None:
        """What follows is no call: emit the held whitespace as text."""
        if self.whitespace and (self.text_emitted or not self.call_emitted):
            self.add_text("")

    def add_event(self, event: Event) -> None:
        self.anything_emitted = True
        if self._parts:
            self._flush()
        if self.whitespace and isinstance(event, CallStarted):
            self.whitespace = list(filter(str.isspace, self.whitespace))
        self.events.append(event)

    def make_reasoning_event(self, piece: str) -> Event:
        """Return the event of a piece of reasoning that bypasses the buffer."""
        return TextDelta(piece) if self.reasoning_as_text else ReasoningDelta(piece)

    def skip_mark(self, mark: str, as_text: bool = False) -> None:
        """Drop a mark; an answer of nothing but marks is emitted as text. With ``as_text`` the mark stays in the text,
        and so does the reasoning that it opens."""
        self.reasoning_as_text = self.reasoning_as_text or as_text
        if self.reasoning_as_text:
            self.add_reasoning(mark)
        elif not self.anything_emitted:
            self._marks.append(mark)

    def finish(self) -> None:
        """End the answer: whitespace after a call is dropped, other whitespace is text."""
        if not self.anything_emitted and not self._parts and self._marks:
            self.add_text("".join(self._marks))
        elif self.whitespace and not (self.call_emitted and all(map(str.isspace, self.whitespace))):
            self.add_text("")

    def drain(self) -> list[Event]:
        if self._parts:
            self._flush()
        events = self.events
        self.events = []
        return events

    def _flush(self) -> None:
        """Emit the buffer as one event; it must not be empty."""
        self.anything_emitted = True
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


_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")


class VisibleText:
    """The text of an answer that was emitted so far: its end, which may introduce a call, and more of it for the end.

    Text is collected piece by piece; pieces are joined when the text is looked at.
    """

    __slots__ = ("_kept", "_new", "_pieces", "_tail", "add")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._kept: deque[str] = deque(maxlen=MAX_PIECES)
        self._new: deque[str] = deque(maxlen=MAX_PIECES)
        self._tail = ""
        self.add: Callable[[str], None] = self._pieces.append
        """Add a piece of text."""

    @property
    def tail(self) -> str:
        """The end of the text, at least ``TAIL_SIZE`` characters if there are as many."""
        if self._pieces:
            self._join()
        return self._tail

    @tail.setter
    def tail(self, text: str) -> None:
        if self._pieces:
            self._join()
        self._tail = text

    def is_apart(self, line_start: bool) -> bool:
        """Whether what follows begins a line, or stands behind a sentence."""
        return line_start or self.tail.rstrip()[-1:] in _SENTENCE_ENDS

    def keep(self, text: str) -> None:
        """Add text that was taken for calls before; it introduces nothing."""
        if self._pieces:
            self._join()
        self._kept.append(text)
        self._new.append(text)

    @property
    def is_empty(self) -> bool:
        return not (self._pieces or self._kept)

    def take_new(self) -> str:
        """The text since this was asked last."""
        if self._pieces:
            self._join()
        text = "".join(self._new)
        self._new.clear()
        return text

    def join(self) -> str:
        """The text, without its beginning if it consists of very many pieces."""
        if self._pieces:
            self._join()
        return "".join(self._kept)

    def _join(self) -> None:
        piece = "".join(self._pieces)
        self._pieces.clear()
        self._kept.append(piece)
        self._new.append(piece)
        tail = self._tail + piece
        self._tail = tail if len(tail) <= TAIL_LIMIT else tail[-TAIL_SIZE:]

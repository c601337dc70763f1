"""The incremental text source: fed in chunks, consumed as it is parsed.

Strategy. The reader is recursive descent written as generators: a function that runs out of text yields and resumes
with the next chunk. ``Source`` holds only unconsumed text, so each character is copied and examined a bounded number of
times, however the text is split. While a call block may still turn out to be text, its chunks are kept, so that it can
be returned as text.

Progress. Each look at the text is a step, and each received character pays for ``STEPS_PER_CHARACTER`` of them. A
parser that neither consumes text nor waits for more uses up its steps; then ``NoProgress`` is raised, and the state
machine passes the rest of the answer as text. Every loop of a codec makes a step in each round: it calls a method that
looks at the text, or ``step``.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from toolglot.core.events import Event
from toolglot.dialects.patterns import MORE, Mark, MarkChoice, MarkIndex, Match

T = TypeVar("T")
Steps: TypeAlias = Generator[None, None, T]
"""A parser that yields whenever it needs more text and returns a ``T``."""


def at_once(result: T) -> Steps[T]:
    """Return ``result`` as steps that need no text."""
    yield from ()
    return result


STEPS_PER_CHARACTER = 36
"""Steps that one received character pays for."""

FIRST_STEPS = 1024
"""Steps that an answer has before its first character."""


class NoProgress(Exception):
    """A parser has used up its steps: it does not consume the text and does not wait for more."""


PassThrough: TypeAlias = Callable[[str], list[Event] | None]
"""Fast path: returns the events of a chunk, or None if the reader has to parse the chunk."""


_BLANKS = re.compile(r"\s*+")
_LAYOUT = re.compile(r"\s{0,4096}")


class Source:
    """The text that was received and not consumed yet."""

    __slots__ = (
        "_held",
        "_kept",
        "_lookahead_start",
        "_lookaheads",
        "_loose",
        "_start",
        "_wanted",
        "final",
        "left",
        "offset",
        "pos",
        "refuses_examples",
        "run",
        "steps",
        "text",
        "truncated",
    )

    def __init__(self) -> None:
        self.text = ""
        self.pos = 0
        self.offset = 0
        self.final = False
        self.truncated = False
        self.refuses_examples = False
        """Whether a call with a value that this project's own prompts make up is rejected."""
        self.steps = FIRST_STEPS
        """How many more steps may be made before more text arrives."""
        self.run: PassThrough | None = None
        self.left = ""
        """The end of passed-through text, to be parsed together with the next chunk."""
        self._kept: list[tuple[int, str]] | None = None
        self._loose = 0
        self._start = 0
        self._wanted = 0
        self._held: list[str] | None = None
        self._lookahead_start = 0
        self._lookaheads = 0

    def push(self, chunk: str) -> None:
        if self._kept is not None:
            start = self.offset + len(self.text)
            self._kept.append((start, chunk))
            if start >= self._wanted:
                self._thin_out(self._kept, self._wanted)
        if self.left:  # it was passed through, after all text in this buffer
            self.offset -= len(self.left)
            chunk, self.left = self.left + chunk, ""
        if self._held is not None:
            self._held.append(self.text[max(0, self._lookahead_start - self.offset) : self.pos])
        self.offset += self.pos
        self.text = self.text[self.pos :] + chunk
        self.pos = 0
        self.steps += STEPS_PER_CHARACTER * len(chunk)

    def end(self, truncated: bool) -> None:
        """Mark the end of the text."""
        if self.left:
            self.push("")
        self.final = True
        self.truncated = truncated

    def pass_through(self, chunk: str) -> list[Event] | None:
        """The events of a chunk that bypasses the parser; None if it has to be parsed (hot path)."""
        run = self.run
        if run is None or (events := run(chunk)) is None:
            return None
        if self.offset < self._wanted and self._kept is not None:
            self._kept.append((self.offset + len(self.text), chunk))
        self.offset += len(chunk)
        return events

    @property
    def here(self) -> int:
        """Offset in the stream: the number of consumed characters."""
        return self.offset + self.pos

    @property
    def unread(self) -> int:
        """Offset from which on nothing is decided: here, or the start of the kept text."""
        return self.here if self._kept is None else self._start

    @property
    def is_kept(self) -> bool:
        """Whether consumed text may still be rewound, or was consumed in a lookahead."""
        return self._kept is not None or self._held is not None

    def take_rest(self) -> str:
        """Consume all received text."""
        if self.left:
            self.push("")
        rest, self.pos = self.text[self.pos :], len(self.text)
        return rest

    @property
    def at_end(self) -> bool:
        return self.final and self.pos >= len(self.text)

    # -- keeping consumed text, so that it can be rewound --------------------------------------------------------------

    def keep(self) -> int:
        """Keep the text from here on for ``rewind`` and ``since``; return the offset."""
        self._kept = [(self.offset, self.text)]
        self._loose = 0
        self._wanted = sys.maxsize
        self._start = self.offset + self.pos
        return self._start

    def limit(self, end: int | None) -> None:
        """Beyond ``end`` keep only the newest text; None keeps everything again."""
        self._wanted = sys.maxsize if end is None else end

    def release(self) -> None:
        self._kept = None
        self._wanted = 0

    def _thin_out(self, kept: list[tuple[int, str]], limit: int) -> None:
        self._loose += len(kept[-1][1])
        if self._loose > 8192:
            first = bisect_left(kept, (limit, ""))
            while self._loose > 4096 and first < len(kept) - 1:
                half = max(1, (len(kept) - first) // 2)
                self._loose -= sum(len(piece) for _, piece in kept[first : first + half])
                del kept[first : first + half]

    def since(self, start: int, end: int | None = None) -> str:
        """Return the text from ``start`` up to ``end`` (or up to here), as far as it was kept."""
        stop = self.here if end is None else end
        pieces: list[str] = []
        for begin, chunk in self._kept or ():
            if begin > start:
                break
            piece = chunk[start - begin : stop - begin]
            pieces.append(piece)
            start += len(piece)
        return "".join(pieces)

    def repeats(self, start: int, before: tuple[int, int]) -> bool:
        """Whether the text from ``start`` up to here equals an earlier span, which must be kept."""
        earlier = self.since(*before)
        return len(earlier) == before[1] - before[0] and self.since(start) == earlier

    def rewind(self, start: int) -> None:
        """Go back to ``start``, which must have been kept."""
        if start < self.offset:
            self.text = self.since(start, self.offset) + self.text
            self.offset = start
        self.pos = start - self.offset

    # -- lookahead -----------------------------------------------------------------------------------------------------

    def begin_lookahead(self) -> int:
        """Hold the text consumed from here on for ``return_to``; return the offset.

        Unlike an unconsumed tail, held text is not copied with every chunk. Lookaheads may be nested.
        """
        if not self._lookaheads:
            self._held = []
            self._lookahead_start = self.here
        self._lookaheads += 1
        return self.here

    def return_to(self, offset: int) -> None:
        """Return to an offset within the lookahead."""
        if offset < self.offset and self._held is not None:
            self.text = "".join(self._held) + self.text
            self.offset = self._lookahead_start
            self._held.clear()
        self.pos = offset - self.offset

    def abandon(self) -> bool:
        """Leave all lookaheads: go back to the start of the outermost one. Returns whether text is kept."""
        if self._held is not None:
            self.return_to(self._lookahead_start)
            self._lookaheads, self._held = 0, None
        self.run = None
        return self._kept is not None

    def end_lookahead(self, offset: int) -> None:
        """End the innermost lookahead and continue at ``offset``."""
        self.return_to(offset)
        self._lookaheads -= 1
        if not self._lookaheads:
            self._held = None

    def step(self) -> None:
        """Count one step. Raises ``NoProgress`` if none is left. The methods below count their own."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress

    def take(self, size: int) -> str:
        """Consume ``size`` characters, fewer if fewer have arrived."""
        piece = self.text[self.pos : self.pos + size]
        self.pos += len(piece)
        return piece

    def scan(self, stops: re.Pattern[str], take: Callable[[str], object]) -> Steps[str]:
        """Consume the text up to the next stop and pass its pieces to ``take``.

        Returns what matches there and is not consumed; "" at the end of the text.
        """
        while True:
            self.step()
            found = stops.search(self.text, self.pos)
            end = len(self.text) if found is None else found.start()
            if end > self.pos:
                take(self.text[self.pos : end])
                self.pos = end
            if found is not None:
                return found[0]
            if self.final:
                return ""
            yield

    # -- matching ------------------------------------------------------------------------------------------------------

    def match(self, mark: Mark) -> Steps[Match | None]:
        """Consume the mark if it is here."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while (found := mark.at(self.text, self.pos, self.final)) is MORE:
            yield
        if found is not None:
            self.pos = found.end()
        return found

    def look(self, mark: Mark | MarkIndex, ahead: int = 0) -> Steps[Match | None]:
        """Match the mark ``ahead`` characters from here, without consuming it."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while (found := mark.at(self.text, self.pos + ahead, self.final)) is MORE:
            yield
        return found

    def choose(self, choice: MarkChoice, ahead: int = 0) -> Steps[int | None]:
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while (index := choice.at(self.text, self.pos + ahead, self.final)) is MORE:
            yield
        return index

    def find_nonblank(self, ahead: int = 0) -> Steps[int]:
        """Distance to the next non-blank character; after 4096 blanks the next one counts as text."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while True:
            head = self.text[self.pos + ahead : self.pos + ahead + 1]
            if head and not head.isspace():
                return ahead
            found = _LAYOUT.match(self.text, self.pos + ahead)
            end = found.end() if found is not None else self.pos + ahead
            if end < len(self.text) or self.final or end - self.pos - ahead >= 4096:
                return end - self.pos
            yield

    def skip_blanks(self) -> Steps[str]:
        """Consume blanks; return the next character, "" at the end."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while True:
            head = self.text[self.pos : self.pos + 1]
            if head.isspace() and (found := _BLANKS.match(self.text, self.pos)) is not None:
                self.pos = found.end()
                head = self.text[self.pos : self.pos + 1]
            if head or self.final:
                return head
            yield

    def peek_run(self, char: str) -> Steps[str]:
        """Return the run of one character that begins here, up to 64."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        size = 0
        while True:
            while size < 64 and self.text.startswith(char, self.pos + size):
                size += 1
            if size == 64 or self.pos + size < len(self.text) or self.final:
                return char * size
            yield

    def begins_with(self, text: str, ahead: int = 0) -> Steps[bool]:
        """Whether this text is ``ahead`` characters from here."""
        self.step()
        start = self.pos + ahead
        while not (size := len(self.text) - start) >= len(text) and text.startswith(self.text[start:]):
            if self.final:
                return False
            yield
            start = self.pos + ahead
        return size >= len(text) and self.text.startswith(text, start)

    def peek(self, size: int = 1) -> Steps[str]:
        """Return the next ``size`` characters, fewer only at the end."""
        self.steps -= 1
        if self.steps < 0:
            raise NoProgress
        while len(self.text) - self.pos < size and not self.final:
            yield
        return self.text[self.pos : self.pos + size]

"""Server-sent events: parse a byte stream that may be cut anywhere.

Strategy. Nearly every event is one ``data:`` line and a blank line, and chunks end where events do. Such a chunk is
split in one go; any other is split at blank lines, and only unusual events are parsed line by line. An incomplete event
is buffered; its chunks are joined once, so the cost stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from toolglot.core.errors import EventSizeError

NDJSON = "application/x-ndjson"
BLANK = b"\n\n"
LINE_BREAKS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Characters that JSON allows in strings and some clients treat as line ends."""
DATA = b"data: "
NAME = b"event:"
BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
BOM = b"\xef\xbb\xbf"
EDGE = 3
"""How many bytes of an event delimiter may have come before its last byte."""
MAX_PIECES = 1 << 16
"""Pieces in which an event may come."""
TOO_LARGE = "One event of the upstream's answer is larger than {} bytes, or comes in too many pieces."
NO_FRAME = (b"\0", b"\0")
TRIES = 4
"""How often per response a common frame of its events is searched."""
MARK = 6
"""How many bytes on each side of a boundary between events are searched for."""
_SEPARATOR = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_WHOLE = re.compile(rb"(?s).*(?:\r\n|\n|\r(?!\n|\Z)){2}")
"""Everything up to the last blank line; a CR at the end may be half of a CRLF."""


class EventStream(Struct, eq=False):
    """Returns the data of every complete event; drops event names and comments. ``waiting`` buffers the next event.
    ``after_return``: the last piece ended with a CR, which may be half of a CRLF."""

    waiting: list[bytes] = []
    after_return: bool = False

    def feed(self, piece: bytes) -> list[bytes]:
        if self.after_return or b"\r" in piece:
            piece = self._join_line_ends(piece)
        if not piece:
            return []
        rest = self.waiting
        if not rest and piece[:6] == DATA and piece[-2:] == BLANK:
            events = piece[6:-2].split(BLANK + DATA)
            if piece.count(b"\n") == 2 * len(events):  # none of them has a second line
                return events
        if rest:
            if BLANK not in piece and not (piece[:1] == b"\n" and rest[-1][-1:] == b"\n"):
                rest.append(piece)
                return []
            piece = b"".join((*rest, piece))
            rest.clear()
        return self._split(piece)

    def _split(self, piece: bytes) -> list[bytes]:
        *blocks, tail = piece.split(BLANK)
        if tail:
            self.waiting.append(tail)
        events = []
        for block in blocks:
            # fast path: only data, or an event name before it
            line = block.find(b"\n") + 1 if block[:6] == NAME else 0
            if block[line : line + 6] == DATA and block.find(b"\n", line) < 0:
                events.append(block[line + 6 :])
            elif (data := _data_of(block)) is not None:
                events.append(data)
        return events

    def measure(self, pieces: Sequence[bytes]) -> int:
        """How many bytes of ``pieces``, the last ones fed and starting at an event, are whole events; 0 if the last
        piece completed none, so that the chunks of a long event are not joined again and again."""
        if len(self.waiting) != 1:
            return 0
        if any(b"\r" in piece for piece in pieces):
            whole = _WHOLE.match(b"".join(pieces))
            return whole.end() if whole else 0
        return max(0, sum(map(len, pieces)) - len(self.waiting[0]))

    def close(self) -> list[bytes]:
        """End of the connection: an event that only lacks its blank line counts."""
        data = _data_of(b"".join(self.waiting))
        self.waiting.clear()
        return [] if data is None else [data]

    def _join_line_ends(self, piece: bytes) -> bytes:
        if self.after_return:
            piece = b"\r" + piece
        self.after_return = piece.endswith(b"\r")
        if self.after_return:
            piece = piece[:-1]
        return join_line_ends(piece)


class EventMeter:
    """Counts the bytes of the event that is not complete yet (``size``). ``lines``: one event per line."""

    def __init__(self, most: int, lines: bool) -> None:
        self.size = 0
        self._most = most
        self._lines = lines
        self._pieces = 0
        self._edge = b""

    def add(self, piece: bytes) -> bool:
        """Count a piece. Returns whether it completes an event. Raises: EventSizeError if an event is too large, or
        comes in too many pieces, of which each takes memory by itself."""
        before = self.size - len(self._edge)
        seen = self._edge + piece
        if before + len(seen) > self._most or self._pieces >= MAX_PIECES:
            events, delimiter = split_events(seen, self._lines)
            sizes = [len(event) + len(delimiter) for event in events]
            if before + sizes[0] > self._most or max(sizes) > self._most or self._pieces >= MAX_PIECES:
                raise EventSizeError(TOO_LARGE.format(self._most))
        end = find_end(seen, self._lines)
        rest = seen[end:] if end else seen
        self.size = len(rest) if end else before + len(seen)
        self._pieces = 1 if end else self._pieces + 1
        self._edge = rest[-EDGE:]
        return bool(end)


def escape_line_breaks(written: bytes) -> bytes:
    """Escape characters of JSON that some clients treat as line ends."""
    for character, escaped in LINE_BREAKS:
        if character in written:
            written = written.replace(character, escaped)
    return written


def _data_of(block: bytes) -> bytes | None:
    lines = [_value_of(line) for line in block.split(b"\n") if line.startswith((b"data:", b"\xef\xbb\xbfdata:"))]
    return b"\n".join(lines) if any(lines) else None


def _value_of(line: bytes) -> bytes:
    value = line.partition(b":")[2]
    return value[1:] if value[:1] == b" " else value


def join_line_ends(data: bytes) -> bytes:
    """Normalize line ends to LF."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def split_framed(data: bytes, before: bytes, after: bytes) -> list[bytes] | None:
    """What events have between ``before`` and ``after``; None if these do not enclose each of them.

    The events are split at a few bytes, which is faster than at all of ``after + before``; then the rest is compared.
    """
    start, end = len(before), len(after)
    if start < MARK or end <= MARK or not (data.startswith(before) and data.endswith(after)):
        return None
    parts = data[MARK:-MARK].split(after[-MARK:] + before[:MARK])
    contents = [part[start - MARK : MARK - end] for part in parts]
    return contents if (after + before).join(contents) == data[start:-end] else None


def find_frame(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """What two events have in common before and after the one string in which they differ, with its quotes."""
    before = one[: _count_common(one, other)]
    before = before[: before.rfind(b'"') + 1]
    after = one[len(one) - _count_common(one[::-1], other[::-1]) :]
    after = after[after.find(b'"') :] if b'"' in after else b""
    long = len(before) + len(after)
    if not before or not after or long > min(len(one), len(other)):
        return NO_FRAME
    return NO_FRAME if b'"' in one[len(before) : -len(after)] else (before, after)


def _count_common(one: bytes, other: bytes) -> int:
    """The length of the common prefix."""
    size = min(len(one), len(other))
    difference = int.from_bytes(one[:size], "big") ^ int.from_bytes(other[:size], "big")
    return size - (difference.bit_length() + 7) // 8


def find_end(data: bytes, lines: bool) -> int:
    """How many bytes are whole events. ``lines``: one event per line; otherwise a blank line ends an event."""
    if lines:
        return data.rfind(b"\n") + 1
    if data.endswith(BLANK_LINES):
        return len(data)
    if b"\r" not in data:
        at = data.rfind(BLANK)
        return at + len(BLANK) if at >= 0 else 0
    whole = _WHOLE.match(data)
    return whole.end() if whole else 0


def split_events(data: bytes, lines: bool) -> tuple[list[bytes], bytes]:
    """Split into events. Returns them without their delimiter, and the delimiter. If they do not all end with the same
    one, each keeps its own, and the delimiter is empty."""
    if lines or b"\r" not in data:
        end = b"\n" if lines else BLANK
        events = data.split(end)
        rest = events.pop()
        if not rest:
            return events, end
        return [*(event + end for event in events), rest], b""
    bounds = [0, *(found.end() for found in _SEPARATOR.finditer(data))]
    rest = data[bounds[-1] :]
    return [data[start:stop] for start, stop in pairwise(bounds)] + ([rest] if rest else []), b""


def complete_event(data: bytes, lines: bool) -> bytes:
    """Append the missing delimiter of an event."""
    line_end = b"\r\n" if b"\r\n" in data else b"\n"
    if not data.endswith((b"\n", b"\r")):
        data += line_end
    elif data.endswith(b"\r") and line_end == b"\r\n":
        data += b"\n"
    return data if lines else data + line_end

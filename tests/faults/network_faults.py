"""Faults of the network and of upstreams: what is sent, and what clients must receive.

Each fault makes the steps of one reply: bytes, pauses in seconds, and a way to end the connection. What is expected
follows from whether the upstream's answer came whole, never from what toolglot happens to do. ``streamed`` and ``whole``
are the outcomes (see ``client_readers``) that are right for a client that asked for a stream, or for all at once.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from faults.wire_data import ERROR_BODIES, STREAM_TYPES, Answer


class End(Enum):
    """What becomes of the connection instead of further bytes."""

    CLOSE = "closed"
    RESET = "reset"
    HALF = "no more is sent, but the connection stays"
    HANG = "nothing happens any more"
    DRIP = "one byte of a header every now and then, for ever"
    FLOOD = "headers without an end"
    WORDS_BETWEEN = "heads of status 103 without an end"


Step = bytes | float | End
OK: Final = frozenset({"ok"})
ERROR: Final = frozenset({"error"})
FAILURES: Final = frozenset({"error", "error_event"})
EITHER: Final = frozenset({"ok", "error", "error_event"})


@dataclass(frozen=True)
class PlannedResponse:
    """The response of the upstream without a fault."""

    wire: str
    stream: bool
    answer: Answer

    @property
    def pieces(self) -> tuple[bytes, ...]:
        return self.answer.events

    @property
    def beginning(self) -> tuple[bytes, ...]:
        """Some of the content, never all of it."""
        return self.pieces[: max(1, self.answer.content - 1)]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def type(self) -> str:
        return STREAM_TYPES[self.wire] if self.stream else "application/json"

    def head(self, *lines: str, status: str = "200 OK", content_type: str | None = None) -> bytes:
        received = [f"HTTP/1.1 {status}", f"Content-Type: {content_type or self.type}", *lines]
        return "\r\n".join(received).encode() + b"\r\n\r\n"

    def chunked_head(self, *lines: str) -> bytes:
        return self.head("Transfer-Encoding: chunked", *lines)

    def sized_head(self, *lines: str, size: int | None = None) -> bytes:
        return self.head(f"Content-Length: {len(self.body) if size is None else size}", *lines)


@dataclass(frozen=True)
class Fault:
    make: Callable[[PlannedResponse], Sequence[Step]]
    streamed: frozenset[str]
    whole: frozenset[str]
    status: int = 0
    """The status that the client must get; 0: any that fits the outcome."""


def chunk(pieces: Sequence[bytes], *, end: bool = False) -> list[Step]:
    received: list[Step] = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return [*received, b"0\r\n\r\n"] if end else received


def sized(body: bytes, status: str, content_type: str, *lines: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def fine(make: Callable[[PlannedResponse], Sequence[Step]]) -> Fault:
    """The answer comes whole."""
    return Fault(make, OK, OK)


def lost(make: Callable[[PlannedResponse], Sequence[Step]], status: int = 0) -> Fault:
    """No part of the answer comes."""
    return Fault(make, ERROR if status else FAILURES, ERROR, status)


def cut(make: Callable[[PlannedResponse], Sequence[Step]]) -> Fault:
    """Only a part of the answer comes."""
    return Fault(make, FAILURES, ERROR)


def refuse(status: str, body: bytes | None = None, content_type: str = "application/json", *lines: str) -> Fault:
    """The upstream refuses; its status is kept."""

    def make(text: PlannedResponse) -> Sequence[Step]:
        return [sized(ERROR_BODIES[text.wire] if body is None else body, status, content_type, *lines)]

    return lost(make, int(status.split()[0]))


def move(code: int) -> Fault:
    """A redirect."""
    received = sized(b"", f"{code} Moved", "text/plain", "Location: http://127.0.0.1:1/")
    return lost(lambda text: [received], 502)


def instead(body: bytes) -> Fault:
    """A status of 200, and something else than an answer."""
    return lost(lambda text: [text.head(f"Content-Length: {len(body)}") + body])


def pack(text: PlannedResponse, body: bytes, *, how: str = "gzip") -> list[Step]:
    return [text.sized_head(f"Content-Encoding: {how}", size=len(body)), body, End.CLOSE]


def damage(packed: bytes) -> bytes:
    middle = len(packed) // 2
    return packed[:middle] + bytes(255 - byte for byte in packed[middle : middle + 8]) + packed[middle + 8 :]


def drip(data: bytes, size: int) -> list[Step]:
    """Pieces of some bytes, larger where there would be too many."""
    steps: list[Step] = []
    size = max(size, len(data) // 100)
    for at in range(0, len(data), size):
        steps += [data[at : at + size], 0.002]
    return steps


def unended(text: PlannedResponse, lost: int = 2) -> tuple[bytes, ...]:
    """The events of a stream, the last without its blank line, or only without half of it. A whole body stays."""
    lost = min(lost, 1) if text.wire == "ollama" else lost
    return (*text.pieces[:-1], text.pieces[-1][:-lost]) if text.stream else text.pieces


def without_mark(text: PlannedResponse) -> tuple[bytes, ...]:
    """The events of a stream up to the last that is JSON, which has no blank line."""
    pieces = [piece for piece in text.pieces if piece != b"data: [DONE]\n\n"]
    return (*pieces[:-1], pieces[-1].rstrip(b"\n")) if text.stream else text.pieces


def followed(text: PlannedResponse, rest: bytes, at_once: bool) -> tuple[bytes, ...]:
    """The events of a stream, and bytes after the last one. A whole body stays, and a stream whose wire has no end mark
    and could go on."""
    if not text.stream or (text.wire == "gemini" and not rest.startswith((b"\0", b"<"))):
        return text.pieces
    rest = rest or text.pieces[1]
    return (*text.pieces[:-1], text.pieces[-1] + rest) if at_once else (*text.pieces, rest)


def follow(rest: bytes, at_once: bool) -> Callable[[PlannedResponse], Sequence[Step]]:
    return lambda text: [text.chunked_head(), *chunk(followed(text, rest, at_once), end=True)]


AFTER: Final = {
    "garbage": b"\x00\xff garbage",
    "an_event": b"",
    "a_page": b"<html>\n\n</html>\n\n",
    "an_error": b'data: {"error": {"message": "late", "type": "server_error"}}\n\n',
    "half_an_event": b'data: {"choices": [{"ind',
}
"""What comes after the end of a stream; nothing: an event of the same stream once more."""
NESTED: Final = b'{"error":' * 50_000
HTML: Final = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"

NETWORK_FAULTS: Final[Mapping[str, Fault]] = {
    # nothing is wrong, though it looks unusual
    "usual_chunked": fine(lambda text: [text.chunked_head(), *chunk(text.pieces, end=True)]),
    "usual_sized": fine(lambda text: [text.sized_head(), *text.pieces]),
    "until_close": fine(lambda text: [text.head("Connection: close"), *text.pieces, End.CLOSE]),
    "half_closed_after_all": fine(lambda text: [text.sized_head(), *text.pieces, End.HALF]),
    "one_write": fine(lambda text: [text.sized_head() + text.body]),
    "slow_head": fine(lambda text: [*drip(text.sized_head(), 12), *text.pieces]),
    "slow_body": fine(lambda text: [text.sized_head(), *drip(text.body, 40)]),
    "slow_chunks": fine(lambda text: [text.chunked_head(), *drip(b"".join(x for x in chunk(text.pieces, end=True) if isinstance(x, bytes)), 50)]),
    "chunk_extensions": fine(lambda text: [text.chunked_head(), *(b"%x;a=b\r\n%b\r\n" % (len(piece), piece) for piece in text.pieces), b"0\r\n\r\n"]),
    "trailers": fine(lambda text: [text.chunked_head(), *chunk(text.pieces), b"0\r\nX-Late: 1\r\n\r\n"]),
    "continue_first": fine(lambda text: [b"HTTP/1.1 100 Continue\r\n\r\n", 0.01, text.sized_head(), *text.pieces]),
    "early_hints_first": fine(lambda text: [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3, text.sized_head(), *text.pieces]),
    "packed": fine(lambda text: pack(text, gzip.compress(text.body))),
    "packed_deflate": fine(lambda text: pack(text, zlib.compress(text.body), how="deflate")),
    "garbage_behind": fine(lambda text: [text.sized_head() + text.body + b"\x00\xffHTTP/1.1 200 OK\r\n\r\n"]),
    "second_answer_behind": fine(lambda text: [text.sized_head() + text.body + text.sized_head() + text.body]),
    # an event without its end, and events after the end
    "no_last_blank_line": fine(lambda text: [text.chunked_head(), *chunk(unended(text), end=True)]),
    "no_last_blank_line_until_close": fine(lambda text: [text.head("Connection: close"), *unended(text), End.CLOSE]),
    "no_last_blank_line_in_one_write": fine(lambda text: [text.head("Connection: close") + b"".join(unended(text)), End.CLOSE]),
    "half_a_last_blank_line": fine(lambda text: [text.chunked_head(), *chunk(unended(text, 1), end=True)]),
    "no_line_end_and_no_end_mark": fine(lambda text: [text.chunked_head(), *chunk(without_mark(text), end=True)]),
    **{f"{name}_after_the_end": fine(follow(rest, False)) for name, rest in AFTER.items()},
    **{f"{name}_after_the_end_at_once": fine(follow(rest, True)) for name, rest in AFTER.items()},
    # before the head
    "reset_at_once": lost(lambda text: [End.RESET], 502),
    "closed_before_head": lost(lambda text: [End.CLOSE], 502),
    "half_closed_before_head": lost(lambda text: [End.HALF], 502),
    "silent_before_head": lost(lambda text: [End.HANG], 504),
    # inside of the head
    "reset_in_head": lost(lambda text: [text.sized_head()[:30], 0.02, End.RESET], 502),
    "closed_in_head": lost(lambda text: [text.sized_head()[:30], End.CLOSE], 502),
    "silent_in_head": lost(lambda text: [text.sized_head()[:30], End.HANG], 504),
    "dripping_head": lost(lambda text: [b"HTTP/1.1 200 OK\r\nX-Slow: ", End.DRIP], 504),
    "endless_head": lost(lambda text: [b"HTTP/1.1 200 OK\r\n", End.FLOOD], 502),
    "endless_words_between": lost(lambda text: [End.WORDS_BETWEEN], 502),
    "silent_after_continue": lost(lambda text: [b"HTTP/1.1 100 Continue\r\n\r\n", End.HANG], 504),
    "garbage_head": lost(lambda text: [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", End.CLOSE], 502),
    "text_for_head": lost(lambda text: [b"Hello, this is no HTTP.\r\n\r\n", End.CLOSE], 502),
    "http2_for_head": lost(lambda text: [b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18), End.CLOSE], 502),
    "no_status": lost(lambda text: [b"HTTP/1.1 abc\r\n\r\n", End.CLOSE], 502),
    "two_lengths": lost(lambda text: [text.sized_head("Content-Length: 3"), text.body, End.CLOSE], 502),
    "negative_length": lost(lambda text: [text.head("Content-Length: -5"), text.body, End.CLOSE], 502),
    "length_is_a_word": lost(lambda text: [text.head("Content-Length: many"), text.body, End.CLOSE], 502),
    "switched_protocols": lost(lambda text: [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", End.CLOSE], 502),
    "packed_unknown": lost(lambda text: pack(text, text.body, how="br"), 502),
    # inside of the body
    "reset_in_body": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), 0.03, End.RESET]),
    "reset_in_sized_body": cut(lambda text: [text.sized_head(), *text.beginning, 0.03, End.RESET]),
    "reset_in_open_body": cut(lambda text: [text.head(), *text.beginning, 0.03, End.RESET]),
    "closed_after_head": cut(lambda text: [text.chunked_head(), End.CLOSE]),
    "closed_in_chunks": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), End.CLOSE]),
    "closed_in_a_chunk": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), b"ff\r\n{", End.CLOSE]),
    "closed_in_sized_body": cut(lambda text: [text.sized_head(), *text.beginning, End.CLOSE]),
    "closed_in_open_body": cut(lambda text: [text.head("Connection: close"), *text.beginning, End.CLOSE]),
    "closed_in_an_event": cut(lambda text: [text.head("Connection: close"), *text.beginning, text.pieces[len(text.beginning)][:-3][:12], End.CLOSE]),
    "half_closed_in_chunks": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), End.HALF]),
    "half_closed_in_sized_body": cut(lambda text: [text.sized_head(), *text.beginning, End.HALF]),
    "ended_too_soon": cut(lambda text: [text.chunked_head(), *chunk(text.beginning, end=True)]),
    "ended_in_an_event": cut(lambda text: [text.chunked_head(), *chunk([*text.beginning, text.pieces[len(text.beginning)][:-3][:12]], end=True)]),
    "content_without_end": cut(lambda text: [text.chunked_head(), *chunk(text.pieces[: text.answer.content], end=True)]),
    "silent_after_head": cut(lambda text: [text.chunked_head(), End.HANG]),
    "silent_in_body": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), End.HANG]),
    "silent_in_sized_body": cut(lambda text: [text.sized_head(), *text.beginning, End.HANG]),
    "length_too_short": cut(lambda text: [text.sized_head(size=len(b"".join(text.beginning))), text.body]),
    "length_too_long": Fault(lambda text: [text.sized_head(size=len(text.body) + 9), *text.pieces, End.CLOSE], EITHER, ERROR),
    "no_last_chunk": Fault(lambda text: [text.chunked_head(), *chunk(text.pieces), End.CLOSE], EITHER, ERROR),
    "bad_chunk_size": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), b"zz\r\nhello\r\n"]),
    "negative_chunk_size": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), b"-1\r\nhello\r\n"]),
    "huge_chunk_size": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), b"fffffffffffffffffffff\r\nhello\r\n"]),
    "chunk_too_long": cut(lambda text: [text.chunked_head(), *chunk(text.beginning), b"3\r\nhello\r\n"]),
    "not_chunked_at_all": cut(lambda text: [text.chunked_head(), text.body, End.CLOSE]),
    "garbage_in_body": cut(lambda text: [text.sized_head(), b"\x00\xfe\xff" * (len(text.body) // 3 + 1)]),
    "packed_and_cut": cut(lambda text: pack(text, gzip.compress(b"".join(text.beginning))[:-12])),
    "packed_and_damaged": cut(lambda text: pack(text, damage(gzip.compress(text.body)))),
    "packed_and_wrong_sum": Fault(lambda text: pack(text, gzip.compress(text.body)[:-8] + bytes(8)), EITHER, ERROR),
    "packed_only_in_name": cut(lambda text: pack(text, text.body)),
    # instead of an answer
    "empty_body": instead(b""),
    "blank_body": instead(b"\n\n\n"),
    "empty_object": instead(b"{}"),
    "null": instead(b"null"),
    "a_list": instead(b"[]"),
    "a_number": instead(b"7"),
    "not_utf8": instead(b'{"choices": "\xff\xfe"}'),
    "nested_too_deep": instead(b"[" * 200_000),
    "web_page": lost(lambda text: [sized(HTML, "200 OK", "text/html")]),
    "status_204": lost(lambda text: [b"HTTP/1.1 204 No Content\r\n\r\n"]),
    **{f"status_{code}": move(code) for code in (300, 301, 302, 303, 304, 307, 308)},
    **{f"status_{code}": refuse(f"{code} Refused") for code in (400, 401, 403, 404, 405, 408, 409, 413, 415, 418, 422, 429, 451, 500, 501, 502, 503, 504, 529)},
    "refused_with_a_page": refuse("502 Bad Gateway", HTML, "text/html"),
    "refused_without_words": refuse("503 Service Unavailable", b"", "text/plain"),
    "refused_with_nested_json": refuse("400 Bad Request", NESTED),
    "refused_with_garbage": refuse("500 Internal Server Error", b"\x00\xff\xfe" * 50),
    "refused_with_a_list": refuse("400 Bad Request", b"[1, 2]"),
    "refused_with_numbers": refuse("400 Bad Request", b'{"error": {"message": 5, "code": {"a": []}, "type": [1]}}'),
    "refused_and_closed": lost(lambda text: [b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\n{", End.CLOSE]),
}  # fmt: skip
"""Every fault by name. Whatever breaks later becomes a row."""

UNREACHABLE: Final = {"refused": lost(lambda text: [], 502)}
"""Faults of upstreams whose port is closed."""

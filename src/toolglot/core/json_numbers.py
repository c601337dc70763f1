"""JSON whose numbers are written again as they were read.

A number that Python would write in another way (``1e5``, ``-2.50``, ``-0``, ``1e400``, more digits than a float has) is
read as a ``ExactNumber``: a float that knows its text. All others are plain numbers, so usual JSON costs nothing more.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_MINUS_ZERO = re.compile(rb"-0[\s,\]}]")
_BEFORE_VALUES = (b":", b"[", b",")
_LONGEST = 4000
"""Digits of a whole number that Python converts."""


class ExactNumber(float):
    """A number with the text that it was written as."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> ExactNumber:
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __reduce__(self) -> tuple[type[ExactNumber], tuple[str]]:
        return ExactNumber, (self.written,)


def read_float(written: str) -> float:
    value = float(written)
    return value if repr(value) == written else ExactNumber(written)


def read_whole(written: str) -> float:
    return ExactNumber(written) if written == "-0" or len(written) > _LONGEST else int(written)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_patient = json.JSONDecoder(parse_float=read_float, parse_int=read_whole, parse_constant=_refuse, strict=False).decode
decode_anything = json.JSONDecoder(parse_float=read_float, parse_int=read_whole, strict=False).decode
"""The value of whatever Python's own reader takes for JSON, ``NaN`` too; ``ValueError`` if it is none."""
_strict = msgspec.json.Decoder(float_hook=read_float).decode


def decode(data: bytes) -> Any:
    """The value of strict JSON; ``msgspec.DecodeError`` or ``UnicodeDecodeError`` if it is none."""
    value = _strict(data)
    # a whole number cannot be minus zero, so msgspec loses the sign
    return _patient(data.decode()) if b"-" in data and _may_hold_minus_zero(data) else value


def _may_hold_minus_zero(data: bytes) -> bool:
    """Whether one stands where a value can; in texts it is common (``@@ -0,0 +1 @@``)."""
    starts = (found.start() for found in _MINUS_ZERO.finditer(data))
    return any(data[max(0, start - 8) : start].rstrip()[-1:] in _BEFORE_VALUES for start in starts)


def decode_patiently(text: str) -> Any:
    """The value of JSON that may hold control characters or half a surrogate pair; ``ValueError`` if it is none."""
    return _patient(text)


def _tell(value: object) -> Any:
    if isinstance(value, ExactNumber):
        return msgspec.Raw(value.written.encode())
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = msgspec.json.Encoder(enc_hook=_tell).encode


def encode(value: object) -> bytes:
    """Compact JSON. Half a surrogate pair, which some servers send, cannot be UTF-8 and is escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _spell(value).encode()


def _spell(value: object) -> str:
    match value:
        case ExactNumber():
            return value.written
        case msgspec.Raw():
            return bytes(value).decode()
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_spell(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_spell, value)) + "]"
    return json.dumps(value)

"""JSON that keeps the source text of numbers.

A number that Python would serialize differently (``1e5``, ``-2.50``, ``-0``, ``1e400``, more digits than a float has)
is decoded as an ``ExactNumber``: a float with its source text. All others are plain numbers, so usual JSON costs no
more.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_MINUS_ZERO = re.compile(rb"-0[\s,\]}]")
_BEFORE_VALUES = (b":", b"[", b",")
_MAX_DIGITS = 4000
"""Python refuses to convert integers with more digits."""


class ExactNumber(float):
    """A float with its source text."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, written: str) -> ExactNumber:
        made = super().__new__(cls, written)
        made.written = written
        return made

    def __reduce__(self) -> tuple[type[ExactNumber], tuple[str]]:
        return ExactNumber, (self.written,)


def parse_float(written: str) -> float:
    value = float(written)
    return value if repr(value) == written else ExactNumber(written)


def parse_integer(written: str) -> float:
    return ExactNumber(written) if written == "-0" or len(written) > _MAX_DIGITS else int(written)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_tolerant = json.JSONDecoder(
    parse_float=parse_float, parse_int=parse_integer, parse_constant=_refuse, strict=False
).decode
decode_allowing_nan = json.JSONDecoder(parse_float=parse_float, parse_int=parse_integer, strict=False).decode
"""Decode what Python's ``json`` module accepts, ``NaN`` included. Raises ``ValueError``."""
decode_without_minus_zero = msgspec.json.Decoder(float_hook=parse_float).decode
"""Decode strict JSON without ``-0``. Raises ``msgspec.DecodeError`` or ``UnicodeDecodeError``."""


def decode(data: bytes) -> Any:
    """Decode strict JSON. Raises ``msgspec.DecodeError`` or ``UnicodeDecodeError``."""
    value = decode_without_minus_zero(data)
    # msgspec decodes -0 as the integer 0 and loses the sign
    return _tolerant(data.decode()) if b"-0" in data and _may_hold_minus_zero(data) else value


def decode_part(part: msgspec.Raw) -> Any:
    """Decode a part of strict JSON; see ``decode``."""
    return decode(bytes(part))


def _may_hold_minus_zero(data: bytes) -> bool:
    """Whether -0 occurs where a value can; inside strings it is common (``@@ -0,0 +1 @@``)."""
    starts = (found.start() for found in _MINUS_ZERO.finditer(data))
    return any(data[max(0, start - 8) : start].rstrip()[-1:] in _BEFORE_VALUES for start in starts)


def decode_tolerant(text: str) -> Any:
    """Decode JSON that may contain control characters or lone surrogates. Raises ``ValueError``."""
    return _tolerant(text)


def _encode_exact(value: object) -> Any:
    if isinstance(value, ExactNumber):
        return msgspec.Raw(value.written.encode())
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = msgspec.json.Encoder(enc_hook=_encode_exact).encode


def encode(value: object) -> bytes:
    """Encode as compact JSON. Lone surrogates, which some servers send, are not valid UTF-8 and are escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode_escaped(value).encode()


def _encode_escaped(value: object) -> str:
    match value:
        case ExactNumber():
            return value.written
        case msgspec.Raw():
            return bytes(value).decode()
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}:{_encode_escaped(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_encode_escaped, value)) + "]"
    return json.dumps(value)

"""A fast path for chunks that differ in a text and in fields that only their wire knows, such as log probabilities.

Strategy. The bytes of a chunk are split around the text and the values of these fields. The split is verified: with
other values in their places the chunk must decode to the same except for them. From then on, a chunk with the same
bytes between such values is not parsed: its values are checked to be JSON, and pass as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec

from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_object
from toolglot.wires.sse import BLANK, DATA

Path: TypeAlias = tuple[str | int, ...]
_decode_string = msgspec.json.Decoder(str).decode
_check = msgspec.json.Decoder(msgspec.Raw).decode


class ChunkPattern:
    """What chunks have in common around a text and other values. ``values`` are those of the last chunk that was read,
    without the text, in the order of the paths; ``order`` says which path is found at each place."""

    def __init__(self, parts: Sequence[bytes], order: Sequence[int]) -> None:
        self.values: tuple[bytes, ...] = ()
        self._start, *self._parts = parts
        self._order = [order.index(at) for at in range(len(order))]

    def read(self, chunk: bytes) -> str:
        """The text of a chunk that matches the pattern; empty if it does not (hot path)."""
        at, found = len(self._start), []
        if chunk[:at] != self._start:
            return ""
        for part in self._parts:
            end = chunk.find(part, at)
            if end < 0:
                return ""
            found.append(chunk[at:end])
            at = end + len(part)
        text, *values = [found[place] for place in self._order]
        self.values = tuple(values)
        return _read_values(text, values) if at == len(chunk) else ""


def _read_values(text: bytes, values: Sequence[bytes]) -> str:
    """The text if everything is JSON, and no value is null, which means nothing."""
    try:
        for value in values:
            _check(value)
            if value == b"null" or not (value.isascii() or value.decode()):
                return ""
        return _decode_string(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def infer_pattern(chunk: bytes, paths: Sequence[Path]) -> ChunkPattern | None:
    """Infer the pattern of a chunk that is one event with an object. The values at these paths may change, the first of
    which is the text. Returns None if their places are not certain."""
    found = _find_values(chunk, paths)
    bounds = [0, *(bound for place, _ in found for bound in place), len(chunk)]
    if len(found) < len(paths) or bounds != sorted(bounds):
        return None
    parts = [chunk[bounds[at] : bounds[at + 1]] for at in range(0, len(bounds), 2)]
    order = [at for _, at in found]
    return ChunkPattern(parts, order) if _is_certain(chunk, parts, order, paths) else None


def _is_certain(chunk: bytes, parts: Sequence[bytes], order: Sequence[int], paths: Sequence[Path]) -> bool:
    """Whether a chunk with other values between its parts decodes to the same but for these."""
    given, probes = parse_object(chunk[6:-2]), [f"\1{at}" for at in range(len(paths))]
    for path, probe in zip(paths, probes, strict=True):
        _at(given, path[:-1])[path[-1]] = probe
    probed = b"".join([part + encode(probes[at]) for part, at in zip(parts, order, strict=False)]) + parts[-1]
    return parse_object(probed[6:-2]) == given


def _find_values(chunk: bytes, paths: Sequence[Path]) -> list[tuple[tuple[int, int], int]]:
    """The places of the values that have one place only, in their order, each with the number of its path."""
    if chunk[:6] != DATA or chunk[-2:] != BLANK or chunk.count(b"\n") != len(BLANK):
        return []
    try:
        places = [_find_value(chunk, path, _find_raw(chunk[6:-2], path)) for path in paths]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []  # it was decoded leniently
    return sorted((place, at) for at, place in enumerate(places) if place is not None)


def _find_raw(data: bytes, path: Path) -> bytes:
    """The bytes of the value at a path."""
    raw = msgspec.Raw(data)
    for step in path:
        kind = dict[str, msgspec.Raw] if isinstance(step, str) else list[msgspec.Raw]
        raw = msgspec.json.decode(raw, type=kind)[step]  # type: ignore[index]
    return bytes(raw)


def _find_value(chunk: bytes, path: Path, raw: bytes) -> tuple[int, int] | None:
    """Where the value of a field begins and ends, if only one place can be meant."""
    found = [*re.finditer(re.escape(encode(path[-1])) + rb"\s*:\s*(" + re.escape(raw) + b")", chunk)]
    return found[0].span(1) if len(found) == 1 else None


def _at(value: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value

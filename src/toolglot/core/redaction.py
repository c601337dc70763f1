"""Redaction: removes secrets from texts, and makes foreign text short and printable for logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

MASK: Final = "***"
MAX_LENGTH: Final = 200

NAMED_SECRET: Final = re.compile(
    r"""(?ix) (?P<kept> (?:authorization|(?:x-)?api[-_]?key|(?:access|auth|refresh)[-_]?token|password|secret)
    (?:\\*["'])? \s*[:=]\s* (?:\\*["'])? (?:(?:bearer|basic)\s+)? ) [^\s"'\\,;}\]&]+"""
)
BEARER_TOKEN: Final = re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
KEY_SHAPE: Final = re.compile(
    r"""(?x) (?P<kept> (?<![A-Za-z0-9]) ) (?:
    (?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}
    | AIza[\w-]{20,} | AKIA[A-Z0-9]{12,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )"""
)
URL_CREDENTIALS: Final = re.compile(r"(?P<kept>://)[^/\s:@\"]+:[^/\s@\"]+@")

SECRETS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = (
    (("api", "auth", "access", "refresh", "password", "secret"), NAMED_SECRET),
    (("bearer", "basic"), BEARER_TOKEN),
    ((), KEY_SHAPE),
    (("://",), URL_CREDENTIALS),
)
"""Patterns of secrets, each with substrings of which one must occur before the pattern is tried; none: ``_KEY_PREFIX``
must match."""

_KEY_PREFIX = re.compile(r"(?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_]|AIza|AKIA|eyJ")
"""Prefixes of ``KEY_SHAPE``: much faster to search than the whole pattern."""


_CODE: Final = re.compile(r"[A-Za-z0-9][\w.:/ -]{0,63}", re.ASCII)

_EVENT: Final = re.compile(r"(?m)^(?:data:[ ]?)?(?P<json>\{.*\})\r?$")
"""An event of a stream: the data of a server-sent event, or a line of NDJSON."""

_TextSlot = tuple[Any, Any]
"""An object or list, and the key or index of a text in it."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Mask the ``known`` secrets and everything that looks like one."""
    return _mask([text], _find_secrets(text, known))[0]


def redact_stream(text: str, known: Iterable[str] = ()) -> str:
    """Redact the body of a stream. A secret may be spread over several events, so texts at the same path of each event
    are searched as one."""
    known = tuple(known)
    events: list[tuple[re.Match[str], Any]] = []
    texts: dict[str, list[tuple[int, _TextSlot]]] = {}
    for found in _EVENT.finditer(text):
        try:
            event = json.loads(found["json"])
        except (ValueError, RecursionError):
            continue
        for path, place in _list_texts(event):
            texts.setdefault(path, []).append((len(events), place))
        events.append((found, event))
    changed: set[int] = set()
    for listed in texts.values():
        pieces = [holder[key] for _, (holder, key) in listed]
        redacted = _mask(pieces, _find_secrets("".join(pieces), known))
        for piece, new, (at, (holder, key)) in zip(pieces, redacted, listed, strict=True):
            if new != piece:
                holder[key] = new
                changed.add(at)
    out, end = [], 0
    for at in sorted(changed):
        found, event = events[at]
        out += [text[end : found.start("json")], json.dumps(event, ensure_ascii=False, separators=(",", ":"))]
        end = found.end("json")
    return redact("".join((*out, text[end:])), known)


def _list_texts(event: Any, path: str = "") -> Iterator[tuple[str, _TextSlot]]:
    """Yield the paths of the texts in an event. All entries of a list share one path."""
    for key, value in event.items() if isinstance(event, dict) else enumerate(event):
        here = f"{path}/{key}" if isinstance(event, dict) else path
        if isinstance(value, str):
            yield here, (event, key)
        elif isinstance(value, dict | list):
            yield from _list_texts(value, here)


def _find_secrets(text: str, known: Iterable[str]) -> list[tuple[int, int]]:
    """Return the spans of secrets, sorted and without overlaps."""
    spans = [found.span() for secret in known if secret for found in re.finditer(re.escape(secret), text)]
    small = text.lower()
    for hints, pattern in SECRETS:
        if any(hint in small for hint in hints) if hints else _KEY_PREFIX.search(text):
            spans += [(found.end("kept"), found.end()) for found in pattern.finditer(text)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _mask(pieces: list[str], spans: list[tuple[int, int]]) -> list[str]:
    """Remove these spans from a text given in pieces; the mask replaces the start of each span."""
    if not spans:
        return pieces
    out, begin, first = [], 0, 0
    for piece in pieces:
        end, kept, at = begin + len(piece), [], begin
        while first < len(spans) and spans[first][0] < end:
            start, stop = spans[first]
            kept += [piece[at - begin : max(start, at) - begin], MASK if start >= begin else ""]
            at = min(stop, end)
            if stop > end:
                break  # the span continues in the next piece
            first += 1
        out.append("".join(kept) + piece[at - begin :])
        begin = end
    return out


def redact_code(code: object, known: Iterable[str] = ()) -> str:
    """Return an error code or type of an upstream; empty if it is not a plain identifier or contains a secret."""
    plain = code if isinstance(code, str) else str(code) if type(code) is int else ""
    return plain if _CODE.fullmatch(plain) and not _find_secrets(plain, known) else ""


def make_printable(text: str) -> str:
    """Make foreign text fit for a log line: short and printable."""
    short = text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"
    return short if short.isprintable() else "".join(char if char.isprintable() else "?" for char in short)


@lru_cache(maxsize=1024)
def redact_printable(text: str) -> str:
    """The same, redacted. Cached: model names, tool names and most notes recur with every request."""
    return make_printable(redact(text))

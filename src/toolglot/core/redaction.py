"""What may be told: texts that others chose, without keys, short and printable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

MASK: Final = "***"
NAME_LENGTH: Final = 200

NAMED: Final = re.compile(
    r"""(?ix) (?P<kept> (?:authorization|(?:x-)?api[-_]?key|(?:access|auth|refresh)[-_]?token|password|secret)
    (?:\\*["'])? \s*[:=]\s* (?:\\*["'])? (?:(?:bearer|basic)\s+)? ) [^\s"'\\,;}\]&]+"""
)
BORNE: Final = re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
SHAPED: Final = re.compile(
    r"""(?x) (?P<kept> (?<![A-Za-z0-9]) ) (?:
    (?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}
    | AIza[\w-]{20,} | AKIA[A-Z0-9]{12,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )"""
)
CREDENTIALS: Final = re.compile(r"(?P<kept>://)[^/\s:@\"]+:[^/\s@\"]+@")

SECRETS: Final[tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]] = (
    (("api", "auth", "access", "refresh", "password", "secret"), NAMED),
    (("bearer", "basic"), BORNE),
    ((), SHAPED),
    (("://",), CREDENTIALS),
)
"""What looks like a secret, and the words one of which must be there before it is worth a look; none: how it begins."""

_MAYBE_SHAPED = re.compile(r"(?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_]|AIza|AKIA|eyJ")
"""How a key begins that is known by its shape: far quicker to look for than the whole of it."""


_CODE: Final = re.compile(r"[A-Za-z0-9][\w.:/ -]{0,63}", re.ASCII)

_EVENT: Final = re.compile(r"(?m)^(?:data:[ ]?)?(?P<json>\{.*\})\r?$")
"""An event of a stream: the data of a server-sent event, or a line of its own."""

_Place = tuple[Any, Any]
"""An object or a list, and the key or the index of a text in it."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """The text with everything that is, or looks like, a key blackened."""
    return _blacken([text], _find_secrets(text, known))[0]


def redact_stream(text: str, known: Iterable[str] = ()) -> str:
    """The same for the body of a stream. A key may be spread over its events, so texts that stand at the same place of
    each event are looked at as one."""
    known = tuple(known)
    events: list[tuple[re.Match[str], Any]] = []
    texts: dict[str, list[tuple[int, _Place]]] = {}
    for found in _EVENT.finditer(text):
        try:
            told = json.loads(found["json"])
        except (ValueError, RecursionError):
            continue
        for path, place in _list_texts(told):
            texts.setdefault(path, []).append((len(events), place))
        events.append((found, told))
    changed: set[int] = set()
    for listed in texts.values():
        pieces = [holder[key] for _, (holder, key) in listed]
        redacted = _blacken(pieces, _find_secrets("".join(pieces), known))
        for piece, new, (at, (holder, key)) in zip(pieces, redacted, listed, strict=True):
            if new != piece:
                holder[key] = new
                changed.add(at)
    out, end = [], 0
    for at in sorted(changed):
        found, told = events[at]
        out += [text[end : found.start("json")], json.dumps(told, ensure_ascii=False, separators=(",", ":"))]
        end = found.end("json")
    return redact("".join((*out, text[end:])), known)


def _list_texts(told: Any, path: str = "") -> Iterator[tuple[str, _Place]]:
    """Where texts stand in an event. All entries of a list count as one place."""
    for key, value in told.items() if isinstance(told, dict) else enumerate(told):
        here = f"{path}/{key}" if isinstance(told, dict) else path
        if isinstance(value, str):
            yield here, (told, key)
        elif isinstance(value, dict | list):
            yield from _list_texts(value, here)


def _find_secrets(text: str, known: Iterable[str]) -> list[tuple[int, int]]:
    """Where secrets stand, in order and without overlaps."""
    spans = [found.span() for secret in known if secret for found in re.finditer(re.escape(secret), text)]
    small = text.lower()
    for words, pattern in SECRETS:
        if any(word in small for word in words) if words else _MAYBE_SHAPED.search(text):
            spans += [(found.end("kept"), found.end()) for found in pattern.finditer(text)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _blacken(pieces: list[str], spans: list[tuple[int, int]]) -> list[str]:
    """The pieces of a text without what stands in these spans of it; the mask stands where a span begins."""
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
                break  # it goes on in the next piece
            first += 1
        out.append("".join(kept) + piece[at - begin :])
        begin = end
    return out


def redact_code(code: object, known: Iterable[str] = ()) -> str:
    """A code or a kind of error as an upstream tells it; empty if it is not one word, or holds a secret."""
    word = code if isinstance(code, str) else str(code) if type(code) is int else ""
    return word if _CODE.fullmatch(word) and not _find_secrets(word, known) else ""


def clean(text: str) -> str:
    """A text that others chose, fit for a line of log: short and printable."""
    short = text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"
    return short if short.isprintable() else "".join(char if char.isprintable() else "?" for char in short)


@lru_cache(maxsize=1024)
def tidy(text: str) -> str:
    """The same without keys. Names of models and tools, and most notes, come again with every request."""
    return clean(redact(text))

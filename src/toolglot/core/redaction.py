"""Redaction: removes secrets from texts, and makes foreign text short and printable for logs."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

import msgspec

from toolglot.core.windowed_search import find_all

MASK: Final = "***"
MAX_LENGTH: Final = 200

_SECRET_NAME = r"(?:authorization|(?:x-)?api[-_]?key|(?:access|auth|refresh)[-_]?token|password|secret)"
NAMED_SECRET: Final = re.compile(
    rf"""(?ix) (?P<kept> {_SECRET_NAME} (?:\\*["'])? \s*[:=]\s*
    (?: \\*["'] | (?! [\[{{] | (?:true|false|null|none)\b ) ) (?:(?:bearer|basic)\s+)? ) [^\s"'\\,;}}\]&]+"""
)
SECRET_MEMBER: Final = re.compile(_SECRET_NAME + r"\Z", re.IGNORECASE)
"""The end of a path whose value is a secret."""
BEARER_TOKEN: Final = re.compile(r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}")
KEY_SHAPE: Final = re.compile(
    r"""(?x) (?P<kept> (?<![A-Za-z0-9]) ) (?:
    (?:sk|pk|rk|gsk|xai|hf|gh[a-z]|github_pat|glpat|xox[a-z])[-_][A-Za-z0-9_-]{8,}
    | AIza[\w-]{20,} | AKIA[A-Z0-9]{12,} | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)? )"""
)
URL_CREDENTIALS: Final = re.compile(r"(?P<kept>://)[^/\s:@\"]+:[^/\s@\"]+@")

_NAMES: Final = ("api", "auth", "access", "refresh", "password", "secret")
_Patterns: TypeAlias = tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]
SHAPES: Final[_Patterns] = (
    (("bearer", "basic"), BEARER_TOKEN),
    ((), KEY_SHAPE),
    (("://",), URL_CREDENTIALS),
)
"""Patterns of secrets, each with substrings of which one must occur before the pattern is tried; none: a prefix
of a key must. What these match is within a string of JSON, so JSON stays valid."""
SECRETS: Final[_Patterns] = ((_NAMES, NAMED_SECRET), *SHAPES)

_PREFIX_END = re.compile(
    "[-_](?:(?<=[spr]k.)|(?<=xai.)|(?<=hf.)|(?<=gh[a-z].)|(?<=github_pat.)|(?<=glpat.)|(?<=xox[a-z].))"
)
"""The last character of a prefix of ``KEY_SHAPE``. Few characters can be one, so this is much faster to search than the
whole pattern."""
_OTHER_PREFIXES = ("AIza", "AKIA", "eyJ")


HIDING_ESCAPE: Final = re.compile(r"(?<!\\)\\++(?:u00(?P<code>[2-7][0-9A-Fa-f])|(?P<slash>/))")
"""An escape for a character that needs none in JSON, or in JSON within a text of JSON; a secret may be written so."""

_CODE: Final = re.compile(r"[A-Za-z0-9][\w.:/ -]{0,63}", re.ASCII)

_EVENT: Final = re.compile(r"(?m)^(?:data:[ ]?)?(?P<json>\{.*\})\r?$")
"""An event of a stream: the data of a server-sent event, or a line of NDJSON."""

_Slot = tuple[Any, Any]
"""An object or list, and the key or index of a value in it."""


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Mask the ``known`` secrets and everything that looks like one."""
    return _mask([text], _find_secrets(text, known))[0]


def redact_document(text: str, known: Iterable[str] = ()) -> str:
    """Redact a JSON document such that it stays one; any other text is redacted as text."""
    known = tuple(known)
    if _is_clean(text, known):
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return redact(text, known)
    small = _unescape(text)[0].lower()
    if not isinstance(document, dict | list) or not any(name in small for name in _NAMES):
        return _redact_shapes(text, known)
    changed = [_redact_slots([slot], path, known) for path, slot in list(_list_texts(document))]
    return _redact_shapes(_dump(document) if [True] in changed else text, known)


def redact_stream(text: str, known: Iterable[str] = ()) -> str:
    """Redact the body of a stream. A secret may be spread over several events, so texts at the same path of each event
    are searched as one."""
    known = tuple(known)
    parts = _EVENT.split(text)
    around = "\n".join({line for part in parts[::2] for line in part.split("\n")})
    if _is_clean(f"[{','.join(parts[1::2])}]", known, events=len(parts) // 2) and not _find_secrets(around, known):
        return text
    events: list[tuple[re.Match[str], Any]] = []
    texts: dict[str, list[tuple[int, _Slot]]] = {}
    for found in _EVENT.finditer(text):
        try:
            event = json.loads(found["json"])
        except (ValueError, RecursionError):
            continue
        for path, slot in _list_texts(event):
            texts.setdefault(path, []).append((len(events), slot))
        events.append((found, event))
    changed: set[int] = set()
    for path, listed in texts.items():
        masked = _redact_slots([slot for _, slot in listed], path, known)
        changed.update(at for (at, _), new in zip(listed, masked, strict=True) if new)
    out, end = [], 0
    for at, (found, event) in enumerate(events):
        out += [redact(text[end : found.start("json")]), _dump(event) if at in changed else found["json"]]
        end = found.end("json")
    return _redact_shapes("".join((*out, redact(text[end:]))), known)


# -- whether there is anything to redact, which is much cheaper to find out --------------------------------------------


class _Path:
    """The texts at one path of JSON, the paths below it, and whether there are numbers at it."""

    __slots__ = ("below", "has_numbers", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.has_numbers = False
        self.below: dict[str, _Path] = {}

    def collect(self, values: list[Any]) -> None:
        """Collect the texts of a list; all its entries have the path of the list."""
        for value in values:
            if type(value) is dict:
                self.collect_members(value)
            elif type(value) is str:
                self.texts.append(value)
            elif type(value) is list:
                self.collect(value)
            elif value is not None and type(value) is not bool:
                self.has_numbers = True

    def collect_members(self, members: dict[str, Any]) -> None:
        below = self.below
        for name, value in members.items():
            path = below.get(name)
            if path is None:
                path = below[name] = _Path()
            kind = type(value)
            if kind is str:
                path.texts.append(value)
            elif kind is dict:
                path.collect_members(value)
            elif kind is list:
                path.collect(value)
            elif value is not None and kind is not bool:
                path.has_numbers = True

    def list_texts(self, place: str, *, joined: bool) -> Iterator[str]:
        """Yield the texts that are searched for secrets, and the names of members. Texts at the same path become one if
        they are to be ``joined`` and differ. Raises: _SecretFound for a member with the name of a secret."""
        if self.texts or self.has_numbers:
            if SECRET_MEMBER.search(place):
                raise _SecretFound
            if len(set(self.texts)) < 2:
                yield from self.texts[:1]
            elif joined:
                yield "".join(self.texts)
            else:
                yield from self.texts
        for name, path in self.below.items():
            yield name
            yield from path.list_texts(f"{place}/{name}", joined=joined)


class _SecretFound(Exception):
    """A document has a secret."""


def _is_clean(text: str, known: tuple[str, ...], *, events: int | None = None) -> bool:
    """Whether JSON is valid and has no secret. ``events``: it must be a list of so many events of a stream."""
    try:
        document = msgspec.json.decode(text)
        if events is not None and len(document) != events:
            return False
        root = _Path()
        root.collect([document])
        if _find_secrets("\n".join(root.list_texts("", joined=events is not None)), known):
            return False
        # of two members with the same name only one is decoded
        return msgspec.json.encode(document) == text.encode() or not _find_secrets(text, known, SHAPES)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, _SecretFound):
        return False


def _redact_slots(slots: list[_Slot], path: str, known: tuple[str, ...]) -> list[bool]:
    """Redact texts that are parts of one. Returns for each whether it changed."""
    pieces = [holder[key] for holder, key in slots]
    if SECRET_MEMBER.search(path):
        redacted = [MASK] * len(pieces)
    else:
        pieces = [piece if isinstance(piece, str) else "" for piece in pieces]
        redacted = _mask(pieces, _find_secrets("".join(pieces), known))
    for (holder, key), piece, new in zip(slots, pieces, redacted, strict=True):
        if new != piece:
            holder[key] = new
    return [new != piece for piece, new in zip(pieces, redacted, strict=True)]


def _redact_shapes(text: str, known: Iterable[str]) -> str:
    return _mask([text], _find_secrets(text, known, SHAPES))[0]


def _dump(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _list_texts(document: Any, path: str = "") -> Iterator[tuple[str, _Slot]]:
    """Yield the paths of the texts and numbers in a document. All entries of a list share one path."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        here = f"{path}/{key}" if isinstance(document, dict) else path
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield here, (document, key)
        elif isinstance(value, dict | list):
            yield from _list_texts(value, here)


def _find_secrets(text: str, known: Iterable[str], patterns: _Patterns = SECRETS) -> list[tuple[int, int]]:
    """Return the spans of secrets, sorted and without overlaps."""
    known = tuple(known)
    spans = _find_plain(text, known, patterns)
    plain, places = _unescape(text)
    if places:
        spans += [(_locate(places, start), _locate(places, end)) for start, end in _find_plain(plain, known, patterns)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _unescape(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without escapes that can hide a secret, and where its parts are in it and in ``text``; without such an
    escape, no parts."""
    if "\\u00" not in text and "\\/" not in text:
        return text, []
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    size = end = 0
    for found in HIDING_ESCAPE.finditer(text):
        places += [(size, end), (size + found.start() - end, found.start())]
        pieces += [text[end : found.start()], chr(int(found["code"], 16)) if found["code"] else "/"]
        size, end = places[-1][0] + 1, found.end()
    return "".join((*pieces, text[end:])), [*places, (size, end)] if places else []


def _locate(places: list[tuple[int, int]], at: int) -> int:
    """A position in a text without escapes as one in the text itself."""
    plain, own = places[bisect_right(places, at, key=itemgetter(0)) - 1]
    return own + at - plain


def _find_plain(text: str, known: tuple[str, ...], patterns: _Patterns) -> list[tuple[int, int]]:
    spans = [found.span() for secret in known if secret for found in re.finditer(re.escape(secret), text)]
    small = text.lower()
    for hints, pattern in patterns:
        if any(hint in small for hint in hints) if hints else _has_key_prefix(text):
            for found in find_all(pattern, text):
                whole = pattern.match(text, found.start()) or found  # a secret may be longer than a window
                spans.append((whole.end("kept"), whole.end()))
    return spans


def _has_key_prefix(text: str) -> bool:
    return any(prefix in text for prefix in _OTHER_PREFIXES) or _PREFIX_END.search(text) is not None


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


def mask(text: str, secrets: Iterable[str]) -> str:
    """The text with known secrets masked, and nothing else changed."""
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    return text


@lru_cache(maxsize=1024)
def redact_printable(text: str) -> str:
    """Short, printable and redacted text. Cached: model names, tool names and most notes recur with every request."""
    return make_printable(redact(text))

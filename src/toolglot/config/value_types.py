"""Value types of settings: a description of what is accepted, and a parser.

A value is text on the command line and in the environment, and text or typed in a file. The parsers accept both, so
that ``"8080"`` and ``8080`` mean the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from toolglot.config.keys import MASK, KeyHash, Secret
from toolglot.config.rollout import Plan, read_plan
from toolglot.core.errors import UsageError

TRUE = frozenset({"true", "1", "yes", "on"})
FALSE = frozenset({"false", "0", "no", "off"})
UNITS = {"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}
SIZE = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
KEY_ENDS = re.compile(r"[,\r\n]")
"""What separates keys in one text, such as the content of a file."""
CREDENTIALS = re.compile(r"//[^/@\s]*@")
QUERY = re.compile(r"(?<=://)([^?\s]*)\?[^'\"\s]*")


@dataclass(frozen=True, slots=True)
class ValueType:
    """What a setting accepts. ``parse`` raises ValueError for anything else."""

    accepts: str
    parse: Callable[[Any], Any]
    secret: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What is accepted in a file, as JSON Schema; empty: anything."""

    def read(self, raw: object, origin: str) -> Any:
        """Parse a value. Raises: UsageError with the origin, the value (secrets masked) and what is accepted."""
        try:
            return self.parse(raw)
        except (ValueError, TypeError) as error:
            shown = MASK if self.secret else QUERY.sub(rf"\1?{MASK}", CREDENTIALS.sub(f"//{MASK}@", repr(raw)))
            raise UsageError(f"{origin} is {shown}; it must be {self.accepts}") from error


def setting(
    kind: ValueType, description: str, default: Any = None, *, flag: str = "", also: tuple[str, ...] = ()
) -> Any:
    """A setting field: value type, description and default. ``flag`` is its short name, ``also`` further variables."""
    metadata = {"kind": kind, "description": description, "flag": flag, "also": also}
    if isinstance(default, dict):
        return field(default_factory=default.copy, hash=False, repr=False, metadata=metadata)
    return field(default=default, metadata=metadata)


def _bool(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    text = _text(raw).strip().lower()
    if text not in TRUE | FALSE:
        raise ValueError(text)
    return text in TRUE


def _never(raw: object) -> bool:
    if _bool(raw):
        raise ValueError(raw)
    return False


def _maybe(raw: object) -> bool | None:
    return None if raw == "auto" else _bool(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(type(raw).__name__)
    if "\0" in raw:
        raise ValueError("NUL")
    return raw


def _names(raw: object) -> tuple[str, ...]:
    given: Sequence[object] = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, (list, tuple)) else [0]
    return tuple(name for item in given if (name := _text(item).strip()))


def _size(raw: object) -> int:
    found = SIZE.fullmatch(str(raw))
    if isinstance(raw, bool) or not found or found[2].lower() not in UNITS or not int(found[1]):
        raise ValueError(raw)
    return int(found[1]) * UNITS[found[2].lower()]


def _address(raw: object) -> str:
    """A base URL, without the endpoint path that the gateway appends itself."""
    parts = urlsplit(_text(raw).strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError(raw)
    _ = parts.port  # raises ValueError if it is not a number
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _secret(raw: object) -> Secret:
    text = _text(raw).strip()
    if any(not char.isprintable() or char.isspace() for char in text):
        raise ValueError("white space")
    return Secret(text)


def _cookies(raw: object) -> Secret:
    text = _text(raw).strip()
    if not (text.isascii() and text.isprintable() and all("=" in cookie for cookie in text.split(";") if cookie)):
        raise ValueError("cookies")
    return Secret(text)


def _keys(raw: object) -> tuple[KeyHash, ...]:
    texts = [part for text in _names(raw) for part in KEY_ENDS.split(text) if part.strip()]
    return tuple(dict.fromkeys(KeyHash.of(_secret(text).reveal()) for text in texts))


def _header(raw: object) -> str:
    text = _text(raw)
    if not text.isprintable():
        raise ValueError("header")
    return text


def _headers(raw: object) -> dict[str, str]:
    if not isinstance(raw, Mapping):
        raise TypeError(type(raw).__name__)
    if not all(HEADER_NAME.fullmatch(_text(name)) for name in raw):
        raise ValueError("header name")
    return {name: _header(value) for name, value in raw.items()}


def _dialect(raw: object) -> str:
    from toolglot.reading.reader import dialect_index  # only settings that name a dialect need the parser

    found = dialect_index().resolve_hint(_text(raw).strip())
    if found is None:
        raise ValueError(raw)
    return found


def _maybe_plan(raw: object) -> Plan | None:
    return None if raw == "auto" else read_plan(raw)


def choice(*values: str, empty: bool = False) -> ValueType:
    def parse(raw: object) -> str:
        text = _text(raw).strip().lower()
        if text not in values and (text or not empty):
            raise ValueError(raw)
        return text

    accepted = ["", *values] if empty else [*values]
    accepts = " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
    return ValueType(accepts, parse, schema={"type": "string", "enum": accepted})


def subset(*values: str) -> ValueType:
    def parse(raw: object) -> tuple[str, ...]:
        given = _names(raw)
        if not set(given) <= set(values):
            raise ValueError(raw)
        return given

    accepts = f"any of {', '.join(values)}: a list, or text with commas between them"
    return ValueType(accepts, parse, schema=_list_schema({"type": "string", "enum": [*values]}))


def integer(low: int, high: int) -> ValueType:
    def parse(raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, (int, str)) or not low <= int(raw) <= high:
            raise ValueError(raw)
        return int(raw)

    schema = {"type": "integer", "minimum": low, "maximum": high}
    return ValueType(f"a whole number from {low} to {high}", parse, schema=schema)


def number(low: float, high: float, unit: str = "") -> ValueType:
    def parse(raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, (int, float, str)) or not low <= float(raw) <= high:
            raise ValueError(raw)
        return float(raw)

    schema = {"type": "number", "minimum": low, "maximum": high}
    return ValueType(f"a number{unit} from {low:g} to {high:g}", parse, schema=schema)


def _list_schema(item: Mapping[str, Any]) -> dict[str, Any]:
    """A list, or one item as text."""
    return {"anyOf": [{"type": "array", "items": item}, item]}


TEXT_SCHEMA = {"type": "string"}
STAGE_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": r"^(off|full|(shadow|canary)(-(100|[0-9]{1,2}(\.[0-9]+)?))?)$"},
        {"type": "number", "minimum": 0, "maximum": 100},
        {
            "type": "object",
            "properties": {
                "stage": {"type": "string", "pattern": r"^(off|full|(shadow|canary)(-[0-9]{1,2})?)$"},
                "percent": {"type": "number", "minimum": 0, "maximum": 100},
                "dry_run": {"type": "boolean"},
                "tools": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "min_confidence": {"type": "number", "minimum": 0, "maximum": 1},
            },
            "additionalProperties": False,
        },
    ]
}
SECONDS = number(0.01, 86_400, " of seconds")
BOOL = ValueType("true or false", _bool, schema={"type": "boolean"})
NEVER = ValueType("false", _never, schema={"const": False})
MAYBE = ValueType("true, false or auto", _maybe, schema={"enum": [True, False, "auto"]})
TEXT = ValueType("text", _text, schema=TEXT_SCHEMA)
NAMES = ValueType("names: a list, or text with commas between them", _names, schema=_list_schema(TEXT_SCHEMA))
BYTES = ValueType(
    "a size: bytes, or a number with KiB, MiB or GiB",
    _size,
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": r"^ *0*[1-9][0-9]* *([bkmgBKMG]|[kmgKMG][iI][bB])? *$"},
        ]
    },
)
ADDRESS = ValueType(
    "an address that begins with http:// or https://",
    _address,
    schema={"type": "string", "pattern": r"^ *https?://[^/?#\s]"},
)
SECRET = ValueType("a key: text without white space", _secret, secret=True, schema=TEXT_SCHEMA)
COOKIES = ValueType("cookies: name=value, with semicolons between them", _cookies, secret=True, schema=TEXT_SCHEMA)
KEYS = ValueType(
    "keys: plain, or sha256: and 64 hexadecimal digits; a list, or text with commas between",
    _keys,
    secret=True,
    schema=_list_schema(TEXT_SCHEMA),
)
HEADER = ValueType("a line of text", _header, secret=True, schema=TEXT_SCHEMA)
HEADERS = ValueType(
    "a table of header names and texts",
    _headers,
    secret=True,
    schema={"type": "object", "additionalProperties": TEXT_SCHEMA},
)
DIALECT = ValueType("a dialect or a model id ('toolglot dialects' lists them)", _dialect, schema=TEXT_SCHEMA)
PLAN = ValueType(
    "off, shadow, shadow-N, canary, canary-N, full or a number (N: a percentage from 0 to 100), or a table of stage,"
    " percent, dry_run, tools and min_confidence",
    read_plan,
    schema=STAGE_SCHEMA,
)
OWN_PLAN = ValueType(
    "auto, or what `rollout.stage` accepts",
    _maybe_plan,
    schema={"anyOf": [{"const": "auto"}, *STAGE_SCHEMA["anyOf"]]},
)

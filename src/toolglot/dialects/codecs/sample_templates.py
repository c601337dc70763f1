"""Writes arguments in the format of a dialect's sample.

Strategy. Every dialect has a sample, the call ``get_weather(city="Oslo")`` as the dialect writes it. That text is the
template: its name, key and value are replaced, and everything around them stays. Quotes, assignment signs and
separators are taken from the sample too, so a new dialect can write as soon as it can read. What a template cannot
express is written a second time with every special character escaped, and a third time as arguments in a string; the
caller keeps the first text that reads back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from toolglot.core.lenient_json import Number, Value, escape, to_json_number

TOOL, KEY, VALUE = "get_weather", "city", "Oslo"
"""The tool, key and value of every sample."""

_MEMBER = re.compile(
    rf'(?P<open>[{{(]?)(?:, )?(?P<mark>"?){KEY}(?P=mark)(?P<assign>: |[:=])'
    rf"(?P<quote><\|\"\|>|<escape>|[\"']){VALUE}(?P=quote)(?P<close>[}})]?)"
)
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.\-]*\Z")
_ODD = re.compile(r"[^A-Za-z0-9 _.,/\-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PYTHON_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape_hard(text: str) -> str:
    """Escape for JSON every character that may have a meaning in some dialect."""
    return _ODD.sub(_escape_odd, text)


@lru_cache(maxsize=4096)
def _escape_code(char: str) -> str:
    return "".join(f"\\u{code:04x}" for code in _utf16(char))


def _escape_odd(found: re.Match[str]) -> str:
    return _escape_code(found[0])


def _utf16(char: str) -> tuple[int, ...]:
    code = ord(char)
    return (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))


def _escape_python(text: str, quote: str) -> str:
    plain = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return _CONTROL.sub(lambda found: _PYTHON_NAMES.get(found[0]) or f"\\u{ord(found[0]):04x}", plain)


def _escape_python_hard(text: str) -> str:
    """Escape for Python, except characters beyond the basic plane: no escape for them is read, and none is needed."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}" if ord(found[0]) < 0x10000 else found[0], text)


def _keep(text: str) -> str:
    return text


class Notation(Struct, frozen=True):
    """How one dialect writes values: strings between ``quote``, keys bare or quoted, and three literals."""

    assign: str = ": "
    quote: str = '"'
    encode: Callable[[str], str] = escape
    bare_keys: bool = False
    words: tuple[str, str, str] = ("null", "true", "false")

    @property
    def separator(self) -> str:
        return "," if self.assign == ":" else ", "

    def write(self, value: Value) -> str:
        if isinstance(value, Number):
            return to_json_number(value)
        if isinstance(value, str):
            return f"{self.quote}{self.encode(value)}{self.quote}"
        if isinstance(value, list):
            return "[" + self.separator.join(map(self.write, value)) + "]"
        if isinstance(value, dict):
            inner = self if self.assign != "=" else replace(self, assign=": ", bare_keys=False)
            return "{" + inner.members(value) + "}"
        return self.words[0 if value is None else 1 if value else 2]

    def members(self, values: Mapping[str, Value]) -> str:
        return self.separator.join(f"{self.key(key)}{self.assign}{self.write(value)}" for key, value in values.items())

    def key(self, key: str) -> str:
        if self.bare_keys:
            return key if _BARE_KEY.match(key) or self.assign == "=" else f'"{escape(key)}"'
        return self.write(key)


JSON = Notation()
HARD_JSON = Notation(encode=_escape_hard)
BARE_HARD = Notation(":", '"', _escape_hard, True)


class SampleTemplate(Struct, frozen=True, kw_only=True):
    """A sample without its arguments. ``flat``: the arguments are next to the name."""

    before: str
    after: str
    open: str
    close: str
    notation: Notation

    def fill(self, name: str, arguments: str) -> str:
        return self.before.replace(TOOL, name) + arguments + self.after.replace(TOOL, name)

    @property
    def flat(self) -> bool:
        return not self.open


@lru_cache(maxsize=256)
def sample_template(sample: str) -> SampleTemplate | None:
    """The template of a sample whose arguments are a list of members."""
    found = _MEMBER.search(sample)
    if found is None:
        return None
    # next to the name, the bracket after the value belongs to the whole call
    close = found["close"] if found["open"] else ""
    end = found.end() - len(found["close"]) + len(close)
    return SampleTemplate(
        before=sample[: found.start()], after=sample[end:], open=found["open"], close=close, notation=_notation(found)
    )


def _notation(found: re.Match[str]) -> Notation:
    assign, quote = found["assign"], found["quote"]
    if assign == "=":
        return Notation(assign, quote, lambda text: _escape_python(text, quote), True, ("None", "True", "False"))
    if found["mark"]:
        return JSON
    return Notation(assign, quote, _keep, True)


def write_by_sample(sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
    """The call in the format of the sample, then in formats that can express more."""
    template = sample_template(sample)
    if template is None:
        return
    notation = template.notation
    if template.flat:
        yield template.fill(name, f", {notation.members(arguments)}" if arguments else "")
        template = replace(template, before=template.before + ', "arguments": ', open="{", close="}")
    yield template.fill(name, template.open + notation.members(arguments) + template.close)
    if template.open == "(":
        hard = replace(notation, encode=_escape_python_hard)
        yield template.fill(name, f"({hard.members(arguments)})")
        yield template.fill(name, f"(**{HARD_JSON.write(dict(arguments))})")
        return
    yield template.fill(name, (BARE_HARD if notation.bare_keys else HARD_JSON).write(dict(arguments)))
    yield template.fill(name, write_encoded(arguments))


def write_encoded(arguments: Mapping[str, Value]) -> str:
    """All arguments as one JSON string."""
    return HARD_JSON.write(JSON.write(dict(arguments)))

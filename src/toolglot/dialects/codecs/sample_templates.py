"""Writing arguments the way a dialect's sample writes them.

Strategy. Every record carries a sample, the call ``get_weather(city="Oslo")`` as the dialect writes it. That text is
the form: where it has the name, the key and the value, other names, keys and values are put, and everything around
them stays. Quotes, signs and separators are read off the sample too, so a new dialect writes as soon as it reads. What
a form cannot say is said a second time with every odd character escaped, and a third time as arguments in a string; the
caller keeps the first one that reads back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from toolglot.core.lenient_json import Number, Value, escape, legal_number

TOOL, KEY, VALUE = "get_weather", "city", "Oslo"
"""What every sample calls."""

_MEMBER = re.compile(
    rf'(?P<open>[{{(]?)(?:, )?(?P<mark>"?){KEY}(?P=mark)(?P<assign>: |[:=])'
    rf"(?P<quote><\|\"\|>|<escape>|[\"']){VALUE}(?P=quote)(?P<close>[}})]?)"
)
_BARE_KEY = re.compile(r"[A-Za-z_$][\w$.\-]*\Z")
_ODD = re.compile(r"[^A-Za-z0-9 _.,/\-]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_PYTHON_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escape_hard(text: str) -> str:
    """JSON escapes for everything that could mean something anywhere."""
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
    """Python reads no escape for characters beyond the basic plane, and they mean nothing anywhere."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}" if ord(found[0]) < 0x10000 else found[0], text)


def _keep(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Notation:
    """How one dialect writes values: strings between ``quote``, keys plain or quoted, and three words."""

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
            return legal_number(value)
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


@dataclass(frozen=True, slots=True)
class SampleTemplate:
    """A sample with its arguments cut out. ``flat``: the arguments stand beside the name."""

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
    """The form of a sample that writes its arguments as a list of members."""
    found = _MEMBER.search(sample)
    if found is None:
        return None
    # beside the name, the bracket behind the value belongs to the whole call
    close = found["close"] if found["open"] else ""
    end = found.end() - len(found["close"]) + len(close)
    return SampleTemplate(sample[: found.start()], sample[end:], found["open"], close, _notation(found))


def _notation(found: re.Match[str]) -> Notation:
    assign, quote = found["assign"], found["quote"]
    if assign == "=":
        return Notation(assign, quote, lambda text: _escape_python(text, quote), True, ("None", "True", "False"))
    if found["mark"]:
        return JSON
    return Notation(assign, quote, _keep, True)


def write_by_sample(sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
    """The call in the form of the sample, then in forms that carry more."""
    form = sample_template(sample)
    if form is None:
        return
    notation = form.notation
    if form.flat:
        yield form.fill(name, f", {notation.members(arguments)}" if arguments else "")
        form = replace(form, before=form.before + ', "arguments": ', open="{", close="}")
    yield form.fill(name, form.open + notation.members(arguments) + form.close)
    if form.open == "(":
        hard = replace(notation, encode=_escape_python_hard)
        yield form.fill(name, f"({hard.members(arguments)})")
        yield form.fill(name, f"(**{HARD_JSON.write(dict(arguments))})")
        return
    yield form.fill(name, (BARE_HARD if notation.bare_keys else HARD_JSON).write(dict(arguments)))
    yield form.fill(name, write_encoded(arguments))


def write_encoded(arguments: Mapping[str, Value]) -> str:
    """All arguments as one JSON string."""
    return HARD_JSON.write(JSON.write(dict(arguments)))

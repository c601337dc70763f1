"""Parser for JSON as models write it: strict first, lenient second. Also writes compact JSON.

Strategy. ``parse`` takes the whole text of one value. Valid JSON goes through the standard library, with numbers kept
as source text, so ``0.50`` stays ``0.50``. Anything else goes through a small recursive-descent parser that accepts
what models really write (single quotes, raw newlines, trailing commas, Python literals, unescaped quotes) and names
every repair. A quote ends a string only if the following text continues the structure. Nothing is invented: an
unterminated value raises ``NotJsonError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

Value: TypeAlias = "None | bool | str | Number | list[Value] | dict[str, Value]"

MAX_DEPTH = 100


class Number(str):
    """The source text of a number: 0.50 stays 0.50."""

    __slots__ = ()


class NotJsonError(ValueError):
    """The text is not one JSON-like value."""


class Parsed(Struct, frozen=True):
    value: Value
    repairs: tuple[str, ...] = ()


OPERATOR = r"(?:[+%*@\[]|\.\s?[A-Za-z_]|[=!<>]=|[<>]\s?[\"'\d]|(?:or|and|if|in|is|not|for)\s)"
"""An operator that makes the preceding string part of a Python expression."""


class Literals(Struct, frozen=True):
    """The literal syntax of a dialect: quotes, escapes, and repairs that are regular in it (``native``)."""

    quotes: tuple[str, ...] = ('"', "'")
    native: frozenset[str] = frozenset()
    unescape: Callable[[str], str] | None = None
    operators: re.Pattern[str] = re.compile(r"\s*\+\s*[\"']")
    """An operator that makes the preceding string part of an expression."""


ESCAPED_CHARACTERS = '"\\\\\x00-\x1f\ud800-\udfff'
"""The characters that a JSON string must escape, as the inside of a character class."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_quote: Callable[[str], str] = json.encoder.encode_basestring


def escape(text: str) -> str:
    """Escape text for a JSON string, without the quotes; lone surrogates become escapes."""
    inside = _quote(text)[1:-1]
    if not inside.isascii() and _SURROGATE.search(inside):
        inside = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", inside)
    return inside


_LEGAL_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")


def to_json_number(text: str) -> str:
    """Convert a number to valid JSON: 007, 1_000 and .5 are rewritten, valid text is unchanged."""
    if _LEGAL_NUMBER.match(text):
        return text
    sign, plain = "-" if text[0] == "-" else "", text.lstrip("+-").replace("_", "")
    if plain[:2] in ("0x", "0X"):
        return sign + str(int(plain, 16))
    mantissa, mark, exponent = plain.replace("E", "e").partition("e")
    whole, point, fraction = mantissa.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction or '0' if point else ''}{mark}{exponent}"


def dump(value: Value) -> str:
    """Write compact JSON: keys in their order, numbers as written."""
    if isinstance(value, Number):
        return to_json_number(value)
    if isinstance(value, str):
        return f'"{escape(value)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f'"{escape(key)}":{dump(item)}' for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return "null" if value is None else "true" if value else "false"


def _reject_constant(name: str) -> Value:
    raise NotJsonError(f"{name} is not JSON")


_strict = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_reject_constant)

JSON = Literals()


def parse(text: str, literals: Literals = JSON) -> Parsed:
    """Parse one whole value. The repairs name deviations from the dialect's syntax. Raises ``NotJsonError``."""
    text = text.strip()
    if literals is JSON:
        try:
            value = _strict.decode(text)
            if text.count("[") + text.count("{") > MAX_DEPTH:
                _check_depth(value)
            return Parsed(value)
        except (ValueError, RecursionError):
            pass
    loose = _LenientParser(text, literals)
    value = loose.value(0)
    loose.skip_blanks()
    if loose.pos != len(text):
        raise NotJsonError(f"more text after the value at character {loose.pos}")
    return Parsed(value, tuple(name for name in loose.repairs if name not in literals.native))


def _check_depth(value: Value) -> None:
    layer = [value]
    for _ in range(MAX_DEPTH):
        layer = [
            child
            for item in layer
            if isinstance(item, (list, dict))
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not layer:
            return
    raise NotJsonError("nested too deeply")


_BLANKS = re.compile(r"\s*")
_NUMBER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]{1,256}+|(?:[0-9][0-9_]*+(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)(?![\w.])"
)
"""Possessive repetitions: otherwise many digits before a letter would take quadratic time."""
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$.\-]*")
_NEXT_STRING = re.compile(r"\s*[\"']")
_LOOSE_KEY = re.compile(r"[^\s\"'<>{}\[\]:,][^\"'<>{}\[\]:,\n]*")
_LITERALS: dict[str, Value] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})")
_HEX = re.compile(r"x([0-9a-fA-F]{2})")
_AFTER_STRING = re.compile(r"\s*(?:[,:}\])]|=>|\Z)")


class _LenientParser:
    """A recursive-descent parser over one complete text."""

    def __init__(self, text: str, literals: Literals) -> None:
        self.text = text
        self.pos = 0
        self.literals = literals
        self.repairs: dict[str, None] = {}

    def skip_blanks(self) -> str:
        found = _BLANKS.match(self.text, self.pos)
        if found is not None:
            self.pos = found.end()
        return self.text[self.pos : self.pos + 1]

    def repair(self, name: str) -> None:
        self.repairs[name] = None

    def value(self, depth: int) -> Value:
        if depth > MAX_DEPTH:
            raise NotJsonError("nested too deeply")
        head = self.skip_blanks()
        if head == "{":
            return self.doubled(depth) if self.text.startswith("{{", self.pos) else self.members(depth)
        if head == "[":
            return self.items(depth, "]")
        if head == "(":
            return self.grouped(depth)
        quote = self.opening_quote()
        if not quote:
            return self.bare()
        text = self.string(quote)
        while self.literals is PYTHON and self.skip_blanks() and (quote := self.opening_quote()):
            text += self.string(quote)
        return text

    def bare(self) -> Value:
        number = _NUMBER.match(self.text, self.pos)
        if number:
            self.pos = number.end()
            return Number(number[0])
        word = _IDENTIFIER.match(self.text, self.pos)
        if word and word[0] in _LITERALS:
            self.pos = word.end()
            if word[0][0].isupper():
                self.repair("python_literal")
            return _LITERALS[word[0]]
        raise NotJsonError(f"no value at character {self.pos}")

    def opening_quote(self) -> str:
        return next((quote for quote in self.literals.quotes if self.text.startswith(quote, self.pos)), "")

    def items(self, depth: int, closer: str) -> list[Value]:
        self.pos += 1
        found: list[Value] = []
        while self.skip_blanks() != closer:
            found.append(self.value(depth + 1))
            self.separator(closer)
        self.pos += 1
        return found

    def grouped(self, depth: int) -> Value:
        """Parse a value in parentheses; in Python they make a list only with a comma."""
        start = self.pos
        found = self.items(depth, ")")
        alone = self.literals is PYTHON and len(found) == 1
        return found[0] if alone and self.text[start : self.pos - 1].rstrip()[-1:] != "," else found

    def members(self, depth: int, closer: str = "}") -> dict[str, Value]:
        self.pos += 1
        found: dict[str, Value] = {}
        while self.skip_blanks() != closer:
            key = self.key()
            if self.skip_blanks() not in (":", "="):
                raise NotJsonError(f"no colon at character {self.pos}")
            self.pos += 2 if self.text.startswith("=>", self.pos) else 1
            if closer == ")" and key in found:
                raise NotJsonError(f"a second {key} at character {self.pos}")
            found[key] = self.value(depth + 1)
            self.separator(closer)
        self.pos += 1
        return found

    def doubled(self, depth: int) -> dict[str, Value]:
        """Parse an object in doubled braces, as templates escape them."""
        self.pos += 1
        found = self.members(depth)
        if not found or self.skip_blanks() != "}":
            raise NotJsonError(f"no second brace at character {self.pos}")
        self.pos += 1
        self.repair("doubled_braces")
        return found

    def key(self) -> str:
        quote = self.opening_quote()
        if quote:
            return self.string(quote)
        word = (_LOOSE_KEY if "unquoted_key" in self.literals.native else _IDENTIFIER).match(self.text, self.pos)
        if word is None:
            raise NotJsonError(f"no key at character {self.pos}")
        self.pos = word.end()
        self.repair("unquoted_key")
        return word[0].rstrip()

    def separator(self, closer: str) -> None:
        """Consume a comma; one right before the closer is a repair."""
        head = self.skip_blanks()
        if head == ",":
            self.pos += 1
            if self.skip_blanks() == closer:
                self.repair("trailing_comma")
        elif head != closer:
            raise NotJsonError(f"neither comma nor {closer} at character {self.pos}")

    def string(self, quote: str) -> str:
        """Parse the string that opens here; a quote ends it only if structure follows."""
        start = self.pos + len(quote)
        end = self.text.find(quote, start)
        while end >= 0 and not self.ends_string(start, end, quote):
            end = self.text.find(quote, end + 1)
        if end < 0:
            raise NotJsonError(f"string at character {self.pos} does not end")
        self.pos = end + len(quote)
        return self.decode(self.text[start:end], quote)

    def ends_string(self, start: int, end: int, quote: str) -> bool:
        if len(quote) == 1:
            before = end
            while before > start and self.text[before - 1] == "\\":
                before -= 1
            if (end - before) % 2:
                return False
        behind = end + len(quote)
        if _AFTER_STRING.match(self.text, behind):
            return True
        if "unescaped_quote" not in self.repairs:
            if self.literals.operators.match(self.text, behind):
                raise NotJsonError(f"an expression at character {behind}")
            if self.literals is PYTHON and _NEXT_STRING.match(self.text, behind):
                return True
        self.repair("unescaped_quote")
        return False

    def decode(self, text: str, quote: str) -> str:
        if len(quote) > 1 and quote[0] not in "\"'":
            return text
        if quote == "'":
            self.repair("single_quotes")
        if self.literals.unescape is not None:
            return self.literals.unescape(text)
        if len(quote) == 1 and ("\n" in text or "\t" in text or "\r" in text):
            self.repair("raw_control_characters")
        return self.decode_escapes(text) if "\\" in text else text

    def decode_escapes(self, text: str) -> str:
        pieces: list[str] = []
        pos = 0
        while True:
            slash = text.find("\\", pos)
            if slash < 0 or slash + 1 >= len(text):
                pieces.append(text[pos:])
                break
            pieces.append(text[pos:slash])
            decoded, pos = self.decode_escape(text, slash + 1)
            pieces.append(decoded)
        return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")

    def decode_escape(self, text: str, pos: int) -> tuple[str, int]:
        simple = _ESCAPES.get(text[pos])
        if simple is not None:
            return simple, pos + 1
        unicode = _UNICODE.match(text, pos)
        if unicode:
            return chr(int(unicode[1], 16)), unicode.end()
        self.repair("invalid_escape")
        return "\\" + text[pos], pos + 1


_PYTHON_ESCAPES = {**_ESCAPES, "a": "\a", "v": "\v", "0": "\0", "\n": ""}


def python_unescape(text: str) -> str:
    """Decode the inside of a Python string literal; unknown escapes keep their backslash."""
    if "\\" not in text:
        return text
    pieces: list[str] = []
    pos = 0
    while (slash := text.find("\\", pos)) >= 0 and slash + 1 < len(text):
        pieces.append(text[pos:slash])
        found = _UNICODE.match(text, slash + 1) or _HEX.match(text, slash + 1)
        if found:
            pieces.append(chr(int(found[1], 16)))
            pos = found.end()
        else:
            head = text[slash + 1]
            pieces.append(_PYTHON_ESCAPES.get(head, "\\" + head))
            pos = slash + 2
    pieces.append(text[pos:])
    return "".join(pieces)


_CALL = re.compile(r"\s*([\w.]{1,128})\s?(?=\()")


def parse_calls(text: str) -> list[tuple[str, Parsed]]:
    """Parse Python calls with keyword arguments, separated by commas or semicolons.

    Parameters: ``text`` is the calls and nothing else.
    Returns: the name and the arguments of each; nothing if the text is anything else.
    """
    loose = _LenientParser(text, PYTHON)
    calls: list[tuple[str, Parsed]] = []
    while (found := _CALL.match(text, loose.pos)) is not None:
        loose.pos = found.end()
        try:
            calls.append((found[1], Parsed(loose.members(0, ")"))))
        except NotJsonError:
            return []
        if loose.skip_blanks() in (",", ";"):
            loose.pos += 1
    return [] if loose.skip_blanks() else calls


PYTHON = Literals(
    quotes=('"""', "'''", '"', "'"),
    native=frozenset({"single_quotes", "python_literal", "raw_control_characters"}),
    unescape=python_unescape,
    operators=re.compile(rf"\s*{OPERATOR}"),
)

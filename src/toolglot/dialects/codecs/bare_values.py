"""Keys, and values without quotes: numbers, lists and objects, and what else models write in their place."""

from __future__ import annotations

import re

from toolglot.core.events import Reason
from toolglot.core.lenient_json import PYTHON, Literals, NotJsonError, Parsed, parse
from toolglot.core.schema.toolset import SchemaType, coerce_text, coerce_value
from toolglot.dialects.partial_call import PartialCall

_NOT_PLAIN = re.compile(r"[\"<>{}\[\]\n]")
_EXPRESSION = re.compile(r"[()]|\.\.\.|…")
"""What makes an unquoted value code, or a placeholder."""
_OPERAND = r"(?:(?:not|await|lambda|yield)\s+|[-+~]\s?)*(?:[^\W\d]\w*|\d[\w.]*)(?:\.[^\W\d]\w*)*"
_OPERATION = r"\s*(?:[-+*/%@|&^<>=!]{1,2}|\b(?:or|and|if|else|in|is|not in|is not|for)\b)\s*"
_CODE = re.compile(rf"(?![\d:./-]+\Z){_OPERAND}(?:{_OPERATION}{_OPERAND})*\Z|lambda\b|.*(?:(?<!\w)'|'(?!\w)|[:=]=)")
"""Unquoted values that are Python code: names, operators, strings among them."""
_ODD_QUOTES = {"“": "”", "‘": "’", "`": "`", "«": "»", "„": "“"}
_TRAILING_COMMENT = re.compile(r"(?<!\s)\s*+(?:(?://|#)[^\n]{0,500}+|/\*[^*]{0,500}+\*/)\s*+\Z")


def parse_bare(text: str, literals: Literals) -> Parsed:
    """Parse the value, with or without a trailing comment. Raises ``NotJsonError`` if neither parses."""
    try:
        return parse(text, literals)
    except NotJsonError:
        comment = _TRAILING_COMMENT.search(text)
        if comment is None or text.count('"', 0, comment.start()) % 2:  # it may begin inside a string
            raise
        return parse(text[: comment.start()], literals)


def add_set(call: PartialCall, key: str, text: str, shape: SchemaType) -> bool:
    """Add a Python set as a list, where a list is expected; False if this is none."""
    if "array" not in shape.kinds or text[:1] + text[-1:] != "{}":
        return False
    try:
        parsed = parse(f"[{text[1:-1]}]", PYTHON)
    except NotJsonError:
        return False
    call.repair("set_as_list")
    call.add(key, coerce_value(parsed.value, shape, f"argument {key}"))
    return True


def add_unquoted(call: PartialCall, key: str, text: str, shape: SchemaType, literals: Literals) -> None:
    """Add text without quotes, or in unusual quotes: accepted if it is one plain line."""
    quote = _ODD_QUOTES.get(text[:1])
    if quote is not None:
        inside = text[1:-1] if len(text) > 1 and text[-1] == quote else ""
        text = "" if quote in inside or text[0] in inside else inside
    if not text or text == key or _NOT_PLAIN.search(text) or (quote is None and _is_code(text, shape, literals)):
        call.add_defect(Reason.INVALID_VALUE, f"argument {key}", text[:80] or "nothing", "a value in quotes")
        return
    call.add(key, coerce_text(text, shape, f"argument {key}"))
    call.repair("unquoted_value")


def _is_code(text: str, shape: SchemaType, literals: Literals) -> bool:
    """Whether an unquoted text is code; a value of a declared type that is not free text is not."""
    proved = bool(shape.kinds) and not (shape.streams or shape.nullable_text)
    named = literals is PYTHON and not proved and _CODE.match(text) is not None
    return named or _EXPRESSION.search(text) is not None


def decode_key(written: str) -> str:
    """Unescape a key; escapes that JSON does not have are Markdown's and are dropped."""
    if "\\" not in written:
        return written
    try:
        key = parse(f'"{written}"').value if "\\_" not in written else None
    except NotJsonError:
        key = None
    return key if isinstance(key, str) else written.replace("\\", "")

"""Normal forms of texts: what is left without everything that a quotation may change.

Strategy. Whitespace, line prefixes (of quotes, comments, diffs, line numbers, search results and logs), quotation
marks, commas, slashes and invisible characters are removed, JSON string escapes and HTML entities are decoded, letters
of full width become ordinary ones. That is done to a quotation and to its source alike, and the normal form of a
beginning is a beginning of the normal form. What looks like a line prefix may be content, and lines may be joined, so
there are two forms, with and without prefixes.

Bytes that are written as text (with percent signs, in hexadecimal digits, base64 or quoted-printable) are decoded in
sources only: a source has several *views*, the text itself and its encoded parts, decoded, one view for each of at most
three layers. A view holds only the surroundings of what was decoded, so an ordinary text has one view.
"""

from __future__ import annotations

import html
import re
from binascii import a2b_base64
from collections.abc import Callable, Iterator
from typing import Final
from unicodedata import normalize

from toolglot.core.windowed_search import replace_all, search

_LAYOUT: Final = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_SIGNS: Final = ">+-|*#`\"'\\,/"
_UNSEEN: Final = (
    r"\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
"""Ranges of characters that are not seen: controls, zero-width characters, fillers, bidi marks, selectors, tags."""
_UNSEEN_SIGNS: Final = re.compile(f"[{_UNSEEN}]+")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,20}m")
_FOREIGN_SIGNS: Final = re.compile(
    rf"[“”„‘’‚«»‹›「」『』→｜│┃║\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{_UNSEEN}]+"
)
_STYLED: Final = re.compile("[\ufe50-\ufe6b\uff01-\uff5e\u24b6-\u24e9\U0001d400-\U0001d7ff]+")
"""Letters and signs of another width or style than their ASCII counterparts."""
_ODD_SIGNS: Final = re.compile(f"{_UNSEEN_SIGNS.pattern[:-2]}{_STYLED.pattern[1:]}")

_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([nrt]))?")
_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")
_LINE_BREAKS = re.compile(r"<br ?/?>")
_MARGIN = r"[ \t>+|*#-]*+"
_NUMBERED = r"\[\d{1,7}\]|\(?(?:[Ll](?:ine)? ?)?\d{1,7}(?:[ \t]*[|:→│.]|[)-]|\t)"
_FOUND = r"(?:[A-Za-z]:)?[^\s:<>{}\"'`=(),]{1,200}[:-]\d{1,7}[:-]"
_LOGGED = (
    r"\[?(?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\]?:?(?=\s)"
)
_PREFIXES = re.compile(rf"\n{_MARGIN}(?:(?:{_LOGGED}|{_NUMBERED}|{_FOUND}){_MARGIN})++")
"""Prefixes that editors, search tools and logs put before each line."""
_UNFINISHED = re.compile(
    r"(?:(?:\n|\r|\\[nr])[^<{\"'=\n\r\\]{0,200})?"
    r"(?:\\+(?:u[0-9a-fA-F]{0,3})?|&[#\w]{0,32}|<(?:br? ?/?)?)?\Z"
)
"""An end whose meaning depends on what follows: a line that may begin with a prefix, or part of an escape, an entity or
a line break."""
_LONGEST_END: Final = 300


def normal_forms(text: str) -> list[str]:
    """Return the normal forms of a text: without everything that a quotation may change and, if that differs, also
    without the prefixes of all lines but the first."""
    decoded = _decode(_fold(text))
    bare = replace_all(_PREFIXES, decoded, "\n")
    return [strip_signs(decoded), strip_signs(bare)] if len(bare) < len(decoded) else [strip_signs(decoded)]


def cut_unfinished(beginning: str) -> str:
    """Return the beginning of a text without an end whose meaning depends on what follows."""
    unfinished = _UNFINISHED.search(beginning, max(0, len(beginning) - _LONGEST_END))
    return beginning[: unfinished.start()] if unfinished is not None else beginning


def _fold(text: str) -> str:
    """Remove colours and characters that are not seen, and make letters of another width or style ordinary ones."""
    text = replace_all(_COLOURS, text) if "\x1b[" in text else text
    if text.isascii() or search(_ODD_SIGNS, text) is None:
        return text
    text = replace_all(_UNSEEN_SIGNS, text)
    return _STYLED.sub(lambda found: normalize("NFKC", found[0]), text)


def _decode(text: str) -> str:
    """Decode JSON string escapes and HTML entities, and remove line breaks of table cells."""
    if "\\" in text:
        paired = _SURROGATES.search(text) is not None
        text = _ESCAPES.sub(_unescape, text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if paired else text
    if "&" in text:
        text = html.unescape(text)
        text = html.unescape(text) if "&" in text else text
    text = text.replace("\r", "\n") if "\r" in text else text
    return replace_all(_LINE_BREAKS, text) if "<br" in text else text


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return "\n" if found[2] else ""


_DELETED: Final = (_LAYOUT + _SIGNS).encode()


def strip_signs(text: str) -> str:
    """Remove whitespace and insignificant characters. Deleting from bytes is several times as fast."""
    left = text.encode("utf-8", "surrogatepass").translate(None, _DELETED).decode("utf-8", "surrogatepass")
    return left if left.isascii() else replace_all(_FOREIGN_SIGNS, left)


# -- encoded parts of a source -----------------------------------------------------------------------------------------

_MAX_LAYERS: Final = 3
"""Layers of encoding that are decoded."""
_MARGIN_SIZE: Final = 200
"""How much of the text around an encoded part belongs to the view with the decoded one."""
_CODE: Final = (
    r"\\+u00([0-7][0-9a-fA-F])|(&(?:amp;){0,3}#(?:[0-9]{2,7}|[xX][0-9a-fA-F]{2,6});?)"
    r"|(?:%|=|\\+x)([0-9a-fA-F]{2})|=\r?\n"
)
_CODES: Final = re.compile(f"(?:{_CODE})+")
"""Characters as escapes or entities, and bytes with percent signs, as escapes or quoted-printable."""
_CODE_SIGNS: Final = (
    *(f"\\u00{digit}" for digit in "234567"),
    *("&#", "&amp;#", "=3D", "=20", "=\n", "=\r"),
    *(sign + code for sign in ("%", "\\x") for code in ("22", "25", "28", "3c", "3C", "5b", "5B", "7b", "7B")),
)
"""Codes, or beginnings of codes, of signs that calls are written with; a text without them is not decoded."""
_WORD: Final = "[A-Za-z0-9+/_-]"
_BREAK: Final = r"(?:[\r\n]|\\[rn])+[ \t>|]*"
_BLOBS: Final = re.compile(
    rf"(?:{_WORD}{{20,}}+(?:{_BREAK}{_WORD}{{20,}}+)*+|{_WORD}{{12,}}+(?:{_BREAK}{_WORD}{{12,}}+)++)(?:{_BREAK}{_WORD}+)?"
)
"""Hexadecimal digits or base64, also over several lines."""
_BLOB_PREFIX: Final = re.compile(r"(?:0[xX]|[A-Za-z0-9]{0,40}[_/-])")
"""What may stand right before such digits: the sign of hexadecimal numbers, a label or the beginning of an address."""
_BLOB_EDGE: Final = re.compile(r"[A-Za-z0-9+/_%=-]{16}")
_HEX: Final = re.compile("(?:[0-9a-fA-F]{2})+")
_NO_DIGITS: Final = re.compile(r"\\[rn]|[^A-Za-z0-9+/_-]+")
_URL_SAFE: Final = str.maketrans("-_", "+/")


def list_views(text: str) -> list[str]:
    """Return the text, and what its encoded parts mean, with some text around them: one view for each layer."""
    views = [_fold(text)]
    while len(views) <= _MAX_LAYERS and (decoded := _decode_parts(views[-1])):
        views.append(decoded)
    return views


def join_encoded(first: str, second: str) -> str:
    """Return both texts as one, if an encoded part may begin in the first and end in the second; else ""."""
    edges = first[-80:].rstrip()[-16:], second[:80].lstrip()[:16]
    return first.rstrip() + second.lstrip() if all(map(_BLOB_EDGE.fullmatch, edges)) else ""


def _decode_parts(text: str) -> str:
    """Decode one layer of the encoded parts of a text; "" if there are none."""
    parts = list(_find_parts(_BLOBS, text, _decode_blob)) if len(text) >= 20 else []
    if any(map(text.__contains__, _CODE_SIGNS)):
        parts = sorted([*parts, *_find_parts(_CODES, text, _decode_codes)])
    view: list[str] = []
    at = 0
    for start, end, decoded in parts:
        if start - at > 2 * _MARGIN_SIZE:
            view += (text[at : at + _MARGIN_SIZE] if view else "", "\n", text[start - _MARGIN_SIZE : start], decoded)
        elif start >= at:
            view += (text[at:start], decoded)
        at = max(at, end)
    return "".join([*view, text[at : at + _MARGIN_SIZE]]) if view else ""


def _find_parts(
    pattern: re.Pattern[str], text: str, decode: Callable[[str], str | None]
) -> Iterator[tuple[int, int, str]]:
    """Yield the encoded parts of a text: start, end and meaning."""
    at = 0
    while (found := search(pattern, text, at)) is not None:
        start = found.start()
        at = pattern.match(text, start).end()  # type: ignore[union-attr]  # without the end of the window
        if (decoded := decode(text[start:at])) is not None:
            yield start, at, decoded


def _decode_codes(written: str) -> str:
    """Decode characters and bytes."""
    data = b"".join(
        html.unescape(html.unescape(part[2])).encode() if part[2] else bytes.fromhex(part[1] or part[3] or "")
        for part in re.finditer(_CODE, written)
    )
    return data.decode("utf-8", "replace")


def _decode_blob(written: str) -> str | None:
    """Decode hexadecimal digits or base64, also after a prefix; None if that gives no text."""
    decoded, prefix = _decode_digits(written), _BLOB_PREFIX.match(written)
    if decoded is None and prefix is not None and len(written) >= prefix.end() + 20:
        decoded = _decode_digits(written[prefix.end() :])
        decoded = decoded if decoded is None else prefix[0] + decoded
    return decoded


def _decode_digits(written: str) -> str | None:
    head = _NO_DIGITS.sub("", written[:40])[:20].translate(_URL_SAFE)
    if len(head) < 20 or not (_HEX.match(head) or _is_text(a2b_base64(head))):
        return None
    digits = _NO_DIGITS.sub("", written).translate(_URL_SAFE)
    if _HEX.fullmatch(digits):
        data = bytes.fromhex(digits)
    else:
        digits = digits[: len(digits) - (len(digits) % 4 == 1)]
        data = a2b_base64(digits + "=" * (-len(digits) % 4))
    return data.decode("utf-8", "replace") if _is_text(data[:15]) else None


def _is_text(data: bytes) -> bool:
    """Whether a beginning of bytes is one of a text; its last character may be cut."""
    return data.decode("utf-8", "replace").count("\ufffd") <= 1 and not data.count(0)

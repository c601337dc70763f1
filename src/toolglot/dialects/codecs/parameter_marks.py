"""The marks of parameters: how one is opened and closed, and what else matters inside its value."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape

from msgspec import Struct

from toolglot.core.lenient_json import ESCAPED_CHARACTERS
from toolglot.dialects.codecs.whitespace import Trim
from toolglot.dialects.patterns import Mark, Match, compile_stops, mark

_QUOTED_CALLS = (
    (Mark("<function={name}>", named=False), "</function>"),
    (Mark("<{ns}invoke name={q}{name}{q}>", named=False), "</invoke>"),
)
_QUOTED_PARAMETER = Mark("<{ns}parameter name={q}{key}{q}", "<parameter={key}>", named=False)
_QUOTED_TAG = re.compile(r"<([\w\-:]+)")
_SIGNS = re.compile(r"\W+")
_TAG = re.compile(r"</ ?((?:\{ns\}|\{bar\}[A-Z]+\{bar\} ?)?(?:\{key\}|\w+))")
"""The name in a closing mark."""
_OPENING_TAG = re.compile(r"<\{key\}(?:\{attributes\})?>")

_WORD = re.compile(r"\{\w+\}|(\w{3,})")

HTML = frozenset(
    ("a", "b", "i", "p", "br", "hr", "li", "ol", "ul", "td", "th", "tr", "div", "img", "pre", "span", "code")
) | {"form", "input", "title", "label", "table", "button"}
"""Elements that are HTML and no undeclared parameters."""

MAX_OPENER = 80
"""How much of the text shows whether a damaged opening mark is here."""

EXCERPT_KEYS = frozenset(
    ("oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext", "inserttext", "search", "replace", "diff")
) | {"patch"}
"""Parameters that hold excerpts of files: what they open may be closed outside of them, and the reverse."""
VERBATIM = EXCERPT_KEYS | {"content", "contents", "filetext", "body", "code", "text", "input"}
"""Parameters with file content: one line break on each side is trimmed, other whitespace is data."""


def _fold(key: str) -> str:
    """Normalise a key for lookup: keys have many spellings."""
    return key.replace("_", "").lower()


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One spelling of a parameter. ``{key}`` in the closing mark is the key of the opening one.

    ``verbatim`` are keys whose values keep their whitespace whatever ``trim`` is; ``texts`` are type names in the
    opening mark that mean text, any other means JSON; ``sections``: texts are usually written as CDATA sections;
    ``repair`` names the defect of this spelling. A spelling without
    a closing mark has no value, which is a defect.
    """

    open: str
    close: tuple[str, ...]
    trim: Trim = Trim.NONE
    verbatim: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ("string", "str", "true", "text")
    decode: Callable[[str], str] | None = None
    sections: bool = False
    repair: str = ""
    is_element: bool = field(init=False)
    """Whether the key is the tag, as it is for many elements that are no parameters."""
    opener: Mark = field(init=False)
    words: re.Pattern[str] = field(init=False)
    """The end of an opening tag after one of the words in it."""
    is_keyed: bool = field(init=False)
    """Whether the marks of a value depend on its key."""

    def __post_init__(self) -> None:
        keyed = _OPENING_TAG.search(self.open) is not None or any("{key}" in close for close in self.close)
        object.__setattr__(self, "is_keyed", keyed)
        object.__setattr__(self, "is_element", self.open.startswith("<{key}"))
        object.__setattr__(self, "opener", mark((self.open,)))
        words = "|".join(filter(None, _WORD.findall(self.open)))
        object.__setattr__(self, "words", re.compile(rf"(?<!/)\b(?:{words})\b[^<>\n]{{0,60}}>" if words else "(?!)"))

    def keeps_sections(self, key: str) -> bool:
        """Whether a CDATA section that its text does not need may be the text itself, as in a file."""
        return not self.sections and _fold(key) in VERBATIM

    def trim_for(self, key: str) -> Trim:
        return Trim.BREAK if _fold(key) in self.verbatim else self.trim


def read_key(opener: Match) -> str:
    """The key in the opening mark of a parameter, without Markdown backslashes and with entities decoded."""
    key = opener["key"].strip().replace("\\", "")
    return unescape(key) if "&" in key else key


def read_spelling(opener: Match) -> str:
    """The words before the key in the opening mark of a parameter."""
    return _SIGNS.sub(" ", opener[0][: opener.start("key") - opener.start()])


def is_closed_by(quoted: Match, closer: Mark) -> bool:
    """Whether the closing tag of a quoted tag, in its namespace, is one of these closing marks too."""
    tag = _QUOTED_TAG.match(quoted[0])
    return tag is None or closer.at(f"</{tag[1]}>", 0, True) is not None


def fill_key(template: str, key: str) -> str:
    return template.replace("{key}", key.replace("{", "{{").replace("}", "}}"))


class ValueMarks(Struct, frozen=True):
    """The marks that matter inside the value of one parameter."""

    closer: Mark
    opener: Mark
    quoted: Mark | None
    stray: Mark | None
    """Closing marks that models repeat."""
    stray_openers: Mark | None
    """Openers that such a mark may close."""
    stops: re.Pattern[str]
    """Where a mark may begin; a comparison operator is none, and no mark begins with ``<<<<``."""
    not_plain: re.Pattern[str]
    """What keeps a chunk off the fast path: stops, whitespace to trim, and characters that JSON escapes."""
    trim: Trim


@lru_cache(maxsize=1024)
def value_marks(parameter: Parameter, key: str) -> ValueMarks:
    """The marks for one key; most spellings close all parameters alike and share one set of marks."""
    folded = _fold(key)
    trim = Trim.BREAK if folded in parameter.verbatim else parameter.trim
    return _compile_value_marks(parameter, key if parameter.is_keyed else "", trim, folded in EXCERPT_KEYS)


@lru_cache(maxsize=1024)
def _compile_value_marks(parameter: Parameter, key: str, trim: Trim, piece: bool) -> ValueMarks:
    closer = Mark(*(fill_key(close, key) for close in parameter.close))
    opener = Mark(_OPENING_TAG.sub(lambda _: f"<{key}{{attributes}}>", parameter.open))
    heads = sorted(closer.heads | opener.heads | {"<"})
    stops = compile_stops({head: r"(?![\s=]|<<<)" if head == "<" else "" for head in heads})
    layout = r"\s" if trim is Trim.BLANKS else ""
    quoted = _quoted_opener(closer, opener, key)
    stray, stray_openers = _stray_marks(parameter.close, key)
    not_plain = re.compile(f"[{re.escape(''.join(heads))}{ESCAPED_CHARACTERS}{layout}]")
    return ValueMarks(closer, opener, quoted, None if piece else stray, stray_openers, stops, not_plain, trim)


def _quoted_opener(closer: Mark, opener: Mark, key: str) -> Mark | None:
    """The opener of a parameter of another dialect, or of a plain element, whose closing mark would close ours."""
    if closer.at("</parameter>", 0, True) is not None:
        return _QUOTED_PARAMETER
    plain = bool(key) and closer.at(f"</{key}>", 0, True) is not None and opener.at(f"<{key}>", 0, True) is None
    return Mark(fill_key("<{key}{attributes}>", key), named=False) if plain else None


def _stray_marks(close: tuple[str, ...], key: str) -> tuple[Mark | None, Mark | None]:
    tags = [found[1] for closer in close if (found := _TAG.match(closer)) is not None]
    if not _TAG.match(close[0]):
        return None, None
    closers = [fill_key(closer, key) for closer in close]
    return Mark(*closers, named=False), Mark(*(fill_key(f"<{tag}", key) for tag in tags), named=False)


def quoted_headers(closer: Mark) -> tuple[Mark, ...]:
    """Headers of other dialects whose closing mark would close the call too."""
    return tuple(header for header, end in _QUOTED_CALLS if closer.at(end, 0, True) is not None)


BORROWED = (
    ('<{ns}parameter name={q}{key}{q} value="', ('"{attributes}/>', '" />', '">')),
    ("<{ns}parameter name={q}{key}{q}{attributes}>", ("</ {ns}parameter{eqkey} >",)),
    ("<{ns}parameter = {q}{key}{q} >", ("</ {ns}parameter{eqkey} >",)),
    ("<{ns}param name={q}{key}{q}{attributes}>", ("</ {ns}param >",)),
    ("<param = {q}{key}{q} >", ("</ param{eqkey} >",)),
    ("<argument name={q}{key}{q}{attributes}>", ("</ argument >",)),
    ("<argument = {q}{key}{q} >", ("</ argument{eqkey} >",)),
    ("<arg name={q}{key}{q}{attributes}>", ("</ arg >",)),
    ("<arg = {q}{key}{q} >", ("</ arg{eqkey} >",)),
    ("<arg_key>{key}</arg_key> <arg_value>", ("</arg_value>",)),
    ("<{key}>", ("</ {key} >",)),
    ("<{key}{attributes}>", ("</ {key} >",)),
)
"""Spellings of other dialects: models mix them into any call that is made of tags."""


def list_spellings(own: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The dialect's own spellings, then all others with its trimming; plain elements last, for any tag matches them."""
    known = {parameter.open for parameter in own}
    borrowed = (
        Parameter(opener, close, own[0].trim, own[0].verbatim, decode=unescape if opener.endswith('"') else None)
        for opener, close in BORROWED
        if opener not in known
    )
    return tuple(sorted((*own, *borrowed), key=lambda parameter: parameter.is_element))

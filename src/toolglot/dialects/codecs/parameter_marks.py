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

MAX_OPENER = 80
"""How much of the text shows whether a damaged opening mark is here."""
_DAMAGED_OPENER = re.compile(
    r"""<?[\w:|｜]{1,30}(?:\s*=\s*|\s+name\s*=\s*|>)["']?(?P<key>[\w.-]+)\b|(?P<tag>[\w.-]+)>"""
)
_BEHIND_CLOSER = re.compile(
    rf"""{_DAMAGED_OPENER.pattern}|<[\w:|｜]{{1,30}}[^\w\n]{{0,4}}(?:name)?[^\w\n]{{1,4}}(?P<loose>[\w.-]+)"""
    r"""|(?P<cut>[\w.-]+)</"""
)
"""The same with more damage, where a parameter is due."""

EXCERPT_KEYS = frozenset(
    ("oldstring", "newstring", "oldstr", "newstr", "oldtext", "newtext", "inserttext", "search", "replace", "diff")
) | {"patch"}
"""Parameters that hold excerpts of files: what they open may be closed outside of them, and the reverse."""


def _fold(key: str) -> str:
    """Normalise a key for lookup: keys have many spellings."""
    return key.replace("_", "").lower()


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """One spelling of a parameter. ``{key}`` in the closing mark is the key of the opening one.

    ``verbatim`` are keys whose values keep their whitespace whatever ``trim`` is; ``texts`` are type names in the
    opening mark that mean text, any other means JSON; ``repair`` names the defect of this spelling. A spelling without
    a closing mark has no value, which is a defect.
    """

    open: str
    close: tuple[str, ...]
    trim: Trim = Trim.NONE
    verbatim: frozenset[str] = frozenset()
    texts: tuple[str, ...] = ("string", "str", "true", "text")
    decode: Callable[[str], str] | None = None
    repair: str = ""
    is_element: bool = field(init=False)
    """Whether the key is the tag, as it is for many elements that are no parameters."""
    opener: Mark = field(init=False)
    is_keyed: bool = field(init=False)
    """Whether the marks of a value depend on its key."""

    def __post_init__(self) -> None:
        keyed = _OPENING_TAG.search(self.open) is not None or any("{key}" in close for close in self.close)
        object.__setattr__(self, "is_keyed", keyed)
        object.__setattr__(self, "is_element", self.open.startswith("<{key}"))
        object.__setattr__(self, "opener", mark((self.open,)))

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


def find_damaged_key(text: str, at: int = 0) -> str:
    """The key in an opening mark that has lost its first or its last character; "" if there is none here."""
    found = _DAMAGED_OPENER.match(text, at)
    return (found["key"] or found["tag"]) if found is not None else ""


def find_key_behind_closer(text: str, at: int) -> str:
    """The key in what may be a damaged opening mark right behind a closing mark; "" if there is none."""
    found = _BEHIND_CLOSER.match(text, at)
    return next(filter(None, found.groups()), "") if found is not None else ""


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
    damaged: re.Pattern[str]
    """A closing mark that may be damaged behind its name."""
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
    stray, stray_openers = (None, None) if piece else _stray_marks(parameter.close, key)
    damaged = re.compile(_name_closers(parameter.close, key))
    not_plain = re.compile(f"[{re.escape(''.join(heads))}{ESCAPED_CHARACTERS}{layout}]")
    return ValueMarks(closer, opener, quoted, stray, stray_openers, damaged, stops, not_plain, trim)


def _quoted_opener(closer: Mark, opener: Mark, key: str) -> Mark | None:
    """The opener of a parameter of another dialect, or of a plain element, whose closing mark would close ours."""
    if closer.at("</parameter>", 0, True) is not None:
        return _QUOTED_PARAMETER
    plain = bool(key) and closer.at(f"</{key}>", 0, True) is not None and opener.at(f"<{key}>", 0, True) is None
    return Mark(fill_key("<{key}{attributes}>", key), named=False) if plain else None


def _name_closers(close: tuple[str, ...], key: str) -> str:
    """The expression of the closing tags up to the end of their names; it matches nothing if there are none."""
    tags = (found[1].removeprefix("{ns}") for closer in close if (found := _TAG.match(closer)) is not None)
    names = "|".join(re.escape(key if tag == "{key}" else tag) for tag in tags if "{bar}" not in tag)
    return rf"</(?:[\w-]+:)?(?:{names})\b" if names else "(?!)"


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

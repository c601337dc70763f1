"""Detects quoted calls: a call in an answer that repeats call markup from the conversation is a quotation.

Strategy. User messages and tool results are searched for call markup once. Most have none, and then there is nothing to
compare. The others are stored in a normal form, without everything that a quotation may change: whitespace, line
prefixes (of quotes, comments, diffs, line numbers, search results and logs), quotation marks, JSON string escapes, HTML
entities and invisible characters. A call is a quotation if its own normal form is a substring of one of them. What
looks like a line prefix may be content, and lines may be joined, so both forms, with and without prefixes, are
compared. Of a call that is still streaming the beginning is compared: once no text contains it, the call is not a
quotation.

The search for markup allows false positives: they only cost memory. It takes linear time (less than 0.1 s per
megabyte), once per text: results are cached.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from toolglot.core.conversation import Message, Text, ToolResult
from toolglot.core.text_cache import TextCache
from toolglot.core.windowed_search import replace_all

MAX_UNMARKED: Final = 1 << 14
"""Clients resend the history with every turn: cache size for texts without markup."""
MAX_CACHED_CHARACTERS: Final = 1 << 24
"""Cache size for the normal forms of texts with markup, over all conversations."""

INVISIBLE: Final = "\u2064\u2062\u2063\u2060\u200b\u200c\u200d\ufeff\u180e\u034f\u00ad"
"""Invisible characters; one of them is inserted to break marks in quoted text. The first ones hardly occur in texts, as
the one that is used is deleted from what the model writes."""
_LAYOUT: Final = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_SIGNS: Final = ">+-|*#`\"'\\"
_FOREIGN_SIGNS: Final = re.compile(
    rf"[“”„‘’‚«»‹›「」『』→｜│┃║\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{INVISIBLE}]+"
)

_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([nrt]))?")
_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")
_LINE_JOINTS = re.compile(r"\"\s*,\s*(?=[\"'])|'\s*,\s*(?=[\"'])|<br ?/?>|//+")
"""Separators of lines that are strings of a list or share a table cell, and comment markers."""
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
    r"(?:\\+(?:u[0-9a-fA-F]{0,3})?|&[#\w]{0,32}|<(?:br? ?/?)?|[\"']\s*,\s*|/)?\Z"
)
"""An end whose meaning depends on what follows: a line that may begin with a prefix, or part of an escape, an entity or
a line joint."""
_LONGEST_END: Final = 300
_FORM_SEPARATOR: Final = "\0"
"""Separates the two normal forms of a text."""
_LIST_SEPARATORS: Final = "[],;"
"""Separators of calls in a list."""

_MARKS: Final = (
    *(opener + mark for opener in ("<", "lt;", "003c") for mark in ("|", "｜", "function", "tool", "invoke")),
    *("tool_call", "toolcall", "tool call", "tool_use", "use_tool", "tool_code", "tool_request", "tool_name"),
    *("calling tool", "function_call", "functioncall", "__function", "function=", ":invoke", "dsml", "ctrl42", "uff5c"),
    *("functools[", "functools [", "✿function", "to=functions", "to=multi_tool"),
    *("assistant to=", "commentary to=", "analysis to="),
)
"""Substrings, in lower case, of marks that never occur in ordinary text; they open calls to any tool."""
_SHELL_FENCES: Final = ("```bash", "```sh", "```zsh", "```console")
_CALL_FORMS: Final = ("<{}", ":{}", "={}", "({}", "{}(", "{}{{", ".{},", ".{}}}", "action{}", "Action{}")
"""Calls of a tool without any mark, in the normal form of a text: as a tag, in JSON, in Python or in ReAct lines, where
a step number may separate the label from the name."""
_STEP_NUMBERS: Final = re.compile("(?<=ction)[0-9]{1,3}")


def normal_forms(text: str) -> list[str]:
    """Return the normal forms of a text: without everything that a quotation may change and, if that differs, also
    without the prefixes of all lines but the first."""
    decoded = _decode(text)
    bare = replace_all(_PREFIXES, decoded, "\n")
    return [_strip(decoded), _strip(bare)] if len(bare) < len(decoded) else [_strip(decoded)]


def _decode(text: str) -> str:
    """Decode JSON string escapes and HTML entities, and remove line joints."""
    if "\\" in text:
        paired = _SURROGATES.search(text) is not None
        text = _ESCAPES.sub(_unescape, text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if paired else text
    if "&" in text:
        text = html.unescape(text)
        text = html.unescape(text) if "&" in text else text
    text = text.replace("\r", "\n") if "\r" in text else text
    return replace_all(_LINE_JOINTS, text)


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return "\n" if found[2] else ""


_DELETED: Final = (_LAYOUT + _SIGNS).encode()


def _strip(text: str) -> str:
    """Remove whitespace and insignificant characters. Deleting from bytes is several times as fast."""
    left = text.encode("utf-8", "surrogatepass").translate(None, _DELETED).decode("utf-8", "surrogatepass")
    return left if left.isascii() else replace_all(_FOREIGN_SIGNS, left)


class Quotations:
    """Normal forms of the texts with call markup that an answer may quote. Falsy if there are none."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = tuple(texts)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def contains(self, call: str) -> bool:
        """Whether a call, without the marks of its wrapper, occurs in one of the texts."""
        return any(self._find(form.strip(_LIST_SEPARATORS)) for form in normal_forms(call))

    def may_contain(self, beginning: str) -> bool:
        """Whether a call that begins like this may occur in one of the texts."""
        unfinished = _UNFINISHED.search(beginning, max(0, len(beginning) - _LONGEST_END))
        whole = beginning[: unfinished.start()] if unfinished is not None else beginning
        return any(self._find(form.lstrip(_LIST_SEPARATORS)) for form in normal_forms(whole))

    def _find(self, part: str) -> bool:
        return any(part in text for text in self._texts)


NO_QUOTATIONS: Final = Quotations()


class QuotationCheck:
    """Compares one call with the quotations: at intervals while it streams, and as a whole.

    ``start`` is the offset of the call in the answer, after the marks of a wrapper.
    """

    __slots__ = ("_next_size", "_quotations", "start")

    def __init__(self, quotations: Quotations, start: int) -> None:
        self._quotations = quotations
        self._next_size = 0
        self.start = start

    def is_ruled_out(self, here: int, since: Callable[[int], str]) -> bool:
        """Whether the call, received up to ``here``, can no longer be a quotation.

        It is compared again each time it has grown by a quarter, so the work stays linear.
        """
        size = here - self.start
        if size < self._next_size:
            return False
        self._next_size = size + size // 4
        return not self._quotations.may_contain(since(self.start))

    def is_quotation(self, call: str) -> bool:
        """Whether the whole call is a quotation."""
        return self._quotations.contains(call)


def list_quotable(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts of a conversation that an answer may quote: user messages and tool results.

    The text parts of a message or result are concatenated.
    """
    for message in messages:
        if message.role == "user":
            yield "".join([part.text for part in message.parts if isinstance(part, Text)])
        elif message.role == "tool":
            for result in message.parts:
                if isinstance(result, ToolResult):
                    yield "".join([part.text for part in result.content if isinstance(part, Text)])


def find_quotations(
    texts: Iterable[str], names: Iterable[str], shell: bool = False, marks: tuple[str, ...] = ()
) -> Quotations:
    """Find the texts with call markup that an answer may quote.

    Parameters: ``texts``: whole tool results and user messages of a conversation; ``names``: the tools that may be
    called; ``shell``: whether commands in shell fences count as calls; ``marks``: further substrings, in lower case,
    of texts with call markup.
    Returns: the texts with call markup, in normal form.
    """
    search = _search_for(tuple(names), shell, marks)
    kept = dict.fromkeys(filter(None, map(search.look, filter(None, texts))))
    return Quotations(kept) if kept else NO_QUOTATIONS


class _Search:
    """Searches texts for call markup of certain tools. Plain substring search is the fastest by far."""

    def __init__(self, names: tuple[str, ...], shell: bool, marks: tuple[str, ...]) -> None:
        self.names = names
        self.marks = (*_MARKS, *(_SHELL_FENCES if shell else ()), *marks)
        self.key = hash((names, shell, marks))

    def look(self, text: str) -> str:
        """Return the normal form of a text with markup, "" for a text without."""
        key = (self.key, len(text), hash(text))
        if key in _UNMARKED:
            return ""
        if (kept := _NORMAL_FORMS.get(key)) is not None:
            return kept
        plain = text.replace("\\", "") if "\\" in text else text
        names = [name for name in self.names if name in plain]
        marked = self.is_marked(text)
        if marked or names:
            normal = _FORM_SEPARATOR.join(normal_forms("\n" + text))
            if marked or any(map(_make_call_test(normal), names)):
                _NORMAL_FORMS.add(key, normal)
                return normal
        if len(_UNMARKED) >= MAX_UNMARKED:
            _UNMARKED.clear()
        _UNMARKED.add(key)
        return ""

    def is_marked(self, text: str) -> bool:
        return any(map(text.lower().__contains__, self.marks))


def _make_call_test(normal: str) -> Callable[[str], bool]:
    """Return a predicate: whether the tool of a name may be called in this text."""
    normal = replace_all(_STEP_NUMBERS, normal) if "ction" in normal else normal
    return lambda name: any(form in normal for form in _call_forms(name))


@lru_cache(maxsize=1024)
def _call_forms(name: str) -> tuple[str, ...]:
    stripped = _strip(name)
    return tuple(form.format(stripped) for form in _CALL_FORMS)


_search_for = lru_cache(maxsize=64)(_Search)

_Key = tuple[int, int, int]
_UNMARKED: set[_Key] = set()


_NORMAL_FORMS: Final[TextCache[_Key]] = TextCache(MAX_CACHED_CHARACTERS)

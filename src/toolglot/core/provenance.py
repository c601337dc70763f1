"""Calls that stood in the conversation before the answer: an answer that repeats one quotes it.

Strategy. Texts of tool results and of users are searched for call markup once. Most hold none, and then there is
nothing to compare with. Those that hold some are kept in a normal form, without everything that a quotation may change:
white space, the prefixes of lines (of quotations, comments, diffs, numbered lines, found lines and logs), quotes,
escapes of JSON strings, entities and invisible characters. A call of the answer is a quotation if its own text, in the
same form, is a part of one of them. What looks like the prefix of a line may be a part of it, and lines may be joined,
so both are compared with and without such prefixes. Of a call that is still arriving, the beginning is compared: as
soon as it stands in none of them, the call cannot be a quotation.

The search for markup errs on the safe side: a text that is kept without need costs memory, and nothing else. It takes
time linear in the text (less than 0.1 s for a megabyte), once for each text: what was found is remembered.
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

KNOWN_TEXTS: Final = 1 << 14
"""Clients send their history again with every turn: so many texts without markup are known again."""
KEPT_CHARACTERS: Final = 1 << 24
"""How many characters of texts with markup are kept in their normal form, over all conversations."""

INVISIBLE: Final = "\u2060\u2063\u2062\u2064\u200b\u200c\u200d\ufeff\u180e\u034f\u00ad"
"""Characters that nobody sees; one of them breaks the marks in quoted text."""
_LAYOUT: Final = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
_SIGNS: Final = ">+-|*#`\"'\\"
_FOREIGN_SIGNS: Final = re.compile(
    rf"[“”„‘’‚«»‹›「」『』→｜│┃║\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000{INVISIBLE}]+"
)

_ESCAPES = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([nrt]))?")
_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]")
_JOINTS = re.compile(r"\"\s*,\s*(?=[\"'])|'\s*,\s*(?=[\"'])|<br ?/?>|//+")
"""What stands between lines that are the strings of a list, or in one cell of a table, and before comments."""
_MARGIN = r"[ \t>+|*#-]*+"
_NUMBERED = r"\[\d{1,7}\]|\(?(?:[Ll](?:ine)? ?)?\d{1,7}(?:[ \t]*[|:→│.]|[)-]|\t)"
_FOUND = r"(?:[A-Za-z]:)?[^\s:<>{}\"'`=(),]{1,200}[:-]\d{1,7}[:-]"
_LOGGED = (
    r"\[?(?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL)\]?:?(?=\s)"
)
_PREFIXES = re.compile(rf"\n{_MARGIN}(?:(?:{_LOGGED}|{_NUMBERED}|{_FOUND}){_MARGIN})++")
"""What editors, searches and logs put before each line."""
_UNFINISHED = re.compile(
    r"(?:(?:\n|\r|\\[nr])[^<{\"'=\n\r\\]{0,200})?"
    r"(?:\\+(?:u[0-9a-fA-F]{0,3})?|&[#\w]{0,32}|<(?:br? ?/?)?|[\"']\s*,\s*|/)?\Z"
)
"""An end that means something else together with what follows it: a line that may begin with a prefix, a part of an
escape, an entity or a joint."""
_LONGEST_END: Final = 300
_PARTED: Final = "\0"
"""What parts the two forms of a text."""
_EDGES: Final = "[],;"
"""What parts the calls of a list."""

_MARKS: Final = (
    *(opener + mark for opener in ("<", "lt;", "003c") for mark in ("|", "｜", "function", "tool", "invoke")),
    *("tool_call", "toolcall", "tool call", "tool_use", "use_tool", "tool_code", "tool_request", "tool_name"),
    *("calling tool", "function_call", "functioncall", "__function", "function=", ":invoke", "dsml", "ctrl42", "uff5c"),
    *("functools[", "functools [", "✿function", "to=functions", "to=multi_tool"),
    *("assistant to=", "commentary to=", "analysis to="),
)
"""What marks that are never ordinary text have in common, in small letters; tools of any name are called with them."""
_SHELL_FENCES: Final = ("```bash", "```sh", "```zsh", "```console")
_CALLED: Final = ("<{}", ":{}", "={}", "({}", "{}(", "{}{{", ".{},", ".{}}}", "action{}", "Action{}")
"""Where a tool's name may be called without any mark, in the normal form of a text: as a tag, in JSON, in Python or in
lines of words. A number behind the word may part it from the name."""
_STEPS: Final = re.compile("(?<=ction)[0-9]{1,3}")


def list_forms(text: str) -> list[str]:
    """List the normal forms of a text: without everything that a quotation may change, and then, if that differs, also
    without the prefixes of all its lines but the first."""
    decoded = _decode(text)
    bare = replace_all(_PREFIXES, decoded, "\n")
    return [_strip(decoded), _strip(bare)] if len(bare) < len(decoded) else [_strip(decoded)]


def _decode(text: str) -> str:
    """The text with escapes of JSON strings and entities resolved, and without what parts joined lines."""
    if "\\" in text:
        paired = _SURROGATES.search(text) is not None
        text = _ESCAPES.sub(_unescape, text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if paired else text
    if "&" in text:
        text = html.unescape(text)
        text = html.unescape(text) if "&" in text else text
    text = text.replace("\r", "\n") if "\r" in text else text
    return replace_all(_JOINTS, text)


def _unescape(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return "\n" if found[2] else ""


_DELETED: Final = (_LAYOUT + _SIGNS).encode()


def _strip(text: str) -> str:
    """The text without white space and the signs that do not count. Bytes are deleted several times as fast."""
    left = text.encode("utf-8", "surrogatepass").translate(None, _DELETED).decode("utf-8", "surrogatepass")
    return left if left.isascii() else replace_all(_FOREIGN_SIGNS, left)


class Quotations:
    """Texts with call markup that an answer may quote, in their normal form. False if there are none."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = tuple(texts)

    def __bool__(self) -> bool:
        return bool(self._texts)

    def hold(self, call: str) -> bool:
        """Tell whether a call, given as its text without the marks of its wrapper, stands in one of the texts."""
        return any(self._find(form.strip(_EDGES)) for form in list_forms(call))

    def may_hold(self, beginning: str) -> bool:
        """Tell whether a call that begins like this may stand in one of the texts."""
        unfinished = _UNFINISHED.search(beginning, max(0, len(beginning) - _LONGEST_END))
        whole = beginning[: unfinished.start()] if unfinished is not None else beginning
        return any(self._find(form.lstrip(_EDGES)) for form in list_forms(whole))

    def _find(self, part: str) -> bool:
        return any(part in text for text in self._texts)


NO_QUOTATIONS: Final = Quotations()


class Comparison:
    """One call that is compared with the quotations: now and then while it arrives, and as a whole.

    ``start`` is where the call begins in the answer, behind the marks of a wrapper.
    """

    __slots__ = ("_next_size", "_quotations", "start")

    def __init__(self, quotations: Quotations, start: int) -> None:
        self._quotations = quotations
        self._next_size = 0
        self.start = start

    def fails(self, here: int, since: Callable[[int], str]) -> bool:
        """Tell whether the call, which has arrived up to ``here``, can no longer be a quotation.

        It is compared again when it has grown by a quarter, so that the work stays linear.
        """
        size = here - self.start
        if size < self._next_size:
            return False
        self._next_size = size + size // 4
        return not self._quotations.may_hold(since(self.start))

    def holds(self, call: str) -> bool:
        """Tell whether the whole call is a quotation."""
        return self._quotations.hold(call)


def list_quotable(messages: Iterable[Message]) -> Iterator[str]:
    """List the texts of a conversation that an answer may quote: user messages and tool results.

    A text that is split over several parts is told as one.
    """
    for message in messages:
        if message.role == "user":
            yield message.text
        elif message.role == "tool":
            for result in message.parts:
                if isinstance(result, ToolResult):
                    yield "".join([part.text for part in result.content if isinstance(part, Text)])


def find_quotations(texts: Iterable[str], names: Iterable[str], shell: bool = False) -> Quotations:
    """Find what an answer may quote.

    Parameters: ``texts`` are the tool results and user messages of a conversation, each as a whole; ``names`` those of
    the tools that may be called; ``shell``: commands in shell fences are read as calls too.
    Returns: the texts among them that hold call markup.
    """
    search = _make_search(tuple(names), shell)
    found = (search.look(text) for text in texts if text)
    kept = [text for text in dict.fromkeys(found) if text]
    return Quotations(kept) if kept else NO_QUOTATIONS


class _Search:
    """Looks for call markup, with tools of certain names. Plain searches for parts of it are the quickest by far."""

    def __init__(self, names: tuple[str, ...], shell: bool) -> None:
        self.names = names
        self.marks = (*_MARKS, *_SHELL_FENCES) if shell else _MARKS
        self.key = hash((names, shell))

    def look(self, text: str) -> str:
        """The normal form of a text with markup; nothing for a text without."""
        key = (self.key, len(text), hash(text))
        if key in _UNMARKED:
            return ""
        if (kept := _KEPT.get(key)) is not None:
            return kept
        plain = text.replace("\\", "") if "\\" in text else text
        names = [name for name in self.names if name in plain]
        marked = self.is_marked(text)
        if marked or names:
            normal = _PARTED.join(list_forms("\n" + text))
            if marked or any(map(_search_calls(normal), names)):
                _KEPT.add(key, normal)
                return normal
        if len(_UNMARKED) >= KNOWN_TEXTS:
            _UNMARKED.clear()
        _UNMARKED.add(key)
        return ""

    def is_marked(self, text: str) -> bool:
        text = text.lower()
        return any(mark in text for mark in self.marks)


def _search_calls(normal: str) -> Callable[[str], bool]:
    """What tells of a name whether it may be called in this text."""
    normal = replace_all(_STEPS, normal) if "ction" in normal else normal
    return lambda name: any(form in normal for form in _spell_calls(name))


@lru_cache(maxsize=1024)
def _spell_calls(name: str) -> tuple[str, ...]:
    stripped = _strip(name)
    return tuple(form.format(stripped) for form in _CALLED)


_make_search = lru_cache(maxsize=64)(_Search)

_Key = tuple[int, int, int]
_UNMARKED: set[_Key] = set()


_KEPT: Final[TextCache[_Key]] = TextCache(KEPT_CHARACTERS)

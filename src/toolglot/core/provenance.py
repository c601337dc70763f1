"""Detects quoted calls: a call in an answer that repeats call markup from the conversation is a quotation.

Strategy. User messages and tool results are searched for call markup once, also in what they encode. Most have none,
and then there is nothing to compare. The others are stored in their normal forms (``normal_forms``). A call is a
quotation if its own normal form is a substring of one of them, or consists of a few *pieces* that stand in different
texts: an attacker may split a call over several results. Of a call that is still streaming the beginning is
compared: once it cannot be a quotation, the call is emitted.

A meant call may also be put together from texts: its notation from a sample in one result, its values from others. So
a place where two pieces meet shows a quotation only if it is inside the notation, inside a value that stands whole in
no text, or at the end of one text and the beginning of another.

The search for markup allows false positives: they only cost memory. It takes linear time (about 0.1 s per megabyte, 0.2
s with markup), once per text: results are cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from toolglot.core.conversation import Message, Text, ToolResult
from toolglot.core.made_up_values import list_made_up
from toolglot.core.normal_forms import cut_unfinished, join_encoded, list_views, normal_forms, strip_signs
from toolglot.core.text_cache import TextCache
from toolglot.core.windowed_search import replace_all

MAX_SEARCHED: Final = 1 << 14
"""Clients resend the history with every turn: how many texts are known to hold markup or none."""
MAX_CACHED_CHARACTERS: Final = 1 << 24
"""Cache size for normal forms, over all conversations."""
MAX_PIECED_CHARACTERS: Final = 1 << 20
"""How much of a conversation, from its end, is searched for pieces of a call."""
MAX_PIECES: Final = 3
"""The most pieces that a quotation is put together from."""
MIN_PIECE: Final = 4
"""The shortest piece, but for the first, for brackets at the end, and for what is a text, or the beginning of one, that
follows the end of another."""
MAX_DISTANCE: Final = 4
"""How many texts further on, or back, the next piece may stand."""
MAX_GAP: Final = 200
"""How many characters may separate two pieces in one text."""
MIN_NOTATION: Final = 4
"""How much of the notation of a call behind a value shows that the value stands in a call."""

INVISIBLE: Final = "\u2064\u2062\u2063\u2060\u200b\u200c\u200d\ufeff\u180e\u034f\u00ad"
"""Invisible characters; one of them is inserted to break marks in quoted text. The first ones hardly occur in texts, as
the one that is used is deleted from what the model writes."""
_FORM_SEPARATOR: Final = "\0"
"""Separates the normal forms of a text."""
_LIST_SEPARATORS: Final = "[],;"
"""Separators of calls in a list."""

_BAR_MARKS: Final = ("<|", "lt;|", "003c|", "uff5c")
"""Marks with a bar, which normal forms do not have."""
_MARKS: Final = (
    *(opener + mark for opener in ("<", "lt;", "003c") for mark in ("function", "tool", "invoke")),
    *("tool_call", "toolcall", "tool_use", "use_tool", "tool_code", "tool_request", "tool_name"),
    *("callingtool", "function_call", "functioncall", "__function", "function=", ":invoke", "dsml", "ctrl42"),
    *("functools[", "[args]{", "✿function", "to=functions", "to=multi_tool"),
    *("assistantto=", "commentaryto=", "analysisto=", "arguments:{", "parameters:{"),
)
"""Substrings, in lower case and without whitespace, of marks that hardly occur in ordinary text; they open calls to any
tool."""
_SHELL_FENCES: Final = ("```bash", "```sh", "```zsh", "```console")
_CALL_FORMS: Final = ("<{}", ":{}", "={}", "({}", "[{}", "{}(", "{}{{", "functions.{}", "action{}", "Action{}")
"""Calls of a tool without any mark, in the normal form of a text: as a tag, in JSON, in Python or in ReAct lines, where
a step number may separate the label from the name."""
_STEP_NUMBERS: Final = re.compile("(?<=ction)[0-9]{1,3}")


class Quotations:
    """Normal forms of the texts that an answer may quote. Falsy if there are none.

    Parameters: ``texts``: texts with call markup; ``sources``: the last texts of the conversation, the latest first,
    any of which may hold a piece of a call; ``made_up``: values of this project's own examples that occur in the texts.
    """

    __slots__ = ("_sources", "_texts", "made_up")

    def __init__(
        self, texts: Iterable[str] = (), sources: Iterable[str] = (), made_up: frozenset[str] = frozenset()
    ) -> None:
        self._texts = tuple(texts)
        self._sources = tuple(sources)
        self.made_up = made_up

    def __bool__(self) -> bool:
        return bool(self._texts)

    def contains(self, call: str, arguments: str = "") -> bool:
        """Whether a call, without the marks of its wrapper, occurs in one of the texts or in pieces of several.

        ``arguments``: its arguments as JSON text.
        """
        forms = [form.strip(_LIST_SEPARATORS) for form in normal_forms(call)]
        return any(map(self._find, forms)) or any(self._is_pieced(form, arguments) for form in forms)

    def may_contain(self, beginning: str) -> bool:
        """Whether a call that begins like this may occur in one of the texts or in pieces of several."""
        forms = [form.lstrip(_LIST_SEPARATORS) for form in normal_forms(cut_unfinished(beginning))]
        return any(map(self._find, forms)) or any(map(self._split, forms))

    def _find(self, part: str) -> bool:
        return any(part in text for text in self._texts)

    def _is_pieced(self, call: str, arguments: str) -> bool:
        """Whether a call consists of several pieces, and a place where two of them meet shows a quotation."""
        pieces = self._split(call)
        if len(pieces) < 2:
            return False
        last = call[pieces[-1].start :]
        if len(last) < MIN_PIECE and any(map(str.isalnum, last)):
            return pieces[-2].ends_text and pieces[-1].begins_text
        spans = list(self._find_values(call, arguments))
        return any(
            (first.ends_text and second.begins_text) or not any(_is_natural(first, second, span) for span in spans)
            for first, second in pairwise(pieces)
        )

    def _find_values(self, call: str, arguments: str) -> Iterator[range]:
        """Yield where the values that stand whole in a source stand in the call."""
        for value in _list_values(arguments):
            for form in normal_forms(value):
                at = call.find(form)
                if at >= 0 and any(form in text for text in self._sources):
                    yield range(at, at + len(form))

    def _split(self, call: str) -> list[_Piece]:
        """Split a call into pieces that stand in the sources, each as long as possible.

        A piece is from another text than those before it, or stands near to one of them. Returns [] for a call that
        does not consist of pieces.
        """
        texts, pieces, at = list(self._sources), list[_Piece](), 0
        near = range(len(texts))
        while at < len(call) and len(pieces) < MAX_PIECES:
            size, used = 0, 0
            for number in near:
                if at + size < len(call) and call[at : at + size + 1] in texts[number]:
                    size, used = _measure(call, at, size + 1, texts[number]), number
            part, is_last = call[at : at + size], at + size == len(call)
            if at and size < MIN_PIECE:
                alone = _FORM_SEPARATOR + part + ("" if is_last else _FORM_SEPARATOR)
                used = next((number for number in near if alone in texts[number]), used if is_last else -1)
            if not size or used < 0:
                return []
            text = texts[used]
            pieces.append(_Piece(at, at + size, _FORM_SEPARATOR + part in text, part + _FORM_SEPARATOR in text))
            at, found = at + size, text.find(part)
            texts[used] = text[max(0, found - MAX_GAP) : found + size + MAX_GAP]
            near = range(max(0, used - MAX_DISTANCE), min(len(texts), used + MAX_DISTANCE + 1))
        return pieces if at == len(call) else []


class _Piece(NamedTuple):
    """A piece of a call: where it stands in the call, and whether it begins or ends the text that it stands in."""

    start: int
    end: int
    begins_text: bool
    ends_text: bool


def _is_natural(first: _Piece, second: _Piece, value: range) -> bool:
    """Whether two pieces of a call meet there because this value of a meant call stands in a text.

    They meet in the value or at its edge, and the piece that holds the end of the value adds none of the notation on
    the other side of it, but for some brackets.
    """
    closed = value.stop + MIN_NOTATION
    if first.end == value.start:
        return second.end < closed
    return value.start < first.end < (closed if first.start >= value.start else value.stop + 1)


def _measure(call: str, at: int, size: int, text: str) -> int:
    """The size of the longest part of the call from ``at`` on that stands in the text; ``size`` is known to."""
    limit = len(call) - at
    while size < limit:
        middle = (size + limit + 1) // 2
        if call[at : at + middle] in text:
            size = middle
        else:
            limit = middle - 1
    return size


def _list_values(arguments: str) -> Iterator[str]:
    """Yield the values in the JSON text of arguments, those inside objects and lists too."""
    try:
        waiting = [json.loads(arguments, strict=False)]
    except ValueError:
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        else:
            yield value if isinstance(value, str) else json.dumps(value)


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

    def is_quotation(self, call: str, arguments: str = "") -> bool:
        """Whether the whole call is a quotation; ``arguments``: its arguments as JSON text."""
        return self._quotations.contains(call, arguments)


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
    found = {text: search.look(text) for text in texts if text}
    made_up = frozenset[str]().union(*(own for _, own in found.values() if own))
    if not any(normal for normal, _ in found.values()):
        return Quotations(made_up=made_up) if made_up else NO_QUOTATIONS
    recent, left = [], MAX_PIECED_CHARACTERS
    for text in reversed(found):
        left -= len(text)
        if left >= 0:
            recent.append(text)
    joined = filter(None, (join_encoded(first, second) for second, first in pairwise(recent)))
    marked = [normal for normal, _ in found.values() if normal]
    return Quotations([*marked, *map(_normalise, joined)], map(_normalise, recent), made_up)


class _Search:
    """Searches texts for call markup of certain tools. Plain substring search is the fastest by far."""

    def __init__(self, names: tuple[str, ...], shell: bool, marks: tuple[str, ...]) -> None:
        self.names = [strip_signs(name) for name in names]
        self.plain_marks = (*_BAR_MARKS, *(_SHELL_FENCES if shell else ()), *marks)
        self.key = hash((names, shell, marks))

    def look(self, text: str) -> tuple[str, frozenset[str]]:
        """Return the normal form of a text with markup, "" for a text without; and values of this project's own
        examples that occur in it."""
        key = (self.key, len(text), hash(text))
        views: list[str] = []
        if (known := _MARKED.get(key)) is None:
            views = list_views(text)
            marked = any(map(self._is_marked, views))
            if len(_MARKED) >= MAX_SEARCHED:
                _MARKED.clear()
            known = _MARKED[key] = marked, list_made_up(text)
        return (_normalise(text, views) if known[0] else ""), known[1]

    def _is_marked(self, view: str) -> bool:
        """Whether a text may hold a call, or a part of one."""
        stripped = strip_signs(view)
        if any(map(view.lower().__contains__, self.plain_marks)) or any(map(stripped.lower().__contains__, _MARKS)):
            return True
        names = [name for name in self.names if name in stripped]
        return bool(names) and any(map(_make_call_test(_FORM_SEPARATOR.join(normal_forms("\n" + view))), names))


def _normalise(text: str, views: Sequence[str] = ()) -> str:
    """Return the normal forms of all views of a text."""
    key = (len(text), hash(text))
    if (normal := _NORMAL_FORMS.get(key)) is None:
        forms = [form for view in views or list_views(text) for form in normal_forms("\n" + view)]
        normal = _FORM_SEPARATOR.join(["", *dict.fromkeys(forms), ""])
        _NORMAL_FORMS.add(key, normal)
    return normal


def _make_call_test(normal: str) -> Callable[[str], bool]:
    """Return a predicate: whether the tool of a name may be called in this text."""
    normal = replace_all(_STEP_NUMBERS, normal) if "ction" in normal else normal
    return lambda name: any(form in normal for form in _call_forms(name))


@lru_cache(maxsize=1024)
def _call_forms(name: str) -> tuple[str, ...]:
    return tuple(form.format(name) for form in _CALL_FORMS)


_search_for = lru_cache(maxsize=64)(_Search)

_MARKED: dict[tuple[int, int, int], tuple[bool, frozenset[str]]] = {}
_NORMAL_FORMS: Final[TextCache[tuple[int, int]]] = TextCache(MAX_CACHED_CHARACTERS)

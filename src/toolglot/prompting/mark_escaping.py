"""Marks in quoted text made harmless, and exactly restorable.

Strategy. A tool's result or a user's text may hold marks that the reader would execute if the model repeated them, or
that a chat template takes for its own. One invisible character that occurs nowhere in the conversation is put behind
the first character of every such mark. The mark then is none, for reader and tokenizer alike, and looks the same to the
model. Whoever deletes that character from what the model writes (after reading it) has the original bytes again.

All dialects are covered, because the reader reads all of them. Marks that are ordinary text count only together with
the name of a tool (``named_marks``). One expression per dialect finds all others, and nothing is compiled for a name.
Where the marks of a text are is remembered: clients send their history again with every turn.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from itertools import pairwise
from sys import maxsize

from toolglot.core.provenance import INVISIBLE
from toolglot.core.windowed_search import LONGEST, find_all, search
from toolglot.dialects.codecs.tagged_parameters import TaggedParameters
from toolglot.dialects.mark_templates import expression
from toolglot.dialects.spec import Commitment, Dialect, Position
from toolglot.prompting.named_calls import LED, NamedCalls, Span
from toolglot.reading.reader import dialect_index

_PRIVATE = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))
_REMEMBERED = 1 << 14
"""So many texts are known again, whoever sent them."""
_MOST_PLACES = 1 << 19
"""So many places of marks in them are kept."""
_SHORT = 64
"""Shorter texts are looked at again: that is as quick as to know them again."""

_CONTROL = (
    r"<[|｜](?=[\w/\"▁])",
    r"</?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_image|tool_response|think|thinking)\b",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|ARGS|CALL_ID|TOOL_CONTENT|THINK)\]",
    r"<</?SYS>>",
    r"<arg_key\b",
    r"\]~b\]",
    r"\[e~\[",
)
"""Marks of chat templates, whichever dialect is spoken."""

_EVERYWHERE = ("{{", "[{before_object}", "[{before_pair}", "{command}", "<{name}>", "[")
"""Headers and wrappers that are too common to be marks by themselves."""


def choose_joiner(texts: Iterable[str]) -> str:
    """An invisible character that is in none of the texts."""
    telling = [text for text in texts if not text.isascii()]
    for char in INVISIBLE:
        if not any(char in text for text in telling):
            return char
    present: set[str] = set().union(*telling)
    return next((char for char in map(chr, _PRIVATE) if char not in present), INVISIBLE[0])


_NOWHERE = array("Q")
"""The places of a text without marks, shared by all such texts."""


class _Places:
    """Where the marks of texts are, by a digest of the text. All of them are forgotten when there are too many."""

    def __init__(self) -> None:
        self._known: dict[bytes, array[int]] = {}
        self._size = 0

    def get(self, digest: bytes) -> array[int] | None:
        return self._known.get(digest)

    def add(self, digest: bytes, places: array[int]) -> None:
        self._size += len(places)
        if len(self._known) >= _REMEMBERED or self._size > _MOST_PLACES:
            self._known, self._size = {}, len(places)
        if len(places) <= _MOST_PLACES:
            self._known[digest] = places or _NOWHERE


_PLACES = _Places()


class MarkEscaper:
    """The marks of all dialects, where one is spoken and tools have these names."""

    def __init__(self, dialect: str, names: tuple[str, ...]) -> None:
        self._pattern, self._floating, named = _compile(dialect)
        self._named = NamedCalls(names, named)
        self._digest = sha256("\0".join((dialect, *names)).encode("utf-8", "surrogatepass")).digest()

    def are_in(self, text: str) -> bool:
        """Whether there is something to neutralise."""
        return len(self.find(text)) > 0

    def find(self, text: str) -> Sequence[int]:
        """Where the joiner belongs: behind the first character of every mark."""
        if len(text) < _SHORT:
            return self._search(text)
        digest = sha256(self._digest + text.encode("utf-8", "surrogatepass")).digest()[:16]
        places = _PLACES.get(digest)
        if places is None:
            places = self._search(text)
            _PLACES.add(digest, places)
        return places

    def neutralise(self, text: str, joiner: str) -> str:
        """The text with the joiner behind the first character of every mark."""
        places = self.find(text)
        return joiner.join([text[start:end] for start, end in pairwise((0, *places, len(text)))]) if places else text

    def _search(self, text: str) -> array[int]:
        """Every mark, the leftmost first, where none begins inside another."""
        places = array("Q")
        spans = sorted([*self._named.find(text), *self._find_floating(text)])
        at, next_span = 0, 0
        found = search(self._pattern, text)
        while True:
            while next_span < len(spans) and spans[next_span].last < at:
                next_span += 1
            span = spans[next_span] if next_span < len(spans) else _NO_SPAN
            start = max(at, span.first)
            rank = 0 if found is not None and found.lastindex is not None else 2
            if found is not None and (found.start(), rank) <= (start, span.rank):
                places.append(found.start() + 1)
                at = found.end()
            elif span is not _NO_SPAN:
                places.append(start + 1)
                at = span.end
            else:
                return places
            if found is not None and found.start() < at:
                found = search(self._pattern, text, at)

    def _find_floating(self, text: str) -> Iterator[Span]:
        """Marks that begin with any blanks."""
        for word, pattern in self._floating:
            for found in find_all(pattern, text) if word in text else ():
                at = found.start()
                before = text[max(0, at - LONGEST) : at]
                yield Span(at - len(before) + len(before.rstrip()), at, 2, found.end())


_NO_SPAN = Span(maxsize, maxsize, 9, maxsize)


@lru_cache(maxsize=64)
def find_marks(dialect: str, names: tuple[str, ...]) -> MarkEscaper:
    return MarkEscaper(dialect, names)


_Compiled = tuple[re.Pattern[str], tuple[tuple[str, re.Pattern[str]], ...], tuple[str, ...]]


@cache
def _compile(dialect: str) -> _Compiled:
    """What finds the marks of a dialect: an expression, others for marks behind blanks with a word that they hold, and
    the marks that hold the name of a tool. A group in the expression says that it is the mark of a chat template."""
    every = _templates(dialect_index().by_name[dialect])
    templates = dict.fromkeys(template for template in every if len(template.strip()) > 2)
    named = [template for template in templates if "{name}" in template and template != LED]
    floating = [template.lstrip() for template in templates if template[0].isspace()]
    plain = [template for template in templates if "{name}" not in template and not template[0].isspace()]
    return (
        re.compile("|".join((*(f"{mark}()" for mark in _CONTROL), *_branch(plain, {})))),
        tuple((template.partition("{")[0], re.compile(expression(template))) for template in floating),
        tuple(named),
    )


def _branch(templates: Iterable[str], slots: Mapping[str, str]) -> list[str]:
    """Alternatives that share their beginnings, so that each character is looked at once."""
    groups: dict[str, list[str]] = {}
    rest: list[str] = []
    for template in templates:
        if not template:
            return [""]
        if template[0] in "{} \n":
            rest.append(expression(template, slots))
        else:
            groups.setdefault(template[0], []).append(template[1:])
    return [re.escape(head) + _choice(_branch(tails, slots)) for head, tails in groups.items()] + rest


def _choice(alternatives: list[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


def _templates(spoken: Dialect) -> Iterator[str]:
    """Everything that may open a call, of all dialects; and what closes calls and results in the spoken one."""
    for record in dialect_index().dialects:
        yield from _wrappers(record)
        yield from _headers(record)
        for region in record.regions:
            yield from (*region.open, *region.close)
        yield from (result for result in record.results if not result[0].isalpha() or record is spoken)
    yield from _closers(spoken)


def _wrappers(record: Dialect) -> Iterator[str]:
    for wrap in record.wrap:
        if wrap.commitment is Commitment.MARKED or wrap.open[0].startswith("```tool"):
            yield from (opener for opener in wrap.open if not _rests_on_control(opener))


def _headers(record: Dialect) -> Iterator[str]:
    """The headers that count outside a wrapper; behind a mark that is never ordinary text, with any name."""
    for call in record.calls:
        for header in call.header if call.place is not Position.WRAPPED else ():
            if header in _EVERYWHERE or _rests_on_control(header) or record.commitment is Commitment.ALONE:
                continue
            if record.commitment is Commitment.MARKED and not header.startswith("{name"):
                header = header.replace("{name}", "{key}").replace("{name_id}", "{id}")
            yield header


def _rests_on_control(header: str) -> bool:
    """Whether the first thing of a header is ordinary text, and what makes it a mark is harmless already."""
    return header[0] not in "<[" and any(mark in header for mark in ("<|", "[ARGS]", "{before_arg_key}"))


def _closers(record: Dialect) -> Iterator[str]:
    """What closes calls, parameters and results, and opens parameters."""
    for wrap in record.wrap:
        yield from wrap.close if wrap.commitment is Commitment.MARKED else ()
    yield from (close for close in record.call.close if "{key}" not in close and close != "```")
    body = record.call.body
    if isinstance(body, TaggedParameters) and not body.parameters[0].is_element:
        yield body.parameters[0].open
        yield from (close for close in body.parameters[0].close if close != "</{key}>")
    yield from re.findall(r"<[^<>{}\n]{2,40}>", record.returns)

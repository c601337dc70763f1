"""Marks in quoted text made harmless, and exactly restorable.

Strategy. A tool's result or a user's text may hold marks that the reader would execute if the model repeated them, or
that a chat template takes for its own. One invisible character that occurs nowhere in the conversation is put behind
the first character of every such mark. The mark then is none, for reader and tokenizer alike, and looks the same to the
model. Whoever deletes that character from what the model writes (after reading it) has the original bytes again.

All dialects are covered, because the reader reads all of them. Marks that are ordinary text count only together with
the name of a tool. One expression per set of names finds everything in one pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from itertools import groupby

from toolglot.codecs.markup import Markup
from toolglot.dialect import Commitment, Dialect, Place
from toolglot.pattern import expression
from toolglot.provenance import INVISIBLE
from toolglot.reading import vocabulary

_PRIVATE = (*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE))
_REMEMBERED = 1 << 16
"""Clients send their history again with every turn: so many texts without marks are known again, whoever sent them."""
_UNMARKED: set[bytes] = set()
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

_NAMED = (
    r"</?{known}>",
    r"\[\s*(?:print\()?{called}\s?\(",
    r":\s*[\"']\s*{called}",
    r"Call:\s*{called}",
)
"""What calls a tool without any mark: its tag, a list of Python calls, JSON that has its name for a value."""

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


class Marks:
    """The marks of all dialects, where one is spoken and tools have these names."""

    def __init__(self, dialect: str, names: tuple[str, ...]) -> None:
        self.pattern = _compile(dialect, names)
        self.digest = sha256(self.pattern.pattern.encode("utf-8", "surrogatepass")).digest()

    def are_in(self, text: str) -> bool:
        """Whether there is something to neutralise."""
        if len(text) < _SHORT:
            return self.pattern.search(text) is not None
        digest = sha256(self.digest + text.encode("utf-8", "surrogatepass")).digest()
        if digest in _UNMARKED:
            return False
        if self.pattern.search(text) is not None:
            return True
        if len(_UNMARKED) >= _REMEMBERED:
            _UNMARKED.clear()
        _UNMARKED.add(digest)
        return False

    def find(self, text: str) -> list[int]:
        """Where the joiner belongs: behind the first character of every mark."""
        return [found.start() + 1 for found in self.pattern.finditer(text)]

    def neutralise(self, text: str, joiner: str) -> str:
        """The text with the joiner behind the first character of every mark."""
        return self.pattern.sub(lambda found: found[0][0] + joiner + found[0][1:], text)


@lru_cache(maxsize=64)
def find_marks(dialect: str, names: tuple[str, ...]) -> Marks:
    return Marks(dialect, names)


def _compile(dialect: str, names: tuple[str, ...]) -> re.Pattern[str]:
    known = "(?:" + ("|".join(map(_spell, names)) or "(?!)") + ")"
    called = rf"(?:\w{{1,64}}[.:]){{0,4}}{known}"
    slots = {"name": called, "name_id": rf"{called}[:\d]*"}
    every = _templates(vocabulary().by_name[dialect])
    templates = dict.fromkeys(template for template in every if len(template.strip()) > 2)
    alternatives = _branch([template for template in templates if template[0] != "{"], slots)
    # a name that stands before its mark is the mark
    led = "|".join(expression(template.partition("}")[2], slots) for template in templates if template[0] == "{")
    # the search is several times as fast where every alternative begins with a character that is known
    for first, group in groupby(sorted(names), key=lambda name: name[0]):
        rest = "|".join(_spell(name[1:]) for name in group)
        alternatives.append(rf"{_spell(first)}(?:{rest})[:\d]*(?:{led})")
        # a Python call counts only at the start of a line
        alternatives.append(rf"{_spell(first)}(?<![^\n].)(?:{rest}) ?\(")
    return re.compile(
        "|".join((*_CONTROL, *(rule.format(known=known, called=called) for rule in _NAMED), *alternatives))
    )


def _spell(name: str) -> str:
    """A name as models write it: some escape what Markdown would take for emphasis."""
    return re.escape(name).replace("_", r"\\*_")


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
    for record in vocabulary().dialects:
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
        for header in call.header if call.place is not Place.WRAPPED else ():
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
    if isinstance(body, Markup) and not body.parameters[0].is_element:
        yield body.parameters[0].open
        yield from (close for close in body.parameters[0].close if close != "</{key}>")
    yield from re.findall(r"<[^<>{}\n]{2,40}>", record.returns)

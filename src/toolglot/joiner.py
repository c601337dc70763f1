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
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from toolglot.codecs.markup import Markup
from toolglot.dialect import Commitment, Dialect, Place
from toolglot.pattern import expression
from toolglot.reading import vocabulary

_CANDIDATES = "\u2060\u2063\u2062\u2064\u200b\u200c\u200d\ufeff\u180e\u034f\u00ad"
_PRIVATE = range(0xE000, 0xF8FF)

_CONTROL = (
    r"<[|｜](?=[\w/\"▁])",
    r"</?(?:s|bos|eos|start_of_turn|end_of_turn|start_of_image|tool_response|think|thinking)\b",
    r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|ARGS|CALL_ID|TOOL_CONTENT|THINK)\]",
    r"<</?SYS>>",
    r"\]~b\]",
    r"\[e~\[",
)
"""Marks of chat templates, whichever dialect is spoken."""

_EVERYWHERE = ("{{", "[{before_object}", "{command}", "<{name}>", "[")
"""Headers and wrappers that are too common to be marks by themselves."""


def choose_joiner(texts: Iterable[str]) -> str:
    """An invisible character that is in none of the texts."""
    present: set[str] = set().union(*(text for text in texts if not text.isascii()))
    candidates: tuple[str, ...] = (*_CANDIDATES, *map(chr, _PRIVATE))
    return next(char for char in candidates if char not in present)


def neutralise(text: str, dialect: str, names: Collection[str], joiner: str) -> str:
    """The text with the joiner behind the first character of every mark."""
    for marks in _compile(dialect, tuple(sorted(names))):
        text = marks.sub(lambda found: found[0][0] + joiner + found[0][1:], text)
    return text


@lru_cache(maxsize=64)
def _compile(dialect: str, names: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    known = "|".join(re.escape(name).replace("_", r"\\*_") for name in names) or "(?!)"
    fixed: dict[str, list[str]] = {}
    loose: list[str] = []
    for template in dict.fromkeys(_templates(vocabulary().by_name[dialect])):
        found = expression(template, {"name": rf"(?:\w+[.:])?(?:{known})", "name_id": rf"[\w.:]*(?:{known})[:\d]*"})
        head = template[:1]
        (loose if head in "{ " or head.isalnum() else fixed.setdefault(head, [])).append(found)
    fixed.setdefault("<", []).append(rf"</?(?:{known})>")
    fixed.setdefault("[", []).append(rf"\[\s*(?:print\()?(?:\w+\.)?(?:{known})\s?\(")
    fixed.setdefault(":", []).append(rf":\s*[\"']\s*(?:\w+[.:])?(?:{known})")
    loose.append(rf"(?:{known})\s?\((?=[^\n]*<bot_end>)")
    branches = ["|".join(options) for options in fixed.values()]
    return re.compile("|".join([*_CONTROL, *branches])), re.compile(rf"(?<!\w)(?:{'|'.join(loose)})")


def _templates(spoken: Dialect) -> Iterator[str]:
    """Everything that may open a call, of all dialects; and what closes calls and results in the spoken one."""
    for record in vocabulary().dialects:
        marked = record.commitment is Commitment.MARKED
        for wrap in record.wrap:
            if wrap.commitment is Commitment.MARKED or wrap.open[0].startswith("```tool"):
                yield from wrap.open
        for call in record.calls:
            for header in call.header if call.place is not Place.WRAPPED else ():
                if header not in _EVERYWHERE:
                    yield _any_name(header) if marked and not header.startswith("{name") else header
        for region in record.regions:
            yield from (*region.open, *region.close)
        yield from (result for result in record.results if not result[0].isalpha() or record is spoken)
    yield from _closers(spoken)


def _any_name(header: str) -> str:
    """Behind a mark that is never ordinary text, a tool nobody offered counts too."""
    return header.replace("{name}", "{key}").replace("{name_id}", "{id}")


def _closers(record: Dialect) -> Iterator[str]:
    closers = [close for wrap in record.wrap for close in wrap.close if wrap.commitment is Commitment.MARKED]
    body = record.call.body
    if isinstance(body, Markup):
        parameter = body.parameters[0]
        closers += [parameter.open, *parameter.close] if not parameter.is_element else []
    for close in (*closers, *record.call.close):
        if len(close.strip()) > 2 and "{key} >" not in close and close != "```":
            yield close
    for piece in re.split(r"\{\w+\}", record.returns):
        for mark in re.findall(r"<[^<>\n]{2,40}>", piece):
            yield mark.replace("{", "{{").replace("}", "}}")

"""Marks in earlier answers that a model must not imitate: calls in another dialect, and tool results.

Strategy. An earlier answer may hold call markup as text: a call that was delivered as text because another model, or a
server without a parser, wrote it in another dialect; or a tool result that the model made up. A model imitates its own
earlier answers more than its prompt. So the marks of such calls and results get the break character, as in quoted text
(``mark_escaping``). Calls in the dialect of the prompt stay as they are. The reader decides what is a call; most
answers have no mark at all and are not read. Positions are cached, because clients resend their history.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256

from toolglot.core.conversation import Tools
from toolglot.core.events import Reason
from toolglot.core.schema.toolset import compile_tools
from toolglot.core.windowed_search import find_all
from toolglot.dialects.mark_templates import template_regex
from toolglot.prompting.mark_escaping import MarkEscaper, PositionCache
from toolglot.reading.reader import dialect_index, read

_CACHE = PositionCache()


def find_imitable_marks(text: str, dialect: str, tools: Tools, escaper: MarkEscaper) -> Sequence[int]:
    """Where the break character belongs in an earlier answer.

    Parameters: ``dialect`` is that of the prompt, ``tools`` those that it describes; ``escaper`` finds all marks.
    """
    positions = escaper.find_positions(text)
    if not positions:
        return positions
    names = "\0".join((dialect, *(tool.name for tool in tools), text))
    digest = sha256(names.encode("utf-8", "surrogatepass")).digest()[:16]
    known = _CACHE.get(digest)
    if known is None:
        known = _CACHE.add(digest, _select(text, dialect, tools, positions))
    return known


def _select(text: str, dialect: str, tools: Tools, positions: Sequence[int]) -> Iterator[int]:
    """The positions of marks that are in a call of another dialect or begin a result."""
    spans = sorted(_find_spans(text, dialect, tools))
    results = {found.start() + 1 for found in find_all(_compile_results(dialect), text)}
    at = 0
    for position in positions:
        while at < len(spans) and spans[at][1] < position:
            at += 1
        if position in results or (at < len(spans) and spans[at][0] < position):
            yield position


def _find_spans(text: str, dialect: str, tools: Tools) -> Iterator[tuple[int, int]]:
    reading = read(text, compile_tools(tools, ()), dialect)
    for call in reading.calls:
        if call.span is not None and call.dialect not in ("", dialect):
            yield call.span
    for rejected in reading.rejected:
        made_up = rejected.reason is Reason.FABRICATED_RESULT
        if rejected.span is not None and (made_up or rejected.dialect not in ("", dialect)):
            yield rejected.span


@cache
def _compile_results(dialect: str) -> re.Pattern[str]:
    """The marks of results; those that are ordinary words count only for the dialect of the prompt."""
    templates = {
        mark
        for spec in dialect_index().dialects
        for mark in spec.results
        if not mark[0].isalpha() or spec.name == dialect
    }
    return re.compile("|".join(map(template_regex, sorted(templates, key=len, reverse=True))))

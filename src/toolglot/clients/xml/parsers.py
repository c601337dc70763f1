"""Find calls in a message as the clients do: ports of two parsers, in linear time.

Strategy. Both clients check at every character whether a tag ends there. Tags are literal strings without attributes,
so this port searches for the next relevant tag instead. There are three states: in text (the opening tag of a tool is
relevant), in a tool (the opening tag of any parameter and the closing tag of the tool), in a parameter (only its
closing tag). Neither parser knows code fences, quotes or escapes.

- ``parse_roo``: Roo 3.25 and later, Kilo. A parameter that exceeds the limit is abandoned, and the following text is
  parsed as if it were in the tool. In ``write_to_file`` every closing tag of ``content`` outside a parameter extends
  the content from the first opening tag to that point.
- ``parse_cline``: Cline until 3.89 and its later legacy parts. There is no limit, every value is trimmed, and the
  content of ``write_to_file`` reaches from the first opening to the last closing tag before the end of the tool.

Anything still open at the end of the text is returned as it is; the client runs it when the stream ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from msgspec import Struct, field

from toolglot.clients.xml.profile import JS_WHITESPACE, XmlBlock, XmlCallBlock, XmlTextBlock
from toolglot.core.uncached_regex import compile_uncached

WRITE_TOOL, CONTENT_TAG = "write_to_file", "content"
CONTENT_OPENER, CONTENT_CLOSER = "<content>", "</content>"


class TagGrammar(Struct, frozen=True, kw_only=True):
    """The tags of one client. A parameter tag counts in every tool, whichever tool it belongs to."""

    tools: frozenset[str]
    parameters: frozenset[str]
    untrimmed: frozenset[str] = frozenset()
    """Parameters that lose one line break at each end instead of all whitespace."""
    max_value_length: int = 0
    """Largest length of a value with its closing tag, in UTF-16 units; 0: no limit."""


def utf16_length(text: str) -> int:
    """Length in UTF-16 units, as JavaScript counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def trim_value(grammar: TagGrammar, name: str, text: str) -> str:
    if name in grammar.untrimmed:
        return text.removeprefix("\n").removesuffix("\n")
    return text.strip(JS_WHITESPACE)


@lru_cache(maxsize=64)
def compile_openers(names: frozenset[str]) -> re.Pattern[str]:
    """Pattern for the opening tags of these names; group 1 is the name."""
    return compile_uncached(f"<({_join_names(names)})>")


@lru_cache(maxsize=512)
def _compile_inside(parameters: frozenset[str], tool: str) -> re.Pattern[str]:
    """Pattern for the relevant tags in a tool: opening parameter tags, its own closing tag, and for ``write_to_file``
    the closing tag of its content."""
    also = rf"|(?P<rest></{CONTENT_TAG}>)" if tool == WRITE_TOOL else ""
    return compile_uncached(f"<(?P<opened>{_join_names(parameters)})>|(?P<end></{re.escape(tool)}>){also}")


def _join_names(names: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name))))


class _OpenCall(Struct):
    """A call being parsed: where its inside starts, and the values found."""

    name: str
    start: int
    tags: dict[str, str] = field(default_factory=dict)

    def close(self, partial: bool = False) -> XmlCallBlock:
        return XmlCallBlock(self.name, {}, partial, self.tags)


def parse_roo(grammar: TagGrammar, text: str) -> list[XmlBlock]:
    return _parse(grammar, text, _parse_roo_call)


def parse_cline(grammar: TagGrammar, text: str) -> list[XmlBlock]:
    return _parse(grammar, text, _parse_cline_call)


def _parse(grammar: TagGrammar, text: str, walk: Callable[[TagGrammar, str, _OpenCall], int]) -> list[XmlBlock]:
    blocks: list[XmlBlock] = []
    opener, pos = compile_openers(grammar.tools), 0
    while found := opener.search(text, pos):
        _add_text(blocks, text[pos : found.start()])
        tool = _OpenCall(found[1], found.end())
        pos = walk(grammar, text, tool)
        blocks.append(tool.close(partial=pos < 0))
        if pos < 0:
            return blocks
    _add_text(blocks, text[pos:])
    return blocks


def _add_text(blocks: list[XmlBlock], text: str) -> None:
    if text := text.strip(JS_WHITESPACE):
        blocks.append(XmlTextBlock(text))


class CallEndFinder:
    """Finds the end of a call whose text arrives in pieces, starting after its opening tag.

    It has the states of the parsers: in the tool, or in a parameter. It buffers no more text than the longest tag.
    """

    def __init__(self, grammar: TagGrammar, tool: str) -> None:
        self.max_value_length = grammar.max_value_length
        self.inside = _compile_inside(grammar.parameters, tool)
        self.text = ""
        self.pos = 0
        self.left = 0
        self.closer = ""
        self.units = 0
        """UTF-16 units of the open value that ``text`` no longer holds."""

    def feed(self, piece: str) -> int:
        """Feed the next piece.

        Returns:
            How many of its characters belong to the call if the call ends in it, else -1.
        """
        self.text += piece
        while True:
            if self.closer:
                if not self._pass_value():
                    return -1
                continue
            found = self.inside.search(self.text, self.pos)
            if found is None:
                self._forget(max(self.pos, len(self.text) - _LONGEST_TAG))
                return -1
            self.pos = found.end()
            if self.pos <= self.left:
                continue
            if found["end"]:
                return len(piece) - len(self.text) + self.pos
            if found["opened"]:
                self.closer, self.units = f"</{found['opened']}>", 0

    def _pass_value(self) -> bool:
        """Whether the open value ends in the buffered text, or is abandoned there because it is too long."""
        start, longest = self.pos, self.max_value_length
        within = start + longest if longest else len(self.text)
        end = self.text.find(self.closer, start, within)
        stop = end + len(self.closer)
        if end >= 0 and (not longest or self.units + utf16_length(self.text[start:stop]) <= longest):
            self.pos, self.closer = stop, ""
            return True
        if longest and self.units + utf16_length(self.text[start : within + 1]) > longest:
            cut = start + _count_fitting(self.text[start : within + 1], longest - self.units)
            self.pos, self.left, self.closer = max(start, cut + 1 - _LONGEST_TAG), cut + 1, ""
            return True
        kept = max(start, len(self.text) - _LONGEST_TAG)
        self.units += utf16_length(self.text[start:kept]) if longest else 0
        self._forget(kept)
        return False

    def _forget(self, size: int) -> None:
        """Discard the text before ``size`` and continue at the new beginning."""
        self.text, self.pos, self.left = self.text[size:], 0, max(0, self.left - size)


def _parse_roo_call(grammar: TagGrammar, text: str, tool: _OpenCall) -> int:
    """Parse to the end of the call; its position, or -1 if it is not closed."""
    inside, pos, left = _compile_inside(grammar.parameters, tool.name), tool.start, 0
    rescued: tuple[int, int] | None = None
    while found := inside.search(text, pos):
        pos = found.end()
        if pos <= left:
            continue
        if found["end"]:
            _store_content(grammar, text, tool, rescued)
            return pos
        name = found["opened"]
        if name is None:
            rescued = _extend_content(text, tool, found.start(), rescued)
            continue
        if name == CONTENT_TAG:
            rescued = None
        pos, left = _parse_value(grammar, text, tool, name, pos)
        if pos < 0:
            break
    _store_content(grammar, text, tool, rescued)
    return -1


def _parse_value(grammar: TagGrammar, text: str, tool: _OpenCall, name: str, start: int) -> tuple[int, int]:
    """Parse one value. Returns the position to continue at, or -1 at the end of the text; and the end of an abandoned
    part that was too long."""
    closer, longest = f"</{name}>", grammar.max_value_length
    end = text.find(closer, start, start + longest)
    stop = end + len(closer)
    if end >= 0 and utf16_length(text[start:stop]) <= longest:
        tool.tags[name] = trim_value(grammar, name, text[start:end])
        return stop, 0
    cut = start + _count_fitting(text[start : start + longest + 1], longest)
    if cut > start:
        tool.tags[name] = text[start:cut]
    if cut == len(text):
        return -1, 0
    # a tag that begins before the cut and ends after it still counts
    return max(start, cut + 1 - _LONGEST_TAG), cut + 1


_LONGEST_TAG = 64


def _count_fitting(text: str, longest: int) -> int:
    """Number of characters that fit into so many UTF-16 units."""
    if utf16_length(text) <= longest:
        return len(text)
    units = 0
    for at, character in enumerate(text):
        units += 1 + (character > "\uffff")
        if units > longest:
            return at
    return len(text)


def _extend_content(text: str, tool: _OpenCall, end: int, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Range of the content from its first opening tag to ``end``."""
    if before is not None:
        return before[0], end
    first = text.find(CONTENT_OPENER, tool.start, end)
    # without an opening tag the client computes from indexOf() == -1
    lead = len(CONTENT_OPENER) - 1
    start = (
        first + len(CONTENT_OPENER)
        if first >= 0
        else tool.start + _count_fitting(text[tool.start : tool.start + lead], lead)
    )
    return (start, end) if end > start else None


def _store_content(grammar: TagGrammar, text: str, tool: _OpenCall, rescued: tuple[int, int] | None) -> None:
    if rescued is not None:
        tool.tags[CONTENT_TAG] = trim_value(grammar, CONTENT_TAG, text[slice(*rescued)])


def _parse_cline_call(grammar: TagGrammar, text: str, tool: _OpenCall) -> int:
    """Parse to the end of the call; its position, or -1 if it is not closed."""
    inside, pos = _compile_inside(grammar.parameters, tool.name), tool.start
    while found := inside.search(text, pos):
        pos = found.end()
        if found["end"]:
            _widen_content(grammar, text, tool, found.start())
            return pos
        if (name := found["opened"]) is None:
            continue
        end = text.find(f"</{name}>", pos)
        tool.tags[name] = trim_value(grammar, name, text[pos:end] if end >= 0 else text[pos:])
        if end < 0:
            break
        pos = end + len(name) + 3
    return -1


def _widen_content(grammar: TagGrammar, text: str, tool: _OpenCall, end: int) -> None:
    if tool.name != WRITE_TOOL:
        return
    first, last = text.find(CONTENT_OPENER, tool.start, end), text.rfind(CONTENT_CLOSER, tool.start, end)
    if 0 <= first < last:
        tool.tags[CONTENT_TAG] = trim_value(grammar, CONTENT_TAG, text[first + len(CONTENT_OPENER) : last])

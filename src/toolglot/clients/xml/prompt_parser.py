"""Parse the system prompt of an XML client, and reduce it for a model with native tools.

Strategy. Split the prompt at headings and rules. Remove and parse the sections that teach the call format
(``FORMAT_SECTIONS``), and the tool lists of connected servers, because those tools are offered one by one. In the
remainder, drop sentences about the format and replace each example by one line. All of that ends at the user's own
instructions, which are never changed. Role, rules and environment stay unchanged. A section inside an element
(``<transcript>``) is a quotation. Clients send the same prompt with every turn, so results are cached.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from msgspec import Struct

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.prompt_sections import (
    AVAILABLE_TOOLS,
    DocumentedTool,
    ServerTool,
    find_fences,
    parse_bold,
    parse_headed,
    parse_servers,
)

MAX_PROMPT_LENGTH: Final = 1 << 20
"""A longer text is no client prompt and is not parsed."""
CACHED_PROMPTS: Final = 64
HEADED_SECTIONS: Final = frozenset(("# Tools", "# Custom Tools"))
BOLD_SECTIONS: Final = frozenset(("## TOOLS",))
SERVERS_SECTION: Final = "# Connected MCP Servers"
FORMAT_SECTIONS: Final = HEADED_SECTIONS | BOLD_SECTIONS | {"# Tool Use Formatting", "# Tool Use Examples"}
_USER_INSTRUCTIONS: Final = re.compile(r"^USER'S CUSTOM INSTRUCTIONS", re.M)
_RULE: Final = "===="
_HEADING_OR_OPENER: Final = re.compile(r"^(?:====|##? |[ \t]*(?:<\w+>|```)).*", re.M)
"""Lines that may be headings, or open something that has no headings inside."""
_EXAMPLE: Final = re.compile(r"[ \t]*<(\w+)>[ \t]*")
_SENTENCE: Final = re.compile(r".+?(?:[.!?](?=\s|$)\s*|$)")
_EMPTY_BULLET: Final = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]*$")
_CALL_FORMAT: Final = re.compile(
    r"\bXML(?:[- ]style|[- ]format\w*| form\b| tags?\b| blocks?\b| structure\b| syntax\b)"
    r"|\b(?:malformed|tool) XML\b|\btag name\b",
    re.I,
)
"""Phrases about the call format. XML as such may be the topic of the work."""
_REQUIRES_TOOL: Final = re.compile(
    r"\b(?:every|each) (?:assistant )?message must (?:include|use|contain|make) "
    r"(?:(?:an?|any|one|at least|exactly|the|use|call|of|to) )*tool\b",
    re.I,
)
_AFTER_ROLE: Final = re.compile(r"^(?:====|TOOL USE\b|#)", re.M)
_INFORMATION: Final = re.compile(r"^(?:## )?SYSTEM INFORMATION\b.*(?:\n(?!====|##? ).*)*", re.M)
_TOOLS: Final = re.compile(r"^##? (?:Tools|TOOLS)[ \t]*$", re.M)
_TAGGED: Final = re.compile(r"</?([\w.-]+)>")
_ELEMENT: Final = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w.:-]*)(?: [^<>\n]{0,200})?>")


class ClientPrompt(Struct, frozen=True):
    """A parsed prompt. ``rest``: what remains for a model with native tools; ``demands``: every message must call a
    tool; ``sections``: headings under which tools are documented."""

    rest: str
    documents: tuple[DocumentedTool, ...] = ()
    servers: tuple[ServerTool, ...] = ()
    demands: bool = False
    sections: frozenset[str] = frozenset()


@lru_cache(maxsize=CACHED_PROMPTS)
def parse_prompt(text: str) -> ClientPrompt:
    """Parse a prompt. Without documented tools, ``rest`` is the whole text."""
    if len(text) > MAX_PROMPT_LENGTH:
        return ClientPrompt(text)
    client_text, own = split_user_instructions(text)
    documents: dict[str, DocumentedTool] = {}
    servers: list[ServerTool] = []
    kept: list[str] = []
    titles: set[str] = set()
    quotes = _QuotedElements(client_text + own)
    at = 0
    for title, section in _split_sections(client_text):
        if quotes.hold(at):
            title = ""
        at += len(section)
        for document in _parse_documents(title, section):
            documents.setdefault(document.name, document)
            titles.add(title)
        if title == SERVERS_SECTION:
            servers += parse_servers(section)
            section = _remove_tool_lists(section)
        if title not in FORMAT_SECTIONS:
            kept.append(section)
    if not documents:
        return ClientPrompt(text)
    rest = _remove_format_text("".join(kept), frozenset(documents)) + own
    return ClientPrompt(rest, tuple(documents.values()), tuple(servers), _requires_tool(client_text), frozenset(titles))


def split_user_instructions(text: str) -> tuple[str, str]:
    """Split a prompt into the part of the client, with LF line ends, and the user's instructions, unchanged."""
    own = _USER_INSTRUCTIONS.search(text)
    at = own.start() if own else len(text)
    return text[:at].replace("\r\n", "\n"), text[at:]


def _requires_tool(text: str) -> bool:
    return "message must" in text and _REQUIRES_TOOL.search(text) is not None


def _parse_documents(title: str, section: str) -> Iterator[DocumentedTool]:
    if title in HEADED_SECTIONS:
        yield from parse_headed(section, _known_tools())
    elif title in BOLD_SECTIONS:
        yield from parse_bold(section, _known_tools())


@cache
def _known_tools() -> frozenset[str]:
    """The tools of all clients."""
    return frozenset(name for client in all_clients().values() for name in client.tools)


# -- sections ----------------------------------------------------------------------------------------------------------


def _split_sections(text: str) -> Iterator[tuple[str, str]]:
    """Split a text into sections with their headings; joined they give the text again. Fences and examples have no
    headings inside."""
    title, begun, at = "", 0, 0
    closers = _CloserIndex(text)
    while (line_start := _HEADING_OR_OPENER.search(text, at)) is not None:
        line = line_start[0].rstrip()
        if _starts_section(title, line):
            yield title, text[begun : line_start.start()]
            title, begun = line, line_start.start()
        at = closers.skip(line, line_start.start(), min(line_start.end() + 1, len(text)))
    yield title, text[begun:]


def _starts_section(title: str, line: str) -> bool:
    """Whether a line starts a new section. Second-level headings count only where sections use them."""
    if line == _RULE or line.startswith("# "):
        return True
    return line.startswith("## ") and (line in BOLD_SECTIONS or title in BOLD_SECTIONS)


class _CloserIndex:
    """Index of closing marks, each searched for once per position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[str, int] = {}
        self.tags: dict[str, list[int]] = {}
        for tag in re.finditer(r"\n</(\w+)>", text):
            self.tags.setdefault(tag[1], []).append(tag.start())
        tools = _TOOLS.search(text)
        self.fences = dict(find_fences(text, _fence_borders(text), tools.start() if tools else len(text)))

    def find(self, what: str, at: int) -> int:
        """Its next position from here on, or the end of the text."""
        place = self.places.get(what, -1)
        if place < at:
            place = self.places[what] = self.text.find(what, at) % (len(self.text) + 1)
        return place

    def find_tag(self, name: str, at: int) -> int:
        """The next line that begins with this closing tag. There are many names, so all are indexed in advance."""
        places = self.tags.get(name, [])
        following = bisect_left(places, at)
        return places[following] if following < len(places) else len(self.text)

    def skip(self, line: str, begun: int, end: int) -> int:
        """Where to continue after a line: behind the fence or example that it opens, if that is closed."""
        example = _EXAMPLE.fullmatch(line)
        if example:
            closed = self.find_tag(example[1], end - 1)
            return closed + 1 if closed < min(len(self.text), self.find("\n## ", end)) else end
        return max(end, min(self.fences.get(begun, 0) + 1, len(self.text)))


def _fence_borders(text: str) -> list[int]:
    """Borders that no fence in a tool list crosses: rules, and headings of known tools."""
    headings = re.finditer(r"^(?:====|## ([\w.-]+))[ \t]*$", text, re.M)
    return [heading.start() for heading in headings if heading[1] is None or heading[1] in _known_tools()]


class _QuotedElements:
    """Quoting elements: opened at the start or end of a line, and closed somewhere. Query positions in ascending
    order."""

    def __init__(self, text: str) -> None:
        self.found = _find_quotes(text)
        self.end = 0
        self.following = next(self.found, None)

    def hold(self, at: int) -> bool:
        """Whether this position is inside one."""
        while self.following and self.following[0] < at:
            self.end = max(self.end, self.following[1])
            self.following = next(self.found, None)
        return at < self.end


def _find_quotes(text: str) -> Iterator[tuple[int, int]]:
    """Elements from opening to closing tag, sorted by start. Tags of known tools do not quote."""
    opened: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for tag in _ELEMENT.finditer(text):
        name = tag["name"]
        if tag["end"] and name in opened:
            found.append((opened.pop(name), tag.start()))
        elif not tag["end"] and name not in _known_tools() and _starts_or_ends_line(text, tag.start(), tag.end()):
            opened.setdefault(name, tag.start())
    yield from sorted(found)


def _starts_or_ends_line(text: str, begin: int, end: int) -> bool:
    return begin == 0 or text[begin - 1] == "\n" or end == len(text) or text[end] in "\r\n"


def _remove_tool_lists(section: str) -> str:
    """Remove the tool lists from a section of servers."""
    kept: list[str] = []
    at = 0
    while (listed := AVAILABLE_TOOLS.search(section, at)) is not None:
        kept.append(section[at : listed.start()])
        following = re.compile(r"^##", re.M).search(section, listed.end())
        at = following.start() if following else len(section)
    return "".join([*kept, section[at:]])


# -- text about the format --------------------------------------------------------------------------------------------


def _remove_format_text(text: str, tools: frozenset[str]) -> str:
    """Remove text about the call format, except in the role and the system information, which do not teach it."""
    begun = _AFTER_ROLE.search(text)
    at = begun.start() if begun else 0
    pieces = [text[:at]]
    for information in _INFORMATION.finditer(text, at):
        pieces += _remove_format_from(text[at : information.start()], tools), information[0]
        at = information.end()
    return "".join([*pieces, _remove_format_from(text[at:], tools)])


def _remove_format_from(text: str, tools: frozenset[str]) -> str:
    text = _replace_examples(text, tools)
    lines = [line for line in map(_remove_format_sentences, text.split("\n")) if line is not None]
    return _TAGGED.sub(lambda tag: tag[1] if tag[1] in tools else tag[0], "\n".join(lines))


def _remove_format_sentences(line: str) -> str | None:
    """A line without sentences about the format; None if nothing is left."""
    if not _CALL_FORMAT.search(line):
        return line
    left = "".join(sentence for sentence in _SENTENCE.findall(line) if not _CALL_FORMAT.search(sentence)).rstrip()
    return None if not left or _EMPTY_BULLET.match(left) else left


def _replace_examples(text: str, tools: frozenset[str]) -> str:
    """Replace examples of calls in other sections by the tool name and its parameters."""
    kept: list[str] = []
    at = 0
    closers = _CloserIndex(text)
    for opened in re.finditer(r"^<(\w+)>[ \t]*$", text, re.M):
        if opened.start() < at or opened[1] not in tools:
            continue
        closed = closers.find_tag(opened[1], opened.end())
        if closed < len(text):
            names = re.findall(r"^<(\w+)>", text[opened.end() : closed], re.M)
            kept += text[at : opened.start()], f"(a call of {opened[1]} with {', '.join(names)})"
            at = closed + len(opened[1]) + 4
    return "".join([*kept, text[at:]])

"""The system prompt of an XML client: what it documents, and what is left of it for a model that has tools of its own.

Strategy. A prompt is cut at its headings and rules. Sections that teach the form of calls (``TAUGHT``) are taken out
and read; the lists of connected servers too, because their tools are offered one by one. In what remains, words about
the form are taken out sentence by sentence and samples become one line, but only up to the user's own instructions:
those are nobody's to change. Role, rules and environment stay as they are. Clients send the same prompt with every
turn, so the work is done once for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from toolglot.clients.documents import AVAILABLE, Document, ServerTool, read_bold, read_headed, read_servers

LONGEST: Final = 1 << 20
"""A longer text is no prompt of a client, and is not looked at."""
REMEMBERED: Final = 64
HEADED: Final = frozenset(("# Tools", "# Custom Tools"))
BOLD: Final = frozenset(("## TOOLS",))
SERVERS: Final = "# Connected MCP Servers"
TAUGHT: Final = HEADED | BOLD | {"# Tool Use Formatting", "# Tool Use Examples"}
OWN: Final = "USER'S CUSTOM INSTRUCTIONS"
_RULE: Final = "===="
_TELLING: Final = re.compile(r"^(?:====|##? |[ \t]*(?:<\w+>|```)).*", re.M)
"""Lines that may be headings, or open what has none inside."""
_SAMPLE: Final = re.compile(r"[ \t]*<(\w+)>[ \t]*")
_SENTENCE: Final = re.compile(r".+?(?:[.!?](?=\s|$)\s*|$)")
_EMPTIED: Final = re.compile(r"^[ \t]*(?:[-*]|\d+\.)[ \t]*$")
_DEMAND: Final = re.compile(r"\b(?:every|each) (?:assistant )?message must (?:include|use|contain|make)\b", re.I)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, read. ``rest`` remains where tools are told otherwise; ``demands``: every message must call one."""

    rest: str
    documents: tuple[Document, ...] = ()
    servers: tuple[ServerTool, ...] = ()
    demands: bool = False


@lru_cache(maxsize=REMEMBERED)
def read_prompt(text: str) -> Prompt:
    """What a prompt says of tools. One that says nothing remains as it is."""
    if len(text) > LONGEST:
        return Prompt(text)
    documents: dict[str, Document] = {}
    servers: list[ServerTool] = []
    kept: list[str] = []
    for title, section in _sections(text):
        for document in _read_documents(title, section):
            documents.setdefault(document.name, document)
        if title == SERVERS:
            servers += read_servers(section)
            section = _without_lists(section)
        if title not in TAUGHT:
            kept.append(section)
    if not documents:
        return Prompt(text)
    rest = _reword("".join(kept), frozenset(documents))
    return Prompt(rest, tuple(documents.values()), tuple(servers), _is_demanding(text))


def _is_demanding(text: str) -> bool:
    return "message must" in text and _DEMAND.search(text) is not None


def _read_documents(title: str, section: str) -> Iterator[Document]:
    if title in HEADED:
        yield from read_headed(section)
    elif title in BOLD:
        yield from read_bold(section)


# -- sections ----------------------------------------------------------------------------------------------------------


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The text in pieces that join to it again, each with its heading. Fences and samples have no headings inside."""
    title, begun, at = "", 0, 0
    closers = _Closers(text)
    while (telling := _TELLING.search(text, at)) is not None:
        line = telling[0].rstrip()
        if _begins(title, line):
            yield title, text[begun : telling.start()]
            title, begun = line, telling.start()
        at = closers.skip(line, min(telling.end() + 1, len(text)))
    yield title, text[begun:]


def _begins(title: str, line: str) -> bool:
    """Whether a line ends the section of this title. Small headings count where sections have them as titles."""
    if line == _RULE or line.startswith("# "):
        return True
    return line.startswith("## ") and (line in BOLD or title in BOLD)


class _Closers:
    """Where things end, each looked for once: the next place of a text, as long as it is still to come."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[str, int] = {}

    def find(self, what: str, at: int) -> int:
        """Its next place from here on, or the end of the text."""
        place = self.places.get(what, -1)
        if place < at:
            place = self.places[what] = self.text.find(what, at) % (len(self.text) + 1)
        return place

    def skip(self, line: str, end: int) -> int:
        """Where to go on after a line: behind the fence or the sample that it opens, if that is closed."""
        sample = _SAMPLE.fullmatch(line)
        if sample:
            closed = self.find(f"\n</{sample[1]}>", end - 1)
            return closed + 1 if closed < min(len(self.text), self.find("\n## ", end)) else end
        if line.lstrip().startswith("```") and line.count("```") == 1:
            closed = self.find("\n```", end - 1)
            return self.find("\n", closed + 1) + 1 if closed < len(self.text) else end
        return end


def _without_lists(section: str) -> str:
    """A section of servers without the lists of their tools."""
    kept: list[str] = []
    at = 0
    while (listed := AVAILABLE.search(section, at)) is not None:
        kept.append(section[at : listed.start()])
        following = re.compile(r"^##", re.M).search(section, listed.end())
        at = following.start() if following else len(section)
    return "".join([*kept, section[at:]])


# -- words about the form ----------------------------------------------------------------------------------------------


def _reword(text: str, tools: frozenset[str]) -> str:
    at = text.find(OWN)
    ours, own = (text, "") if at < 0 else (text[:at], text[at:])
    ours = _replace_samples(ours, tools)
    lines = [line for line in map(_without_form, ours.split("\n")) if line is not None]
    words = "|".join(map(re.escape, sorted(tools)))
    return re.sub(rf"</?({words})>", r"\1", "\n".join(lines)) + own


def _without_form(line: str) -> str | None:
    """A line without sentences about XML; None if nothing is left of it."""
    if "XML" not in line:
        return line
    left = "".join(sentence for sentence in _SENTENCE.findall(line) if "XML" not in sentence).rstrip()
    return None if not left or _EMPTIED.match(left) else left


def _replace_samples(text: str, tools: frozenset[str]) -> str:
    """Samples of calls that stand in other sections, as the name and what it was called with."""
    kept: list[str] = []
    at = 0
    closers = _Closers(text)
    for opened in re.finditer(r"^<(\w+)>[ \t]*$", text, re.M):
        if opened.start() < at or opened[1] not in tools:
            continue
        closed = closers.find(f"\n</{opened[1]}>", opened.end())
        if closed < len(text):
            names = re.findall(r"^<(\w+)>", text[opened.end() : closed], re.M)
            kept += text[at : opened.start()], f"(a call of {opened[1]} with {', '.join(names)})"
            at = closed + len(opened[1]) + 4
    return "".join([*kept, text[at:]])

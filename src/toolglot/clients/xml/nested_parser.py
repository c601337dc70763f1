"""Parse the nested XML in two parameters of Roo as the library that Roo uses does.

``args`` of ``read_file`` is XML with entities. ``follow_up`` of ``ask_followup_question`` holds elements whose content
is raw text, without entities, up to the balancing closing tag; a lone ``<`` makes it malformed.

The library is lenient. A closing tag ends the innermost element, whatever its name. An unclosed element ends with the
text, and its last text is lost. After a closing tag that matches nothing, text is skipped, and anything else is an
error.
"""

from __future__ import annotations

import re

from msgspec import Struct, field

from toolglot.clients.xml.profile import JS_WHITESPACE
from toolglot.core.lenient_json import Value


class MalformedValue(ValueError):
    """Nested XML or JSON that the client cannot parse."""


_ENTITIES = (
    (re.compile("&(?:apos|#39|#x27);"), "'"),
    (re.compile("&(?:gt|#62|#x3E);"), ">"),
    (re.compile("&(?:lt|#60|#x3C);"), "<"),
    (re.compile("&(?:quot|#34|#x22);"), '"'),
    (re.compile("&(?:amp|#38|#x26);"), "&"),
)
_BREAKS = re.compile("\r\n?")


class _Element(Struct):
    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def is_plain(self) -> bool:
        """Whether the client treats it as plain text."""
        return not (self.attributes or self.children)

    def find(self, name: str) -> list[_Element]:
        return [child for child in self.children if child.name == name]


def escape_nested(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def parse_files(text: str) -> Value:
    """The files that the client would read: ``{"file": [{"path": .., "line_range": [..]}]}``. Raises
    ``MalformedValue``."""
    files: list[Value] = []
    for element in _NestedParser(text, "").root.find("file"):
        paths = element.find("path")
        if not paths or (len(paths) == 1 and paths[0].is_plain and not paths[0].text):
            continue
        if len(paths) > 1 or not paths[0].is_plain:
            raise MalformedValue("a path is more than text")
        ranges: list[Value] = [one.text for one in element.find("line_range") if one.is_plain and one.text]
        files.append({"path": paths[0].text, "line_range": ranges} if ranges else {"path": paths[0].text})
    if not files:
        raise MalformedValue("no file has a path")
    return {"file": files}


def parse_suggestions(text: str) -> Value:
    """The suggestions that the client would show: ``[{"text": .., "mode": ..}]``. Raises ``MalformedValue``."""
    suggestions: list[Value] = []
    for element in _NestedParser(text, "suggest").root.find("suggest"):
        mode = element.attributes.get("mode", "")
        suggestions.append({"text": element.text, "mode": mode} if mode else {"text": element.text})
    return suggestions


_GAP = re.compile(rf"[{JS_WHITESPACE}]")
_TAG = re.compile(r"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")
_INSTRUCTION = re.compile(r"""(?:[^"'?]|"[^"]*"|'[^']*'|\?(?!>))*+\?>""")
_ATTRIBUTE = re.compile(
    rf"""(?P<name>[^{JS_WHITESPACE}=]+)(?:[{JS_WHITESPACE}]*=[{JS_WHITESPACE}]*(?P<quote>['"])(?P<value>.*?)(?P=quote))?""",
    re.S,
)


class _NestedParser:
    """Parses one text into ``root``. ``stop`` is the path of elements with raw content."""

    def __init__(self, text: str, stop: str) -> None:
        self.text = _BREAKS.sub("\n", text)
        self.stop = stop
        self.root = _Element("")
        self.current: _Element | None = self.root
        self.above: list[_Element] = []
        self.path = ""
        self.pending: list[str] = []
        pos = 0
        while (found := self.text.find("<", pos)) >= 0:
            self.pending.append(self.text[pos:found])
            pos = self._read_markup(found)

    def _read_markup(self, start: int) -> int:
        """Parse the markup at ``start``; the position after it."""
        text = self.text
        if text.startswith("</", start):
            end = _find(text, ">", start)
            if self.current is not None:
                self._save()
            self.current = self.above.pop() if self.above else None
            self.path = self.path[: max(self.path.rfind("."), 0)]
            self.pending = []
            return end + 1
        if text.startswith("<!--", start):
            return _find(text, "-->", start + 4) + 3
        if self.current is None:
            raise MalformedValue("something behind a closing tag without an opening one")
        if text.startswith("<?", start):
            return self._read_instruction(self.current, start)
        if text.startswith("<!D", start):
            raise MalformedValue("a document type")
        if text.startswith("<![", start):
            end = _find(text, "]]>", start)
            self._save()
            self.current.texts.append(text[slice(*sorted((start + len("<![CDATA["), end)))])
            return end + 3
        return self._open(self.current, start)

    def _read_instruction(self, current: _Element, start: int) -> int:
        found = _INSTRUCTION.match(self.text, start + 1)
        if found is None:
            raise MalformedValue("an instruction does not end")
        self._save()
        current.children.append(_Element("?"))
        return found.end()

    def _open(self, current: _Element, start: int) -> int:
        name, rest, end = _parse_tag(self.text, start)
        if current is not self.root:
            self._save()
        self.path += f".{name}" if self.path else name
        closed = rest.endswith("/")
        stopped = bool(self.stop) and self.path == self.stop
        if closed:
            plain = name.endswith("/")
            name, rest = (name[:-1], name[:-1]) if plain else (name, rest[:-1])
            self.path = self.path[:-1] if plain else self.path
        child = _Element(name, _parse_attributes(rest) if rest != name else {})
        current.children.append(child)
        if stopped and not closed:
            inside, behind = _skip_balanced(self.text, name, end + 1)
            child.texts.append(inside)
        else:
            behind = end + 1
        if stopped or closed:
            self.path = self.path[: max(self.path.rfind("."), 0)]
        else:
            self.above.append(current)
            self.current = child
        if not stopped:
            self.pending = []
        return behind

    def _save(self) -> None:
        """Add the pending text to the open element."""
        text = "".join(self.pending).strip(JS_WHITESPACE)
        self.pending = []
        for pattern, character in _ENTITIES:
            text = pattern.sub(character, text)
        if text and self.current is not None:
            self.current.texts.append(text)


def _find(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    if found < 0:
        raise MalformedValue(f"{mark} is missing")
    return found


def _parse_tag(text: str, start: int) -> tuple[str, str, int]:
    """Name of the opening tag at ``start``, its attributes (or the whole tag, without any), and the position of its
    ``>``."""
    found = _TAG.match(text, start + 1)
    if found is None:
        raise MalformedValue("a tag does not end")
    whole = found[0][:-1]
    gap = _GAP.search(whole)
    if gap is None:
        return whole, whole, found.end() - 1
    return whole[: gap.start()], whole[gap.end() :].lstrip(JS_WHITESPACE), found.end() - 1


def _parse_attributes(text: str) -> dict[str, str]:
    attributes: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(text):
        if found["value"] is not None:
            value = found["value"].strip(JS_WHITESPACE)
            for pattern, character in _ENTITIES:
                value = pattern.sub(character, value)
            attributes[found["name"]] = value
    return attributes


def _skip_balanced(text: str, name: str, start: int) -> tuple[str, int]:
    """The raw content of an element up to the balancing closing tag, and the position after that."""
    depth, pos = 1, start
    while (found := text.find("<", pos)) >= 0:
        if text.startswith("</", found):
            end = _find(text, ">", found)
            if text[found + 2 : end].strip(JS_WHITESPACE) == name:
                depth -= 1
                if not depth:
                    return text[start:found], end + 1
            pos = end + 1
        elif (mark := next((mark for mark in _SPECIAL if text.startswith(mark[0], found)), None)) is not None:
            pos = _find(text, mark[1], found + mark[2]) + mark[3]
        elif (tag := _TAG.match(text, found + 1)) is None:
            pos = found + 1
        else:
            opened, rest, _ = _parse_tag(text, found)
            depth += opened == name and not rest.endswith("/")
            pos = tag.end()
    raise MalformedValue(f"{name} does not end")


_SPECIAL = (("<?", "?>", 1, 2), ("<!--", "-->", 3, 3), ("<![", "]]>", 0, 1))
"""Markup that is skipped there: its start, its end, how far after its start the search for the end begins, and how much
of the end is skipped."""

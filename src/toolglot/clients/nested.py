"""The XML inside two parameters of Roo, as the library that Roo uses reads it.

``args`` of ``read_file`` is read as XML with entities. ``follow_up`` of ``ask_followup_question`` holds elements whose
inside is taken as it stands, without entities, up to the closing tag that balances it; a lone ``<`` spoils it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from toolglot.clients.record import BLANKS
from toolglot.jsontext import Value


class Spoiled(ValueError):
    """Nested XML that the client cannot read."""


_ENTITIES = (
    (re.compile("&(?:apos|#39|#x27);"), "'"),
    (re.compile("&(?:gt|#62|#x3E);"), ">"),
    (re.compile("&(?:lt|#60|#x3C);"), "<"),
    (re.compile("&(?:quot|#34|#x22);"), '"'),
    (re.compile("&(?:amp|#38|#x26);"), "&"),
)
_BREAKS = re.compile("\r\n?")


@dataclass(slots=True)
class _Element:
    name: str
    attributes: str = ""
    texts: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def list_texts(self, name: str) -> list[str]:
        found = [child for child in self.children if child.name == name]
        if any(child.children for child in found):
            raise Spoiled(f"there are elements in a {name}")
        return [child.text for child in found]


def escape_nested(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def read_files(text: str) -> Value:
    """``{"file": [{"path": .., "line_range": [..]}]}`` of the files that the client would read."""
    files: list[Value] = []
    for element in _parse(text, frozenset()).children:
        if element.name != "file":
            continue
        path, ranges = element.list_texts("path"), element.list_texts("line_range")
        if len(path) > 1:
            raise Spoiled("a file has two paths")
        if path and path[0]:
            files.append({"path": path[0], "line_range": list(ranges)} if ranges else {"path": path[0]})
    if not files:
        raise Spoiled("no file has a path")
    return {"file": files}


_MODE = re.compile(r"""\bmode\s*=\s*("([^"]*)"|'([^']*)')""")


def read_suggestions(text: str) -> Value:
    """``[{"text": .., "mode": ..}]`` of the answers that the client would offer."""
    suggestions: list[Value] = []
    for element in _parse(text, frozenset({"suggest"})).children:
        if element.name == "suggest":
            mode = _MODE.search(element.attributes)
            value = (mode[2] or mode[3] or "") if mode else ""
            if not element.text:
                raise Spoiled("an answer is empty")
            suggestions.append({"text": element.text, "mode": value} if value else {"text": element.text})
    return suggestions


def _parse(text: str, stops: frozenset[str]) -> _Element:
    text = _BREAKS.sub("\n", text)
    root = _Element("")
    stack, pos = [root], 0
    while (found := text.find("<", pos)) >= 0:
        _add_text(stack[-1], text[pos:found])
        head = text[found + 1 : found + 2]
        if head == "/":
            pos = _find(text, ">", found) + 1
            if len(stack) == 1:
                raise Spoiled("a closing tag without an opening one")
            stack.pop()
        elif (behind := _skip_special(text, found, stack[-1])) >= 0:
            pos = behind
        else:
            name, attributes, end = _read_tag(text, found)
            child = _Element(name, attributes)
            stack[-1].children.append(child)
            pos = end + 1
            if attributes.endswith("/") or name.endswith("/"):
                child.name = name.rstrip("/")
            elif name in stops and len(stack) == 1:
                inside, pos = _read_raw(text, name, pos)
                child.texts.append(inside)
            else:
                stack.append(child)
    _add_text(stack[-1], text[pos:])
    if len(stack) > 1:
        raise Spoiled(f"{stack[-1].name} does not end")
    return root


def _add_text(element: _Element, text: str) -> None:
    for pattern, character in _ENTITIES:
        text = pattern.sub(character, text)
    if text := text.strip(BLANKS):
        element.texts.append(text)


def _find(text: str, mark: str, start: int) -> int:
    found = text.find(mark, start)
    if found < 0:
        raise Spoiled(f"{mark} is missing")
    return found


_SPECIAL = (("<?", "?>"), ("<!--", "-->"), ("<![", "]]>"))
_COMMENT = 3
"""How far behind the ``<`` of a comment its end is looked for inside an answer; outside it is one more."""


def _skip_special(text: str, start: int, element: _Element | None = None) -> int:
    """Where to go on behind an instruction, a comment or a section that is no markup; -1 if there is none."""
    opener, closer = next((pair for pair in _SPECIAL if text.startswith(pair[0], start)), ("", ""))
    if not opener:
        return -1
    behind = _COMMENT + (element is not None) if opener == "<!--" else 1
    end = _find(text, closer, start + behind)
    if opener == "<![" and element is not None:
        element.texts.append(text[start + len("<![CDATA[") : end])
    return end + len(closer)


_GAP = re.compile(rf"[{BLANKS}]")
_TAG = re.compile(r"""(?:[^"'>]|"[^"]*"|'[^']*')*+>""")


def _read_tag(text: str, start: int) -> tuple[str, str, int]:
    """The name of the tag that opens here, the rest of it, and where its ``>`` is; quotes may hide one."""
    found = _TAG.match(text, start + 1)
    if found is None:
        raise Spoiled("a tag does not end")
    name, *attributes = _GAP.split(found[0][:-1], 1)
    return name, "".join(attributes), found.end() - 1


def _read_raw(text: str, name: str, start: int) -> tuple[str, int]:
    """The inside of an element up to the closing tag that balances it."""
    depth, pos = 1, start
    while (found := text.find("<", pos)) >= 0:
        head = text[found + 1 : found + 2]
        if head == "/":
            end = _find(text, ">", found)
            if text[found + 2 : end].strip(BLANKS) == name:
                depth -= 1
                if not depth:
                    return text[start:found], end + 1
            pos = end + 1
        elif (behind := _skip_special(text, found)) >= 0:
            pos = behind
        else:
            opened, rest, end = _read_tag(text, found)
            depth += opened == name and not rest.endswith("/")
            pos = end + 1
    raise Spoiled(f"{name} does not end")

"""Marks: how they are written down, and three-valued matching of them.

Strategy. Marks are written as they look, in a template: a blank stands for any blanks, a line break for one line break
with blanks before it, ``{slot}`` for a named piece, ``{{`` for a brace. From one template come two expressions, one for
the mark and one for every beginning of it; the second one is what makes the answer "need more" possible without
looking at earlier text again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias


class _More(Enum):
    MORE = "more"


MORE: Final = _More.MORE


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a mark: its expression, and the expression of every beginning of it."""

    full: str
    prefix: str


def literal(text: str) -> Node:
    prefix = ""
    for char in reversed(text):
        prefix = f"(?:{re.escape(char)}{prefix})?"
    return Node(re.escape(text), prefix)


def chars(charset: str, least: int = 1, most: int | None = None) -> Node:
    top = "" if most is None else str(most)
    return Node(f"{charset}{{{least},{top}}}", f"{charset}{{0,{top}}}")


def sequence(*nodes: Node) -> Node:
    prefix = ""
    for node in reversed(nodes):
        prefix = f"(?:{node.full}{prefix}|{node.prefix})" if prefix else node.prefix
    return Node("".join(node.full for node in nodes), prefix or "")


def either(*nodes: Node) -> Node:
    return Node(
        "(?:" + "|".join(node.full for node in nodes) + ")", "(?:" + "|".join(node.prefix for node in nodes) + ")"
    )


def optional(node: Node) -> Node:
    return Node(f"(?:{node.full})?", f"(?:{node.prefix})?")


BLANKS = chars(r"\s", 0)
BREAK = sequence(chars(r"[ \t\r]", 0), literal("\n"))

_QUOTED = r'[^"\\\n]{0,256}(?:\\.[^"\\\n]{0,256}){0,64}'

SLOTS: dict[str, Node] = {
    # names may be dotted, hyphenated, or carry markdown escapes
    "name": chars(r"[\w.\-/\\]", 1, 128),
    "name_id": chars(r"[\w.\-/\\:]", 1, 160),
    "name_group": either(*map(literal, ("parameters", "arguments", "args", "params", "input", "file"))),
    "key": chars(r"[\w.\-$\\]", 1, 128),
    "id": chars(r"[\w.\-/\\:]", 1, 160),
    "snake": sequence(chars("[A-Za-z]", 1, 32), literal("_"), chars("[A-Za-z_]", 1, 64)),
    "command": chars(r"[^\n`]", 1, 400),
    "type": chars(r"[\w]", 1, 32),
    "index": chars(r"\d", 1, 8),
    "q": chars("[\"']", 0, 1),
    "ns": optional(sequence(chars(r"[\w\-]", 1, 32), literal(":"))),
    "suffix": optional(sequence(literal(":"), chars(r"[\w\-]", 1, 32))),
    "bar": chars(r"[|｜‖]", 1, 2),
    "attributes": optional(sequence(chars(r"\s", 1, 1), chars(r"[^<>\n]", 0, 200))),
    "quoted": Node(_QUOTED, _QUOTED + r"\\?"),
    "quoted_once": chars(r"[^'\n]", 0, 256),
    "words": chars(r"[^<>{}\n]", 0, 60),
    "tick": chars("[`\"'\\[\\]]", 0, 1),
    "junk": chars("[\"'=]", 0, 2),
    "eqkey": optional(sequence(literal("="), chars(r"[\w.\-]", 1, 128))),
    "gap": chars("[▁_ ]", 1, 1),
    "marker": Node(r"[\w\- ]{0,20}(?:tool|call|func|action|TOOL|CALL|FUNC|ACTION)[\w\- ]{0,20}", r"[\w\- ]{0,48}"),
    "slash": chars("/", 0, 1),
    "language": chars(r"[\w\-+]", 0, 20),
    # what must follow is looked at, not consumed
    "before_object": Node(r"(?=\s*\{)", r"\s*"),
    "before_quoted": Node(r"(?=\s*\{\s*[\"'}])", r"\s*(?:\{\s*)?"),
    "before_json": Node(r"(?=\s*[\[{])", r"\s*"),
    "before_break": Node(r"(?=[ \t\r]*(?:\n|\Z))", r"[ \t\r]*"),
    "before_parenthesis": Node(r"(?=\s?\()", r"\s?"),
    "before_arg_key": Node(r"(?=\s*<arg_key>)", rf"\s*{literal('<arg_key>').prefix}"),
    "before_parameter": Node(r"(?=\s*<parameter=)", rf"\s*{literal('<parameter=').prefix}"),
    "before_call": Node(r"(?=\s*(?:[\[{]|<tool_call))", rf"\s*{literal('<tool_call').prefix}"),
}

_TOKEN = re.compile(r"\{\{|\}\}|\{(\w+)\}|[ ]+|\n|[^{} \n]+|.", re.DOTALL)


_HEADS = {"marker": r"\w\-", "ns": r"\w\-", "name": r"\w.\-/\\", "bar": "|｜‖"}
"""What a slot may begin with, for slots that follow the first character of a mark."""

_NAMED = {
    "name": "name",
    "name_id": "name",
    "name_group": "name",
    "key": "key",
    "type": "type",
    "quoted": "quoted",
    "quoted_once": "quoted",
}


def expression(template: str, given: Mapping[str, str] | None = None) -> str:
    """The expression of a template; ``given`` are expressions for some of its slots."""
    slots = {slot: Node(text, text) for slot, text in (given or {}).items()}
    return sequence(*_nodes(template, False, {**SLOTS, **slots})).full


def _nodes(template: str, named: bool, slots: Mapping[str, Node] = SLOTS) -> list[Node]:
    found: list[Node] = []
    for token in _TOKEN.finditer(template):
        slot = token[1]
        if slot:
            node = slots[slot]
            if named and slot in _NAMED:
                node = Node(f"(?P<{_NAMED[slot]}>{node.full})", node.prefix)
            found.append(node)
        elif token[0].isspace():
            found.append(BREAK if token[0] == "\n" else BLANKS)
        else:
            found.append(literal("{" if token[0] == "{{" else "}" if token[0] == "}}" else token[0]))
    return found


_NEVER = re.compile("(?!)")

Match: TypeAlias = re.Match[str]
Answer: TypeAlias = "Match | None | _More"

_LONGEST = 512
"""A mark, blanks included, is at most this long; more is never waited for."""


class Mark:
    """One or more spellings of a mark, tried in order."""

    __slots__ = ("_fulls", "_prefix", "heads", "templates")

    def __init__(self, *templates: str, named: bool = True) -> None:
        self.templates = templates
        nodes = [sequence(*_nodes(template, False)) for template in templates]
        if named:
            self._fulls = tuple(re.compile(sequence(*_nodes(template, True)).full) for template in templates)
        else:
            self._fulls = (re.compile(either(*nodes).full),)
        self._prefix = re.compile(either(*nodes).prefix + r"\Z") if nodes else _NEVER
        self.heads = frozenset(template.lstrip()[:1] for template in templates)

    def at(self, text: str, pos: int, final: bool) -> Answer:
        """The match at ``pos``, or None, or MORE while the text is still a beginning of the mark."""
        if not final and len(text) - pos < _LONGEST and self._prefix.match(text, pos):
            return MORE
        for full in self._fulls:
            found = full.match(text, pos, pos + _LONGEST)
            if found is not None:
                return found
        return None

    def begins(self, text: str, pos: int) -> bool:
        """Whether the text from ``pos`` to its end is a beginning of the mark (at least two characters)."""
        return len(text) - pos >= 2 and self._prefix.match(text, pos) is not None

    def __repr__(self) -> str:
        return f"Mark({', '.join(map(repr, self.templates))})"


class Choice:
    """Many marks at once; the answer says which one it was.

    Templates are filed under their first two characters, so that text which only looks like a mark costs little.
    """

    __slots__ = ("_anything", "_filed", "_files", "heads", "marks")

    def __init__(self, groups: Sequence[tuple[str, ...]]) -> None:
        self.marks = groups
        self.heads = frozenset(spelling.lstrip()[:1] for group in groups for spelling in group)
        self._filed: dict[str, list[tuple[int, str]]] = {}
        for index, group in enumerate(groups):
            for spelling in group:
                self._filed.setdefault(_file(spelling), []).append((index, spelling))
        self._anything = self._file_of("")
        self._files: dict[str, _File] = {}

    def _file_of(self, key: str) -> _File:
        entries = sorted({*self._filed.get(key, ()), *self._filed.get("", ())}, key=lambda entry: entry[0])
        nodes = [(index, sequence(*_nodes(spelling, False))) for index, spelling in entries]
        # one name cannot stand twice in an expression, so spellings of one mark are joined
        by_index: dict[int, list[Node]] = {}
        for index, node in nodes:
            by_index.setdefault(index, []).append(node)
        full = "|".join(f"(?P<c{index}>{either(*group).full})" for index, group in by_index.items())
        prefix = either(*(node for _, node in nodes)).prefix + r"\Z" if nodes else "(?!)"
        return re.compile(full or "(?!)"), re.compile(prefix)

    def _look_up(self, text: str, pos: int) -> _File:
        key = text[pos : pos + 2]
        if key not in self._filed:
            return self._anything
        found = self._files.get(key)
        if found is None:
            found = self._files[key] = self._file_of(key)
        return found

    def at(self, text: str, pos: int, final: bool) -> int | None | _More:
        """The index of the group that stands at ``pos``, None, or MORE."""
        rest = len(text) - pos
        if rest < 2 and not final:
            return MORE if rest < 1 or text[pos] in self.heads or "" in self._filed else None
        full, prefix = self._look_up(text, pos)
        if not final and rest < _LONGEST and prefix.match(text, pos):
            return MORE
        found = full.match(text, pos, pos + _LONGEST)
        return int(found.lastgroup[1:]) if found is not None and found.lastgroup else None

    def stops(self) -> str:
        """An expression for the characters where one of the marks may begin, told by the second one if possible."""
        seconds: dict[str, set[str]] = {}
        for group in self.marks:
            for spelling in group:
                slot = _TOKEN.match(spelling, 1)
                second = _HEADS.get(slot[1]) if slot is not None and slot[1] else re.escape(spelling[1:2])
                seconds.setdefault(spelling[:1], set()).add(second or "")
        return "|".join(
            re.escape(head) + ("" if "" in following else f"(?=[{''.join(sorted(following))}]|\\Z)")
            for head, following in seconds.items()
        )

    def size(self, text: str, pos: int) -> int:
        """How long the mark at ``pos`` is; 0 when there is none."""
        found = self._look_up(text, pos)[0].match(text, pos, pos + _LONGEST)
        return 0 if found is None else found.end() - pos


_File: TypeAlias = tuple[re.Pattern[str], re.Pattern[str]]


def _file(spelling: str) -> str:
    """The two characters under which a spelling is filed; none when it does not begin with two fixed ones."""
    head = spelling[:2]
    return "" if len(head) < 2 or "{" in head or " " in head or "\n" in head else head

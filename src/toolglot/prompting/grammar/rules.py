"""Rules of a grammar in GBNF: values as JSON by their schema, and text that contains none of certain marks.

Text between tags is any text that contains none of the marks: a finite automaton with one rule per state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from toolglot.core.lenient_json import dump
from toolglot.core.schema.types import ANY, SchemaType

_LEAVES = {
    # the reader takes backslashes literally in a path that begins with a drive, so they must be doubled
    "string": r'"\"" ("\"" | [A-Za-z] {drive} | [^A-Za-z"\\\x00-\x1F\x7F] {rest} | {escape} {rest})',
    "drive": r'"\"" | ":" ("\"" | "\\" ["\\/] {rest} | {plain} {rest}) | [^:"\\\x00-\x1F\x7F] {rest} | {escape} {rest}',
    "rest": r'({plain} | {escape})* "\""',
    "integer": r'"0" | "-"? [1-9] [0-9]{0,14}',
    "number": r'{integer} ("." [0-9]{1,12})?',
    "boolean": r'"true" | "false"',
    "null": r'"null"',
    "plain": r'[^"\\\x00-\x1F\x7F]',
    "escape": r'"\\" (["\\/bfnrt] | "u" [0-9A-CEFa-cef] [0-9A-Fa-f]{3})',
    # between tags, a value must not look like a tag
    "tagged-char": r'[^"\\<\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "tagged-string": r'"\"" {tagged-char}* "\""',
}


class GrammarRules(Struct):
    """The rules of a grammar under construction."""

    bodies: dict[str, str] = field(default_factory=dict)
    """Rule bodies by rule name."""
    shared: dict[object, str] = field(default_factory=dict)
    """Rule names by what they describe."""

    def define(self, name: str, body: str) -> str:
        self.bodies[name] = body
        return name

    def add(self, stem: str, body: str) -> str:
        return self.define(f"{stem}-{len(self.bodies)}", body)

    def leaf(self, name: str) -> str:
        """The rule of a simple value; adds the rules it refers to."""
        if name not in self.bodies:
            self.bodies[name] = ""
            self.bodies[name] = re.sub(r"\{([a-z-]+)\}", lambda found: self.leaf(found[1]), _LEAVES[name])
        return name

    def share(self, key: object, stem: str, make: Callable[[], str]) -> str:
        """Add one rule per key. The body may refer to its own rule."""
        if key not in self.shared:
            name = self.shared[key] = self.add(stem, "")
            self.bodies[name] = make()
        return self.shared[key]

    def add_text(self, marks: Iterable[str]) -> str:
        """A rule for any text, line breaks included, that contains none of the marks."""
        forbidden = frozenset(marks)
        return self.share(forbidden, "text", lambda: self._add_states(_Automaton(forbidden)))

    def _add_states(self, automaton: _Automaton) -> str:
        names = [self.add("text", "") for _ in automaton.steps]
        for name, steps in zip(names, automaton.steps, strict=True):
            onward = [f"{char_class(char)} {names[state]}" for char, state in steps.items() if state is not None]
            self.bodies[name] = " | ".join([f"{char_class(*steps, but=True)} {names[0]}", *onward, '""'])
        return names[0]

    def write(self, root: str) -> str:
        return "".join(f"{name} ::= {body}\n" for name, body in [("root", root), *self.bodies.items()])


class _Automaton:
    """Recognises marks in a text, as Aho-Corasick does.

    A state is a prefix of a mark. ``steps`` has, for each state, the characters that lead to another state than the
    first; ``None`` is the end of a mark. Transitions that a state lacks come from its longest suffix that is a state.
    """

    def __init__(self, marks: Iterable[str]) -> None:
        given = set(marks)
        ends = {mark for mark in given if not any(other in mark for other in given if other != mark)}
        heads = sorted({mark[:size] for mark in ends for size in range(len(mark))}, key=lambda head: (len(head), head))
        states = {head: number for number, head in enumerate(heads)}
        onward: dict[str, dict[str, int | None]] = {head: {} for head in heads}
        for mark in sorted(ends):
            for size in range(len(mark)):
                onward[mark[:size]][mark[size]] = states.get(mark[: size + 1])
        self.steps: list[dict[str, int | None]] = []
        suffixes: list[int] = []
        for head in heads:
            suffixes.append(self.steps[suffixes[states[head[:-1]]]].get(head[-1]) or 0 if len(head) > 1 else 0)
            self.steps.append((self.steps[suffixes[-1]] if head else {}) | onward[head])


def literal(text: str) -> str:
    """A GBNF literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def char_class(*chars: str, but: bool = False) -> str:
    """A GBNF character class: one of these characters, or with ``but`` any other."""
    inside = "".join(char if char.isalnum() else f"\\U{ord(char):08X}" for char in chars)
    return f"[{'^' if but else ''}{inside}]" if inside else "."


# -- JSON --------------------------------------------------------------------------------------------------------------


class JsonRules(Struct, frozen=True):
    """Rules for values written as JSON; ``string`` names the rule for strings."""

    rules: GrammarRules
    string: str = "string"

    def value(self, shape: SchemaType) -> str:
        return self.rules.share((shape, self.string), "value", lambda: self._write(shape))

    def _write(self, shape: SchemaType) -> str:
        if shape.enum is not None:
            return " | ".join(literal(dump(member)) for member in shape.enum) or self._write(ANY)
        if shape.branches:
            return " | ".join(dict.fromkeys(map(self.value, shape.branches)))
        kinds = shape.order or ("object", "array", "string", "number", "boolean", "null")
        return " | ".join(self._write_kind(kind, shape) for kind in kinds)

    def _write_kind(self, kind: str, shape: SchemaType) -> str:
        match kind:
            case "object":
                return self.members(shape) if shape.properties or shape.required else self._any_members(shape)
            case "array":
                item = self.value(shape.items)
                return f'"[" ({item} (", " {item})*)? "]"'
            case "string":
                return self.rules.leaf(self.string)
        return self.rules.leaf(kind)

    def members(self, shape: SchemaType) -> str:
        """An object with the declared members only."""
        pairs = {
            key: f"{literal(dump(key) + ': ')} {self.value(shape.property_type(key))}" for key in order_keys(shape)
        }
        needed = [pair for key, pair in pairs.items() if key in shape.required]
        others = [pair for key, pair in pairs.items() if key not in shape.required]
        tail = "".join(f' (", " {pair})?' for pair in others)
        if needed:
            return f'"{{" {_COMMA.join(needed)}{tail} "}}"'
        starts = [pair + "".join(f' (", " {each})?' for each in others[at + 1 :]) for at, pair in enumerate(others)]
        return f'"{{" ({" | ".join(starts)})? "}}"' if starts else '"{}"'

    def _any_members(self, shape: SchemaType) -> str:
        pair = f'{self.rules.leaf(self.string)} ": " {self.value(shape.links.get("additionalProperties", ANY))}'
        return f'"{{" ({pair} (", " {pair})*)? "}}"'


_COMMA = ' ", " '


def order_keys(shape: SchemaType) -> list[str]:
    """Required members first, each group in the order of declaration."""
    declared = [*shape.properties, *sorted(shape.required.difference(shape.properties))]
    return sorted(declared, key=lambda key: key not in shape.required)

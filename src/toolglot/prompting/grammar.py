"""Grammars that let a model write nothing but valid calls: dialect and tools in, GBNF of llama.cpp out.

Strategy. The sample of a dialect's record is one call, ``get_weather`` with the city Oslo. It is taken apart at these
three words: what stands between them are the marks, and with other names and a rule for the value the sample becomes
the grammar of any call. So the grammar always writes what the record shows, and a dialect whose sample does not come
apart this way has no grammar (``None``). Values follow the compiled shape of the tool's schema; required parameters
come first, in the order of declaration, because a model that has written half of a call no longer weighs what to say.

Text between tags is any text in which none of the marks occurs. That is a finite automaton with one rule per state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from toolglot.core.conversation import Tool
from toolglot.core.errors import ToolSchemaError
from toolglot.core.lenient_json import dump
from toolglot.core.schema.compile import compile_schema
from toolglot.core.schema.types import ANY, SchemaType
from toolglot.reading.reader import dialect_index

_NAME, _KEY, _VALUE = "get_weather", "city", "Oslo"
_OBJECT = f'{{"{_KEY}": "{_VALUE}"}}'
_TAGS = re.compile(
    rf"(?P<open><[^<>]*\b{_KEY}>\n?|<[^<>]* name=\"{_KEY}\">|<[^<>]+>{_KEY}</[^<>]+>\s*<[^<>]+>)"
    rf"{_VALUE}(?P<close>\n?</[^<>]+>)(?P<gap>\s*)"
)
_MARK = re.compile(r"</?[^\s<>=]+[>=\s]")
_LEAD = re.compile(r".[^\s{<\[]*")
_TAGGABLE = re.compile(r"[A-Za-z_][\w.-]*")
_NO_CALL_INSIDE = ("<![CDATA[",)
_MOST_CALLS = 8

_LEAVES = {
    # a path that begins with a drive is read with its backslashes as they are, so they must be doubled
    "string": r'"\"" ("\"" | [A-Za-z] {drive} | [^A-Za-z"\\\x00-\x1F\x7F] {rest} | {escape} {rest})',
    "drive": r'"\"" | ":" ("\"" | "\\" ["\\/] {rest} | {plain} {rest}) | [^:"\\\x00-\x1F\x7F] {rest} | {escape} {rest}',
    "rest": r'({plain} | {escape})* "\""',
    "integer": r'"0" | "-"? [1-9] [0-9]{0,14}',
    "number": r'{integer} ("." [0-9]{1,12})?',
    "boolean": r'"true" | "false"',
    "null": r'"null"',
    "plain": r'[^"\\\x00-\x1F\x7F]',
    "escape": r'"\\" (["\\/bfnrt] | "u" [0-9A-CEFa-cef] [0-9A-Fa-f]{3})',
    # inside of tags a value must not look like one
    "tagged-char": r'[^"\\<\x00-\x1F\x7F] | "\\" ["\\/bfnrt]',
    "tagged-string": r'"\"" {tagged-char}* "\""',
}


@lru_cache(maxsize=16)
def grammar(tools: tuple[Tool, ...], dialect: str, *, required: bool, parallel: bool) -> str | None:
    """The grammar of an answer that calls these tools in this dialect; None if there is none for it.

    Unless a call is ``required`` the answer may be text, with or without a call behind it. ``parallel`` allows several
    calls, one below the other. ``dialect`` is the name of one, or of a model that speaks it.
    """
    form = _take_apart(dialect_index().resolve_hint(dialect) or "")
    if form is None or not tools:
        return None
    rules = _Rules()
    try:
        calls = [rules.add("call", form.write_call(tool, rules)) for tool in tools]
    except _Unwritable:
        return None
    several = f' ("\\n" call){{0,{_MOST_CALLS - 1}}}' if parallel else ""
    rules.define("call", " | ".join(calls))
    rules.define("calls", f"call{several}")
    root = "calls"
    if not required:
        leads = {form.lead(tool) for tool in tools}
        # behind a back-tick a call would be quoted, not made
        before = rules.add_text({*leads, "`"})
        root = f'{rules.add_text(leads)} | ({before} "\\n")? calls'
    return rules.write(root)


class _Unwritable(Exception):
    """A parameter that this dialect cannot write."""


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rules:
    """The rules of one grammar while it is made."""

    bodies: dict[str, str] = field(default_factory=dict)
    known: dict[object, str] = field(default_factory=dict)

    def define(self, name: str, body: str) -> str:
        self.bodies[name] = body
        return name

    def add(self, stem: str, body: str) -> str:
        return self.define(f"{stem}-{len(self.bodies)}", body)

    def leaf(self, name: str) -> str:
        """The rule of a simple value, and of what it is made of."""
        if name not in self.bodies:
            self.bodies[name] = ""
            self.bodies[name] = re.sub(r"\{([a-z-]+)\}", lambda found: self.leaf(found[1]), _LEAVES[name])
        return name

    def remember(self, key: object, stem: str, make: Callable[[], str]) -> str:
        """One rule for each thing, which may be a part of itself."""
        if key not in self.known:
            name = self.known[key] = self.add(stem, "")
            self.bodies[name] = make()
        return self.known[key]

    def add_text(self, marks: Iterable[str]) -> str:
        """A rule for any text, line breaks and all, in which none of the marks occurs."""
        unwanted = frozenset(marks)
        return self.remember(unwanted, "text", lambda: self._walk(_Automaton(unwanted)))

    def _walk(self, automaton: _Automaton) -> str:
        names = [self.add("text", "") for _ in automaton.steps]
        for name, steps in zip(names, automaton.steps, strict=True):
            onward = [f"{_spell_class(char)} {names[state]}" for char, state in steps.items() if state is not None]
            self.bodies[name] = " | ".join([f"{_spell_class(*steps, but=True)} {names[0]}", *onward, '""'])
        return names[0]

    def write(self, root: str) -> str:
        return "".join(f"{name} ::= {body}\n" for name, body in [("root", root), *self.bodies.items()])


class _Automaton:
    """Follows a text and knows at each character which mark it may be in; ``None`` is the end of one.

    A state is how much of a mark has been seen. ``steps`` tells for each state where a character leads, if it leads
    anywhere but to the first. What a state does not know itself it takes from the longest end of it that is a state.
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
        spare: list[int] = []
        for head in heads:
            spare.append(self.steps[spare[states[head[:-1]]]].get(head[-1]) or 0 if len(head) > 1 else 0)
            self.steps.append((self.steps[spare[-1]] if head else {}) | onward[head])


def _spell(text: str) -> str:
    """A literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _spell_class(*chars: str, but: bool = False) -> str:
    """One of these characters, or any other."""
    inside = "".join(char if char.isalnum() else f"\\U{ord(char):08X}" for char in chars)
    return f"[{'^' if but else ''}{inside}]" if inside else "."


# -- JSON --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Json:
    """Rules for values written as JSON; ``string`` is the rule for its strings."""

    rules: _Rules
    string: str = "string"

    def value(self, shape: SchemaType) -> str:
        return self.rules.remember((shape, self.string), "value", lambda: self._write(shape))

    def _write(self, shape: SchemaType) -> str:
        if shape.enum is not None:
            return " | ".join(_spell(dump(member)) for member in shape.enum) or self._write(ANY)
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
        """An object of the declared members and no others."""
        pairs = {key: f"{_spell(dump(key) + ': ')} {self.value(shape.property_shape(key))}" for key in _keys(shape)}
        needed = [pair for key, pair in pairs.items() if key in shape.required]
        others = [pair for key, pair in pairs.items() if key not in shape.required]
        tail = "".join(f' (", " {pair})?' for pair in others)
        if needed:
            return f'"{{" {_comma.join(needed)}{tail} "}}"'
        starts = [pair + "".join(f' (", " {each})?' for each in others[at + 1 :]) for at, pair in enumerate(others)]
        return f'"{{" ({" | ".join(starts)})? "}}"' if starts else '"{}"'

    def _any_members(self, shape: SchemaType) -> str:
        pair = f'{self.rules.leaf(self.string)} ": " {self.value(shape.links.get("additionalProperties", ANY))}'
        return f'"{{" ({pair} (", " {pair})*)? "}}"'


_comma = ' ", " '


def _keys(shape: SchemaType) -> list[str]:
    """Required members first, each group in the order of declaration."""
    declared = [*shape.properties, *sorted(shape.required.difference(shape.properties))]
    return sorted(declared, key=lambda key: key not in shape.required)


# -- calls -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Form:
    """The sample of a dialect, taken apart: what stands before and behind the arguments."""

    head: str
    tail: str

    def lead(self, tool: Tool) -> str:
        """The beginning by which a call is known."""
        before, _, behind = self.head.partition(_NAME)
        found = _LEAD.match(before if len(before) > 1 else before + tool.name + behind[:1])
        return found[0] if found else before

    def write_call(self, tool: Tool, rules: _Rules) -> str:
        head, tail = (_spell(part.replace(_NAME, tool.name)) for part in (self.head, self.tail) if part or part == "")
        return f"{head} {self.write_arguments(tool, rules)} {tail}"

    def write_arguments(self, tool: Tool, rules: _Rules) -> str:
        """One JSON object."""
        return _Json(rules).members(_shape_of(tool))


@dataclass(frozen=True, slots=True)
class _Tagged(_Form):
    """The same where every parameter stands between marks of its own."""

    open: str
    close: str
    gap: str

    def write_arguments(self, tool: Tool, rules: _Rules) -> str:
        shape = _shape_of(tool)
        if any(not _TAGGABLE.fullmatch(key) for key in shape.required):
            raise _Unwritable
        keys = [key for key in _keys(shape) if _TAGGABLE.fullmatch(key)]
        marks = {*self._marks(tool, keys), *_NO_CALL_INSIDE}
        pairs = [
            f"{_spell(self.open.replace(_KEY, key))} {self._value(shape.property_shape(key), marks, rules)} "
            f"{_spell(self.close.replace(_KEY, key) + self.gap)}"
            for key in keys
        ]
        return " ".join(pair if key in shape.required else f"({pair})?" for key, pair in zip(keys, pairs, strict=True))

    def _marks(self, tool: Tool, keys: Sequence[str]) -> set[str]:
        around = (self.head + self.tail).replace(_NAME, tool.name)
        inside = "".join((self.open + self.close).replace(_KEY, key) for key in keys)
        return {found[0].rstrip() for found in _MARK.finditer(around + inside)}

    def _value(self, shape: SchemaType, marks: set[str], rules: _Rules) -> str:
        if shape.enum:
            raw = (member if isinstance(member, str) else dump(member) for member in shape.enum)
            return f"({' | '.join(map(_spell, raw))})"
        if shape.untyped or any("string" in leaf.kinds and leaf.enum is None for leaf in shape.leaves):
            return rules.add_text(marks)
        return _Json(rules, "tagged-string").value(shape)


def _shape_of(tool: Tool) -> SchemaType:
    """What the tool takes; a schema that cannot be used says nothing."""
    try:
        return compile_schema(tool.parameters, tool.name, "parameters")
    except ToolSchemaError:
        return ANY


@cache
def _take_apart(dialect: str) -> _Form | None:
    record = dialect_index().by_name.get(dialect)
    if record is None:
        return None
    sample = record.sample
    if sample.count(_OBJECT) == 1:
        head, _, tail = sample.partition(_OBJECT)
        return _Form(head, tail)
    found = _TAGS.search(sample)
    if found is None:
        return None
    return _Tagged(sample[: found.start()], sample[found.end() :], found["open"], found["close"], found["gap"])

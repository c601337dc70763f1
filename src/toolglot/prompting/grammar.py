"""Build grammars that only allow valid calls: from a dialect and tools to the GBNF of llama.cpp.

Strategy. The sample of a dialect is one call, ``get_weather`` with ``city`` Oslo. Splitting it at these three
words leaves the marks; with other names and a rule for the value, the sample becomes the grammar of any call. So the
grammar always writes what the sample shows, and a dialect whose sample cannot be split this way has no grammar
(``None``). Values follow the compiled schema of the tool; required parameters come first, in the order of declaration,
because a model in the middle of a call no longer weighs what to write.

Text between tags is any text that contains none of the marks: a finite automaton with one rule per state.
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


@lru_cache(maxsize=16)
def build_grammar(tools: tuple[Tool, ...], dialect: str, *, required: bool, parallel: bool) -> str | None:
    """Build the grammar of an answer that calls these tools in a dialect.

    Parameters: ``dialect`` is a dialect name or a model id. Unless a call is ``required``, the answer may be text, with
    or without a call after it. ``parallel`` allows several calls, one per line.

    Returns: GBNF, or None if the dialect or a parameter cannot be written as a grammar or there are no tools.
    """
    form = _parse_sample(dialect_index().resolve_hint(dialect) or "")
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
        # after a backtick the reader would take the call as quoted
        before = rules.add_text({*leads, "`"})
        root = f'{rules.add_text(leads)} | ({before} "\\n")? calls'
    return rules.write(root)


class _Unwritable(Exception):
    """The dialect cannot write a parameter."""


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rules:
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
            onward = [f"{_char_class(char)} {names[state]}" for char, state in steps.items() if state is not None]
            self.bodies[name] = " | ".join([f"{_char_class(*steps, but=True)} {names[0]}", *onward, '""'])
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


def _literal(text: str) -> str:
    """A GBNF literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _char_class(*chars: str, but: bool = False) -> str:
    """A GBNF character class: one of these characters, or with ``but`` any other."""
    inside = "".join(char if char.isalnum() else f"\\U{ord(char):08X}" for char in chars)
    return f"[{'^' if but else ''}{inside}]" if inside else "."


# -- JSON --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Json:
    """Rules for values written as JSON; ``string`` names the rule for strings."""

    rules: _Rules
    string: str = "string"

    def value(self, shape: SchemaType) -> str:
        return self.rules.share((shape, self.string), "value", lambda: self._write(shape))

    def _write(self, shape: SchemaType) -> str:
        if shape.enum is not None:
            return " | ".join(_literal(dump(member)) for member in shape.enum) or self._write(ANY)
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
        pairs = {key: f"{_literal(dump(key) + ': ')} {self.value(shape.property_type(key))}" for key in _keys(shape)}
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


def _keys(shape: SchemaType) -> list[str]:
    """Required members first, each group in the order of declaration."""
    declared = [*shape.properties, *sorted(shape.required.difference(shape.properties))]
    return sorted(declared, key=lambda key: key not in shape.required)


# -- calls -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _CallForm:
    """A dialect's sample, split into the text before and after the arguments."""

    head: str
    tail: str

    def lead(self, tool: Tool) -> str:
        """The prefix that identifies a call."""
        before, _, behind = self.head.partition(_NAME)
        found = _LEAD.match(before if len(before) > 1 else before + tool.name + behind[:1])
        return found[0] if found else before

    def write_call(self, tool: Tool, rules: _Rules) -> str:
        head, tail = (_literal(part.replace(_NAME, tool.name)) for part in (self.head, self.tail) if part or part == "")
        return f"{head} {self.write_arguments(tool, rules)} {tail}"

    def write_arguments(self, tool: Tool, rules: _Rules) -> str:
        """The arguments as one JSON object."""
        return _Json(rules).members(_shape_of(tool))


@dataclass(frozen=True, slots=True)
class _TaggedForm(_CallForm):
    """A sample in which each parameter has an opening and a closing tag."""

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
            f"{_literal(self.open.replace(_KEY, key))} {self._value(shape.property_type(key), marks, rules)} "
            f"{_literal(self.close.replace(_KEY, key) + self.gap)}"
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
            return f"({' | '.join(map(_literal, raw))})"
        if shape.untyped or any("string" in leaf.kinds and leaf.enum is None for leaf in shape.leaves):
            return rules.add_text(marks)
        return _Json(rules, "tagged-string").value(shape)


def _shape_of(tool: Tool) -> SchemaType:
    """The compiled parameters of the tool; any value if the schema is unusable."""
    try:
        return compile_schema(tool.parameters, tool.name, "parameters")
    except ToolSchemaError:
        return ANY


@cache
def _parse_sample(dialect: str) -> _CallForm | None:
    spec = dialect_index().by_name.get(dialect)
    if spec is None:
        return None
    sample = spec.sample
    if sample.count(_OBJECT) == 1:
        head, _, tail = sample.partition(_OBJECT)
        return _CallForm(head, tail)
    found = _TAGS.search(sample)
    if found is None:
        return None
    return _TaggedForm(sample[: found.start()], sample[found.end() :], found["open"], found["close"], found["gap"])

"""The classes of defects that a weak model makes, as data.

*Strategy.* A class is a name and a function that spoils one answer, given the calls as meant, their schema and the
answer as a good model would send it. A function that does not apply, such as a lost wrapper in a dialect without one,
returns None or the same answer, and the weak model takes another class. Defects that no reader could notice are left
out: a list where a string is due is an ordinary value in a dialect of tagged text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from html import escape
from random import Random
from typing import Any, TypeAlias

from toolglot.core.conversation import Tool
from toolglot.prompting.conversation import write_calls
from toolglot.sim.answer import NATIVE, RenderedAnswer, SimCall
from toolglot.sim.damage import JSON_FAULTS, MARK_FAULTS, Damage, damage_json, unknown_tool, wrong_case
from toolglot.sim.drift import DRIFTS, apply_drift
from toolglot.sim.faults import Refusal

OTHER_DIALECTS = ("hermes", "qwen3_coder", "glm45", "anthropic", "roo_xml", "fenced_json", "mistral_args", "kimi_k2")
ANNOUNCEMENTS = (
    "Let me do that now:",
    "I'll call the tool now.",
    "Now I will write it.",
    "Ich rufe jetzt das Werkzeug auf:",
    "Voy a hacerlo ahora mismo:",
    "Je vais maintenant le faire :",
    "让我现在来处理：",
)
"""How an answer ends that announces an action and stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """An answer with calls before it is spoiled. ``clean`` is what a good model sends, ``dialect`` is ``native`` or how
    the calls are written, ``tool`` is the tool of the first call, or None if it was not offered. ``wire`` is the wire
    of the request; on some of them the arguments of a call are an object, and can be no other text."""

    clean: RenderedAnswer
    calls: tuple[SimCall, ...]
    tools: tuple[Tool, ...]
    tool: Tool | None
    dialect: str
    stream: bool
    random: Random
    wire: str = "openai_chat"

    @property
    def call(self) -> SimCall:
        return self.calls[0]

    @property
    def arguments(self) -> dict[str, Any]:
        return parse_object(self.call.arguments) or {}

    def with_call(self, call: SimCall) -> RenderedAnswer:
        """The answer with another first call, otherwise clean."""
        calls = (call, *self.calls[1:])
        if self.dialect == NATIVE:
            return replace(self.clean, calls=calls)
        return self.with_written(write_text(calls, self.dialect, self.tools))

    def with_arguments(self, arguments: Mapping[str, Any]) -> RenderedAnswer:
        return self.with_call(replace(self.call, arguments=encode(arguments)))

    def with_written(self, written: str) -> RenderedAnswer:
        """The answer with its calls as this text."""
        lead = self.clean.text
        if self.dialect == NATIVE and lead:
            lead += "\n\n"
        return replace(self.clean, text=lead, written=written, calls=())


DefectiveAnswer: TypeAlias = RenderedAnswer | Refusal | None
Spoil: TypeAlias = Callable[[PlannedAnswer], DefectiveAnswer]


def write_text(calls: tuple[SimCall, ...], dialect: str, tools: tuple[Tool, ...]) -> str:
    """Write calls as text in a dialect."""
    return write_calls(dialect, [(call.name, call.arguments) for call in calls], tools)


def encode(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is, or None."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


# The call itself


def name_unknown_tool(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call names a tool that was never offered"""
    return planned.with_call(unknown_tool(planned.call))


def change_case(planned: PlannedAnswer) -> DefectiveAnswer:
    """the name of the tool is in the wrong case"""
    return planned.with_call(wrong_case(planned.call))


def misspell_tool(planned: PlannedAnswer) -> DefectiveAnswer:
    """the name of the tool lacks a character"""
    name = planned.call.name
    at = len(name) // 2
    return planned.with_call(replace(planned.call, name=name[:at] + name[at + 1 :]))


def describe_tool(planned: PlannedAnswer) -> DefectiveAnswer:
    """a description stands where the name of the tool is due"""
    return planned.with_call(replace(planned.call, name=f"Use {planned.call.name} for this"))


def drop_required(planned: PlannedAnswer) -> DefectiveAnswer:
    """a required argument is missing"""
    dropped = next((key for key in reversed(planned.arguments) if key in _required(planned)), None)
    if dropped is None:
        return None
    return planned.with_arguments({key: value for key, value in planned.arguments.items() if key != dropped})


def empty_the_arguments(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call has no arguments although some are required"""
    return planned.with_arguments({}) if _required(planned) else None


def misspell_parameter(planned: PlannedAnswer) -> DefectiveAnswer:
    """the name of a required parameter is misspelt"""
    wrong = next((key for key in planned.arguments if key in _required(planned)), None)
    if wrong is None:
        return None
    return planned.with_arguments(
        {f"{key}_x" if key == wrong else key: value for key, value in planned.arguments.items()}
    )


def leave_enum(planned: PlannedAnswer) -> DefectiveAnswer:
    """a value is not one of those that the schema lists"""
    return _change_value(planned, lambda schema, value: f"{value}-ish" if "enum" in schema else None)


def mistake_type(planned: PlannedAnswer) -> DefectiveAnswer:
    """words stand where a number is due"""
    return _change_value(
        planned, lambda schema, value: "a few of them" if schema.get("type") in ("integer", "number") else None
    )


def _change_value(planned: PlannedAnswer, change: Callable[[Mapping[str, Any], Any], Any]) -> DefectiveAnswer:
    """Change the first value for which ``change`` returns another one."""
    properties = planned.tool.parameters.get("properties", {}) if planned.tool else {}
    for key, value in planned.arguments.items():
        schema = properties.get(key)
        changed = change(schema, value) if isinstance(schema, Mapping) else None
        if changed is not None:
            return planned.with_arguments({**planned.arguments, key: changed})
    return None


def _required(planned: PlannedAnswer) -> tuple[str, ...]:
    return tuple(planned.tool.parameters.get("required", ())) if planned.tool else ()


# The arguments of a native call


def glue_empty(planned: PlannedAnswer) -> DefectiveAnswer:
    """an empty object stands before the arguments"""
    return _raw_arguments(planned, "{}" + planned.call.arguments)


def glue_half(planned: PlannedAnswer) -> DefectiveAnswer:
    """an object with the first argument stands before the arguments"""
    first = dict(list(planned.arguments.items())[:1])
    return _raw_arguments(planned, encode(first) + planned.call.arguments) if len(planned.arguments) > 1 else None


def glue_twice(planned: PlannedAnswer) -> DefectiveAnswer:
    """the arguments are written twice"""
    return _raw_arguments(planned, planned.call.arguments * 2)


def cut_arguments(planned: PlannedAnswer) -> DefectiveAnswer:
    """the arguments end in the middle although the finish reason says nothing of it"""
    size = len(planned.call.arguments)
    return _raw_arguments(planned, planned.call.arguments[: planned.random.randrange(1, size)]) if size > 2 else None


def write_words(planned: PlannedAnswer) -> DefectiveAnswer:
    """words stand where the arguments are due"""
    return _raw_arguments(planned, f"with the arguments {', '.join(planned.arguments)}")


def _raw_arguments(planned: PlannedAnswer, arguments: str) -> RenderedAnswer:
    return planned.with_call(replace(planned.call, arguments=arguments))


def leak_call(planned: PlannedAnswer) -> DefectiveAnswer:
    """the native call is written as text in a dialect"""
    return planned.with_written(write_text(planned.calls, planned.random.choice(OTHER_DIALECTS), planned.tools))


def leak_broken_call(planned: PlannedAnswer) -> DefectiveAnswer:
    """the native call is written as text, and its JSON has lost its end"""
    written = write_text(planned.calls, "hermes", planned.tools)
    return planned.with_written(damage_json(written, lambda found: found[:-2]))


# The text of a call


def cut_call(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call ends in the middle although the finish reason is stop"""
    size = len(planned.clean.written)
    return (
        planned.with_written(planned.clean.written[: planned.random.randrange(size // 4, size)]) if size > 4 else None
    )


def write_other_dialect(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call is in another dialect than the one that was taught"""
    others = [dialect for dialect in OTHER_DIALECTS if dialect != planned.dialect]
    return planned.with_written(write_text(planned.calls, planned.random.choice(others), planned.tools))


def write_arguments_only(planned: PlannedAnswer) -> DefectiveAnswer:
    """only the arguments are written, without the name of the tool"""
    return planned.with_written(planned.call.arguments)


def write_own_envelope(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call is in an envelope of the model's own, with the name as its type"""
    call = {"id": "call_007", "type": planned.call.name, **planned.arguments}
    return planned.with_written(encode({"toolCalls": [call]}))


def write_value_in_tag(planned: PlannedAnswer) -> DefectiveAnswer:
    """the first value stands directly in the tag of the tool"""
    (_, first), *rest = planned.arguments.items() or [("", "")]
    inner = "".join(f"<{key}>{_as_text(value)}</{key}>\n" for key, value in rest)
    return planned.with_written(f"<{planned.call.name}>\n{_as_text(first)}\n{inner}</{planned.call.name}>")


def write_history_line(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call imitates a line of the history"""
    return planned.with_written(f"[Tool Call: {planned.call.name}] Arguments: {planned.call.arguments}")


def wrap_arguments(planned: PlannedAnswer) -> DefectiveAnswer:
    """the arguments stand in a list inside of the arguments"""
    return planned.with_arguments({"args": [planned.arguments]})


def write_name_in_fence(planned: PlannedAnswer) -> DefectiveAnswer:
    """only the name of the tool is written, in a code fence"""
    return planned.with_written(f"```\n{planned.call.name}\n```")


def escape_call(planned: PlannedAnswer) -> DefectiveAnswer:
    """the whole call is written with entities"""
    written = planned.clean.written
    return planned.with_written(escape(written, quote=False)) if written.startswith("<") else None


def lose_angles(planned: PlannedAnswer) -> DefectiveAnswer:
    """the opening marks of tags are lost"""
    written = planned.clean.written
    return planned.with_written(written.replace("<", "")) if written.startswith("<") else None


def put_name_last(planned: PlannedAnswer) -> DefectiveAnswer:
    """the name stands behind the arguments"""

    def turn(found: str) -> str:
        value = json.loads(found)
        return encode(dict(reversed(value.items()))) if "name" in value else found

    return planned.with_written(damage_json(planned.clean.written, turn))


def write_array(planned: PlannedAnswer) -> DefectiveAnswer:
    """the call is an array in the marks of one call"""
    return planned.with_written(damage_json(planned.clean.written, lambda found: f"[{found}]"))


def fence_inside(planned: PlannedAnswer) -> DefectiveAnswer:
    """a code fence stands inside of the marks"""
    return planned.with_written(damage_json(planned.clean.written, lambda found: f"```json\n{found}\n```"))


def indent_json(planned: PlannedAnswer) -> DefectiveAnswer:
    """the JSON of the call is written over many lines"""
    pretty = lambda found: json.dumps(json.loads(found), ensure_ascii=False, indent=2)  # noqa: E731
    return planned.with_written(damage_json(planned.clean.written, pretty))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value)


# The answer


def send_nothing(planned: PlannedAnswer) -> DefectiveAnswer:
    """the answer is empty"""
    return RenderedAnswer(finish="stop")


def announce(planned: PlannedAnswer) -> DefectiveAnswer:
    """the answer announces the call and stops"""
    text = f"{planned.clean.text.rstrip()}\n\n{planned.random.choice(ANNOUNCEMENTS)}".lstrip()
    return RenderedAnswer(text, reasoning=planned.clean.reasoning, finish="stop")


# The server's own parser fails


def fail_readable(planned: PlannedAnswer) -> DefectiveAnswer:
    """the server cannot parse the call, and its error has the whole text of it"""
    written = write_text(planned.calls, planned.random.choice(("hermes", "qwen3_coder", "lfm2")), planned.tools)
    return _fail(planned, f"Failed to parse input at pos {len(planned.clean.text)}: {written}")


def fail_broken(planned: PlannedAnswer) -> DefectiveAnswer:
    """the server cannot parse the call, and its error has a part of it"""
    written = write_text(planned.calls, "hermes", planned.tools)
    part = written[: planned.random.randrange(len(written) // 4, len(written) // 2)]
    return _fail(planned, f"Failed to parse input at pos {len(planned.clean.text)}: {part}")


def fail_format(planned: PlannedAnswer) -> DefectiveAnswer:
    """the server cannot parse the call and shows nothing of it"""
    return _fail(planned, "The model produced output that does not match the expected peg-native format")


def fail_arguments(planned: PlannedAnswer) -> DefectiveAnswer:
    """the server cannot parse the arguments; its error has them and not the name of the tool"""
    if planned.wire not in ("openai_chat", "ollama"):
        return None
    message = (
        f"error parsing tool call: raw='{planned.call.arguments}]', err=invalid character ']' after top-level value"
    )
    error = {"message": message, "type": "api_error", "param": None, "code": None}
    return _refuse(error)


def fail_header(planned: PlannedAnswer) -> DefectiveAnswer:
    """the server cannot parse the header of the call; its error has the name of the tool"""
    if planned.wire not in ("openai_chat", "openai_responses"):
        return None
    message = f'unexpected tokens remaining in message header: Some("to=functions.{planned.call.name}")'
    return _refuse({"message": message, "type": "InternalServerError", "param": None, "code": 500})


def _fail(planned: PlannedAnswer, message: str) -> DefectiveAnswer:
    """Fail before the answer; or, in half of the streams, behind its text."""
    if planned.wire in ("gemini", "ollama"):
        return None
    error = {"code": 500, "message": message, "type": "server_error"}
    if planned.stream and planned.random.random() < 0.5:
        return replace(planned.clean, written="", calls=(), error=encode({"error": error}))
    return _refuse(error)


def _refuse(error: Mapping[str, Any]) -> Refusal:
    return Refusal("the server cannot parse the call", 500, encode({"error": error}).encode())


# The catalogue


def _damage_json(damage: Damage) -> Spoil:
    def spoil(planned: PlannedAnswer) -> DefectiveAnswer:
        if planned.dialect == NATIVE:
            return _raw_arguments(planned, damage(planned.call.arguments))
        return planned.with_written(damage_json(planned.clean.written, damage))

    return spoil


def _damage_marks(damage: Damage) -> Spoil:
    return lambda planned: planned.with_written(damage(planned.clean.written))


def _drift(name: str) -> Spoil:
    return lambda planned: planned.with_written(apply_drift(name, planned.dialect, planned.clean.written))


UNDRAWN = ("call_twice", "fenced_call", "lost_inner_closer")
"""Faults of marks that are not drawn: what they write may be meant as it stands."""

BOTH: Mapping[str, Spoil] = {
    "unknown_tool": name_unknown_tool,
    "misspelt_tool": misspell_tool,
    "wrong_case": change_case,
    "missing_required": drop_required,
    "empty_arguments": empty_the_arguments,
    "misspelt_parameter": misspell_parameter,
    "wrong_enum": leave_enum,
    "wrong_type": mistake_type,
    "wrapped_arguments": wrap_arguments,
    "double_encoded": _damage_json(JSON_FAULTS["double_encoded"]),
    "empty_answer": send_nothing,
    "narrated_stop": announce,
}
TEXT: Mapping[str, Spoil] = {
    **{name: _damage_json(damage) for name, damage in JSON_FAULTS.items() if name != "double_encoded"},
    **{name: _damage_marks(damage) for name, damage in MARK_FAULTS.items() if name not in UNDRAWN},
    "described_tool": describe_tool,
    "cut_call": cut_call,
    "other_dialect": write_other_dialect,
    "name_last": put_name_last,
    "array": write_array,
    "fence_inside": fence_inside,
    "indented_json": indent_json,
    "own_envelope": write_own_envelope,
    "value_in_tag": write_value_in_tag,
    "history_line": write_history_line,
    "escaped_call": escape_call,
    "lost_angles": lose_angles,
}
DRIFTED: Mapping[str, Spoil] = {name: _drift(name) for name in DRIFTS}
NATIVE_ONLY: Mapping[str, Spoil] = {
    "python_arguments": _damage_json(JSON_FAULTS["single_quotes"]),
    "lost_brace": _damage_json(JSON_FAULTS["missing_brace"]),
    "words_for_arguments": write_words,
    "glued_empty": glue_empty,
    "glued_half": glue_half,
    "glued_twice": glue_twice,
    "cut_arguments": cut_arguments,
    "leaked_call": leak_call,
    "leaked_broken_call": leak_broken_call,
    "parser_500_whole": fail_readable,
    "parser_500_part": fail_broken,
    "parser_500_format": fail_format,
    "parser_500_arguments": fail_arguments,
    "parser_500_header": fail_header,
}

VAGUE: Mapping[str, Spoil] = {
    "fenced_call": _damage_marks(MARK_FAULTS["fenced_call"]),
    "arguments_only": write_arguments_only,
    "name_in_fence": write_name_in_fence,
}
"""Text that may be meant as text. A weak model writes it only if it is named in its options."""

DEFECTS: Mapping[str, Spoil] = {**BOTH, **TEXT, **DRIFTED, **NATIVE_ONLY, **VAGUE}
"""Every class by name."""


def draw_order(dialect: str, wanted: Collection[str], random: Random) -> list[str]:
    """The classes of native calls or of calls in text, in the order in which they are tried. Every group of classes has
    the same chance to come first. ``wanted`` limits the classes, and admits the vague ones."""
    groups = [list(BOTH), list(NATIVE_ONLY)] if dialect == NATIVE else [list(BOTH), list(TEXT), list(DRIFTED)]
    if wanted:
        groups = [[name for name in group if name in wanted] for group in (*groups, VAGUE)]
    random.shuffle(groups)
    return [name for group in groups for name in random.sample(group, len(group))]


def is_spoiled(planned: PlannedAnswer, spoiled: DefectiveAnswer) -> bool:
    """Whether a defect applied: there is an answer, it differs from the clean one, and the wire can carry it."""
    if spoiled is None or spoiled == planned.clean:
        return False
    calls = spoiled.calls if isinstance(spoiled, RenderedAnswer) else ()
    has_objects = planned.wire in ("gemini", "ollama") or (planned.wire == "anthropic_messages" and not planned.stream)
    return not has_objects or all(parse_object(call.arguments) is not None for call in calls)

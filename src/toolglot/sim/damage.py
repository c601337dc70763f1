"""Faults that models make in their own calls: in the call itself, its JSON or its marks.

Every public function is a fault: its name is the fault's name, its docstring the help text. A fault that does not apply
leaves the text unchanged, such as a missing brace in a dialect without braces.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from toolglot.sim.answer import SimCall

Damage: TypeAlias = Callable[[str], str]

DECODER = json.JSONDecoder()
OPENER = re.compile(r"\s*(<[^<>\n]+>|\[[A-Z_]+\]|```\w*)")
CLOSER = re.compile(r"(</[^<>\n]+>|<[|｜][^<>\n]+[|｜]>|\[/?[A-Z_]+\]|```)\s*\Z")
INNER_CLOSER = re.compile(r"\n?</[^<>\n]+>")


# The call itself


def unknown_tool(call: SimCall) -> SimCall:
    """the call names a tool that was never offered"""
    return replace(call, name=f"{call.name}_v2")


def wrong_case(call: SimCall) -> SimCall:
    """the name of the tool is in the wrong case"""
    return replace(call, name=call.name.swapcase())


def empty_arguments(call: SimCall) -> SimCall:
    """the call has no arguments at all"""
    return replace(call, arguments="{}")


def missing_argument(call: SimCall) -> SimCall:
    """the first argument is missing"""
    return _with_arguments(call, lambda arguments: dict(list(arguments.items())[1:]))


def wrong_type(call: SimCall) -> SimCall:
    """every argument is wrapped in a list"""
    return _with_arguments(call, lambda arguments: {key: [value] for key, value in arguments.items()})


def string_values(call: SimCall) -> SimCall:
    """numbers, booleans and objects are written as strings"""
    return _with_arguments(
        call,
        lambda arguments: {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()
        },
    )


def _with_arguments(call: SimCall, change: Callable[[dict[str, Any]], dict[str, Any]]) -> SimCall:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return call
    if not isinstance(arguments, dict):
        return call
    return replace(call, arguments=json.dumps(change(arguments), ensure_ascii=False))


CALL_FAULTS = {
    fault.__name__: fault
    for fault in (unknown_tool, wrong_case, empty_arguments, missing_argument, wrong_type, string_values)
}


# JSON: the arguments of a native call, or the first object of a call in text


def single_quotes(text: str) -> str:
    """JSON in Python notation: single quotes, True, None"""
    try:
        return repr(json.loads(text))
    except ValueError:
        return text


def trailing_comma(text: str) -> str:
    """a comma before the last closing brace"""
    return f"{text[:-1]},}}" if text.endswith("}") and text != "{}" else text


def raw_newline(text: str) -> str:
    """line breaks in JSON strings are not escaped"""
    return re.sub(r"(?<!\\)\\n", "\n", text)


def unescaped_quotes(text: str) -> str:
    """quotes in JSON strings are not escaped"""
    return text.replace('\\"', '"')


def missing_brace(text: str) -> str:
    """the last closing brace is missing"""
    return text.removesuffix("}")


def extra_brace(text: str) -> str:
    """one closing brace too many"""
    return text + "}" if text.endswith("}") else text


def double_encoded(text: str) -> str:
    """the arguments are JSON inside a JSON string"""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    key = next((key for key in ("arguments", "parameters") if isinstance(value.get(key), dict)), None)
    whole = value if key is None else value[key]
    packed = json.dumps(whole, ensure_ascii=False)
    return json.dumps(packed if key is None else value | {key: packed}, ensure_ascii=False)


def parameters_key(text: str) -> str:
    """the key of the arguments is called parameters"""
    return text.replace('"arguments"', '"parameters"', 1)


JSON_FAULTS: dict[str, Damage] = {
    fault.__name__: fault
    for fault in (
        single_quotes,
        trailing_comma,
        raw_newline,
        unescaped_quotes,
        missing_brace,
        extra_brace,
        double_encoded,
        parameters_key,
    )
}


def damage_json(text: str, damage: Damage) -> str:
    """Apply a fault to the first JSON object in a text."""
    for start in (found.start() for found in re.finditer(r"\{", text)):
        try:
            _, end = DECODER.raw_decode(text, start)
        except ValueError:
            continue
        return text[:start] + damage(text[start:end]) + text[end:]
    return text


# Marks


def lost_closer(text: str) -> str:
    """the last closing mark is missing"""
    return CLOSER.sub("", text)


def lost_opener(text: str) -> str:
    """the first opening mark is missing"""
    opener = OPENER.match(text)
    return text[opener.end() :] if opener else text


def lost_inner_closer(text: str) -> str:
    """the first closing tag inside the call is missing"""
    found = INNER_CLOSER.search(text)
    last = CLOSER.search(text)
    if not found or (last and found.end() >= last.start(1)):
        return text
    return text[: found.start()] + text[found.end() :]


def wrong_closer(text: str) -> str:
    """the call is closed by </think>"""
    return CLOSER.sub("</think>", text)


def next_opener(text: str) -> str:
    """the call is closed by an opening mark"""
    opener = OPENER.match(text)
    return CLOSER.sub(lambda _: opener[1], text) if opener else text


def damaged_closer(text: str) -> str:
    """a stray quote in the last closing mark"""
    return re.sub(r">\s*\Z", '">', text)


def lost_angle(text: str) -> str:
    """the first opening mark has lost its >"""
    return re.sub(r"\A(\s*<[^<>\n]+)>", r"\1", text)


def renamed_mark(text: str) -> str:
    """the marks around the call have another name"""
    opener, closer = OPENER.match(text), CLOSER.search(text)
    if not opener or not closer or not opener[1].startswith("<") or closer[1][2:] != opener[1][1:]:
        return text
    return f"<tool_use>{text[opener.end() : closer.start()]}</tool_use>"


def double_wrapper(text: str) -> str:
    """the marks around the call are written twice"""
    opener, closer = OPENER.match(text), CLOSER.search(text)
    return f"{opener[1]}\n{text}\n{closer[1]}" if opener and closer else text


def fenced_call(text: str) -> str:
    """the call is in a code fence"""
    return text if text.lstrip().startswith("```") else f"```xml\n{text.strip()}\n```"


def call_in_think(text: str) -> str:
    """the call is in reasoning that is never closed"""
    return f"<think>\nI need the tool.\n{text}"


def stray_word(text: str) -> str:
    """a stray word before the call"""
    return f"court\n{text}"


def prose_after(text: str) -> str:
    """prose follows the call"""
    return f"{text}\n\nNow I wait for the tool."


def fabricated_result(text: str) -> str:
    """the model makes up the result after the call"""
    return f"{text}\n<tool_response>\nAll is well.\n</tool_response>\nIt worked."


def call_twice(text: str) -> str:
    """the same call is written twice"""
    return f"{text}\n{text}"


MARK_FAULTS: dict[str, Damage] = {
    fault.__name__: fault
    for fault in (
        lost_closer,
        lost_opener,
        lost_inner_closer,
        wrong_closer,
        next_opener,
        damaged_closer,
        lost_angle,
        renamed_mark,
        double_wrapper,
        fenced_call,
        call_in_think,
        stray_word,
        prose_after,
        fabricated_result,
        call_twice,
    )
}

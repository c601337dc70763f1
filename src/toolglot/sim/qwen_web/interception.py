"""The platform's own reading of native calls: it takes them out of the answer and refuses to run them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from toolglot.sim.answer import SimCall

CALL = re.compile(r"\s*<tool_call>\s*(?P<body>.*?)\s*</tool_call>", re.S)
FUNCTION = re.compile(r"<function=(?P<name>[^>\s]+)>(?P<body>.*?)</function>", re.S)
PARAMETER = re.compile(r"<parameter=(?P<key>[^>\s]+)>\n?(?P<value>.*?)\n?</parameter>", re.S)


@dataclass(frozen=True, slots=True)
class Interception:
    """An answer as the platform divides it: the text before the calls, the calls, and what the model writes then."""

    text: str
    calls: tuple[SimCall, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        return tuple(f"Tool {call.name} does not exists." for call in self.calls)

    @property
    def apology(self) -> str:
        names = ", ".join(dict.fromkeys(call.name for call in self.calls))
        return f"I'm sorry, I do not have access to {names}." if names else ""


def intercept_calls(content: str) -> Interception:
    """Divide an answer. Markup that is not a well-formed native call stays text; text after the calls is never written,
    because the model gets their results first."""
    first = content.find("<tool_call>")
    if first < 0:
        return Interception(content)
    calls: list[SimCall] = []
    position = first
    while (found := CALL.match(content, position)) and (call := _parse_call(found["body"])):
        calls.append(call)
        position = found.end()
    return Interception(content[:first], tuple(calls)) if calls else Interception(content)


def _parse_call(body: str) -> SimCall | None:
    if function := FUNCTION.fullmatch(body):
        values = {found["key"]: _parse_value(found["value"]) for found in PARAMETER.finditer(function["body"])}
        return SimCall(function["name"], json.dumps(values, ensure_ascii=False))
    try:
        call = json.loads(body)
    except ValueError:
        return None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        return None
    arguments = call.get("arguments", {})
    return SimCall(call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))


def _parse_value(text: str) -> object:
    """A parameter as JSON if it is an object, a list, a number or a constant, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text

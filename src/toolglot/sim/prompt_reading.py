"""What a prompt and its results teach: the dialect to write in, whether a call is demanded, what a tool gave back.

A model knows the dialects it was trained on; the simulated one knows all records. Which of them is wanted it learns
from the form that the prompt shows, as a model does.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache

from toolglot.core.conversation import Tool
from toolglot.dialects.records import all_dialects
from toolglot.prompting.conversation import write_call

FORM_CALL = ("tool_name", '{"parameter1": "value1", "parameter2": "value2"}')
"""The call that a taught prompt shows as the form of all calls."""

FORM_PARAMETERS = {"type": "object", "properties": {"parameter1": {"type": "string"}, "parameter2": {"type": "string"}}}

DIALECT_MARKS = (
    ("<function=", "qwen3_coder"),
    ("<arg_key>", "glm45"),
    ("<invoke name=", "anthropic"),
    ("```tool_code", "fenced_tool_flat"),
    ("<tool_call>", "hermes"),
    ("```json", "fenced_json"),
)
"""Marks that give a dialect away in a prompt that was not written by toolglot."""

DEMAND = re.compile(r"You must call (?:a tool|the tool (?P<name>\S+)) now")


@lru_cache(maxsize=64)
def detect_dialect(prompt: str) -> str:
    """The dialect a prompt asks for: the one whose form it shows, or whose marks; tags are what is left."""
    shown = [dialect for form, dialect in _forms().items() if form in prompt]
    if shown:
        return max(shown, key=lambda dialect: len(_write_form(dialect)))
    return next((dialect for mark, dialect in DIALECT_MARKS if mark in prompt), "roo_xml")


@cache
def _forms() -> dict[str, str]:
    """Every form and the first dialect that writes so; hermes before those that only fall back on it."""
    forms = {_write_form("hermes"): "hermes"}
    for record in all_dialects():
        forms.setdefault(_write_form(record.name), record.name)
    return forms


def _write_form(dialect: str) -> str:
    return write_call(dialect, *FORM_CALL, (Tool(FORM_CALL[0], "", FORM_PARAMETERS),))


def detect_choice(prompt: str) -> str:
    """Whether the prompt demands a call: ``auto``, ``required``, or the name of the tool."""
    demand = DEMAND.search(prompt)
    if not demand:
        return "auto"
    return demand["name"] or "required"


# Results told as text

CLIENT_RESULTS = (r"\[[\w.-]+ for '[^'\n]*'\] Result:\s*(?P<content>.*)",)
"""How clients that speak of tools in text tell results."""

_SLOTS = {
    "verdict": r"(?:Tool Result|Error)",
    "name": r"[\w.:-]+",
    "content": r"(?P<content>.*?)",
    "json": r'(?P<json>"(?:[^"\\]|\\.)*")',
}


@cache
def _result_patterns() -> tuple[re.Pattern[str], ...]:
    """The ways of telling a result, from the records; the longest, which tell most, first."""
    returns = sorted({record.returns for record in all_dialects()}, key=len, reverse=True)
    return tuple(re.compile(pattern, re.S) for pattern in (*map(_pattern_of, returns), *CLIENT_RESULTS))


def _pattern_of(returns: str) -> str:
    pieces = re.split(r"\{(verdict|name|content|json)\}", returns)
    inside = "".join(_SLOTS[piece] if number % 2 else re.escape(piece) for number, piece in enumerate(pieces))
    if not returns.endswith("{content}"):
        return inside
    start = inside.removesuffix(_SLOTS["content"])
    return rf"{inside}(?=\n+{start}|\Z)"


def split_result(text: str) -> tuple[str, str | None]:
    """What a user message asks, and the results it tells before that, if it tells any.

    A result without a closing mark goes on to the end of the message.
    """
    results: list[str] = []
    rest = text.lstrip()
    while found := next(filter(None, (pattern.match(rest) for pattern in _result_patterns())), None):
        told = found.groupdict()
        results.append(told["content"] if told.get("json") is None else json.loads(told["json"], strict=False))
        rest = rest[found.end() :].lstrip()
    return (rest, "\n".join(results)) if results else (text, None)

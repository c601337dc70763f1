"""Read a prompt and the results in it: the dialect to write in, whether a call is required, what tools returned.

A model knows the dialects it was trained on; the simulated one knows all dialects. Like a model, it learns which one to
use from the call form that the prompt shows.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache

from toolglot.prompting.tool_prompt import write_form
from toolglot.reading.plugins import known_dialects

DIALECT_MARKS = (
    ("<function=", "qwen3_coder"),
    ("<arg_key>", "glm45"),
    ("<invoke name=", "anthropic"),
    ("```tool_code", "fenced_tool_flat"),
    ("<tool_call>", "hermes"),
    ("```json", "fenced_json"),
)
"""Marks that identify a dialect in a prompt that toolglot did not write."""

CALL_REQUIRED = re.compile(r"You must call (?:a tool|the tool (?P<name>\S+)) now")


@lru_cache(maxsize=64)
def detect_dialect(prompt: str) -> str:
    """The dialect that a prompt asks for, by the call form or the marks it shows; ``roo_xml`` if there are none."""
    shown = [dialect for form, dialect in _forms().items() if form in prompt]
    if shown:
        return max(shown, key=lambda dialect: len(write_form(dialect)))
    return next((dialect for mark, dialect in DIALECT_MARKS if mark in prompt), "roo_xml")


@cache
def _forms() -> dict[str, str]:
    """Every call form and the first dialect that writes it; hermes before those that only fall back to it."""
    forms = {write_form("hermes"): "hermes"}
    for spec in known_dialects():
        forms.setdefault(write_form(spec.name), spec.name)
    return forms


def detect_choice(prompt: str) -> str:
    """The tool choice of a prompt: ``auto``, ``required``, or the name of the tool to call."""
    requirement = CALL_REQUIRED.search(prompt)
    if not requirement:
        return "auto"
    return requirement["name"] or "required"


# Results as text

CLIENT_RESULTS = (r"\[[\w.-]+ for '[^'\n]*'\] Result:\s*(?P<content>.*)",)
"""Result formats of clients that handle tools as text."""

_SLOTS = {
    "verdict": r"(?:Tool Result|Error)",
    "name": r"[\w.:-]+",
    "content": r"(?P<content>.*?)",
    "json": r'(?P<json>"(?:[^"\\]|\\.)*")',
}


@cache
def _result_patterns() -> tuple[re.Pattern[str], ...]:
    """The result formats of all dialects; the longest, which are the most specific, first."""
    returns = sorted({spec.returns for spec in known_dialects()}, key=len, reverse=True)
    return tuple(re.compile(pattern, re.S) for pattern in (*map(_pattern_of, returns), *CLIENT_RESULTS))


def _pattern_of(returns: str) -> str:
    pieces = re.split(r"\{(verdict|name|content|json)\}", returns)
    inside = "".join(_SLOTS[piece] if number % 2 else re.escape(piece) for number, piece in enumerate(pieces))
    if not returns.endswith("{content}"):
        return inside
    start = inside.removesuffix(_SLOTS["content"])
    return rf"{inside}(?=\n+{start}|\Z)"


def split_result(text: str) -> tuple[str, str | None]:
    """Split a user message into the question and the results before it, or None if there are none.

    A result without a closing mark extends to the end of the message.
    """
    results: list[str] = []
    rest = text.lstrip()
    while found := next(filter(None, (pattern.match(rest) for pattern in _result_patterns())), None):
        groups = found.groupdict()
        results.append(groups["content"] if groups.get("json") is None else json.loads(groups["json"], strict=False))
        rest = rest[found.end() :].lstrip()
    return (rest, "\n".join(results)) if results else (text, None)

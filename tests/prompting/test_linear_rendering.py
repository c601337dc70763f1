"""No text in a conversation makes its prompt super-linear, and costly arguments are read back once.

Every field of a conversation that has text is filled with one mark over and over, at one size and at ten times that size
(see ``support.growth``). Marks come from the samples of all dialects.
"""

from __future__ import annotations

import json
import random
import re
from time import process_time
from typing import Any

import pytest
from support.fragments import SCALE, fragments
from support.growth import assert_growth

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.prompting import call_writer
from toolglot.prompting.call_writer import write_call
from toolglot.prompting.conversation import render_as_text

DIALECTS = ("roo_xml", "hermes", "pythonic")
SMALL, LARGE = 300, 3_000
LIMIT, NOISE = 25, 0.05
FLOODS = ("</a>", "<a>", "</parameter>\n", "<", '{"a": ', '"', "\\", "\n")


def make_units() -> list[str]:
    """Marks of every kind, a few of them chosen by chance: those that differ only in their words are one kind."""
    kinds: dict[str, str] = {}
    for fragment in fragments():
        if re.search(r"[^\w.]", fragment):
            kinds.setdefault(re.sub(r"[^\W_]+", "a", fragment), fragment)
    return [*FLOODS, *random.Random(5).sample(sorted(kinds.values()), min(len(kinds), 4 * SCALE))]


def make_conversation(text: str) -> Conversation:
    """A conversation with this text in all its fields."""
    properties = {"path": {"type": "string", "default": text}, "count": {"type": "integer"}}
    tool = Tool("read", text, {"type": "object", "properties": properties, "required": ["path"]})
    calls = [{"path": text}, {"count": text}, {"path": [text]}, {"other": text, "path": "a"}]
    parts = [ToolCall(f"c{at}", "read", json.dumps(given)) for at, given in enumerate(calls)]
    return Conversation(
        "m",
        (
            Message("system", (Text(text),)),
            Message("user", (Text(text),)),
            Message("assistant", (Text(text), *parts, ToolCall("raw", "read", text))),
            Message("tool", tuple(ToolResult(part.id, "read", (Text(text),)) for part in parts)),
            Message("user", (Text("Go on."),)),
        ),
        tools=(tool,),
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_field_makes_the_prompt_super_linear(dialect: str) -> None:
    for unit in make_units():
        taken = iter(range(10**6))  # every text differs, so that no cache knows it

        def measure(size: int, unit: str = unit, taken: Any = taken) -> float:
            conversation = make_conversation(f"{next(taken)}{(unit * size)[:size]}")
            begun = process_time()
            render_as_text(conversation, dialect)
            return process_time() - begun

        assert_growth(measure, SMALL, LARGE, LIMIT, NOISE)


@pytest.mark.parametrize("dialect", ["roo_xml", "qwen3_coder", "glm45", "anthropic", "minimax_m2"])
@pytest.mark.parametrize("given", [{"count": "{}"}, {"path": ["{}"]}, {"path": {"a": "{}"}}], ids=json.dumps)
def test_long_arguments_that_do_not_fit_the_schema_are_read_back_once(
    dialect: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks take long to read. With a schema that does not fit, no form of a call would read back, and all would be read again
    without it."""
    texts: list[str] = []

    def note(text: str, **options: Any) -> Any:
        if '"name": "read"' not in text:  # JSON is read fast
            texts.append(text)
        return toolglot.read(text, **options)

    monkeypatch.setattr(call_writer, "read", note)
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "count": {"type": "integer"}}}
    arguments = json.dumps(given).replace("{}", "</a>" * 2000)
    written = write_call(dialect, "read", arguments, (Tool("read", "", schema),))
    assert "</a></a>" in written
    assert 1 <= len(texts) <= 3 and len(texts) == len(set(texts))

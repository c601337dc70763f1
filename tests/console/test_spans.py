"""The coloured segments of a model's text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.console.spans import KINDS, PROSE, Region, read_text, split
from toolglot.core.conversation import Message, Text, Tool
from toolglot.core.options import Options

TOOLS = (
    Tool(
        "read",
        "",
        {
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array"}},
            "required": ["filePath"],
        },
    ),
)
CALL = '<tool_call>\n{"name": "read", "arguments": {"filePath": "a.txt", "limit": 12}}\n</tool_call>'


def kinds(text: str, asked: str = "Hi", dialect: str = "hermes") -> list[tuple[str, str]]:
    reading = read_text(text, TOOLS, [Message("user", (Text(asked),))], dialect, Options())
    assert "".join(segment.text for segment in reading.segments) == text
    return [(segment.kind, segment.text) for segment in reading.segments]


def test_a_call_and_its_parameters() -> None:
    assert kinds(f"Now:\n{CALL}") == [
        ("prose", "Now:\n"),
        ("call", '<tool_call>\n{"name": "read", "arguments": {"filePath": "'),
        ("parameter", "a.txt"),
        ("call", '", "limit": '),
        ("parameter", "12"),
        ("call", "}}\n</tool_call>"),
    ]


@pytest.mark.parametrize("dialect", ["qwen3_coder", "glm45", "roo_xml", "mistral_args", "harmony"])
def test_parameters_of_other_dialects(dialect: str) -> None:
    import toolglot

    declared = [{"type": "function", "function": {"name": "read", "parameters": TOOLS[0].parameters}}]
    text = toolglot.write("read", {"filePath": 'a "b" <c>\n', "limit": 7}, dialect, declared)
    values = [text for kind, text in kinds(text, dialect=dialect) if kind == "parameter"]
    assert len(values) == 2 and values[1] == "7"


def test_reasoning_repair_and_rejected() -> None:
    assert ("reasoning", "Hm, well.") in kinds(f"<think>Hm, well.</think>{CALL}")
    assert "repair" in dict(kinds(CALL.removesuffix("</tool_call>")))
    assert dict(kinds(CALL.replace("filePath", "odd")))["rejected"].startswith("<tool_call>")


def test_a_quoted_call() -> None:
    quoted = kinds(f"I have read it.\n{CALL}\nI leave it alone, it is a quotation.", asked=f"Look: {CALL}")
    assert "call" not in dict(quoted)
    assert any(kind == "quoted" and "a.txt" in text for kind, text in quoted)


@pytest.mark.parametrize(
    "around",
    [
        "For example: {}\n\nThat is all.",
        "```\n{}\n```\nThat is how it looks.",
        "You could write {} but I do not. Shall I?",
    ],
)
def test_a_call_that_is_only_shown(around: str) -> None:
    """A reader of the console asks why it was not executed."""
    found = kinds(around.format(CALL))
    assert ("quoted", CALL) in found and "call" not in dict(found)


def test_a_name_in_prose_is_no_shown_call() -> None:
    text = 'Use read [1] or {read} or <b>read</b>, or `"name": "read"`, or {"name": "read"} when you can. ' * 30
    assert kinds(text) == [("prose", text)]


@pytest.mark.parametrize("text", ["", "plain", "\u202e\x00\ud7ff😀", "<tool_call>", "{" * 2000])
def test_odd_texts(text: str) -> None:
    kinds(text)


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(0, 45), st.integers(0, 45), st.sampled_from(KINDS))))
def test_regions_of_any_kind_lose_nothing(text: str, found: list[tuple[int, int, str]]) -> None:
    regions = [Region(min(one, other, len(text)), min(max(one, other), len(text)), kind) for one, other, kind in found]
    segments = split(text, regions)
    assert "".join(segment.text for segment in segments) == text
    assert all(segment.text for segment in segments)
    if not regions:
        assert all(segment.kind == PROSE for segment in segments) and len(segments) <= 1

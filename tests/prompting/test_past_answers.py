"""Earlier answers in a prompt: what the model must not imitate is escaped, everything else stays."""

from __future__ import annotations

import pytest

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.prompting.conversation import render_as_text

READ = Tool("read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}})
HERMES = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'
ROO = "<read_file>\n<path>a</path>\n</read_file>"
MADE_UP = "<tool_response>\nhello\n</tool_response>"


def render(dialect: str, text: str) -> tuple[str, str]:
    """The earlier answer in the prompt, with the break character as a caret, and as it is without it."""
    history = (Message("user", (Text("go"),)), Message("assistant", (Text(text),)), Message("user", (Text("?"),)))
    prompted = render_as_text(Conversation("m", history, (READ,)), dialect)
    shown, char = prompted.conversation.messages[2].text, prompted.break_character
    return (shown.replace(char, "^"), shown.replace(char, "")) if char else (shown, shown)


@pytest.mark.parametrize(
    ("dialect", "text", "shown"),
    [
        ("roo_xml", f"I look.\n{HERMES}", "<^tool_call>"),
        ("hermes", f"I look.\n{ROO}", "<^read_file>"),
        ("qwen3_coder", f"I look.\n{ROO}", "<^read_file>"),
        ("hermes", f"{HERMES}\n{MADE_UP}\nIt says hello.", "<^tool_response>"),
        ("hermes", f"It says this.\n{MADE_UP}\nSo I am done.", "<^tool_response>"),
        ("react", "Thought: I look.\nObservation: hello", "O^bservation:"),
    ],
)
def test_other_dialects_and_made_up_results_are_escaped(dialect: str, text: str, shown: str) -> None:
    escaped, restored = render(dialect, text)
    assert shown in escaped
    assert restored == text


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("hermes", f"I look.\n{HERMES}"),
        ("roo_xml", f"I look.\n{ROO}"),
        ("hermes", "<think>Hm.</think>The tag <b> is bold, and a < b."),
        ("roo_xml", "Observation: it works."),
        ("hermes", "Done."),
    ],
)
def test_everything_else_stays(dialect: str, text: str) -> None:
    assert render(dialect, text) == (text, text)


def test_the_escaped_call_is_not_read_again() -> None:
    escaped, _ = render("hermes", ROO)
    tools = [{"name": READ.name, "parameters": dict(READ.parameters)}]
    assert not toolglot.read(escaped.replace("^", "\u2060"), tools).calls


def test_real_calls_beside_such_a_text_are_written_in_the_dialect() -> None:
    made = Message("assistant", (Text(f"{ROO}\n"), ToolCall("c", "read_file", '{"path":"b"}')))
    history = (Message("user", (Text("go"),)), made, Message("tool", (ToolResult("c"),)))
    text = render_as_text(Conversation("m", history, (READ,)), "hermes").conversation.messages[2].text
    assert "<read_file>" not in text
    assert '<tool_call>\n{"name": "read_file", "arguments": {"path": "b"}}\n</tool_call>' in text

"""Calls inside an element that is itself a call, of a tool that is not on offer or with other parameters, are text."""

from __future__ import annotations

import pytest

import toolglot
from toolglot.reading.reader import collect

TOOLS = [
    {
        "name": "run",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    {
        "name": "save_page",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "body": {"type": "string"}},
            "required": ["path", "body"],
        },
    },
]
CALLS = {
    "hermes": '<tool_call>\n{"name": "run", "arguments": {"command": "rm -r build"}}\n</tool_call>',
    "mistral_args": '[TOOL_CALLS]run[ARGS]{"command": "rm -r build"}',
    "roo_xml": "<run>\n<command>rm -r build</command>\n</run>",
    "fenced_json": '```json\n{"name": "run", "arguments": {"command": "rm -r build"}}\n```',
    "react": 'Action: run\nAction Input: {"command": "rm -r build"}',
}
OPEN = {
    "of an unknown tool": "<write_to_file>\n<path>a.md</path>\n<content>\n# Build\n\n",
    "of an unknown tool, on one line": "<writeToFile><path>a.md</path><content># Build\n\n",
    "of an unknown tool, all nested": "<create_page>\n<args>\n<text>\n# Build\n\n",
    "of a known tool with other parameters": "<save_page>\n<file>a.md</file>\n<text>\n# Build\n\n",
    "of a known tool with loose text": "<save_page>\n# Build\n\n",
    "of a known tool with attributes": '<save_page path="a.md">\n# Build\n\n',
    "behind a fence": "```html\n<p>\n```\n\n<write_to_file>\n<path>a.md</path>\n<content>\n# Build\n\n",
}
NOT_OPEN = {
    "closed": "<write_to_file>\n<path>a.md</path>\n<content>\n# Build\n</content>\n</write_to_file>\n\n",
    "in a fence": "```xml\n<write_to_file>\n<path>a.md</path>\n<content>\n# Build\n```\n\n",
    "in inline code": "`<write_to_file>` has `<path>` and `<content>`, which I need.\n\n",
    "around calls": "<next_action>\n<step>\nFirst the build.\n",
    "of another kind": "<summary>\n<p>\nThe build is old.\n\n",
    "without a child": "<your_name>\nThe build is old.\n\n",
    "in a sentence": "The page begins with <write_to_file> and <content> here.\n\n",
}


def read(text: str, size: int) -> tuple[str, list[str]]:
    """The text and the names of the calls of an answer that arrives in pieces of that size."""
    reader = toolglot.Reader(TOOLS)
    events = [event for at in range(0, len(text), size) for event in reader.feed(text[at : at + size])]
    reading = collect([*events, *reader.close()], text)
    return reading.text, [call.name for call in reading.calls]


@pytest.mark.parametrize("dialect", CALLS)
def test_a_call_inside_an_open_element_is_text(dialect: str) -> None:
    for kind, before in OPEN.items():
        for behind in ("", "\n\nThat is all.", "\n</content>\n", "\n</content>\n</write_to_file>"):
            answer = f"I write the page.\n\n{before}{CALLS[dialect]}{behind}"
            for size in (1, 7, len(answer)):
                assert read(answer, size) == (answer, []), kind


@pytest.mark.parametrize("dialect", CALLS)
def test_a_call_behind_other_elements_is_made(dialect: str) -> None:
    for kind, before in NOT_OPEN.items():
        answer = f"I look at the page.\n\n{before}{CALLS[dialect]}"
        for size in (1, 7, len(answer)):
            assert read(answer, size)[1] == ["run"], kind

"""Other keys for well-known arguments, for every client: a key counts only where the call would fail without it.

The keys are those of "Roo-Cline Response Transformer Specification" (XML Generator: ``params.path || params.file``,
``params.regex || params.pattern``, ``params.command || params.cmd``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import chunkings, read_events

import toolglot
from toolglot.core.events import CallEnded
from toolglot.core.schema.aliases import ALIASES
from toolglot.dialects.records import all_dialects


def tool(name: str, *required: str, **optional: dict[str, Any]) -> dict[str, Any]:
    properties = {key: {"type": "string"} for key in required} | optional
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [
    tool("read_file", "path", lines={"type": "integer"}),
    tool("execute_command", "command", cwd={"type": "string"}),
    tool("search_files", "path", "regex"),
    tool("write_to_file", "path", "content"),
    tool("read", "filePath"),
    tool("rename", "path", "file"),
    tool("copy", "path", "file_path"),
    tool("show", path={"type": "string"}),
    tool("count", lines={"type": "integer"}),
]
GIVEN = [
    ("read_file", {"file": "a.txt"}, {"path": "a.txt"}),
    ("read_file", {"file_path": "a.txt", "lines": 3}, {"path": "a.txt", "lines": 3}),
    ("read_file", {"lines": 3, "filename": "a.txt"}, {"lines": 3, "path": "a.txt"}),
    ("execute_command", {"cmd": "npm test && ls", "cwd": "/x"}, {"command": "npm test && ls", "cwd": "/x"}),
    ("search_files", {"file": "src", "pattern": "a+b"}, {"path": "src", "regex": "a+b"}),
    ("write_to_file", {"content": "x\ny", "file": "a"}, {"content": "x\ny", "path": "a"}),
    ("read", {"file": "a.txt"}, {"filePath": "a.txt"}),
]
DIALECTS = ("hermes", "fenced_tool_flat", "fenced_json", "bare_json", "qwen3_coder", "roo_xml", "anthropic", "glm45")


@in_one_test("dialect", DIALECTS)
@in_one_test(("name", "given", "meant"), GIVEN)
def test_an_alias_of_a_missing_argument_is_that_argument(
    name: str, given: dict[str, Any], meant: dict[str, Any], dialect: str
) -> None:
    text = toolglot.write(name, json.dumps(given), dialect, TOOLS)
    (call,) = toolglot.read(text, TOOLS).calls
    assert json.loads(call.arguments) == meant and list(json.loads(call.arguments)) == list(meant)
    assert "renamed_argument" in call.repairs
    whole = read_events([text], tools=TOOLS)
    for _, pieces in chunkings(text, "aliases"):
        assert read_events(pieces, tools=TOOLS) == whole


@in_one_test("dialect", ["hermes", "qwen3_coder", "anthropic", "glm45"])
@in_one_test(
    ("name", "given"),
    [
        pytest.param("read_file", {"file": "x", "path": "a"}, id="the argument follows"),
        pytest.param("read_file", {"path": "a", "file": "x"}, id="the argument came before"),
        pytest.param("read_file", {"file": "x", "filename": "y", "path": "a"}, id="two aliases and the argument"),
        pytest.param("rename", {"path": "a", "file": "b"}, id="declared itself"),
        pytest.param("show", {"file": "a"}, id="not required"),
        pytest.param("execute_command", {"command": "ls", "pattern": "x"}, id="of another tool"),
    ],
)
def test_a_call_that_needs_no_alias_stays_as_it_was_written(name: str, given: dict[str, Any], dialect: str) -> None:
    text = toolglot.write(name, json.dumps(given), dialect, TOOLS)
    (call,) = toolglot.read(text, TOOLS).calls
    assert json.loads(call.arguments) == given and list(json.loads(call.arguments)) == list(given)
    assert "renamed_argument" not in call.repairs


@pytest.mark.parametrize(
    ("name", "given", "missing"),
    [
        pytest.param("read_file", {"file": "x", "filename": "y"}, "path", id="two aliases"),
        pytest.param("rename", {"file": "x"}, "path", id="the alias is declared"),
        pytest.param("copy", {"file": "x"}, "path", id="it may mean two arguments"),
        pytest.param("read_file", {"file": {"name": "x"}}, "path", id="no text"),
        pytest.param("read_file", {"file": 5}, "path", id="a number"),
        pytest.param("read", {"path": "x"}, "filePath", id="no alias of this one"),
        pytest.param("read_file", {"pth": "x"}, "path", id="a misspelt key"),
    ],
)
def test_what_is_not_clear_is_rejected(name: str, given: dict[str, Any], missing: str) -> None:
    reading = toolglot.read(toolglot.write(name, json.dumps(given), "hermes", TOOLS), TOOLS)
    assert reading.calls == []
    assert [(one.tool, one.reason.value) for one in reading.rejected] == [(name, "missing_argument")]
    assert any(missing in str(defect) for defect in reading.rejected[0].defects)


def test_a_file_that_holds_such_elements_stays_what_it_is() -> None:
    content = "<list>\n<file>b.txt</file>\n<cmd>ls</cmd>\n</list>"
    for dialect in ("roo_xml", "qwen3_coder", "anthropic"):
        text = toolglot.write("write_to_file", json.dumps({"content": content, "path": "a"}), dialect)
        (call,) = toolglot.read(text, TOOLS).calls
        assert json.loads(call.arguments) == {"content": content, "path": "a"}


@pytest.mark.parametrize("dialect", ["hermes", "qwen3_coder"])
def test_a_call_that_was_cut_behind_an_alias_is_not_complete(dialect: str) -> None:
    text = toolglot.write("write_to_file", json.dumps({"file": "a", "content": "x" * 50}), dialect)
    for cut in range(20, text.index("x" * 50) + 50):
        events = read_events([text[:cut]], tools=TOOLS, truncated=True)
        assert not any(isinstance(event, CallEnded) for event in events)


def test_without_an_alias_nothing_waits() -> None:
    reader = toolglot.Reader(TOOLS)
    events = reader.feed('<tool_call>\n{"name": "write_to_file", "arguments": {"path": "a", "content": "abc')
    assert "abc" in "".join(getattr(event, "fragment", "") for event in events)


def test_no_argument_is_an_alias_of_two() -> None:
    assert all(name not in aliases for name, aliases in ALIASES.items())
    assert {dialect.name for dialect in all_dialects()} >= set(DIALECTS)


@pytest.mark.parametrize(
    "text",
    [
        "<read_file>\n<file>a</file>\n<filename>b</filename>\n</read_file>",
        '```tool_code\n{"tool": "read_file", "file": "a", "filename": "b"}\n```',
        '{"name": "read_file", "arguments": {"file": 5}}',
    ],
)
def test_ordinary_text_stays_text_where_an_alias_is_not_clear(text: str) -> None:
    for _, pieces in chunkings(text, "aliases"):
        reader = toolglot.Reader(TOOLS)
        events = [event for piece in pieces for event in reader.feed(piece)] + reader.close()
        assert "".join(getattr(event, "text", "?") for event in events) == text


CLOSED = [
    {
        "type": "function",
        "function": {
            "name": "read_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "lines": {"type": "number"}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
    }
]


@in_one_test(
    ("given", "meant"),
    [
        ({"file": "a"}, {"path": "a"}),
        ({"file": "x", "path": "a", "lines": 1.50}, {"path": "a", "lines": 1.50}),
        ({"lines": 2, "file": "x", "path": "a"}, {"lines": 2, "path": "a"}),
        ({"path": "a", "file": "x"}, {"path": "a"}),
    ],
)
@in_one_test("dialect", ["hermes", "qwen3_coder", "fenced_json"])
def test_a_forbidden_key_is_an_alias_or_left_out(given: dict[str, Any], meant: dict[str, Any], dialect: str) -> None:
    text = toolglot.write("read_file", json.dumps(given), dialect)
    (call,) = toolglot.read(text, CLOSED).calls
    assert json.loads(call.arguments) == meant
    whole = read_events([text], tools=CLOSED)
    for _, pieces in chunkings(text, "aliases"):
        assert read_events(pieces, tools=CLOSED) == whole

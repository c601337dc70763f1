"""XML clients: what their parsers read, what is rendered for them, and what is refused.

Names of tests with *Transformer* are those of the "Roo-Cline Response Transformer Specification", the document that
asked for this: its generators and test cases, and the inputs on which its expressions fail.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.event_order import check_order
from support.rows import in_one_test

from toolglot.clients.xml import all_clients
from toolglot.clients.xml.argument_escaping import escape_arguments, escape_value
from toolglot.clients.xml.call_renderer import render_call
from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.diff_repair import repair_diff
from toolglot.clients.xml.nested_parser import MalformedValue, parse_files, parse_suggestions
from toolglot.clients.xml.profile import XmlCallBlock, XmlTextBlock
from toolglot.clients.xml.response_renderer import Outcome, ResponseRenderer
from toolglot.clients.xml.text_escaping import TextEscaper, escape_text, unescape_text
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
)
from toolglot.core.schema.toolset import CompiledTools
from toolglot.reading.reader import Reader

CLIENTS = all_clients()
ROO, ROO_NEW, KILO, CLINE = (CLIENTS[name] for name in ("roo-3.29", "roo-3.36", "kilo-4.145", "cline-legacy"))
ROOS = (ROO, ROO_NEW, KILO)
EVERY = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
QWEN, CLAUDE, GEMINI = "qwen3-coder-plus", "claude-sonnet-4", "gemini-2.5-pro"


def render(client: XmlClient, name: str, model: str = QWEN, /, **arguments: Any) -> str:
    rendered = render_call(client, model, name, json.dumps(arguments))
    assert rendered.text, rendered.defects
    return rendered.text


def refuse(client: XmlClient, name: str, model: str = QWEN, /, **arguments: Any) -> str:
    rendered = render_call(client, model, name, json.dumps(arguments))
    assert not rendered.text
    return "; ".join(map(str, rendered.defects))


def calls(client: XmlClient, text: str, model: str = QWEN) -> list[tuple[str, dict[str, Any]]]:
    return [(block.name, dict(block.params)) for block in client.read(text, model) if isinstance(block, XmlCallBlock)]


def render_events(
    events: list[Event], client: XmlClient = ROO, **options: Any
) -> tuple[str, ResponseRenderer, list[Event]]:
    """The text of the message, the rendering, and all events that are not text."""
    rendering = ResponseRenderer(client, QWEN, **options)
    received = [event for given in events for event in rendering.feed([given])]
    check_order(received)
    text = "".join(event.text for event in received if isinstance(event, TextDelta))
    return text, rendering, [event for event in received if not isinstance(event, TextDelta)]


def transform(text: str, client: XmlClient = ROO, parallel: bool = False) -> str:
    """A model's text through the reader and the rendering."""
    tools = [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in client.list_tools(lenient=True)]
    reader = Reader(CompiledTools(tools), unknown_tools="text", parallel=parallel)
    events = [*reader.feed(text), *reader.close()]
    return render_events([*events, Finished("stop")], client)[0]


# Transformer: generators


GENERATORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "generateReadFile": (
        "read_file",
        {"path": "README.md"},
        "<read_file>\n<args>\n  <file>\n    <path>README.md</path>\n  </file>\n</args>\n</read_file>",
    ),
    "generateReadFile, file": (
        "read_file",
        {"file": "README.md"},
        "<read_file>\n<args>\n  <file>\n    <path>README.md</path>\n  </file>\n</args>\n</read_file>",
    ),
    "generateListFiles": (
        "list_files",
        {"path": ".", "recursive": False},
        "<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>",
    ),
    "generateListFiles, defaults": (
        "list_files",
        {},
        "<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>",
    ),
    "generateSearchFiles": (
        "search_files",
        {"pattern": "a<b", "file_pattern": "*.ts"},
        "<search_files>\n<path>.</path>\n<regex>a<b</regex>\n<file_pattern>*.ts</file_pattern>\n</search_files>",
    ),
    "generateExecuteCommand": (
        "execute_command",
        {"cmd": "npm test", "cwd": "web"},
        "<execute_command>\n<command>npm test</command>\n<cwd>web</cwd>\n</execute_command>",
    ),
    "generateWriteToFile": (
        "write_to_file",
        {"path": "a.txt", "content": "one\ntwo\n"},
        "<write_to_file>\n<path>a.txt</path>\n<content>\none\ntwo\n\n</content>\n<line_count>3</line_count>\n"
        "</write_to_file>",
    ),
    "generateApplyDiff": (
        "apply_diff",
        {"path": "a.txt", "diff": "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE"},
        "<apply_diff>\n<path>a.txt</path>\n<diff>\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n</diff>\n"
        "</apply_diff>",
    ),
    "generateAskFollowup": (
        "ask_followup",
        {"question": "Which file?", "suggestions": ["a.json", "b.json"]},
        "<ask_followup_question>\n<question>Which file?</question>\n<follow_up>\n<suggest>a.json</suggest>\n"
        "<suggest>b.json</suggest>\n</follow_up>\n</ask_followup_question>",
    ),
    "generateAskFollowup, options": (
        "ask_followup_question",
        {"question": "Which file?", "options": [{"text": "a.json", "mode": "code"}]},
        '<ask_followup_question>\n<question>Which file?</question>\n<follow_up>\n<suggest mode="code">a.json</suggest>\n'
        "</follow_up>\n</ask_followup_question>",
    ),
    "generateAttemptCompletion": (
        "attempt_completion",
        {"result": "It works."},
        "<attempt_completion>\n<result>\nIt works.\n</result>\n</attempt_completion>",
    ),
}


@in_one_test("name", GENERATORS)
def test_transformer_xml_generator(name: str) -> None:
    tool, arguments, xml = GENERATORS[name]
    assert render(ROO, tool, **arguments) == xml


def test_transformer_unknown_tool_is_refused() -> None:
    assert refuse(ROO, "delete_everything", path="/") == (
        "name: found delete_everything, expected a tool that roo-3.29 knows"
    )


# Transformer: testing strategy, unit tests


def test_transformer_should_transform_json_list_files_call() -> None:
    text = transform('Let me check:\n```tool_code\n{"tool": "list_files", "path": "."}\n```')
    assert text == "Let me check:\n\n<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>"


def test_transformer_should_not_transform_natural_language() -> None:
    assert transform("I need to list the files first.") == "I need to list the files first."


def test_transformer_should_handle_malformed_json() -> None:
    text = "```tool_code\n{invalid json}\n```"
    assert transform(text) == text


# Transformer: inputs on which its expressions fail


def test_transformer_several_blocks_first_one_is_made() -> None:
    first = '```tool_code\n{"tool": "list_files", "path": "a"}\n```'
    second = '```tool_code\n{"tool": "execute_command", "command": "ls"}\n```'
    for parallel in (False, True):
        text = transform(f"{first}\nand then\n{second}", parallel=parallel)
        assert calls(ROO, text) == [("list_files", {"path": "a", "recursive": False})]
        assert text.endswith("</list_files>")


FAILURES = {
    "nested braces": (
        '```tool_code\n{"tool": "use_mcp_tool", "server_name": "s", "tool_name": "t", "arguments": {"a": {"b": "}"}}}\n```',
        ("use_mcp_tool", {"server_name": "s", "tool_name": "t", "arguments": {"a": {"b": "}"}}}),
    ),
    "CRLF": (
        '```tool_code\r\n{"tool": "read_file", "path": "a.py"}\r\n```\r\n',
        ("read_file", {"args": {"file": [{"path": "a.py"}]}}),
    ),
    "no trailing newline": (
        '```tool_code\n{"tool": "read_file", "path": "a.py"}```',
        ("read_file", {"args": {"file": [{"path": "a.py"}]}}),
    ),
    "fence in a value": (
        '```tool_code\n{"tool": "write_to_file", "path": "a.md", "content": "```js\\nx\\n```\\n"}\n```',
        ("write_to_file", {"path": "a.md", "content": "```js\nx\n```\n", "line_count": "4"}),
    ),
    "ask_followup": (
        '```tool_code\n{"tool": "ask_followup", "question": "Which?", "options": ["a", "b"]}\n```',
        ("ask_followup_question", {"question": "Which?", "follow_up": [{"text": "a"}, {"text": "b"}]}),
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_transformer_failures_of_the_pattern_detector(name: str) -> None:
    text, expected = FAILURES[name]
    assert calls(ROO, transform(text)) == [expected]


def test_transformer_unknown_tool_stays_text() -> None:
    text = '```tool_code\n{"tool": "fly_to_moon", "speed": 3}\n```'
    assert transform(text) == text


def test_transformer_mention_of_a_tool_in_text_is_not_a_call() -> None:
    text = "Use `<read_file>` with a `<path>`."
    rendered = transform(text)
    assert calls(ROO, rendered) == []
    assert unescape_text(ROO, rendered) == text


# ports: how clients read


READINGS: dict[str, tuple[XmlClient, str, list[tuple[str, dict[str, Any]]]]] = {
    "tags are literal": (ROO, '<list_files ><List_Files><list_files/><list_files a="1">', []),
    "fences do not protect": (
        CLINE,
        "```\n<list_files><path>.</path></list_files>\n```",
        [("list_files", {"path": "."})],
    ),
    "unknown children are skipped": (
        ROO,
        "<read_file><file><path>a</path></file><depth>3</depth></read_file>",
        [("read_file", {"path": "a"})],
    ),
    "last one wins": (ROO, "<list_files><path>a</path><path>b</path></list_files>", [("list_files", {"path": "b"})]),
    "a mention swallows what follows": (
        ROO,
        "`<read_file>` is a tool. <list_files><path>x</path></list_files>",
        [("read_file", {"path": "x"})],
    ),
    "an open value takes the closing tag": (
        ROO,
        "<execute_command><command>npm test</comm",
        [("execute_command", {"command": "npm test</comm"})],
    ),
    "Roo keeps ends of files": (
        ROO_NEW,
        "<write_to_file><path> a </path><content>\n  x\n\n</content></write_to_file>",
        [("write_to_file", {"path": "a", "content": "  x\n"})],
    ),
    "Cline trims files": (
        CLINE,
        "<write_to_file><path> a </path><content>\n  x\n\n</content></write_to_file>",
        [("write_to_file", {"path": "a", "content": "x"})],
    ),
    "content reaches to its last closing tag": (
        ROO,
        "<write_to_file><path>a</path><content>A</content>B</content></write_to_file>",
        [("write_to_file", {"path": "a", "content": "A</content>B"})],
    ),
    "a path behind an inner closing tag overwrites the path": (
        ROO,
        "<write_to_file><path>a</path><content>A</content><path>b</path></content></write_to_file>",
        [("write_to_file", {"path": "b", "content": "A</content><path>b</path>"})],
    ),
    "only the tail survives in Roo": (
        ROO,
        "<write_to_file><path>a</path><content>A</content>B<content>C</content></write_to_file>",
        [("write_to_file", {"path": "a", "content": "C"})],
    ),
    "files": (
        ROO,
        "<read_file><args><file><path>a&lt;b</path><line_range>1-2</line_range></file><file><path>c</path></file></args>"
        "</read_file>",
        [("read_file", {"args": {"file": [{"path": "a<b", "line_range": ["1-2"]}, {"path": "c"}]}})],
    ),
    "answers are taken as they stand": (
        ROO,
        "<ask_followup_question><question>q</question><follow_up><suggest> a&lt;b <i>c</i></suggest></follow_up>"
        "</ask_followup_question>",
        [("ask_followup_question", {"question": "q", "follow_up": [{"text": " a&lt;b <i>c</i>"}]})],
    ),
}


@in_one_test("name", READINGS)
def test_clients_read(name: str) -> None:
    client, text, expected = READINGS[name]
    assert calls(client, text) == expected


def test_values_longer_than_the_limit_are_cut_by_roo() -> None:
    text = f"<apply_diff><path>a</path><diff>{'x' * 102_395}</diff></apply_diff>"
    (call,) = ROO.read(text, QWEN)
    assert isinstance(call, XmlCallBlock)
    assert (len(str(call.params["diff"])), call.partial) == (102_400, False)


def test_the_text_around_calls_is_trimmed() -> None:
    blocks = CLINE.read(" Hello \n<list_files><path>.</path></list_files> bye\n", QWEN)
    assert [block.text for block in blocks if isinstance(block, XmlTextBlock)] == ["Hello", "bye"]


@pytest.mark.parametrize("text", ["plain", "<path>a</path>", '["a"]', "<file><path>a<b</path></file>", "<file></file>"])
def test_args_without_a_file_are_spoiled(text: str) -> None:
    with pytest.raises(MalformedValue):
        parse_files(text)


@pytest.mark.parametrize("text", ["<suggest>a < b</suggest>", "<suggest>a", "</b><suggest>a</suggest>"])
def test_answers_with_a_lone_bracket_are_spoiled(text: str) -> None:
    with pytest.raises(MalformedValue):
        parse_suggestions(text)


NESTED = {
    "plain words": [],
    "<suggest></suggest>": [{"text": ""}],
    "<suggest>a</suggest></b> words": [{"text": "a"}],
    "<suggest>a</suggest><b> words": [{"text": "a"}],
    "<suggest mode='x &amp; y'>a &amp; b</suggest>": [{"text": "a &amp; b", "mode": "x & y"}],
    "<b><suggest>a</suggest></b><suggest>c <suggest>d</suggest></suggest>": [{"text": "c <suggest>d</suggest>"}],
}
"""Answers in odd markup, and what Roo's library makes of them."""


@pytest.mark.parametrize("text", NESTED)
def test_answers_in_odd_markup(text: str) -> None:
    assert parse_suggestions(text) == NESTED[text]


def test_files_in_odd_markup() -> None:
    one = {"file": [{"path": "a  b", "line_range": ["1-2"]}]}
    assert parse_files("<file x='1'><path>a <!-- c --> b</path><line_range>1-2</line_range><c></file>") == one
    assert parse_files("<file><path>a</path></b></b></file>words") == {"file": [{"path": "a"}]}
    for text in ("<file><path x='1'>a</path></file>", "<file><path>a</path><path>b</path></file>"):
        with pytest.raises(MalformedValue):
            parse_files(text)


ENTITIES = "&lt; &gt; &quot; &#39; &apos; &#91; &lsqb; &amp;lt;"
UNDONE = {
    (ROO, "write_to_file", "content", QWEN, "a"): "< > \" ' ' [ [ &lt;",
    (ROO, "write_to_file", "content", CLAUDE, "a"): ENTITIES,
    (ROO, "write_to_file", "content", "Claude", "a"): "< > \" ' ' [ [ &lt;",
    (ROO_NEW, "apply_diff", "diff", QWEN, "a"): "< > \" ' ' [ [ &lt;",
    (ROO_NEW, "apply_diff", "diff", CLAUDE, "a"): ENTITIES,
    (KILO, "execute_command", "command", CLAUDE, "a"): "< > \" ' ' [ [ &lt;",
    (KILO, "new_rule", "content", QWEN, "a"): "< > \" ' ' [ [ &lt;",
    (ROO, "insert_content", "content", QWEN, "a"): ENTITIES,
    (ROO, "search_files", "regex", QWEN, "a"): ENTITIES,
    (CLINE, "write_to_file", "content", QWEN, "a"): "< > \" &#39; ' &#91; &lsqb; &lt;",
    (CLINE, "write_to_file", "content", CLAUDE, "a"): ENTITIES,
    (CLINE, "write_to_file", "content", QWEN, "a.XML"): ENTITIES,
    (CLINE, "replace_in_file", "diff", GEMINI, "a"): "< > \" &#39; ' &#91; &lsqb; &lt;",
    (CLINE, "execute_command", "command", QWEN, "a"): ENTITIES,
    (CLINE, "execute_command", "command", GEMINI, "a"): "< > \" &#39; ' &#91; &lsqb; &lt;",
    (CLINE, "attempt_completion", "result", QWEN, "a"): ENTITIES,
}


@in_one_test("where", UNDONE, ids=lambda where: f"{where[0].name} {where[2]} {where[3]} {where[4]}")
def test_entities_are_undone_by_tool_parameter_model_and_path(where: tuple[XmlClient, str, str, str, str]) -> None:
    client, tool, name, model, path = where
    text = f"<{tool}><path>{path}</path><{name}>{ENTITIES}</{name}></{tool}>"
    ((_, params),) = calls(client, text, model)
    assert params[name] == UNDONE[where]


# profiles


def test_there_is_a_profile_for_each_set_of_tags() -> None:
    roo = {"roo-3.29", "roo-3.30", "roo-3.32", "roo-3.35", "roo-3.35.4", "roo-3.36.0", "roo-3.36"}
    assert set(CLIENTS) == roo | {"kilo-4.145", "cline-legacy"}


@EVERY
def test_profiles_are_consistent(client: XmlClient) -> None:
    assert set(client.tools) <= client.tags
    for tool in client.tools.values():
        names = [parameter.name for parameter in tool.parameters]
        assert len(set(names)) == len(names)
        assert set(names) <= client.grammar.parameters, tool.name
        assert set(tool.one_of) <= set(names)
        aliases = [alias for parameter in tool.parameters for alias in parameter.aliases if alias not in names]
        assert len(set(aliases)) == len(aliases), tool.name
    assert set(client.aliases.values()) <= set(client.tools)
    assert "id" not in client.grammar.parameters | client.tags
    CompiledTools([{"name": tool.name, "parameters": dict(tool.parameters)} for tool in client.list_tools()])
    CompiledTools(
        [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in client.list_tools(lenient=True)]
    )


VERSIONS: dict[str, tuple[set[str], set[str]]] = {
    "roo-3.29": (
        {"insert_content", "search_and_replace", "list_code_definition_names", "write_to_file"},
        {"edit_file", "delete_file", "replace_in_file"},
    ),
    "roo-3.36": (
        {"search_replace", "edit_file", "apply_patch"},
        {"insert_content", "list_code_definition_names", "delete_file"},
    ),
    "kilo-4.145": ({"edit_file", "delete_file", "new_rule", "report_bug", "condense"}, {"insert_content"}),
    "cline-legacy": ({"replace_in_file", "web_fetch", "plan_mode_respond"}, {"apply_diff", "update_todo_list"}),
}


@pytest.mark.parametrize("name", VERSIONS)
def test_versions_have_their_tools(name: str) -> None:
    has, lacks = VERSIONS[name]
    assert has <= set(CLIENTS[name].tools)
    assert not lacks & set(CLIENTS[name].tools)


def test_line_count_is_what_the_version_wants() -> None:
    arguments = {"path": "a", "content": "x\ny", "line_count": 70}
    rendered = render_call(ROO, QWEN, "write_to_file", json.dumps(arguments))
    assert "<line_count>2</line_count>" in rendered.text
    assert rendered.notes == ("line_count is 2, not 70",)
    for client in (ROO_NEW, KILO, CLINE):
        assert "line_count" not in render(client, "write_to_file", **arguments)


def test_cline_commands_require_approval_by_default() -> None:
    assert "<requires_approval>true</requires_approval>" in render(CLINE, "execute_command", command="ls")
    rendered = render(CLINE, "execute_command", command="ls", requires_approval=False)
    assert "<requires_approval>false</requires_approval>" in rendered


# rendering of calls


@pytest.mark.parametrize("files", ["a", ["a", "b"], [{"path": "a"}, {"path": "b", "line_range": "1-5"}], {"path": "a"}])
def test_files_come_in_many_shapes(files: Any) -> None:
    for key in ("args", "files"):
        ((name, params),) = calls(ROO, render(ROO, "read_file", **{key: files}))
        assert name == "read_file"
        assert params["args"]["file"][0]["path"] == "a"


@pytest.mark.parametrize("files", [{"file": [{"path": "a"}]}, {"path": "a"}, ["a"], [{"path": "a"}]])
def test_files_may_be_json_in_a_text(files: Any) -> None:
    text = render(ROO, "read_file", args=json.dumps(files))
    assert calls(ROO, text) == [("read_file", {"args": {"file": [{"path": "a"}]}})]


@pytest.mark.parametrize("path", ["[id].ts", "{x}", "7", "[", '"a"'])
def test_a_path_that_looks_like_json_stays_a_path(path: str) -> None:
    assert calls(ROO, render(ROO, "read_file", args=path)) == [("read_file", {"args": {"file": [{"path": path}]}})]


def test_answers_may_be_json_in_a_text() -> None:
    given = [{"text": "a", "mode": "code"}, {"text": "b"}]
    text = render(ROO, "ask_followup_question", question="q", follow_up=json.dumps(given))
    assert calls(ROO, text) == [("ask_followup_question", {"question": "q", "follow_up": given})]


def test_a_list_that_is_none_is_refused_in_words() -> None:
    assert "expected a list of texts" in refuse(CLINE, "ask_followup_question", question="q", options="a, b")


def test_a_range_of_lines_becomes_a_line_range() -> None:
    text = render(ROO, "read_file", path="a", start_line=3, end_line=9)
    assert calls(ROO, text) == [("read_file", {"args": {"file": [{"path": "a", "line_range": ["3-9"]}]}})]
    assert "<start_line>3</start_line>" in render(CLINE, "read_file", path="a", start_line=3)
    assert "both" in refuse(ROO, "read_file", path="a", start_line=3)


@pytest.mark.parametrize("client", [*ROOS, CLINE], ids=lambda client: client.name)
def test_native_names_of_mcp_tools(client: XmlClient) -> None:
    expected = ("use_mcp_tool", {"server_name": "db", "tool_name": "run--it", "arguments": {"sql": "a</arguments>"}})
    assert calls(client, render(client, "mcp--db--run--it", sql="a</arguments>")) == [expected]
    known = render_call(client, QWEN, "db_run", '{"sql":"x"}', servers={"db_run": ("db", "run")})
    assert calls(client, known.text)[0][1]["server_name"] == "db"


REFUSALS: dict[str, tuple[XmlClient, str, str, dict[str, Any], str]] = {
    "its own closing tag": (ROO, "search_files", QWEN, {"regex": "</regex>"}, "regex: found text"),
    "and another tag behind it": (
        ROO,
        "write_to_file",
        CLAUDE,
        {"path": "a", "content": "A</content><path>b</path>"},
        "path: found",
    ),
    "the end of the tool": (
        CLINE,
        "write_to_file",
        CLAUDE,
        {"path": "a", "content": "</content></write_to_file>"},
        "call",
    ),
    "numbered lines": (ROO, "write_to_file", QWEN, {"path": "a", "content": "1 | a\n2 | b"}, "content: found text"),
    "a byte order mark": (ROO, "write_to_file", QWEN, {"path": "a", "content": "\ufeffx"}, "content: found"),
    "whitespace that counts": (ROO, "search_files", QWEN, {"regex": " x"}, "regex: found whitespace"),
    "indentation of a file": (CLINE, "write_to_file", CLAUDE, {"path": "a", "content": "  x"}, "content: found white"),
    "a deleted character": (CLINE, "write_to_file", QWEN, {"path": "a", "content": "\ufffd"}, "content: found text"),
    "a lone bracket": (ROO, "ask_followup", QWEN, {"question": "q", "options": ["a < b"]}, "follow_up: found"),
    "a value that is too long": (ROO, "apply_diff", QWEN, {"path": "a", "diff": "x" * 103_000}, "diff: found"),
    "a call that is too long": (ROO, "write_to_file", QWEN, {"path": "a", "content": "x" * 140_000}, "call: found"),
    "an argument that it does not have": (
        CLINE,
        "execute_command",
        QWEN,
        {"command": "ls", "cwd": "x"},
        "cwd: found an",
    ),
    "a missing argument": (ROO, "write_to_file", QWEN, {"content": "x"}, "path: found nothing"),
    "a blank argument": (ROO, "execute_command", QWEN, {"command": " \n"}, "command: found nothing"),
    "two values": (ROO, "list_files", QWEN, {"path": "a", "dir": "b"}, "path: found two"),
    "the wrong type": (ROO, "execute_command", QWEN, {"command": ["ls"]}, 'command: found ["ls"], expected text'),
    "no JSON": (
        ROO,
        "use_mcp_tool",
        QWEN,
        {"server_name": "s", "tool_name": "t", "arguments": "{"},
        "arguments: found",
    ),
}


@in_one_test("name", REFUSALS)
def test_a_call_that_cannot_be_rendered_is_refused(name: str) -> None:
    client, tool, model, arguments, expected = REFUSALS[name]
    assert refuse(client, tool, model, **arguments).startswith(expected)


EXACT: dict[str, tuple[XmlClient, str, str]] = {
    "entities": (ROO, QWEN, ENTITIES),
    "entities for claude": (ROO, CLAUDE, ENTITIES),
    "fences": (ROO, QWEN, "```\ncode\n```"),
    "fences for claude": (ROO_NEW, CLAUDE, "```\ncode\n```"),
    "only a fence": (KILO, QWEN, "```"),
    "empty": (ROO, QWEN, ""),
    "line breaks": (ROO, QWEN, "\n\n"),
    "closing tags": (ROO, QWEN, "A</content></write_to_file><path>b</path>"),
    "a closing tag for claude": (ROO, CLAUDE, "A</content>B"),
    "CRLF": (ROO, QWEN, "a\r\nb\r\n"),
    "long": (ROO, QWEN, "some words\n" * 9_500 + "<path>x</path></content>"),
    "ends in Cline": (CLINE, QWEN, "\n  a\n\n"),
    "fences in Cline": (CLINE, QWEN, "```\ncode\n```"),
    "fences in Cline for claude": (CLINE, CLAUDE, "```\ncode\n```"),
    "entities in Cline": (CLINE, QWEN, ENTITIES + "&amp;apos;"),
    "closing tags in Cline": (CLINE, QWEN, "A</content></write_to_file><path>b</path>"),
}


@in_one_test("name", EXACT)
def test_files_are_exact(name: str) -> None:
    client, model, content = EXACT[name]
    rendered = render_call(client, model, "write_to_file", json.dumps({"path": "a", "content": content}))
    assert rendered.notes == ()
    ((_, params),) = calls(client, rendered.text, model)
    assert (params["path"], params["content"]) == ("a", content)


def test_losses_are_reported() -> None:
    final = render_call(CLINE, CLAUDE, "write_to_file", '{"path":"a","content":"x\\n"}')
    assert (calls(CLINE, final.text, CLAUDE)[0][1]["content"], final.notes) == ("x", ("content: trimmed",))
    answer = render_call(ROO, QWEN, "attempt_completion", '{"result":"see </result>"}')
    assert (calls(ROO, answer.text)[0][1]["result"], answer.notes) == ("see <\u200b/result>", ("result: broken_tag",))


# rendering of answers


CALL: list[Event] = [CallStarted(0, "call_7", "list_files"), CallArguments(0, '{"path":"s'), CallArguments(0, 'rc"}')]


def test_a_call_leaves_when_it_is_complete() -> None:
    rendering = ResponseRenderer(ROO, QWEN)
    assert rendering.feed([Started("a"), TextDelta("Look: "), *CALL]) == [Started("a"), TextDelta("Look: ")]
    (delta,) = rendering.feed([CallEnded(0)])
    assert isinstance(delta, TextDelta)
    assert delta.text.startswith("\n\n<list_files>\n<path>src</path>")
    assert rendering.feed([Finished("tool_calls")]) == [Finished("stop")]
    assert [record.outcome for record in rendering.reports] == [Outcome.SENT]
    assert rendering.notes == []


def test_later_calls_and_text_are_dropped_and_recorded() -> None:
    second: list[Event] = [CallStarted(1, "call_8", "read_file"), CallArguments(1, '{"path":"a"}'), CallEnded(1)]
    text, rendering, _ = render_events(
        [*CALL, *second, CallEnded(0), TextDelta("Done."), TextDelta("\n"), Finished("tool_calls")]
    )
    assert calls(ROO, text) == [("list_files", {"path": "src", "recursive": False})]
    assert text.endswith("</list_files>")
    assert rendering.notes == ["read_file dropped; a message has one call", "5 characters behind the call were dropped"]


def test_a_refused_call_becomes_text_and_no_other_is_made() -> None:
    bad: list[Event] = [CallStarted(0, "c", "search_files"), CallArguments(0, '{"regex":"</regex>"}'), CallEnded(0)]
    good: list[Event] = [CallStarted(1, "d", "list_files"), CallArguments(1, "{}"), CallEnded(1)]
    text, rendering, rest = render_events([TextDelta("I search."), *bad, *good, Finished("tool_calls")])
    assert calls(ROO, text) == []
    assert text.startswith("I search.\n\n(The call of search_files was not made: regex: found text")
    assert '{"regex":"</regex>"}' in text
    assert [record.outcome for record in rendering.reports] == [Outcome.REFUSED, Outcome.DROPPED]
    assert rest == [Finished("stop")]


def test_arguments_with_tool_tags_are_not_executed_when_rendered() -> None:
    raw = '{"regex":"</regex><execute_command><command>x</command></execute_command>"}'
    text, _, _ = render_events(
        [CallStarted(0, "c", "search_files"), CallArguments(0, raw), CallEnded(0), Finished("stop")]
    )
    assert calls(ROO, text) == []
    assert raw in unescape_text(ROO, text)


def test_a_cut_call_is_not_made() -> None:
    text, rendering, rest = render_events([*CALL, Finished("length")])
    assert text == "(The call of list_files was cut off before it was complete, and was not made.)"
    assert rest == [Finished("length")]
    assert rendering.notes == ["list_files truncated"]


def test_a_message_is_never_empty() -> None:
    text, _, rest = render_events([Started(), ReasoningDelta("thinking"), TextDelta(" \n"), Finished("stop")])
    assert text.strip() == "(The model gave no answer.)"
    assert rest == [Started(), ReasoningDelta("thinking"), Finished("stop")]


def test_failures_pass_behind_what_was_held() -> None:
    rendering = ResponseRenderer(ROO, QWEN)
    assert rendering.feed([TextDelta("a <read_")]) == [TextDelta("a ")]
    assert rendering.feed([Failed("x", "y")]) == [TextDelta("<read_"), Failed("x", "y")]


def test_rejected_calls_are_text() -> None:
    reject = CallRejected("<read_file>oops", Reason.MALFORMED)
    text, _, _ = render_events([reject, CallRejected("x", Reason.FABRICATED_RESULT), Finished("stop")])
    assert (calls(ROO, text), unescape_text(ROO, text)) == ([], "<read_file>oops")


@EVERY
def test_ids_go_along_and_are_skipped(client: XmlClient) -> None:
    text, _, _ = render_events([*CALL, CallEnded(0), Finished("tool_calls")], client, carry_ids=True)
    assert "<id>call_7</id>" in text
    assert calls(client, text) == [("list_files", {"path": "src", "recursive": False})]
    odd: list[Event] = [CallStarted(0, "<path>x</path>", "list_files"), CallEnded(0), Finished("stop")]
    assert "<id>" not in render_events(odd, client, carry_ids=True)[0]


def test_prose_holds_back_little() -> None:
    prose = TextEscaper(ROO)
    assert prose.feed("a < b and c <lis") == "a < b and c "
    assert prose.feed("t_fil") == ""
    assert prose.feed("ing> <") == "<list_filing> "
    assert prose.feed("list_files>!") == "<\u200blist_files>!"
    assert prose.close() == ""
    assert TextEscaper(ROO).feed("<" + "\u200b" * 500) == "<" + "\u200b" * 500


def test_protection_can_be_taken_back() -> None:
    text = "<read_file> <\u200bread_file> <think> <\u200b\u200bread_file> </read_file> <b>"
    assert calls(ROO, escape_text(ROO, text)) == []
    assert unescape_text(ROO, escape_text(ROO, text)) == text


# entity guard and repairs of diffs, for clients with native tools


@pytest.mark.parametrize("content", [ENTITIES, "```\nx\n```", "plain", "&amp;lt; &", ""])
def test_guarded_arguments_are_used_unescaped(content: str) -> None:
    for tool, key in (("write_to_file", "content"), ("apply_diff", "diff"), ("execute_command", "command")):
        for model in (QWEN, CLAUDE):
            value = escape_value(tool, key, content, model)
            text = f"<{tool}><path>a</path><{key}>{value}</{key}></{tool}>"
            ((_, params),) = calls(ROO_NEW, text, model)
            assert params[key] == content


def test_only_what_is_undone_is_guarded() -> None:
    arguments = '{"path": "&lt;", "content": "&lt;", "n": 1.50}'
    assert escape_arguments("write_to_file", arguments, QWEN) == '{"path":"&lt;","content":"&amp;lt;","n":1.50}'
    for tool, given, model in (
        ("write_to_file", arguments, CLAUDE),
        ("read_file", arguments, QWEN),
        ("write_to_file", '{"content": "a & b"}', QWEN),
        ("write_to_file", '{"content": "&lt;', QWEN),
        ("write_to_file", '["&lt;"]', QWEN),
    ):
        assert escape_arguments(tool, given, model) == given


DIFFS = {
    "<<<<<<< SEARCH\n:start_line=18\n-------\na\n": (
        "<<<<<<< SEARCH\n:start_line:18\n-------\na\n",
        ("start_line_sign",),
    ),
    "<<<<<<< SEARCH\n:start_line:1\n-------import a\n": (
        "<<<<<<< SEARCH\n:start_line:1\n-------\nimport a\n",
        ("separator_run_on",),
    ),
    "<<<<<<< SEARCH\r\n:start_line:1 -------\r\na\r\n": (
        "<<<<<<< SEARCH\r\n:start_line:1\r\n-------\r\na\r\n",
        ("separator_run_on",),
    ),
    "<<<<<<< SEARCH\n:start_line:1\n-------\na\n": ("", ()),
    "<<<<<<< SEARCH\n-------|---\na\n": ("", ()),
    "<<<<<<< SEARCH\n:start_line:1\n--------\na\n": ("", ()),
    "<<<<<<< SEARCH\n:start_line:1\na\n": ("", ()),
    "<<<<<<< SEARCH\n:start_line:1a\n": ("", ()),
    "text\n:start_line=18\n-------import a\n": ("", ()),
}


@in_one_test("diff", DIFFS)
def test_diffs_are_repaired_if_unambiguous(diff: str) -> None:
    expected, repairs = DIFFS[diff]
    assert repair_diff(diff) == (expected or diff, repairs)

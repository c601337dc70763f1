"""The mind of the simulated model: what it learns from a prompt, which tool it picks, how it fills it, its script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.rows import in_one_test

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.errors import ClientError, UsageError
from toolglot.dialects.records import all_dialects
from toolglot.prompting.call_writer import to_definition
from toolglot.prompting.conversation import render_as_text, tool_prompt, write_result
from toolglot.sim import Answer, ScriptedAnswer, SimCall, SimOptions, Simulation, load_script
from toolglot.sim.prompt_parsers import find_tools
from toolglot.sim.prompt_reading import detect_choice, detect_dialect, split_result
from toolglot.sim.request import parse_request
from toolglot.sim.script import ScriptCursor, parse_script
from toolglot.sim.simulation import render_answer
from toolglot.sim.tool_picker import find_calls, pick_answer

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
DIALECTS = [record.name for record in all_dialects()]


def make_tool(name: str, about: str, required: str, **properties: Any) -> Tool:
    return Tool(name, about, {"type": "object", "properties": properties, "required": required.split()})


READ = make_tool("read", "Reads a file from the filesystem", "filePath", filePath=TEXT, offset=NUMBER, limit=NUMBER)
WRITE = make_tool("write", "Write content to a file", "filePath content", filePath=TEXT, content=TEXT)
BASH = make_tool(
    "bash", "Execute a command in a shell", "command description", command=TEXT, description=TEXT, timeout=NUMBER
)
AGENT = (
    READ,
    WRITE,
    BASH,
    make_tool("edit", "Edits a file", "filePath oldString newString", filePath=TEXT, oldString=TEXT, newString=TEXT),
    make_tool("list", "Lists files and directories", "", path=TEXT),
    make_tool("grep", "Searches the contents of files", "pattern", pattern=TEXT, path=TEXT),
    make_tool("webfetch", "Fetches a page", "url format", url=TEXT, format={**TEXT, "enum": ["text", "html"]}),
    make_tool("get_weather", "Current weather", "city", city=TEXT, units={**TEXT, "enum": ["celsius", "fahrenheit"]}),
    make_tool("set_thermostat", "Set a temperature", "room celsius", room=TEXT, celsius=NUMBER),
    make_tool("add", "Add two numbers", "a b", a={"type": "integer"}, b={"type": "integer"}),
)


def ask(question: str, tools: tuple[Tool, ...] = AGENT) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in find_calls(question, tools)]


# Picking and filling


@in_one_test(
    ("question", "name", "arguments"),
    [
        ('write "hello world" to out.txt', "write", {"filePath": "out.txt", "content": "hello world"}),
        ("Write 'x' into the file src/a.py", "write", {"filePath": "src/a.py", "content": "x"}),
        ("write hello to /home/user/hello.txt", "write", {"filePath": "/home/user/hello.txt", "content": "hello"}),
        ("create a file notes.md with content # Title", "write", {"filePath": "notes.md", "content": "# Title"}),
        ('create a file called a/b.txt containing "hi"', "write", {"filePath": "a/b.txt", "content": "hi"}),
        (
            'create a file x.py with content:\n```python\nprint("a")\nprint(2)\n```',
            "write",
            {"filePath": "x.py", "content": 'print("a")\nprint(2)'},
        ),
        ("Read the file src/server.js", "read", {"filePath": "src/server.js"}),
        ("What's in the package.json file?", "read", {"filePath": "package.json"}),
        ("Show me main.go", "read", {"filePath": "main.go"}),
        ("read README.md with limit 20", "read", {"filePath": "README.md", "limit": 20}),
        ("Read package.json and install dependencies", "read", {"filePath": "package.json"}),
        ("run ls -la", "bash", {"command": "ls -la", "description": "run ls -la"}),
        (
            "Run npm test to check if tests pass",
            "bash",
            {"command": "npm test", "description": "Run npm test to check if tests pass"},
        ),
        (
            "Install the lodash package",
            "bash",
            {"command": "npm install lodash", "description": "Install the lodash package"},
        ),
        ("list files in src/", "list", {"path": "src/"}),
        ("List all the files in the current directory", "list", {"path": "."}),
        ('search for "TODO" in src', "grep", {"pattern": "TODO", "path": "src"}),
        (
            'replace "foo" with "bar" in main.py',
            "edit",
            {"filePath": "main.py", "oldString": "foo", "newString": "bar"},
        ),
        ("fetch https://example.com/a as html", "webfetch", {"url": "https://example.com/a", "format": "html"}),
        ("What is the weather in New York?", "get_weather", {"city": "New York"}),
        ("weather in lisbon?", "get_weather", {"city": "lisbon"}),
        ("Weather for Paris in fahrenheit, please", "get_weather", {"city": "Paris", "units": "fahrenheit"}),
        ("set the thermostat in Kitchen to 21.5", "set_thermostat", {"room": "Kitchen", "celsius": 21.5}),
        ("add 3 and 4", "add", {"a": 3, "b": 4}),
        ('please use the add tool with {"a": 1, "b": -2}', "add", {"a": 1, "b": -2}),
    ],
)
def test_a_question_becomes_a_call(question: str, name: str, arguments: dict[str, Any]) -> None:
    assert ask(question) == [(name, arguments)]


@pytest.mark.parametrize(
    "question", ["Hello, how are you?", "Write a haiku about rivers", "", "Fix the bug in parser.c"]
)
def test_what_fits_no_tool_gets_a_plain_answer(question: str) -> None:
    assert ask(question) == []


def test_calls_may_be_spelled_out_and_be_several() -> None:
    question = 'call add with {"a": 1, "b": 2} and call read with {"filePath": "a"}, then call nothing with {}'
    assert ask(question) == [("add", {"a": 1, "b": 2}), ("read", {"filePath": "a"})]


def test_a_shell_serves_where_nothing_better_is_offered() -> None:
    assert ask("What's in the package.json file?", (BASH,))[0][1]["command"] == "cat package.json"
    assert ask("list files in src", (BASH,))[0][1]["command"] == "ls src"
    assert ask("Write 'it is <new>' to a.txt", (BASH,))[0][1]["command"] == "printf %s 'it is <new>' > a.txt"
    assert ask("run ls -la | wc", (BASH,))[0][1]["command"] == "ls -la | wc"


def test_tools_for_special_things_serve_nothing_else() -> None:
    image = make_tool("view_image", "View a local image file", "path", path=TEXT)
    deferred = make_tool("ToolSearch", "Find tools by name", "query", query=TEXT)
    assert ask("read notes.txt", (image, BASH))[0][1]["command"] == "cat notes.txt"
    assert ask("view the image notes.png", (image, BASH))[0][0] == "view_image"
    assert ask('search for "heron" in .', (deferred, BASH))[0][0] == "bash"


def test_short_words_do_not_end_names() -> None:
    """A tool that gives an agent input does not put anything into a file."""
    send = make_tool("send_input", "Send a message to an agent", "target", target=TEXT, message=TEXT, path=TEXT)
    assert ask("Write 'x' to a.txt", (send, BASH))[0][0] == "bash"


def test_context_that_clients_add_is_not_asked() -> None:
    question = "<system-reminder>\nrun rm -rf build\n</system-reminder>\nread a.txt"
    assert ask(question) == [("read", {"filePath": "a.txt"})]


def test_a_question_may_come_as_a_string_literal() -> None:
    assert ask(r'"write \"x y\" to out.txt"') == [("write", {"filePath": "out.txt", "content": "x y"})]
    assert ask('"a.txt" and "b.txt": read a.txt') == [("read", {"filePath": "a.txt"})]


def test_nested_parameters_are_filled() -> None:
    edit = make_tool(
        "edit_many",
        "Make many edits",
        "path edits options level",
        path=TEXT,
        edits={"type": "array", "items": {"$ref": "#/$defs/Edit"}},
        options={"type": "object", "properties": {"dry": {"type": "boolean"}}, "required": ["dry"]},
        level={"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 2}]},
    )
    edit.parameters["$defs"] = {  # type: ignore[index]
        "Edit": {"type": "object", "properties": {"old": TEXT, "new": TEXT}, "required": ["old", "new"]}
    }
    arguments = ask('replace "a" with "b" in x.c', (edit,))[0][1]
    assert arguments == {"path": "x.c", "edits": [{"old": "a", "new": "b"}], "options": {"dry": False}, "level": 2}


# Whole requests


def make_body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    tools = [
        {"type": "function", "function": {"name": tool.name, "description": "", "parameters": tool.parameters}}
        for tool in AGENT
    ]
    return {"model": "sim", "messages": list(messages), "tools": tools} | more


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_a_result_is_quoted_and_ends_the_turn() -> None:
    called = {"role": "assistant", "content": None}
    answer = pick_answer(
        parse_request(make_body(user("read a.txt"), called, {"role": "tool", "content": "\n`x` = 1\nmore"}))
    )
    assert answer == Answer("Done. The tool said: `'x' = 1`")


@pytest.mark.parametrize(
    "result",
    [
        "Chunk ID: 67d269\nWall time: 0.1 seconds\nOutput:\nThe heron is grey.",
        "<untrusted_context>\nThe heron is grey.\n</untrusted_context>",
    ],
)
def test_what_clients_write_around_a_result_is_not_quoted(result: str) -> None:
    called = {"role": "assistant", "content": None}
    answer = pick_answer(parse_request(make_body(user("read a.txt"), called, {"role": "tool", "content": result})))
    assert answer == Answer("Done. The tool said: `The heron is grey.`")


def test_a_new_question_behind_a_result_is_answered() -> None:
    earlier = [user("read a.txt"), {"role": "assistant"}, {"role": "tool", "content": "x"}]
    answer = pick_answer(
        parse_request(make_body(*earlier, {"role": "assistant", "content": "Done"}, user("read b.txt")))
    )
    assert answer.calls == (SimCall("read", '{"filePath": "b.txt"}'),)


def test_a_request_without_tools_gets_a_short_plain_answer() -> None:
    answer = pick_answer(parse_request({"messages": [user("Make a title for: read a.txt")]}))
    assert not answer.calls and answer.text.startswith("This is a simulated model.")


def test_content_may_come_in_parts() -> None:
    parts = [{"type": "text", "text": "Hello."}, {"type": "image_url"}, {"type": "text", "text": "read a.txt"}]
    assert pick_answer(parse_request(make_body(user(parts)))).calls[0].name == "read"


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("none", []),
        ("auto", []),
        ("required", 1),
        ({"type": "function", "function": {"name": "bash"}}, ["bash"]),
        ({"type": "allowed_tools"}, []),
    ],
)
def test_the_choice_is_honoured(choice: Any, names: Any) -> None:
    answer = pick_answer(parse_request(make_body(user("Hello!"), tool_choice=choice)))
    found = [call.name for call in answer.calls]
    assert len(found) == names if isinstance(names, int) else found == names


@pytest.mark.parametrize("body", [[], {}, {"messages": "x"}, {"messages": [3]}])
def test_a_body_that_is_no_request_is_refused(body: Any) -> None:
    with pytest.raises(ClientError):
        parse_request(body)


# What a prompt teaches

HOUSE = (
    make_tool(
        "write_file",
        "Write content\nto a file",
        "path content",
        path={**TEXT, "description": "Where to"},
        content=TEXT,
        mode={**TEXT, "enum": ["new", "append"]},
        tags={"type": "array", "items": TEXT},
    ),
    make_tool("list_all", "List it", ""),
)


@in_one_test("dialect", DIALECTS)
def test_tools_are_learned_from_the_prompt(dialect: str) -> None:
    prompt = "You are kind.\n\n# Manners\n\n" + tool_prompt(HOUSE, dialect)
    write, listing = find_tools(prompt)
    assert (write.name, listing.name) == ("write_file", "list_all")
    assert write.description.split() == ["Write", "content", "to", "a", "file"]
    properties = write.parameters["properties"]
    assert list(properties) == ["path", "content", "mode", "tags"]
    assert properties["mode"]["enum"] == ["new", "append"] and properties["tags"]["type"] == "array"
    assert write.parameters["required"] == ["path", "content"]


def test_a_prompt_without_tools_teaches_none() -> None:
    assert find_tools('You are kind.\n## Rules\nSay {"name": "x", "age": 3}.\n<b>bold</b>') == ()


def test_sections_may_hold_headings_and_nested_parameters() -> None:
    deep = make_tool(
        "deep",
        "One\n# Two\n\nUsage:\n- three: (required) no parameter\n\nParameters:\n- four: (required) neither",
        "options",
        options={"type": "object", "properties": {"depth": {"type": "integer", "default": 3}}, "required": ["depth"]},
        edits={"type": "array", "items": {"type": "object", "properties": {"old": TEXT}}},
    )
    (found,) = find_tools(tool_prompt([deep], "roo_xml"))
    assert found.description == deep.description and list(found.parameters["properties"]) == ["options", "edits"]
    assert found.parameters["properties"]["options"]["properties"]["depth"] == {"type": "integer", "default": 3}
    assert found.parameters["properties"]["edits"]["items"]["properties"] == {"old": {"type": "string"}}
    assert found.parameters["properties"]["options"]["required"] == ["depth"]


def test_the_prompt_of_an_xml_client_is_understood() -> None:
    prompt = (
        "# Tools\n\n## write_to_file\nDescription: Request to write content to a file.\nParameters:\n"
        "- path: (required) The path of the file to write to\n- content: (required) The content to write.\n"
        "Usage:\n<write_to_file>\n<path>File path here</path>\n<content>\nYour content\n</content>\n</write_to_file>\n"
    )
    messages = [{"role": "system", "content": prompt}, user('write "x" to a.txt')]
    asked = parse_request({"messages": messages})
    utterance = render_answer(pick_answer(asked), asked, SimOptions())
    assert utterance.written == "<write_to_file>\n<path>a.txt</path>\n<content>\nx\n</content>\n</write_to_file>"


@in_one_test("dialect", DIALECTS)
def test_the_dialect_is_learned_from_the_form(dialect: str) -> None:
    learned = detect_dialect("Say `<b>`.\n\n" + tool_prompt(HOUSE, dialect))
    assert learned == dialect or tool_prompt(HOUSE, learned) == tool_prompt(HOUSE, dialect)


def test_a_demand_is_learned_from_the_prompt() -> None:
    assert detect_choice(tool_prompt(HOUSE, "hermes")) == "auto"
    assert detect_choice(tool_prompt(HOUSE, "hermes", choice=ToolChoice("required"))) == "required"
    assert detect_choice(tool_prompt(HOUSE, "hermes", choice=ToolChoice.one("list_all"))) == "list_all"


@in_one_test("dialect", DIALECTS)
def test_results_told_as_text_are_known(dialect: str) -> None:
    once = write_result(dialect, "read", "line one\nline two")
    assert split_result(once) == ("", "line one\nline two")
    assert split_result(f"{once}\n\n{once}") == ("", "line one\nline two\nline one\nline two")


def test_a_question_behind_a_closed_result_is_seen() -> None:
    told = write_result("hermes", "read", "x")
    assert split_result(f"{told}\n\nread b.txt") == ("read b.txt", "x")
    assert split_result("read b.txt") == ("read b.txt", None)


# A whole turn through speaking, in every dialect

QUESTION = 'write "hé <b>x</b> it\'s" to out.txt'
ARGUMENTS = {"filePath": "out.txt", "content": "hé <b>x</b> it's"}


def as_request(conversation: Conversation, dialect: str) -> dict[str, Any]:
    spoken = render_as_text(conversation, dialect).conversation
    return {"messages": [{"role": message.role, "content": message.text} for message in spoken.messages]}


@in_one_test("told", [True, False], ids=["told the dialect", "as taught"])
@in_one_test("dialect", [name for name in DIALECTS if name != "shell_fence"])  # it can call no tool by name
def test_a_taught_model_calls_and_answers(dialect: str, told: bool) -> None:
    asked_for = (Message("system", (Text("You are kind."),)), Message("user", (Text(QUESTION),)))
    first = Conversation("sim", asked_for, (READ, WRITE, BASH))
    asked = parse_request(as_request(first, dialect))
    utterance = render_answer(pick_answer(asked), asked, SimOptions(dialect=dialect) if told else SimOptions())
    speech = render_as_text(first, dialect)
    (call,) = toolglot.read(utterance.content, [to_definition(tool) for tool in speech.tools]).calls
    assert (speech.names.get(call.name, call.name), json.loads(call.arguments)) == ("write", ARGUMENTS)
    result = (
        Message("assistant", (ToolCall("c", "write", json.dumps(ARGUMENTS)),)),
        Message("tool", (ToolResult("c", "write", (Text("Wrote out.txt\nwell"),)),)),
    )
    answered = Conversation("sim", asked_for + result, (READ, WRITE, BASH))
    assert pick_answer(parse_request(as_request(answered, dialect))) == Answer("Done. The tool said: `Wrote out.txt`")


# Scripts

SCRIPT = """
[[answer]]
when = "weather"
text = '''
<tool_call>
{"name": "get_weather"'''
fault = ["no_done", "length"]
chunk = 4

[[answer]]
fault = "http_429"

[[answer]]
tools = true
calls = [{ name = "read", arguments = { filePath = "a" } }, { name = "read", arguments = "{broken" }]
dialect = "native"

[[answer]]
text = "ab"
repeat = 3
times = 2
reasoning = "hm"
finish = "stop"
"""


def test_a_script_is_followed_by_order_and_by_question(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text(SCRIPT, encoding="utf-8")
    prompter = ScriptCursor(load_script(path))
    weather = prompter.next("How is the Weather?", True)
    assert weather.answer == Answer('<tool_call>\n{"name": "get_weather"')
    assert weather.options == {"chunk": 4, "faults": ("no_done", "length")}
    assert prompter.next("weather again", False) == weather
    assert prompter.next("x", True) == ScriptedAnswer(None, times=1, options={"faults": ("http_429",)})
    spoken = [prompter.next("x", False).answer for _ in range(3)]
    assert spoken == [Answer("ababab", reasoning="hm", finish="stop")] * 2 + [None]
    assert prompter.next("x", True).answer == Answer(
        calls=(SimCall("read", '{"filePath": "a"}'), SimCall("read", "{broken"))
    )


def test_a_scripted_answer_may_wait_for_a_tool_result() -> None:
    calling, ending = ScriptedAnswer(Answer("call"), result=False), ScriptedAnswer(Answer("end"), result=True)
    simulation = Simulation(SimOptions(script=(calling, ending)))
    result = [{"role": "assistant", "content": "call"}, {"role": "tool", "tool_call_id": "1", "content": "done"}]
    for messages, expected in (([], "call"), (result, "end"), ([], "call")):
        (step,) = simulation.plan(make_body(user("x"), *messages), 10, {}).steps
        assert isinstance(step, bytes) and json.loads(step)["choices"][0]["message"]["content"] == expected


@pytest.mark.parametrize("key", ["tools", "result"])
def test_a_flag_of_a_script_is_true_or_false(key: str) -> None:
    with pytest.raises(UsageError, match=f"answer 1 of the script: '{key}' must be true or false"):
        parse_script({"answer": [{key: "yes", "text": "x"}]})


def test_the_example_is_a_script() -> None:
    prompter = ScriptCursor(load_script(Path(__file__).parents[2] / "examples" / "sim.toml"))
    answer = prompter.next("the weather", True).answer
    assert answer and [call.name for call in toolglot.read(answer.text).calls] == ["get_weather"]


def test_a_scripted_answer_is_sent_as_it_is() -> None:
    raw = "<tool_call>\n{'name': 'read' oops"
    simulation = Simulation(SimOptions(script=(ScriptedAnswer(Answer(raw)),)))
    plan = simulation.plan(make_body(user("x")), 10, {})
    (body,) = plan.steps
    assert isinstance(body, bytes)
    assert json.loads(body)["choices"][0]["message"]["content"] == raw


def test_reasoning_is_told_apart() -> None:
    simulation = Simulation(SimOptions(script=(ScriptedAnswer(Answer("yes", reasoning="hm")),)))
    (whole,) = simulation.plan(make_body(user("x")), 10, {}).steps
    (streamed,) = simulation.plan(make_body(user("x"), stream=True), 10, {}).steps
    assert b'"reasoning_content":"hm"' in whole and b'{"reasoning_content":"hm"}' in streamed  # type: ignore[operator]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, r"list of answers"),
        ({"answer": [3]}, r"answer 1 .* not a table"),
        ({"answer": [{"txt": "x"}]}, r"no key txt"),
        ({"answer": [{"when": "("}]}, r"not a regular expression"),
        ({"answer": [{"calls": [{}]}]}, r"tables with a name"),
        ({"answer": [{"times": "x"}]}, r"'times' must be a number"),
    ],
)
def test_a_wrong_script_is_told(document: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_script(document)


@pytest.mark.parametrize("answer", [{"fault": "x"}, {"dialect": "x"}, {"chunk": 0}])
def test_wrong_options_in_a_script_are_told_at_once(answer: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"there is no|or more"):
        SimOptions(script=parse_script({"answer": [answer]}))


def test_a_script_that_is_no_toml_is_told(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text("[[answer", encoding="utf-8")
    with pytest.raises(UsageError, match="not TOML"):
        load_script(path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("I'm currently working in the directory: /home/me/a b\nHere", "/home/me/a b/hello.txt"),
        (" - Primary working directory: /home/me\n - Is", "/home/me/hello.txt"),
        ("- **Workspace Directories:**\n  - /home/me\n", "/home/me/hello.txt"),
        ("Working directory: /home/me.\n", "/home/me/hello.txt"),
        ("You work in a directory.", "hello.txt"),
    ],
    ids=["qwen", "claude", "gemini", "opencode", "none"],
)
def test_a_path_that_must_be_absolute_is_in_the_folder_of_the_client(text: str, path: str) -> None:
    properties = {
        "file_path": {"type": "string", "description": "The absolute path; relative paths are not supported"},
        "content": {"type": "string"},
    }
    tool = {"name": "write_file", "parameters": {"type": "object", "properties": properties, "required": [*properties]}}
    messages = [{"role": "user", "content": text}, {"role": "user", "content": 'Write "hello" to hello.txt'}]
    asked = parse_request({"model": "m", "messages": messages, "tools": [{"type": "function", "function": tool}]})
    assert json.loads(pick_answer(asked).calls[0].arguments) == {"file_path": path, "content": "hello"}
    properties["file_path"]["description"] = "The path"
    assert json.loads(pick_answer(asked).calls[0].arguments)["file_path"] == "hello.txt"

"""Example turns: tasks on files with the client's own tools, between the system prompt and the conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolChoice
from toolglot.core.made_up_values import find_made_up, make_number, make_word
from toolglot.prompting.call_writer import to_definition
from toolglot.prompting.conversation import render_as_text
from toolglot.prompting.example_turns import render_with_examples


def make_tool(name: str, *parameters: str, description: str = "") -> Tool:
    properties = {key: {"type": "string", "description": description} for key in parameters}
    return Tool(name, f"To {name}.", {"type": "object", "properties": properties, "required": list(parameters)})


READ, WRITE = make_tool("Read", "file_path"), make_tool("Write", "file_path", "content")
EDIT = make_tool("Edit", "file_path", "old_string", "new_string")
TOOLS = (make_tool("Bash", "command"), READ, EDIT, WRITE)
ASKED = (Message("system", (Text("Be brief."),)), Message("user", (Text("Go on."),)))


def render(
    tools: tuple[Tool, ...] = TOOLS,
    dialect: str = "fenced_json",
    choice: ToolChoice | None = None,
    *,
    parallel: bool = False,
) -> list[tuple[str, str]]:
    conversation = Conversation("m", ASKED, tools, choice or ToolChoice())
    prompted = render_with_examples(conversation, dialect, parallel=parallel)
    return [(message.role, message.text) for message in prompted.conversation.messages]


def list_calls(turns: list[tuple[str, str]], tools: tuple[Tool, ...], dialect: str) -> list[tuple[str, dict[str, Any]]]:
    definitions = [to_definition(tool) for tool in tools]
    answers = [text for role, text in turns[1:-1] if role == "assistant"]
    read = [toolglot.read(text, definitions, dialect) for text in answers]
    return [(call.name, json.loads(call.arguments)) for one in read for call in one.calls]


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("dialect", [dialect.name for dialect in toolglot.list_dialects()])
def test_files_are_read_before_they_are_changed(dialect: str, parallel: bool) -> None:
    rendered = render(dialect=dialect, parallel=parallel)
    calls = list_calls(rendered, TOOLS, dialect)
    assert [name for name, _ in calls] == [
        *("Write", "Read", "Read", "Write"),
        *("Read", "Read", "Edit", "Edit"),
        *("Read", "Write"),
    ]
    for at, (name, arguments) in enumerate(calls):
        if name == "Edit":
            assert ("Read", {"file_path": arguments["file_path"]}) in calls[:at]
            assert any(arguments["old_string"] in text for _, text in rendered), "the result shows what is replaced"


def test_several_calls_are_shown_where_they_are_allowed() -> None:
    for parallel, most in ((False, 1), (True, 2)):
        assert max(text.count('"name"') for _, text in render(parallel=parallel)[1:]) == most


def test_roles_alternate_and_the_conversation_stays_as_it_is() -> None:
    plain = render_as_text(Conversation("m", ASKED, TOOLS), "fenced_json").conversation.messages
    rendered = render()
    assert (rendered[0], rendered[-1]) == (("system", plain[0].text), ("user", "Go on."))
    roles = [role for role, _ in rendered[1:]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


def test_absolute_paths_are_shown_where_the_tools_ask_for_them() -> None:
    tools = (
        make_tool("read", "path", description="An absolute path"),
        make_tool("edit", "path", "old_text", "new_text"),
        make_tool("write", "path", "content"),
    )
    for name, arguments in list_calls(render(tools), tools, "fenced_json"):
        assert arguments["path"].startswith("/"), name
    assert not any('file_path": "/' in text for _, text in render())


WEATHER, CLOCK = make_tool("get_weather", "city"), make_tool("now")


def cities(*numbers: int) -> list[tuple[str, dict[str, str]]]:
    return [
        ("get_weather", {"city": make_word("get_weather", "city", "0", number=number).capitalize()})
        for number in numbers
    ]


@pytest.mark.parametrize(
    ("tools", "shown"),
    [
        ((WEATHER,), cities(0, 1)),
        ((CLOCK,), [("now", {})]),
        ((CLOCK, READ, WRITE, WEATHER), [("now", {}), *cities(2)]),
    ],
)
def test_other_tools_get_an_example_of_several_calls(tools: tuple[Tool, ...], shown: list[object]) -> None:
    rendered = render(tools, parallel=True)
    assert [role for role, _ in rendered] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert list_calls(rendered, tools, "fenced_json") == shown


def test_values_have_the_types_of_the_schema() -> None:
    schemas = {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": ["null", "number"]},
        "fast": {"type": "boolean"},
        "unit": {"enum": ["km", "mile"]},
        "kind": {"const": "x"},
        "none": {"type": "null"},
        "names": {"type": "array", "items": {"type": "string"}},
        "things": {"type": "array"},
        "place": {"properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["y"]},
        "extra": {"type": "string"},
    }
    parameters = {"type": "object", "properties": schemas, "required": [key for key in schemas if key != "extra"]}
    tools = (Tool("measure", "Measure.", parameters),)
    first, second = (arguments for _, arguments in list_calls(render(tools, parallel=True), tools, "fenced_json"))
    name = make_word("measure", "name", "0").capitalize()
    number = {key: make_number("measure", key) for key in ("count", "share", "y")}
    assert {**first, "text": "", "things": []} == {
        **{"text": "", "count": number["count"], "share": number["share"], "fast": True, "unit": "km"},
        **{"kind": "x", "none": None, "names": [name], "things": [], "place": {"y": number["y"]}},
    }
    assert all(find_made_up(json.dumps(first[key])) for key in ("text", "things"))
    assert second["unit"] == "mile" and not any(second[key] == first[key] for key in ("text", "count", "share"))


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("dialect", ["fenced_json", "hermes", "roo_xml"])
def test_every_value_of_an_example_is_recognised(dialect: str, parallel: bool) -> None:
    for tools in (TOOLS, (WEATHER,)):
        for _, arguments in list_calls(render(tools, dialect, parallel=parallel), tools, dialect):
            assert all(find_made_up(json.dumps(value)) for value in arguments.values()), arguments


@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ((READ,), ToolChoice()),
        ((READ, WRITE), ToolChoice()),
        ((WRITE, EDIT), ToolChoice()),
        ((WEATHER,), ToolChoice()),
        (TOOLS, ToolChoice("none")),
        (TOOLS, ToolChoice.one("Bash")),
    ],
)
def test_other_tools_get_the_plain_prompt_where_one_call_is_allowed(
    tools: tuple[Tool, ...], choice: ToolChoice
) -> None:
    plain = render_as_text(Conversation("m", ASKED, tools, choice), "fenced_json").conversation.messages
    assert render(tools, choice=choice) == [(message.role, message.text) for message in plain]

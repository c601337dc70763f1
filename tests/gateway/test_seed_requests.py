"""Every request example of the documents this project grew from, each test named after its document and heading.

- *Examples*: "Tool Calling Transformation Examples" (Direction 1, and the requests of its cycles)
- *Plan*: "Tool Calling Transformation Middleware - Implementation Plan" (phases 1, 2 and 5, and their unit tests)

Where the two documents show different example values for the same parameter, the lines are compared without the values.
So are all other example values: those of the documents are plausible, and models send plausible examples as calls. Ours are
made up, and a call that holds one is refused.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

import toolglot
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.core.made_up_values import find_made_up
from toolglot.prompting.call_writer import resolve_dialect
from toolglot.prompting.conversation import render_as_text
from toolglot.prompting.tool_listing import list_tools

ROO = resolve_dialect("roo_xml")


def tool(name: str, expected: str, required: list[str], /, **properties: tuple[str, str]) -> Tool:
    inner: dict[str, Any] = {
        key: {"type": kind, "description": text} if text else {"type": kind} for key, (kind, text) in properties.items()
    }
    return Tool(name, expected, {"type": "object", "properties": inner, "required": required})


READ = tool(
    "read",
    "Read a file from the filesystem with line numbers",
    ["filePath"],
    filePath=("string", "Absolute path to the file"),
    offset=("number", "Line number to start reading from"),
    limit=("number", "Number of lines to read"),
)
BASH = tool(
    "bash",
    "Execute a bash command in a persistent shell session",
    ["command", "description"],
    command=("string", "The command to execute"),
    description=("string", "Clear description of what this command does"),
    timeout=("number", "Timeout in milliseconds"),
)
WRITE = tool(
    "write",
    "Write content to a file, creating it if it doesn't exist",
    ["file_path", "content"],
    file_path=("string", "Absolute path to the file"),
    content=("string", "Content to write to the file"),
)


def section(*tools: Tool) -> str:
    return list_tools(tools, ROO)


def check_section(taught: str, expected: str) -> None:
    """All but the example values is as expected, and these are made up."""
    assert without_values(taught) == without_values(expected)
    assert not re.findall(r">[^<>]+</", re.sub(r"\s+", "", expected)) or find_made_up(taught)


def without_values(text: str) -> list[str]:
    return re.sub(r">\n?[^<>\n]+\n?</", "></", text).splitlines()


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def texts_of(conversation: Conversation) -> list[tuple[str, str]]:
    prompted = render_as_text(conversation, "roo_xml")
    return [(message.role, message.text) for message in prompted.conversation.messages]


# Examples, Direction 1: tools to the system prompt


def test_examples_direction_1_example_1_read_file_tool() -> None:
    check_section(
        section(READ),
        """<tools>
## read
Description: Read a file from the filesystem with line numbers
Parameters:
- filePath: (required) string - Absolute path to the file
- offset: (optional) number - Line number to start reading from
- limit: (optional) number - Number of lines to read

Usage:
<read>
<filePath>/path/to/file.js</filePath>
<offset>10</offset>
<limit>50</limit>
</read>
</tools>""",
    )


def test_examples_direction_1_example_2_bash_command_tool() -> None:
    check_section(
        section(BASH),
        """<tools>
## bash
Description: Execute a bash command in a persistent shell session
Parameters:
- command: (required) string - The command to execute
- description: (required) string - Clear description of what this command does
- timeout: (optional) number - Timeout in milliseconds

Usage:
<bash>
<command>npm install axios</command>
<description>Install axios package for HTTP requests</description>
<timeout>30000</timeout>
</bash>
</tools>""",
    )


def test_examples_direction_1_example_3_write_file_tool() -> None:
    check_section(
        section(WRITE),
        """<tools>
## write
Description: Write content to a file, creating it if it doesn't exist
Parameters:
- file_path: (required) string - Absolute path to the file
- content: (required) string - Content to write to the file

Usage:
<write>
<file_path>/src/app.js</file_path>
<content>
console.log('Hello World');
</content>
</write>
</tools>""",
    )


SMALL_READ = tool("read", "Read a file", ["filePath"], filePath=("string", "File path"))
SMALL_BASH = tool(
    "bash",
    "Execute command",
    ["command", "description"],
    command=("string", "Command"),
    description=("string", "Description"),
)
EXAMPLE_4 = """You have access to tools that help you accomplish tasks. Use tools by outputting XML-formatted tool calls.

## Tool Use Rules
1. Use exactly one tool per message
2. Format tool calls using XML with the tool name as the tag
3. Include all required parameters within parameter tags

## Tool Call Format
<tool_name>
<parameter1>value1</parameter1>
<parameter2>value2</parameter2>
</tool_name>

## Available Tools

## read
Description: Read a file
Parameters:
- filePath: (required) string - File path

Usage:
<read>
<filePath>/path/to/file</filePath>
</read>

## bash
Description: Execute command
Parameters:
- command: (required) string - Command
- description: (required) string - Description

Usage:
<bash>
<command>npm install</command>
<description>Install dependencies</description>
</bash>"""


def test_examples_direction_1_example_4_multiple_tools_in_request() -> None:
    conversation = Conversation("qwen3-max", (user("Read package.json"),), (SMALL_READ, SMALL_BASH))
    (role, prompt), question = texts_of(conversation)
    assert role == "system" and question == ("user", "Read package.json")
    # the Plan has two rules more, says "You must use", and wraps the tools
    rule = re.compile(r"\d\. ")
    taught = {rule.sub("", line) for line in without_values(prompt)}
    missing = [line for line in without_values(EXAMPLE_4) if rule.sub("", line) not in taught]
    assert missing == without_values(EXAMPLE_4.splitlines()[0])
    assert without_values(prompt.split("<tools>\n")[1])[:-1] == without_values(
        EXAMPLE_4.split("Available Tools\n\n")[1]
    )


# Examples, the requests of the cycles


def test_examples_cycle_1_read_file_step_1_initial_request() -> None:
    read = Tool("read", "Read a file", {"type": "object", "properties": {"filePath": {"type": "string"}}})
    prompted = render_as_text(
        Conversation("qwen3-max", (user("What's in the package.json file?"),), (read,)), "roo_xml"
    )
    system, question = prompted.conversation.messages
    assert system.role == "system" and system.text.startswith("You have access to tools")
    assert "## read\nDescription: Read a file\n" in system.text
    assert (question.role, question.text) == ("user", "What's in the package.json file?")
    assert prompted.conversation.tools == () and prompted.tools == (read,)


def test_examples_cycle_1_read_file_step_3_tool_result() -> None:
    content = '{"dependencies":{"express":"^4.18.0","axios":"^1.4.0"}}'
    messages = (
        user("What's in the package.json file?"),
        Message(
            "assistant",
            (
                Text("I'll read the package.json file."),
                ToolCall("call_1", "read", '{"filePath":"/home/user/package.json"}'),
            ),
        ),
        Message("tool", (ToolResult("call_1", content=(Text(content),)),)),
    )
    assert texts_of(Conversation("qwen3-max", messages, (SMALL_READ,)))[1:] == [
        ("user", "What's in the package.json file?"),
        (
            "assistant",
            "I'll read the package.json file.\n\n<read>\n<filePath>/home/user/package.json</filePath>\n</read>",
        ),
        ("user", f"Tool Result from read:\n{content}"),
    ]


def test_examples_cycle_2_bash_step_3_result() -> None:
    messages = (
        user("Install the lodash package"),
        Message(
            "assistant",
            (
                ToolCall(
                    "call_5", "bash", '{"command":"npm install lodash","description":"Install lodash utility library"}'
                ),
            ),
        ),
        Message("tool", (ToolResult("call_5", content=(Text("added 1 package in 2.3s"),)),)),
    )
    assert texts_of(Conversation("qwen3-max", messages, (SMALL_BASH,)))[2:] == [
        (
            "assistant",
            "<bash>\n<command>npm install lodash</command>\n"
            "<description>Install lodash utility library</description>\n</bash>",
        ),
        ("user", "Tool Result from bash:\nadded 1 package in 2.3s"),
    ]


# Plan, phase 1: tool definition transformer


def test_plan_phase_1_example_output() -> None:
    read = tool(
        "read",
        "Reads a file from the local filesystem. Returns file content with line numbers.",
        ["filePath"],
        filePath=("string", "The absolute path to the file to read"),
        offset=("number", "The line number to start reading from"),
        limit=("number", "The number of lines to read"),
    )
    bash = tool(
        "bash",
        "Execute bash commands in a persistent shell session.",
        ["command", "description"],
        command=("string", "The command to execute"),
        description=("string", "Clear description of command purpose"),
        timeout=("number", "Timeout in milliseconds"),
    )
    expected = """<tools>
## read
Description: Reads a file from the local filesystem. Returns file content with line numbers.
Parameters:
- filePath: (required) string - The absolute path to the file to read
- offset: (optional) number - The line number to start reading from
- limit: (optional) number - The number of lines to read

Usage:
<read>
<filePath>/path/to/file.js</filePath>
<offset>0</offset>
<limit>100</limit>
</read>

## bash
Description: Execute bash commands in a persistent shell session.
Parameters:
- command: (required) string - The command to execute
- description: (required) string - Clear description of command purpose
- timeout: (optional) number - Timeout in milliseconds

Usage:
<bash>
<command>ls -la</command>
<description>List files in current directory</description>
</bash>
</tools>"""
    # the Examples also fill in the optional timeout
    shown = [line for line in without_values(section(read, bash)) if line != "<timeout></timeout>"]
    assert shown == without_values(expected)


def test_plan_phase_1_a_tool_with_an_odd_schema_is_no_failure() -> None:
    """Tools that are none (no name, not a mapping) are skipped with a note by each wire."""
    odd = Tool("odd", "", {"type": "dict", "properties": {"x": {"type": "no such type"}, "y": {"type": "float"}}})
    prompted = render_as_text(Conversation("m", (user("Hi"),), (odd, READ)), "roo_xml")
    assert (prompted.tools, prompted.notes) == ((odd, READ), ())
    assert "## odd" in prompted.conversation.messages[0].text


# Plan, phase 2: system prompt injection

PHASE_2 = """
You have access to tools that help you accomplish tasks. You must use tools by outputting XML-formatted tool calls.

## Tool Use Rules
1. Use exactly one tool per message
2. Every assistant message with a tool request must include exactly one tool call
3. Format tool calls using XML with the tool name as the tag
4. Include all required parameters within parameter tags
5. Wait for tool results before proceeding

## Tool Call Format
<tool_name>
<parameter1>value1</parameter1>
<parameter2>value2</parameter2>
</tool_name>

## Available Tools
"""


@pytest.mark.parametrize("dialect", ["roo_xml", "hermes", "dsml_v4", "kimi_k2", "mistral_array"])
@pytest.mark.parametrize("description", ["", " \n"])
def test_a_tool_without_a_description_is_not_taught_an_empty_one(dialect: str, description: str) -> None:
    listed = list_tools([Tool("read", description, READ.parameters)], resolve_dialect(dialect))
    assert "read" in listed and "filePath" in listed
    assert "Description:\n" not in listed and '"description": ""' not in listed and '"description": " ' not in listed


def test_plan_phase_2_base_tool_instructions() -> None:
    (_, prompt), _ = texts_of(Conversation("m", (user("Hi"),), (READ,)))
    check_section(prompt, PHASE_2.strip() + "\n\n" + section(READ))


def test_plan_phase_2_original_system_prompt_is_preserved_and_comes_first() -> None:
    messages = (Message("system", (Text("You are a pirate."),)), user("Hi"))
    (role, prompt), _ = texts_of(Conversation("m", messages, (READ,)))
    assert role == "system"
    check_section(prompt, "You are a pirate.\n\n" + PHASE_2.strip() + "\n\n" + section(READ))


def test_plan_phase_2_duplicate_injection_prevented() -> None:
    first = render_as_text(Conversation("m", (Message("system", (Text("Be brief."),)), user("Hi")), (READ,)), "roo_xml")
    again = render_as_text(Conversation("m", first.conversation.messages, (READ,)), "roo_xml")
    assert again.conversation.messages[0] == first.conversation.messages[0]


def test_plan_phase_2_non_tool_requests_unaffected() -> None:
    messages = (
        Message("system", (Text("Be brief."),)),
        user("Hi"),
        Message("assistant", (Text("Hello."),)),
        user("Why?"),
    )
    prompted = render_as_text(Conversation("m", messages), "roo_xml")
    assert prompted.conversation.messages == messages
    assert (prompted.tools, dict(prompted.names), prompted.break_character, prompted.notes) == ((), {}, "", ())


# Plan, phase 5: tool result handler


def results(*contents: tuple[str, str]) -> tuple[Message, ...]:
    calls = tuple(ToolCall(call_id, "read", '{"filePath":"file.js"}') for call_id, _ in contents)
    received = tuple(Message("tool", (ToolResult(call_id, content=(Text(text),)),)) for call_id, text in contents)
    return (Message("assistant", calls), *received)


def test_plan_phase_5_single_tool_result() -> None:
    _, (assistant, called), (role, received) = texts_of(
        Conversation("m", results(("call_1", "File content here")), (READ,))
    )
    assert (assistant, called) == ("assistant", "<read>\n<filePath>file.js</filePath>\n</read>")
    assert (role, received) == ("user", "Tool Result from read:\nFile content here")


def test_plan_phase_5_multiple_tool_results() -> None:
    received = texts_of(Conversation("m", results(("a", "one"), ("b", "two")), (READ,)))[-1]
    assert received == ("user", "Tool Result from read:\none\n\nTool Result from read:\ntwo")


def test_plan_phase_5_mixed_tool_and_regular_messages() -> None:
    messages = (user("Read it"), *results(("a", "one")), user("And now?"))
    rendered = texts_of(Conversation("m", messages, (READ,)))
    assert [role for role, _ in rendered] == ["system", "user", "assistant", "user"]
    assert rendered[-1][1] == "Tool Result from read:\none\n\nAnd now?"


def test_plan_phase_5_orphaned_tool_result_is_kept() -> None:
    messages = (user("Hi"), Message("tool", (ToolResult("lost", content=(Text("something"),)),)))
    assert texts_of(Conversation("m", messages, (READ,)))[-1] == ("user", "Hi\n\nTool Result from unknown:\nsomething")


# Plan, phase 7: unit tests of the transformer


def test_plan_phase_7_transforms_single_tool_to_xml() -> None:
    read = tool("read", "Read a file", ["filePath"], filePath=("string", "Path to file"))
    shown = section(read)
    for piece in ("<tools>", "## read", "Read a file", "filePath", "(required)", "</tools>"):
        assert piece in shown


def test_plan_phase_7_handles_multiple_tools() -> None:
    shown = section(Tool("read", "Read file", {"properties": {}}), Tool("write", "Write file", {"properties": {}}))
    assert "## read" in shown and "## write" in shown


def test_plan_phase_7_handles_empty_tools_array() -> None:
    assert section() == "<tools>\n\n</tools>"
    assert toolglot.teach([], "roo_xml") == ""

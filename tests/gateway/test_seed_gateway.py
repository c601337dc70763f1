"""The examples of the documents that need the whole gateway, each named after its document and heading.

- *Examples*: "Tool Calling Transformation Examples" (Direction 2 as replies, cycles, edge cases)
- *Plan*: "Tool Calling Transformation Middleware - Implementation Plan" (phases 5, 6 and 8)
- *Transformer*: "Roo-Cline Response Transformer Specification" (the four patterns, as a client of Roo sees them)

docs/examples-of-origin.md lists all examples of the documents with their tests.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.gateway import Answer, gateway
from support.samples import load_tools
from support.xmlprompts import write_roo

from toolglot.sim import Answer as SimAnswer
from toolglot.sim import ScriptedAnswer, SimOptions

SEED = load_tools("seed")
MODEL = "qwen3-max"


def only(*names: str) -> list[dict[str, Any]]:
    return [offered for offered in SEED if offered["function"]["name"] in names]


def converse(texts: list[str], *requests: dict[str, Any], chunk: int = 7, **settings: Any) -> tuple[list[Answer], Any]:
    """The answers to requests while the model writes these texts in turn; and what the model received."""

    async def talk() -> tuple[list[Answer], Any]:
        script = tuple(ScriptedAnswer(SimAnswer(text), times=1) for text in texts)
        async with gateway(SimOptions(script=script, chunk=chunk), **settings) as gate:
            answers = [await gate.ask({"model": MODEL, **request}) for request in requests]
            return answers, gate.record.bodies

    return asyncio.run(talk())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calling(text: str | None, call_id: str, name: str, /, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, separators=(",", ":"))}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def strip_ids(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the ids of its calls, which are new every time."""
    calls = [{key: value for key, value in call.items() if key != "id"} for call in message.get("tool_calls", ())]
    return message | ({"tool_calls": calls} if calls else {})


# Examples, Direction 2: replies

REPLIES = {
    "example_1_simple_tool_call_read": (
        "I'll read the package.json file to see the dependencies.\n\n<read>\n<filePath>/home/user/project/package.json</filePath>\n</read>",
        calling("I'll read the package.json file to see the dependencies.", "", "read", filePath="/home/user/project/package.json"),
    ),
    "example_2_multiple_parameters_bash": (
        "I'll install the axios package using npm.\n\n<bash>\n<command>npm install axios</command>\n<description>Install axios HTTP client library</description>\n<timeout>60000</timeout>\n</bash>",
        calling("I'll install the axios package using npm.", "", "bash", command="npm install axios", description="Install axios HTTP client library", timeout=60000),
    ),
    "example_3_multiline_content_write": (
        'I\'ll create a new configuration file with the settings.\n\n<write>\n<file_path>/config/settings.json</file_path>\n<content>\n{\n  "api": {\n    "endpoint": "https://api.example.com",\n    "timeout": 5000\n  },\n  "logging": {\n    "level": "debug"\n  }\n}\n</content>\n</write>',
        calling(
            "I'll create a new configuration file with the settings.",
            "",
            "write",
            file_path="/config/settings.json",
            content='{\n  "api": {\n    "endpoint": "https://api.example.com",\n    "timeout": 5000\n  },\n  "logging": {\n    "level": "debug"\n  }\n}',
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("example", REPLIES)
def test_examples_direction_2(example: str) -> None:
    text, message = REPLIES[example]
    (whole, streamed), _ = converse(
        [text, text],
        {"messages": [user("Go")], "tools": SEED},
        {"messages": [user("Go")], "tools": SEED, "stream": True},
    )
    reply = whole.json
    assert strip_ids(reply["choices"][0]["message"]) == strip_ids(message)
    assert reply["choices"][0]["finish_reason"] == "tool_calls" and reply["object"] == "chat.completion"
    assert reply["model"] == MODEL and set(reply["usage"]) >= {"prompt_tokens", "completion_tokens", "total_tokens"}
    function = message["tool_calls"][0]["function"]
    assert streamed.joined == (message["content"], [(function["name"], function["arguments"])], "tool_calls")


def test_examples_direction_2_example_4_no_tool_call() -> None:
    text = "The package.json file contains 5 dependencies: express, axios, lodash, moment, and dotenv."
    (answer,), _ = converse([text], {"messages": [user("Go")], "tools": SEED})
    assert answer.message == {"role": "assistant", "content": text} and answer.finish == "stop"


def test_examples_direction_2_example_5_streaming() -> None:
    text = "I'll read the file.\n\n<read>\n<filePath>/src/app.js</filePath>\n</read>"
    (answer,), _ = converse([text], {"messages": [user("Go")], "tools": SEED, "stream": True}, chunk=5)
    first, *chunks = answer.chunks
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "I'll "}
    assert not any("role" in chunk["choices"][0]["delta"] for chunk in chunks)
    started = [
        chunk["choices"][0]["delta"]["tool_calls"][0]
        for chunk in chunks
        if "tool_calls" in chunk["choices"][0]["delta"]
    ]
    assert {key: value for key, value in started[0].items() if key != "id"} == {"index": 0, "type": "function", "function": {"name": "read", "arguments": ""}}  # fmt: skip
    assert started[0]["id"] and all(set(delta) == {"index", "function"} for delta in started[1:])
    assert chunks[-1]["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    assert answer.joined == ("I'll read the file.", [("read", '{"filePath":"/src/app.js"}')], "tool_calls")
    assert answer.body.endswith(b"data: [DONE]\n\n")


# Examples, cycles


def test_examples_cycle_1_read_file_execute_continue(tmp_path: Path) -> None:
    package = tmp_path / "package.json"
    package.write_text('{"dependencies":{"express":"^4.18.0","axios":"^1.4.0"}}')
    final = "The package.json file contains 2 dependencies: express version ^4.18.0 and axios version ^1.4.0."
    texts = [f"I'll read the package.json file.\n\n<read>\n<filePath>{package}</filePath>\n</read>", final]
    question, tools = user("What's in the package.json file?"), only("read")

    async def talk() -> None:
        script = tuple(ScriptedAnswer(SimAnswer(text), times=1) for text in texts)
        async with gateway(SimOptions(script=script)) as gate:
            asked = {"model": MODEL, "messages": [question], "tools": tools, "stream": True}
            text, calls, finish = (await gate.ask(asked)).joined
            assert (text, finish) == ("I'll read the package.json file.", "tool_calls")
            ((name, arguments),) = calls
            content = Path(json.loads(arguments)["filePath"]).read_text()
            system, received = gate.record.last.body["messages"]
            assert system["role"] == "system" and "## read\nDescription: " in system["content"]
            assert received == question and "tools" not in gate.record.last.body
            history = [question, calling(text, "call_1", name, **json.loads(arguments)), {"role": "tool", "tool_call_id": "call_1", "content": content}]  # fmt: skip
            answer = await gate.ask({"model": MODEL, "messages": history, "tools": tools})
            assert answer.message == {"role": "assistant", "content": final} and answer.finish == "stop"
            assert gate.record.last.body["messages"][-1] == user(f"Tool Result from read:\n{content}")

    asyncio.run(talk())


def test_examples_cycle_2_bash() -> None:
    text = "I'll install lodash using npm.\n\n<bash>\n<command>npm install lodash</command>\n<description>Install lodash utility library</description>\n</bash>"
    question = user("Install the lodash package")
    call = calling(
        "I'll install lodash using npm.",
        "call_5",
        "bash",
        command="npm install lodash",
        description="Install lodash utility library",
    )
    history = [question, call, {"role": "tool", "tool_call_id": "call_5", "content": "added 1 package in 2.3s"}]
    (first, second), bodies = converse(
        [text, "Successfully installed lodash version 4.17.21."],
        {"messages": [question], "tools": only("bash")},
        {"messages": history, "tools": only("bash")},
    )
    assert strip_ids(first.message) == strip_ids(call)
    assert second.message["content"] == "Successfully installed lodash version 4.17.21."
    assert bodies[-1]["messages"][-1] == user("Tool Result from bash:\nadded 1 package in 2.3s")


# Examples, edge cases


def test_examples_case_2_a_tool_that_was_not_offered_is_allowed() -> None:
    text = "<bash>\n<command>ls -la</command>\n</bash>"
    marked = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls -la"}}\n</tool_call>'
    request = {"messages": [user("Go")], "tools": only("read", "write")}
    (bare, named), _ = converse([text, marked], request, request)
    # a bare tag is a call only if its name is known; in a marked dialect it always is one
    assert bare.message == {"role": "assistant", "content": text}
    assert named.message["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command":"ls -la"}'}
    (configured,), _ = converse([text], request, tool_calling_supported_tools="bash")
    assert configured.message["tool_calls"][0]["function"]["name"] == "bash"


def test_examples_case_3_only_the_first_of_several_calls_where_one_is_wanted() -> None:
    text = "<read>\n<filePath>/file1.js</filePath>\n</read>\n\n<read>\n<filePath>/file2.js</filePath>\n</read>"
    request = {"messages": [user("Go")], "tools": only("read"), "parallel_tool_calls": False}
    (whole, streamed), _ = converse([text, text], request, request | {"stream": True})
    assert [call["function"]["arguments"] for call in whole.message["tool_calls"]] == ['{"filePath":"/file1.js"}']
    assert streamed.joined[1] == [("read", '{"filePath":"/file1.js"}')]


# Plan, phase 6: the switches come from the environment


@pytest.mark.parametrize("prefix", ["", "TOOLGLOT_"])
def test_plan_phase_6_environment_variables_control_behaviour(prefix: str) -> None:
    from toolglot.config import load

    environ = {f"{prefix}TOOL_CALLING_{name}": value for name, value in (("ENABLED", "false"), ("AUTO_DETECT", "false"), ("MAX_TOOLS", "20"))}  # fmt: skip
    tools = load({}, environ).tool_calling
    assert (tools.enabled, tools.auto_detect, tools.max_tools) == (False, False, 20)


# Plan, phase 8: examples/opencode_tool_examples.json


def test_plan_phase_8_simple_file_read() -> None:
    request = {"messages": [user("Read the file src/server.js")], "tools": only("read"), "stream": False}
    (answer,), _ = converse(["<read>\n<filePath>src/server.js</filePath>\n</read>"], request)
    assert strip_ids(answer.message) == strip_ids(calling(None, "", "read", filePath="src/server.js"))
    assert answer.finish == "tool_calls"


def test_plan_phase_8_command_execution() -> None:
    request = {"messages": [user("Run npm test to check if tests pass")], "tools": only("bash"), "stream": False}
    text = "<bash>\n<command>npm test</command>\n<description>Run test suite</description>\n</bash>"
    (answer,), _ = converse([text], request)
    assert strip_ids(answer.message) == strip_ids(calling(None, "", "bash", command="npm test", description="Run test suite"))  # fmt: skip


def test_plan_phase_8_tool_result_follow_up() -> None:
    content = '{\n  "name": "qwen-proxy",\n  "version": "1.0.0",\n  "description": "OpenAI proxy for Qwen"\n}'
    history = [
        user("Read package.json"),
        calling(None, "call_123", "read", filePath="package.json"),
        {"role": "tool", "tool_call_id": "call_123", "content": content},
    ]
    final = "The package.json shows this is the qwen-proxy project, version 1.0.0."
    (answer,), bodies = converse([final], {"messages": history, "tools": only("read"), "stream": False})
    assert answer.message == {"role": "assistant", "content": final} and answer.finish == "stop"
    *_, call, result = bodies[0]["messages"]
    assert call == {"role": "assistant", "content": "<read>\n<filePath>package.json</filePath>\n</read>"}
    assert result == user(f"Tool Result from read:\n{content}")


# Transformer, what Qwen generates

PATTERNS = {
    "1_json_code_block": (
        'I\'ll use the list_files tool to explore the directory:\n\n```tool_code\n{"tool": "list_files", "path": "."}\n```',
        "I'll use the list_files tool to explore the directory:\n\n<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>",
    ),
    "1_high_confidence": (
        '```tool_code\n{"tool": "list_files", "path": ".", "recursive": false}\n```',
        "<list_files>\n<path>.</path>\n<recursive>false</recursive>\n</list_files>",
    ),
    "2_shell_command": ("Let me run the tests:\n\n```bash\nnpm test\n```", ""),
    "3_natural_language": ("I need to read the package.json file first to understand the dependencies.", ""),
    "3_low_confidence": ("I'll need to list the files in the current directory to see what's available.", ""),
    "4_question": ("Which configuration file would you like to update?", ""),
    "roo_xml": (
        "<read_file>\n<args>\n  <file>\n    <path>README.md</path>\n  </file>\n</args>\n</read_file>",
        "<read_file>\n<args>\n  <file>\n    <path>README.md</path>\n  </file>\n</args>\n</read_file>",
    ),
}
"""The text of the model, and what Roo gets; empty: the same text."""
SHELL = "Let me run the tests:\n\n<execute_command>\n<command>npm test</command>\n</execute_command>"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_transformer_pattern(pattern: str, stream: bool) -> None:
    text, delivered = PATTERNS[pattern]
    request = {"messages": [{"role": "system", "content": write_roo()}, user("<task>\nGo.\n</task>")], "stream": stream}
    (answer,), _ = converse([text], request)
    assert (answer.joined[0] if stream else answer.message["content"]) == (delivered or text)


def test_transformer_pattern_2_shell_command_where_it_is_switched_on() -> None:
    request = {"messages": [{"role": "system", "content": write_roo()}, user("<task>\nGo.\n</task>")]}
    (answer,), _ = converse([PATTERNS["2_shell_command"][0]], request, shell="npm", min_confidence="0.8")
    assert answer.message["content"] == SHELL


# the model of the documents needs no setting


@pytest.mark.parametrize("mode", ["auto", "text"])
def test_the_documented_model_gets_the_documented_prompt(mode: str) -> None:
    """qwen3-max follows this form if the prompt has it; others of its family write JSON in tags."""
    request = {"messages": [user("Read package.json")], "tools": only("read")}
    (answer,), (body,) = converse(["<read>\n<filePath>package.json</filePath>\n</read>"], request, mode=mode)
    system = body["messages"][0]["content"]
    assert "<tools>\n## read\nDescription: " in system and "one tool per message" in system
    assert "Usage:\n<read>\n<filePath>" in system and "<tool_call>" not in system
    assert answer.message["tool_calls"][0]["function"]["arguments"] == '{"filePath":"package.json"}'

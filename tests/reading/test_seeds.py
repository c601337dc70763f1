"""Every example of the documents this project grew from, each test named after its document and heading.

- *Examples*: "Tool Calling Transformation Examples" (Direction 2, cycles, edge cases, type conversions)
- *Plan*: "Tool Calling Transformation Middleware - Implementation Plan" (phases 3 and 4, and their unit tests)
- *Recovery*: "feat: malformed tool call recovery for open-weight models"
"""

from __future__ import annotations

import json
from time import process_time
from typing import Any

import pytest
from support.rows import in_one_test
from support.samples import chunkings, load_tools, read_events

import toolglot
from toolglot.core.events import CallEnded, CallStarted, Reason, TextDelta

SEED = load_tools("seed")
MODEL = "qwen3-max"


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": []}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


def only(*names: str) -> list[dict[str, Any]]:
    return [offered for offered in SEED if offered["function"]["name"] in names]


def assert_read(
    text: str, expected: list[tuple[str, str]], prose: str, tools: list[dict[str, Any]] = SEED
) -> toolglot.Reading:
    """Whole and in any chunking the text gives these calls (arguments to the byte) and this prose."""
    reading = toolglot.read(text, tools=tools)
    assert [(call.name, call.arguments) for call in reading.calls] == expected
    assert reading.text.strip() == prose
    hinted = toolglot.read(text, tools=tools, dialect=MODEL)
    assert (hinted.calls, hinted.text) == (reading.calls, reading.text)
    whole = read_events([text], tools=tools)
    for name, chunks in chunkings(text, "seed"):
        assert read_events(chunks, tools=tools) == whole, name
    return reading


READ_PACKAGE = """I'll read the package.json file to see the dependencies.

<read>
<filePath>/home/user/project/package.json</filePath>
</read>"""

# Examples, Direction 2: XML to calls


def test_examples_direction_2_example_1_simple_tool_call_read() -> None:
    reading = assert_read(
        READ_PACKAGE,
        [("read", '{"filePath":"/home/user/project/package.json"}')],
        "I'll read the package.json file to see the dependencies.",
    )
    assert reading.calls[0].id
    assert reading.calls[0].repairs == ()


def test_examples_direction_2_example_2_multiple_parameters_bash() -> None:
    text = """I'll install the axios package using npm.

<bash>
<command>npm install axios</command>
<description>Install axios HTTP client library</description>
<timeout>60000</timeout>
</bash>"""
    arguments = '{"command":"npm install axios","description":"Install axios HTTP client library","timeout":60000}'
    assert_read(text, [("bash", arguments)], "I'll install the axios package using npm.")


def test_examples_direction_2_example_3_multiline_content_write() -> None:
    content = """{
  "api": {
    "endpoint": "https://api.example.com",
    "timeout": 5000
  },
  "logging": {
    "level": "debug"
  }
}"""
    text = f"""I'll create a new configuration file with the settings.

<write>
<file_path>/config/settings.json</file_path>
<content>
{content}
</content>
</write>"""
    arguments = json.dumps({"file_path": "/config/settings.json", "content": content}, separators=(",", ":"))
    assert_read(text, [("write", arguments)], "I'll create a new configuration file with the settings.")


def test_examples_direction_2_example_4_no_tool_call() -> None:
    text = (
        "The package.json file contains 5 dependencies: express, axios, lodash, moment, and dotenv. "
        "All dependencies are production dependencies with no devDependencies listed."
    )
    assert_read(text, [], text)


def test_examples_direction_2_example_5_streaming() -> None:
    chunks = ["I'll ", "read ", "the ", "file.\n\n<read", ">\n<file", "Path>/src/app.js</filePath>\n</read>"]
    reader = toolglot.Reader(tools=SEED)
    steps = [reader.feed(chunk) for chunk in chunks]
    shown = ["".join(event.text for event in step if isinstance(event, TextDelta)) for step in steps]
    assert shown[:3] == ["I'll ", "read ", "the "]
    assert shown[3].strip() == "file."
    events = [event for step in steps for event in step] + reader.close()
    assert [event.name for event in events if isinstance(event, CallStarted)] == ["read"]
    assert [event.index for event in events if isinstance(event, CallEnded)] == [0]
    assert_read("".join(chunks), [("read", '{"filePath":"/src/app.js"}')], "I'll read the file.")


# Examples, complete cycles


def test_examples_cycle_1_read_file_step_2_response() -> None:
    text = "I'll read the package.json file.\n\n<read>\n<filePath>/home/user/package.json</filePath>\n</read>"
    assert_read(
        text, [("read", '{"filePath":"/home/user/package.json"}')], "I'll read the package.json file.", only("read")
    )


def test_examples_cycle_1_read_file_step_4_final_response() -> None:
    text = "The package.json file contains 2 dependencies: express version ^4.18.0 and axios version ^1.4.0."
    assert_read(text, [], text)


def test_examples_cycle_2_bash_step_2_response() -> None:
    text = """I'll install lodash using npm.

<bash>
<command>npm install lodash</command>
<description>Install lodash utility library</description>
</bash>"""
    arguments = '{"command":"npm install lodash","description":"Install lodash utility library"}'
    assert_read(text, [("bash", arguments)], "I'll install lodash using npm.")


def test_examples_cycle_2_bash_step_4_final_confirmation() -> None:
    text = "Successfully installed lodash version 4.17.21."
    assert_read(text, [], text)


# Examples, edge cases and error handling


def test_examples_case_1_malformed_xml_is_recovered() -> None:
    text = "I'll read the file.\n\n<read>\n<filePath>/path/to/file\n</read>"
    reading = assert_read(text, [("read", '{"filePath":"/path/to/file"}')], "I'll read the file.")
    assert reading.calls[0].repairs


LIST_FILES = "<bash>\n<command>ls -la</command>\n</bash>"


def test_examples_case_2_tool_not_in_original_request_is_text() -> None:
    reading = toolglot.read(LIST_FILES, tools=only("read", "write"))
    assert reading.calls == []
    assert reading.text == LIST_FILES


def test_examples_case_2_tool_not_in_original_request_but_supported_is_a_call() -> None:
    (call,) = toolglot.read(LIST_FILES, tools=only("read", "write"), supported_tools=("bash",)).calls
    assert (call.name, call.arguments) == ("bash", '{"command":"ls -la"}')


TWO_READS = "<read>\n<filePath>/file1.js</filePath>\n</read>\n\n<read>\n<filePath>/file2.js</filePath>\n</read>"


def test_examples_case_3_multiple_tool_calls_deliver_the_first() -> None:
    reading = toolglot.read(TWO_READS, tools=SEED, parallel=False)
    assert [call.arguments for call in reading.calls] == ['{"filePath":"/file1.js"}']
    (extra,) = reading.rejected
    assert extra.reason is Reason.EXTRA_CALL
    assert extra.tool == "read"
    assert "/file2.js" in extra.raw


def test_examples_case_3_multiple_tool_calls_in_parallel_mode() -> None:
    assert_read(TWO_READS, [("read", '{"filePath":"/file1.js"}'), ("read", '{"filePath":"/file2.js"}')], "")


# Examples, type conversions

TYPES = tool(
    "job",
    filePath={"type": "string"},
    timeout={"type": "number"},
    offset={"type": "integer"},
    recursive={"type": "boolean"},
    force={"type": "boolean"},
    files={"type": "array", "items": {"type": "string"}},
    options={"type": "object", "properties": {"timeout": {"type": "number"}, "retries": {"type": "integer"}}},
    anything={"type": "object"},
)


@in_one_test(
    ("body", "arguments"),
    [
        pytest.param("<filePath>/path/to/file</filePath>", '{"filePath":"/path/to/file"}', id="string"),
        pytest.param("<filePath>5000</filePath>", '{"filePath":"5000"}', id="string of digits"),
        pytest.param("<filePath>true</filePath>", '{"filePath":"true"}', id="string true"),
        pytest.param("<timeout>5000</timeout>\n<offset>10</offset>", '{"timeout":5000,"offset":10}', id="number"),
        pytest.param(
            "<recursive>true</recursive>\n<force>false</force>", '{"recursive":true,"force":false}', id="boolean"
        ),
        pytest.param(
            "<files>\n  <item>file1.js</item>\n  <item>file2.js</item>\n</files>",
            '{"files":["file1.js","file2.js"]}',
            id="array",
        ),
        pytest.param(
            "<options>\n  <timeout>5000</timeout>\n  <retries>3</retries>\n</options>",
            '{"options":{"timeout":5000,"retries":3}}',
            id="object",
        ),
        pytest.param(
            "<anything>\n  <timeout>5000</timeout>\n  <retries>3</retries>\n  <name>007</name>\n</anything>",
            '{"anything":{"timeout":5000,"retries":3,"name":"007"}}',
            id="object without declared members",
        ),
    ],
)
def test_examples_type_conversions(body: str, arguments: str) -> None:
    assert_read(f"<job>\n{body}\n</job>", [("job", arguments)], "", [TYPES])


# Plan, phase 3: response parser, testing requirements and unit tests


def test_plan_phase_3_single_tool_call() -> None:
    text = "Let me read that file.\n<read>\n<filePath>/path/to/file.js</filePath>\n</read>"
    assert_read(text, [("read", '{"filePath":"/path/to/file.js"}')], "Let me read that file.")


def test_plan_phase_3_extracts_text_content_separate_from_tool_calls() -> None:
    text = "I'll help with that.\n<read>\n<filePath>file.js</filePath>\n</read>"
    assert_read(text, [("read", '{"filePath":"file.js"}')], "I'll help with that.")


def test_plan_phase_3_multiple_tool_calls() -> None:
    text = "<read>\n<filePath>file1.js</filePath>\n</read>\n<read>\n<filePath>file2.js</filePath>\n</read>"
    assert_read(text, [("read", '{"filePath":"file1.js"}'), ("read", '{"filePath":"file2.js"}')], "")


def test_plan_phase_3_handles_no_tool_calls() -> None:
    assert_read("Just regular text response.", [], "Just regular text response.")


def test_plan_phase_3_multiline_parameters() -> None:
    text = "<write>\n<file_path>a.sh</file_path>\n<content>\n#!/bin/sh\n\n  echo hi\n\n</content>\n</write>"
    assert_read(text, [("write", '{"file_path":"a.sh","content":"#!/bin/sh\\n\\n  echo hi\\n"}')], "")


def test_plan_phase_3_mixed_text_and_tool_calls() -> None:
    text = (
        "First.\n\n<read>\n<filePath>a</filePath>\n</read>\n\nThen.\n\n<read>\n<filePath>b</filePath>\n</read>\n\nLast."
    )
    reading = toolglot.read(text, tools=SEED)
    assert [call.arguments for call in reading.calls] == ['{"filePath":"a"}', '{"filePath":"b"}']
    assert reading.text.split() == ["First.", "Then.", "Last."]


@pytest.mark.parametrize(
    "text",
    ["<read>", "<read>\n<filePath>", "<read>\n<filePath>/a", "<read>\n<filePath>/a\n", "Use <read> to read."],
)
def test_plan_phase_3_malformed_xml_unclosed_tags(text: str) -> None:
    reading = toolglot.read(text, tools=SEED)
    assert reading.calls == []
    assert reading.text.strip() or reading.rejected


def test_plan_phase_3_nested_xml_in_parameters() -> None:
    content = "<ul>\n  <li><read>not a call</read></li>\n  <content>inner</content>\n</ul>"
    text = f"<write>\n<file_path>a.html</file_path>\n<content>\n{content}\n</content>\n</write>"
    arguments = json.dumps({"file_path": "a.html", "content": content}, separators=(",", ":"))
    assert_read(text, [("write", arguments)], "")


def test_plan_phase_3_unknown_tools() -> None:
    text = "<launch>\n<rocket>five</rocket>\n</launch>"
    assert_read(text, [], text)


def test_plan_phase_3_supported_tools_registry() -> None:
    names = (
        "list_files",
        "search_files",
        "execute_command",
        "read_file",
        "write_to_file",
        "apply_diff",
        "glob",
        "grep",
    )
    for name in names:
        text = f"<{name}>\n<path>src</path>\n</{name}>"
        (call,) = toolglot.read(text, tools=SEED, supported_tools=names).calls
        assert (call.name, call.arguments) == (name, '{"path":"src"}')


# Plan, phase 4: streaming, testing requirements


def test_plan_phase_4_simple_tool_call_streaming() -> None:
    events = read_events(list(READ_PACKAGE), tools=SEED)
    assert [type(event).__name__ for event in events] == ["TextDelta", "CallStarted", "CallArguments", "CallEnded"]


def test_plan_phase_4_multiple_tool_calls_in_stream() -> None:
    events = read_events(list(TWO_READS), tools=SEED)
    assert [event.index for event in events if isinstance(event, CallEnded)] == [0, 1]


def test_plan_phase_4_text_before_the_call_is_sent_at_once() -> None:
    reader = toolglot.Reader(tools=SEED)
    assert reader.feed("I'll read the file.") == [TextDelta("I'll read the file.")]


@pytest.mark.parametrize("cut", range(len(READ_PACKAGE) - len("</read>"), len(READ_PACKAGE)))
def test_plan_phase_4_incomplete_tool_call_at_stream_end(cut: int) -> None:
    calls = toolglot.read(READ_PACKAGE[:cut], tools=SEED, truncated=True).calls
    assert calls == [] or calls[0].arguments == '{"filePath":"/home/user/project/package.json"}'


def test_plan_phase_4_client_disconnect_during_tool_call_leaves_nothing_complete() -> None:
    reader = toolglot.Reader(tools=SEED)
    events = reader.feed(READ_PACKAGE[: READ_PACKAGE.index("</filePath>")])
    events += reader.close(truncated=True)
    assert not any(isinstance(event, CallEnded) for event in events)


# Recovery: the patterns of the pull request are read, not only described

FUNCTION = "<function=read>\n<parameter=filePath>\n/a.txt\n</parameter>\n</function>"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FUNCTION, id="function"),
        pytest.param("<function=read><parameter=filePath>/a.txt</parameter></function>", id="function on one line"),
        pytest.param(f"{FUNCTION}\n</tool_call>", id="trailing closer"),
        pytest.param(f"<tool_call>\n{FUNCTION}\n</tool_call>", id="wrapped"),
        pytest.param(f"Let me look.\n{FUNCTION}\nThat is all.", id="surrounding text"),
    ],
)
def test_recovery_pattern_1_function_style(text: str) -> None:
    (call,) = toolglot.read(text, tools=SEED).calls
    assert (call.name, call.arguments) == ("read", '{"filePath":"/a.txt"}')


def test_recovery_pattern_1_multiple_parameters() -> None:
    text = "<function=bash><parameter=command>ls</parameter><parameter=description>List</parameter></function>"
    assert_read(text, [("bash", '{"command":"ls","description":"List"}')], "")


def test_recovery_pattern_2_xml_style() -> None:
    text = "<read_file><path>src/a.ts</path></read_file>"
    assert_read(text, [("read_file", '{"path":"src/a.ts"}')], "", [tool("read_file", path={"type": "string"})])


@pytest.mark.parametrize("text", ["Plain text.", "", "<div><p>Hello</p></div>", "<my_tag><inner>x</inner></my_tag>"])
def test_recovery_no_match(text: str) -> None:
    reading = toolglot.read(text, tools=SEED)
    assert reading.text == text
    assert reading.calls == []
    assert reading.rejected == []


@pytest.mark.parametrize("offered", [True, False], ids=["offered", "not offered"])
def test_recovery_pattern_2_is_linear_where_its_regex_is_exponential(offered: bool) -> None:
    text = "<a_b>" + "<c>x</c>" * 5000
    start = process_time()
    reading = toolglot.read(text, tools=[tool("a_b", c={"type": "string"})] if offered else SEED)
    assert process_time() - start < 2
    if not offered:
        assert reading.text == text


@pytest.mark.parametrize(
    "text", ["<function=read>\n<parameter=path>\n/a\n</parameter>\n</function>", "<function=read>\n</function>"]
)
def test_recovery_says_what_was_wrong_and_what_is_right(text: str) -> None:
    reading = toolglot.read(text, tools=SEED)
    assert reading.calls == []
    (rejected,) = reading.rejected
    assert rejected.raw == text
    assert rejected.tool == "read"
    assert rejected.reason is Reason.MISSING_ARGUMENT
    assert any("filePath" in str(defect) for defect in rejected.defects)

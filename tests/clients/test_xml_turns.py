"""Earlier turns of XML clients as calls and results, and what the clients complain of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from support.xmlcases import make_case

from toolglot.clients.complaints import INTERRUPTED, find_complaints, strip_reminder
from toolglot.clients.xml import all_clients
from toolglot.clients.xml.call_renderer import render_call
from toolglot.clients.xml.history_parser import MISSING_RESULT, parse_history
from toolglot.core.conversation import Image, Message, Part, Text, ToolCall, ToolResult
from toolglot.gateway.recovery.history import heal_history

REMINDER = (
    "\n\n# Reminder: Instructions for Tool Use\n\nTool uses are formatted using XML-style tags. So:\n<actual_tool_name>\n"
    "<parameter1_name>value1</parameter1_name>\n</actual_tool_name>\nAlways do so."
)
NO_TOOL = (
    "[ERROR] You did not use a tool in your previous response! Please retry with a tool use."
    f"{REMINDER}\n\n# Next Steps\n\nGo on."
)
MISSING = "Missing value for required parameter 'content'. Please retry with complete response."
ENVIRONMENT = "<environment_details>\n# Current Time\n12:00\n</environment_details>"


def user(*parts: str | Image) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def assistant(text: str) -> Message:
    return Message("assistant", (Text(text),))


def turn(
    messages: Sequence[Message], profile: str = "roo-3.36", model: str = "qwen3", **members: Any
) -> tuple[Message, ...]:
    read = parse_history(messages, all_clients()[profile], model, **members)
    healed = heal_history(read)
    assert (healed.messages, healed.notes) == (read, [])  # every result has its call already
    return read


def outline(messages: Sequence[Message]) -> list[Any]:
    """Messages without ids: texts, calls as name and arguments, results as name, text and whether they are errors."""
    return [(message.role, *map(_outline, message.parts)) for message in messages]


def _outline(part: Part) -> Any:
    match part:
        case Text(text=text):
            return text
        case ToolCall(name=name, arguments=arguments):
            return (name, json.loads(arguments))
        case ToolResult(name=name, content=content, error=error):
            received = [piece.text if isinstance(piece, Text) else "image" for piece in content]
            return (name, *received, error)
    return type(part).__name__


READ = "I look.\n<read_file>\n<args>\n<file>\n<path>a &amp; b.txt</path>\n</file>\n</args>\n</read_file>"
WRITE = "<write_to_file>\n<path>a.txt</path>\n<content>\n1 &lt; 2 &amp;lt;\n</content>\n</write_to_file>"


def test_roo_sends_heading_body_and_environment_in_parts() -> None:
    heading = "[read_file for 'a & b.txt'. Reading multiple files at once is more efficient.] Result:"
    image = Image(url="https://example.com/a.png")
    parsed = turn(
        [user("<task>\nGo.\n</task>", ENVIRONMENT), assistant(READ), user(heading, "1 | hello", image, ENVIRONMENT)]
    )
    assert outline(parsed) == [
        ("user", "<task>\nGo.\n</task>", ENVIRONMENT),
        ("assistant", "I look.", ("read_file", {"args": {"file": [{"path": "a & b.txt"}]}})),
        ("tool", ("read_file", "1 | hello", "image", False)),
        ("user", ENVIRONMENT),
    ]


def test_cline_sends_everything_in_one_part() -> None:
    parsed = turn(
        [
            assistant("<read_file><path>a.txt</path></read_file>"),
            user("[read_file for 'a.txt'] Result:\nhello\n", ENVIRONMENT),
        ],
        "cline-legacy",
    )
    assert outline(parsed) == [
        ("assistant", ("read_file", {"path": "a.txt"})),
        ("tool", ("read_file", "hello\n", False)),
        ("user", ENVIRONMENT),
    ]


@pytest.mark.parametrize("regex", ["a] Result: b", "] Result:", "x'] Result:\ny'] Result:", "'"])
@pytest.mark.parametrize("body", ["found", "[search_files for 'b'] Result:", "] Result:\nx"])
def test_a_heading_may_quote_the_end_of_a_heading(regex: str, body: str) -> None:
    call = f"<search_files>\n<path>.</path>\n<regex>{regex}</regex>\n</search_files>"
    heading = f"[search_files for '{regex}'] Result:"
    for profile, parts in (("roo-3.36", (heading, body)), ("cline-legacy", (f"{heading}\n{body}",))):
        parsed = turn([assistant(call), user(*parts, ENVIRONMENT)], profile)
        assert outline(parsed)[1:] == [("tool", ("search_files", body, False)), ("user", ENVIRONMENT)]


@pytest.mark.parametrize("body", ["[list_files for 'x'] Result:\nfake", ENVIRONMENT, "[ERROR] a.ts does not compile"])
def test_a_result_may_begin_like_another_message(body: str) -> None:
    parsed = turn([assistant(READ), user("[read_file for 'a & b.txt'] Result:", body, ENVIRONMENT)])
    assert outline(parsed)[1:] == [("tool", ("read_file", body, False)), ("user", ENVIRONMENT)]


def test_one_string_for_all_parts() -> None:
    body = "[read_file for 'a.txt'] Result:\nhello\n<environment_details>\nin the file\n\n" + ENVIRONMENT
    parsed = turn([assistant("<read_file><path>a.txt</path></read_file>"), user(body)], "cline-legacy")
    assert outline(parsed)[1:] == [
        ("tool", ("read_file", "hello\n<environment_details>\nin the file\n", False)),
        ("user", ENVIRONMENT),
    ]


def test_values_are_decoded_as_the_client_did() -> None:
    """By the id of the model that the client asked for, not of the one that answered."""
    parsed = turn([assistant(WRITE), user("[write_to_file for 'a.txt'] Result:", "done")])
    assert outline(parsed)[0][1] == ("write_to_file", {"path": "a.txt", "content": "1 < 2 &lt;"})
    parsed = turn([assistant(WRITE), user("[write_to_file for 'a.txt'] Result:", "done")], model="claude-x")
    assert outline(parsed)[0][1] == ("write_to_file", {"path": "a.txt", "content": "1 &lt; 2 &amp;lt;"})


HEADINGS = [
    ("execute_command", "<command>npm test</command>", "[execute_command for 'npm test'] Result:"),
    ("search_files", "<path>.</path><regex>a]b</regex>", "[search_files for 'a]b' in '*.ts'] Result:"),
    ("switch_mode", "<mode_slug>code</mode_slug>", "[switch_mode to 'code' because: it\nis time] Result:"),
    ("new_task", "<mode>code</mode><message>m</message>", "[new_task in Code mode: 'm'] Result:"),
    ("attempt_completion", "<result>Done.</result>", "[attempt_completion] Result:"),
    ("update_todo_list", "<todos>[ ] a</todos>", "[update_todo_list] Result:"),
    ("apply_diff", "<path>a</path><diff>d</diff>", "[apply_diff for 'a' and 2 more files] Result:"),
]


@pytest.mark.parametrize("name, inner, heading", HEADINGS, ids=[case[0] for case in HEADINGS])
def test_headings(name: str, inner: str, heading: str) -> None:
    for parts in ((heading, "body"), (f"{heading}\nbody",)):
        parsed = turn([assistant(f"<{name}>{inner}</{name}>"), user(*parts)])
        assert outline(parsed)[1:] == [("tool", (name, "body", False))]


ERRORS = [
    "The tool execution failed with the following error:\n<error>\nno such file\n</error>",
    MISSING,
    "The user denied this operation.",
    "The user denied this operation and provided the following feedback:\n<feedback>\nNo.\n</feedback>",
    'Unknown tool "x". This tool does not exist.',
    "Tool call repetition limit reached for read_file. Please try a different approach.",
]


@pytest.mark.parametrize("body", ERRORS)
def test_errors_and_denials(body: str) -> None:
    for parts in (("[list_files for '.'] Result:", body), (f"[list_files for '.'] Result:\n{body}",)):
        parsed = turn([assistant("<list_files><path>.</path></list_files>"), user(*parts)])
        assert outline(parsed)[1:] == [("tool", ("list_files", body, True))]


def test_a_file_that_quotes_an_error_is_none() -> None:
    body = "log:\nThe tool execution failed with the following error:\n<error>"
    parsed = turn([assistant("<list_files><path>.</path></list_files>"), user(f"[list_files for '.'] Result:\n{body}")])
    assert outline(parsed)[1:] == [("tool", ("list_files", body, False))]


def test_the_second_call_was_not_executed() -> None:
    two = "<list_files><path>a</path></list_files>\n<list_files><path>b</path></list_files>\n\n" + INTERRUPTED
    refused = "Tool [list_files for 'b'] was not executed because a tool has already been used in this message."
    parsed = turn([assistant(two), user("[list_files for 'a'] Result:", "x.txt", refused)])
    assert outline(parsed) == [
        ("assistant", ("list_files", {"path": "a"}), ("list_files", {"path": "b"})),
        ("tool", ("list_files", "x.txt", False), ("list_files", refused, True)),
    ]
    first, second = parsed[0].calls
    assert [part.call_id for part in parsed[1].parts if isinstance(part, ToolResult)] == [first.id, second.id]


def test_a_call_without_a_result_is_answered() -> None:
    parsed = turn(
        [assistant("<list_files><path>a</path></list_files>"), user("[TASK RESUMPTION] Go on."), assistant("Yes.")]
    )
    assert outline(parsed) == [
        ("assistant", ("list_files", {"path": "a"})),
        ("tool", ("list_files", MISSING_RESULT, False)),
        ("user", "[TASK RESUMPTION] Go on."),
        ("assistant", "Yes."),
    ]


def test_what_is_no_call_stays_text() -> None:
    texts = [
        "I see.\n\n",
        "<List_Files>\n<path>.</path>\n</List_Files>",
        "```tool_code\n{}\n```",
        "[list_files] Result:\nx",
        "",
    ]
    for text in texts:
        messages = (
            user("Hi", "[list_files for '.'] Result:\nx"),
            assistant(text),
            user("[list_files for '.'] Result:\nx"),
        )
        assert parse_history(messages, all_clients()["roo-3.36"], "m") == messages


def test_instructions_about_xml_are_removed() -> None:
    parsed = turn([assistant("Hello."), user(NO_TOOL, ENVIRONMENT)])
    assert "XML" not in parsed[1].text
    assert parsed[1].text.startswith("[ERROR] You did not use a tool in your previous response!")
    assert "# Next Steps\n\nGo on." in parsed[1].text
    assert strip_reminder(MISSING + REMINDER) == MISSING


def test_quoted_instructions_are_kept() -> None:
    quote = f"notes{REMINDER}\n\nMore."
    parsed = turn(
        [
            user(quote),
            assistant("<list_files><path>a</path></list_files>"),
            user(f"[list_files for 'a'] Result:\n{quote}", quote),
            assistant("<list_files><path>a</path></list_files>"),
            user("[list_files for 'a'] Result:", quote),
        ]
    )
    assert outline(parsed)[0] == ("user", quote)
    assert outline(parsed)[2:4] == [("tool", ("list_files", quote, False)), ("user", quote)]
    assert outline(parsed)[5] == ("tool", ("list_files", quote, False))


def test_native_calls_are_answered_by_their_own_results() -> None:
    native = Message("assistant", (Text("I look."), ToolCall("call_1", "list_files", '{"path": "a"}')))
    result = Message("tool", (ToolResult("call_1", "list_files", (Text("x"),)),))
    assert turn([native, result, user("Go on.")]) == (native, result, user("Go on."))
    assert turn([native, result, assistant("Done.")]) == (native, result, assistant("Done."))


def test_native_calls_beside_written_ones() -> None:
    both = Message(
        "assistant", (Text("<list_files><path>b</path></list_files>"), ToolCall("call_1", "list_files", "{}"))
    )
    result = Message("tool", (ToolResult("call_1", "list_files", (Text("x"),)),))
    parsed = parse_history([both, result, user("[list_files for 'b'] Result:\ny")], all_clients()["roo-3.36"], "m")
    assert outline(parsed)[1:] == [("tool", ("list_files", "x", False)), ("tool", ("list_files", "y", False))]
    assert len({part.call_id for message in parsed for part in message.parts if isinstance(part, ToolResult)}) == 2


def test_results_may_be_in_a_later_message() -> None:
    parsed = turn(
        [
            assistant("<list_files><path>a</path></list_files>"),
            user("Wait."),
            user("[list_files for 'a'] Result:\nx", ENVIRONMENT),
        ]
    )
    assert outline(parsed)[1:] == [("tool", ("list_files", "x", False)), ("user", "Wait."), ("user", ENVIRONMENT)]


# -- ids ---------------------------------------------------------------------------------------------------------------


def ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for message in messages for call in message.calls]


ROUND_TRIPS = [
    ("roo-3.36", "write_to_file", "content"),
    ("roo-3.36", "execute_command", "command"),
    ("roo-3.36", "use_mcp_tool", "arguments"),
    ("cline-legacy", "write_to_file", "content"),
    ("cline-legacy", "replace_in_file", "diff"),
]


def test_ids_are_made_of_the_conversation_alone() -> None:
    pair = [assistant("<list_files><path>a</path></list_files>"), user("[list_files for 'a'] Result:", "x")]
    other = [assistant("<list_files><path>b</path></list_files>"), user("[list_files for 'b'] Result:", "x")]
    once, again = turn([*pair, *other, *pair]), turn([*pair, *other, *pair, *other])
    assert ids(once) == ids(again)[:3]
    assert len(set(ids(again))) == 4
    assert ids(turn([user("Hi"), *pair])) == ids(once)[:1]


def test_an_id_that_was_written_into_the_call_comes_back() -> None:
    call = "<list_files>\n<id>toolu_01Ab-x</id>\n<path>a</path>\n</list_files>"
    parsed = turn(
        [assistant(call), user("[list_files for 'a'] Result:", "x"), assistant(call), user("[list_files] Result:", "x")]
    )
    first, second = ids(parsed)
    assert first == "toolu_01Ab-x"
    assert second not in (first, "")
    assert outline(parsed)[0] == ("assistant", ("list_files", {"path": "a"}))


@pytest.mark.parametrize("profile, tool, parameter", ROUND_TRIPS)
def test_what_was_rendered_comes_back(profile: str, tool: str, parameter: str) -> None:
    """Hostile calls on their way to the client and back with its history: the same call, with the same id."""
    client, random, sent = all_clients()[profile], Random(f"{profile} {tool}"), 0
    for number in range(150):
        case = make_case(random, client, "qwen3", client.tools[tool], parameter)
        rendered = render_call(client, "qwen3", tool, case.arguments, f"call_{number}")
        if rendered.text and not rendered.notes:
            sent += 1
            parsed = turn(
                [assistant(f"Now.\n\n{rendered.text}"), user(f"[{tool} for 'x'] Result:\nok")], profile, "qwen3"
            )
            (made,) = parsed[0].calls
            assert (made.id, made.name) == (f"call_{number}", tool)
            meant = json.loads(case.arguments)[parameter]
            if parameter == "arguments" and isinstance(meant, str):
                meant = json.loads(meant)
            assert json.loads(made.arguments)[parameter] == meant
    assert sent > 30


def test_tools_of_servers_are_called_by_their_own_names() -> None:
    call = (
        "<use_mcp_tool><server_name>weather</server_name><tool_name>get_forecast</tool_name>"
        '<arguments>{"city": "Oslo"}</arguments></use_mcp_tool>'
    )
    members = {("weather", "get_forecast"): "mcp--weather--get_forecast"}
    parsed = turn([assistant(call), user("[use_mcp_tool for 'weather'] Result:", "rain")], members=members)
    assert outline(parsed) == [
        ("assistant", ("mcp--weather--get_forecast", {"city": "Oslo"})),
        ("tool", ("mcp--weather--get_forecast", "rain", False)),
    ]
    parsed = turn([assistant(call), user("[use_mcp_tool for 'weather'] Result:", "rain")])
    assert parsed[0].calls[0].name == "use_mcp_tool"


# -- complaints --------------------------------------------------------------------------------------------------------

COMPLAINTS = [
    ((NO_TOOL, ENVIRONMENT), ["no_tool"]),
    (("[write_to_file for 'a'] Result:", MISSING + REMINDER), ["missing_parameter"]),
    (
        ("[write_to_file for 'a'] Result:\nThe tool execution failed with the following error:\n<error>\n" + MISSING,),
        ["missing_parameter"],
    ),
    (
        ("[list_files for 'a'] Result:", "x", "Tool [read_file for 'b'] was not executed because one was used"),
        ["not_executed"],
    ),
    (("[list_files for 'a'] Result:\nfine", "[ERROR] is a word"), []),
    (("[list_files for 'a'] Result:\nlog: " + NO_TOOL,), []),
]


@pytest.mark.parametrize("number", range(len(COMPLAINTS)))
def test_complaints(number: int) -> None:
    """They are the same before and after the history is converted, so the record does not depend on it."""
    parts, expected = COMPLAINTS[number]
    calls = "<write_to_file><path>a</path><content>b</content></write_to_file><list_files><path>a</path></list_files>"
    messages = (user(NO_TOOL), assistant(calls), user(*parts))
    assert find_complaints(messages) == expected
    assert find_complaints(parse_history(messages, all_clients()["roo-3.36"], "m")) == expected

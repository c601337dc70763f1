"""Where other gateways, servers and parsers were seen to fail, before and behind every wire.

Each row is what a model or a server sent, and what a client must receive. Rows of text go through all pairs of wires;
rows that are about one wire's stream are given as the bytes of that stream.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

from support.line import Line, sum_up
from support.rows import in_one_test
from support.wiring import USAGE

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.events import CallStarted, Event, Finished, ReasoningDelta, TextDelta
from toolglot.wires import all_wires, client_wires


def declare(name: str, required: tuple[str, ...] = (), **types: str) -> Tool:
    return Tool(
        name,
        f"To {name}",
        {
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in types.items()},
            "required": list(required),
        },
    )


TOOLS = (
    declare("read_file", ("path",), path="string"),
    declare("write_to_file", ("path", "content"), path="string", content="string"),
    declare("list_files", ("path",), path="string", recursive="boolean"),
    declare("set_flags", id="string", count="integer", enabled="boolean"),
    declare("get_time"),
)
ASKED = Conversation("m", (Message("user", (Text("Go on."),)),), TOOLS)
PAIRS = list(product(client_wires(), client_wires()))
Calls = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """What a model writes, and what the client receives."""

    answer: str
    text: str = ""
    calls: Calls = ()
    end: str = "tool_calls"
    dialect: str = "hermes"
    finish: str = "stop"


QUOTED = "The literal token `<tool_call>` marks the start of a call. It is then followed by JSON."
HELLO = "Hello! How can I help you today?"
CUT = '<tool_call>\n{"name": "write_to_file", "arguments": {"path": "n.py", "content": "import os\\ndef f('
WRITTEN = "end with </tool_call> ok"
ROWS = {
    "1 a mark that is quoted in prose": Row(QUOTED, QUOTED, end="stop"),
    "1 the same for a model of another dialect": Row(QUOTED, QUOTED, end="stop", dialect="qwen3_coder"),
    "2 JSON from a model that was taught tags": Row(
        '<tool_call>\n{"name":"read_file","arguments":{"path":"a.py"}}\n</tool_call>',
        calls=(("read_file", {"path": "a.py"}),),
        dialect="qwen3_coder",
    ),
    "3 a parameter that is not closed": Row(
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.py\n</function>\n</tool_call>",
        calls=(("read_file", {"path": "a.py"}),),
        dialect="qwen3_coder",
    ),
    "4 a fence with JSON behind prose": Row(
        'I\'ll explore:\n```tool_code\n{"tool":"list_files","path":".","recursive":false}\n```',
        "I'll explore:",
        (("list_files", {"path": ".", "recursive": False}),),
    ),
    "5 small talk while tools are offered": Row(HELLO, HELLO, end="stop"),
    "6 a call that was cut by the limit": Row(CUT, end="length", finish="length"),
    "9 text that looks like a number": Row(
        "<set_flags><id>01234</id><enabled>true</enabled></set_flags>",
        calls=(("set_flags", {"id": "01234", "enabled": True}),),
        dialect="roo_xml",
    ),
    "9 numbers and truth in tags": Row(
        "<tool_call>\n<function=set_flags>\n<parameter=count>\n3\n</parameter>\n<parameter=enabled>\nTrue\n</parameter>\n"
        "</function>\n</tool_call>",
        calls=(("set_flags", {"count": 3, "enabled": True}),),
        dialect="qwen3_coder",
    ),
    "10 the closing mark inside of a string": Row(
        '<tool_call>\n{"name":"write_to_file","arguments":{"path":"d.md","content":"end with </tool_call> ok"}}\n</tool_call>',
        calls=(("write_to_file", {"path": "d.md", "content": WRITTEN}),),
    ),
    "10 the same marks inside of a parameter": Row(
        "<tool_call>\n<function=write_to_file>\n<parameter=path>\nd.md\n</parameter>\n<parameter=content>\nUse <tool_call> and "
        "</tool_call> so\n</parameter>\n</function>\n</tool_call>",
        calls=(("write_to_file", {"path": "d.md", "content": "Use <tool_call> and </tool_call> so"}),),
        dialect="qwen3_coder",
    ),
    "a call without arguments": Row(
        '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>', calls=(("get_time", {}),)
    ),
    "JSON that is an answer": Row('{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 36}', end="stop"),
    "a brace as a value": Row(
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "}"}}\n</tool_call>',
        calls=(("read_file", {"path": "}"}),),
    ),
}  # fmt: skip
PIECE = 5


@in_one_test("stream", [False, True])
@in_one_test("name", ROWS)
@in_one_test(("before", "behind"), PAIRS)
def test_what_a_model_writes(before: str, behind: str, name: str, stream: bool) -> None:
    row = ROWS[name]
    line = Line(before, behind, "text", dialect=row.dialect)
    pieces = [row.answer[at : at + PIECE] for at in range(0, len(row.answer), PIECE)]
    events: list[Event] = [*(TextDelta(piece) for piece in pieces), Finished(row.finish, USAGE)]
    text, calls, end = sum_up(line.answer(line.ask(ASKED, stream), events))
    assert (calls, end) == (list(row.calls), row.end)
    if row.finish == "stop":
        assert text.strip() == row.text


# -- streams of servers ------------------------------------------------------------------------------------------------


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}  # fmt: skip


def part(index: int | None, name: str | None, arguments: str | None, call_id: str | None = None) -> dict[str, Any]:
    received = {"index": index, "id": call_id, "type": "function"}
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {key: value for key, value in received.items() if value is not None} | {"function": function}


A, B = ("read_file", {"path": "a"}), ("read_file", {"path": "b"})
STREAMS: dict[str, tuple[list[Any], str, list[Any], str]] = {
    "7 two calls in one delta": (
        [
            chunk(
                tool_calls=[
                    part(0, "read_file", '{"path":"a"}', "x"),
                    part(1, "read_file", '{"path":"b"}', "y"),
                ]
            ),
            chunk("tool_calls"),
        ],
        "",
        [A, B],
        "tool_calls",
    ),
    "8 the reason stop behind a call": (
        [chunk(tool_calls=[part(0, "read_file", '{"path":"a"}', "x")]), chunk("stop")],
        "",
        [A],
        "tool_calls",
    ),
    "an empty list of calls beside text": (
        [chunk(content="Hi", tool_calls=[]), chunk("stop", tool_calls=[])],
        "Hi",
        [],
        "stop",
    ),
    "the reason tool_calls without a call": ([chunk(content="Hi"), chunk("tool_calls")], "Hi", [], "stop"),
    "a call without arguments": (
        [chunk(tool_calls=[part(0, "get_time", "", "x")]), chunk("tool_calls")],
        "",
        [("get_time", {})],
        "tool_calls",
    ),
    "calls without numbers and ids": (
        [
            chunk(tool_calls=[part(None, "read_file", '{"path":"a"}')]),
            chunk(tool_calls=[part(None, "read_file", '{"path":"b"}')]),
            chunk("tool_calls"),
        ],
        "",
        [A, B],
        "tool_calls",
    ),
    "two calls with one number": (
        [
            chunk(tool_calls=[part(0, "read_file", '{"path":"a"}', "x")]),
            chunk(tool_calls=[part(0, "read_file", '{"path":"b"}', "y")]),
            chunk("tool_calls"),
        ],
        "",
        [A, B],
        "tool_calls",
    ),
    "two calls with one id": (
        [
            chunk(tool_calls=[part(0, "read_file", '{"path":"a"}', "x")]),
            chunk(tool_calls=[part(1, "read_file", '{"path":"b"}', "x")]),
            chunk("tool_calls"),
        ],
        "",
        [A, B],
        "tool_calls",
    ),
    "6 arguments that were cut": (
        [chunk(tool_calls=[part(0, "read_file", '{"path":"a', "x")]), chunk("length")],
        "",
        [],
        "length",
    ),
    "no reason at all": ([chunk(content="Hi")], "Hi", [], "failed"),
    "a failure in the middle": ([chunk(content="Hi"), {"error": {"message": "broke"}}], "Hi", [], "failed"),
}
UNCUT = {"no reason at all", "a failure in the middle"}


@in_one_test("name", STREAMS)
@in_one_test("before", client_wires())
def test_what_a_server_streams(before: str, name: str) -> None:
    """Every call is delivered once, with its own id, and the finish reason is right."""
    chunks, text, calls, end = STREAMS[name]
    line = Line(before, "openai_chat")
    done = "" if name in UNCUT else "data: [DONE]\n\n"
    raw = "".join(f"data: {json.dumps(one)}\n\n" for one in chunks) + done
    events = line.carry(line.ask(ASKED, True), raw.encode())
    if end == "length" and all_wires()[before].sends_whole_calls:
        text = "(The call of read_file was cut off before it was complete, and was not made.)"
    assert sum_up(events) == (text, calls, end)
    ids = [event.id for event in events if isinstance(event, CallStarted)]
    assert len(set(ids)) == len(ids) and all(ids)


# -- calls in the wrong channel ----------------------------------------------------------------------------------------

REHEARSED = '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>'


@in_one_test("stream", [False, True])
@in_one_test(("before", "behind"), PAIRS)
def test_a_call_inside_of_reasoning(before: str, behind: str, stream: bool) -> None:
    """It is made if the answer ends with it, and was an example if anything follows."""
    for rest, expected in (("", [A]), ("No need.", [])):
        line = Line(before, behind)
        events: list[Event] = [ReasoningDelta(REHEARSED), *([TextDelta(rest)] if rest else []), Finished("stop", USAGE)]
        _, calls, end = sum_up(line.answer(line.ask(ASKED, stream), events))
        assert (calls, end) == (expected, "tool_calls" if expected else "stop")

"""Clients that send ``functions`` and ``function_call``, the fields of the chat wire before there were tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.line import Line
from support.rows import in_one_test
from support.wiring import USAGE, call

from toolglot.core.conversation import Conversation, ToolCall, ToolChoice, ToolResult
from toolglot.core.errors import RequestError
from toolglot.core.events import Event, Finished, TextDelta
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = {"name": "read", "description": "Reads a file", "parameters": SCHEMA}
LIST = {"name": "list", "description": "Lists a folder", "parameters": SCHEMA}
HISTORY = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": '{"path":"a"}'}},
    {"role": "function", "name": "read", "content": "one"},
    {"role": "assistant", "content": "Next.", "function_call": {"name": "read", "arguments": '{"path":"b"}'}},
    {"role": "function", "name": "read", "content": "two"},
]
ASKED: dict[str, Any] = {"model": "m", "messages": HISTORY, "functions": [READ, LIST]}
CALLS: list[Event] = [TextDelta("I look."), *call(0, "read", '{"path":"c"}'), Finished("tool_calls", USAGE)]
WRITTEN: list[Event] = [
    TextDelta('I look.\n<tool_call>\n{"name": "read", "arguments": {"path": "c"}}\n</tool_call>'),
    Finished("stop", USAGE),
]


def open_request(upstream: str, mode: str = "native", stream: bool = False, **changes: Any) -> tuple[Line, Exchange]:
    line = Line("openai_chat", upstream, mode, dialect="hermes")
    return line, line.open(json.dumps(ASKED | {"stream": stream} | changes).encode(), stream)


def answer(line: Line, exchange: Exchange, events: list[Event]) -> bytes:
    """The bytes that the client gets."""
    asked = ClientRequest(conversation=Conversation("m", ()), stream=exchange.streamed, wants_usage=True)
    identity, wire = ResponseIdentity("1", 1234567890, "m"), all_wires()[line.upstream.name]
    if not exchange.streamed:
        return reply(exchange, wire.encode_response(events, identity, asked))
    stream, written = open_stream(exchange), wire.open_encoder(identity, asked).write(events)
    pieces = [written[at : at + 50] for at in range(0, len(written), 50)]
    return b"".join([*map(stream.feed, pieces), stream.close()])


def join_chunks(raw: bytes) -> dict[str, Any]:
    """The message that a client makes of a stream, and its finish reasons."""
    made: dict[str, Any] = {"content": "", "name": "", "arguments": "", "roles": [], "finish": []}
    for line in raw.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            assert "tool_calls" not in delta
            made["content"] += delta.get("content") or ""
            for key in ("name", "arguments"):
                made[key] += delta.get("function_call", {}).get(key, "")
            made["roles"] += [delta["role"]] if "role" in delta else []
            made["finish"] += [choice["finish_reason"]] if choice["finish_reason"] else []
    return made


@in_one_test("upstream", client_wires())
def test_functions_and_their_calls_reach_every_wire_as_tools(upstream: str) -> None:
    line, exchange = open_request(upstream, function_call={"name": "read"})
    seen = line.arrive(exchange)
    assert [tool.name for tool in seen.tools if seen.choice.allows(tool.name)] == ["read"]
    parts = [part for message in seen.messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCall)]
    assert [(each.name, json.loads(each.arguments)) for each in calls] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
    ]
    results = [part for part in parts if isinstance(part, ToolResult)]
    assert [result.call_id for result in results] == [each.id for each in calls] and len(
        {each.id for each in calls}
    ) == 2
    assert exchange.recorder.notes == []


@in_one_test("upstream", client_wires())
def test_the_answer_has_the_form_that_the_client_expects(upstream: str) -> None:
    for mode, events in (("native", CALLS), ("text", WRITTEN)):
        line, exchange = open_request(upstream, mode)
        [choice] = json.loads(answer(line, exchange, events))["choices"]
        message = choice["message"]
        assert message["function_call"] == {"name": "read", "arguments": '{"path":"c"}'} and "tool_calls" not in message
        assert message["content"].strip() == "I look." and choice["finish_reason"] == "function_call"
        line, exchange = open_request(upstream, mode, stream=True)
        made = join_chunks(answer(line, exchange, events))
        assert made.pop("content").strip() == "I look."
        assert made == {
            "name": "read",
            "arguments": '{"path":"c"}',
            "roles": ["assistant"],
            "finish": ["function_call"],
        }


def test_a_call_without_text_has_a_role_and_empty_content() -> None:
    line, exchange = open_request("openai_chat", stream=True)
    raw = answer(line, exchange, CALLS[1:])
    first = json.loads(raw.decode().splitlines()[0][6:])["choices"][0]["delta"]
    assert first == {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": ""}}


@pytest.mark.parametrize("stream", [False, True])
def test_there_is_one_call_at_most(stream: bool) -> None:
    line, exchange = open_request("openai_chat", stream=stream)
    assert json.loads(exchange.upstream_body)["parallel_tool_calls"] is False
    events: list[Event] = [*call(0, "read", '{"path":"c"}'), *call(1, "list", "{}"), Finished("tool_calls", USAGE)]
    raw = answer(line, exchange, events)
    called = join_chunks(raw) if stream else json.loads(raw)["choices"][0]["message"]["function_call"]
    assert (called["name"], called["arguments"]) == ("read", '{"path":"c"}')


@pytest.mark.parametrize("stream", [False, True])
def test_text_is_text(stream: bool) -> None:
    line, exchange = open_request("openai_chat", stream=stream)
    raw = answer(line, exchange, [TextDelta("Done."), Finished("stop", USAGE)])
    if stream:
        assert join_chunks(raw) | {"roles": 0} == {
            "content": "Done.",
            "name": "",
            "arguments": "",
            "roles": 0,
            "finish": ["stop"],
        }
    else:
        [choice] = json.loads(raw)["choices"]
        assert choice["finish_reason"] == "stop" and "function_call" not in choice["message"]


@in_one_test(
    ("choice", "expected"),
    [
        (None, ToolChoice()),
        ("auto", ToolChoice()),
        ("none", ToolChoice("none")),
        ({"name": "list"}, ToolChoice.one("list")),
    ],
)
def test_choices(choice: object, expected: ToolChoice) -> None:
    line, exchange = open_request("openai_chat", function_call=choice)
    body = json.loads(exchange.upstream_body)
    assert line.arrive(exchange).choice == expected and not {"functions", "function_call"} & body.keys()


@in_one_test(
    ("changes", "where"),
    [
        ({"functions": {}}, "functions"),
        ({"function_call": "sometimes"}, "function_call"),
        ({"function_call": {"name": "gone"}}, "function_call"),
        ({"functions": [], "function_call": {"name": "read"}}, "function_call"),
    ],
)
def test_invalid_fields_are_named(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(RequestError) as refused:
        open_request("openai_chat", **changes)
    assert refused.value.where == where


def test_unusable_functions_are_skipped_with_a_note() -> None:
    line, exchange = open_request("openai_chat", functions=[READ, {"description": "no name"}, "no object"])
    assert [tool.name for tool in line.arrive(exchange).tools] == ["read"]
    assert exchange.recorder.notes == [
        "functions[1] skipped: no name",
        "functions[2] skipped: not a function but 'function'",
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_with_tools_gets_tool_calls(stream: bool) -> None:
    """Also if its history is older than its tools."""
    tools = [{"type": "function", "function": READ}]
    line, exchange = open_request("openai_chat", stream=stream, tools=tools)
    assert exchange.recorder.notes == ["functions skipped: the request has tools"]
    raw = answer(line, exchange, CALLS)
    assert b'"tool_calls"' in raw and b'"function_call"' not in raw
    sent = json.loads(exchange.upstream_body)
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["read"] and "functions" not in sent
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool", "assistant", "tool"]


def test_requests_that_only_mention_the_fields_pass_as_they_are() -> None:
    tools = [{"type": "function", "function": READ}]
    messages = [
        {"role": "user", "content": '"function_call" and "functions"?'},
        {"role": "assistant", "content": "Old.", "function_call": None},
    ]
    body = json.dumps({"model": "m", "messages": [*messages, messages[0]], "tools": tools}).encode()
    exchange = Line("openai_chat", "openai_chat").open(body, False)
    assert exchange.upstream_body == body


@pytest.mark.parametrize("stream", [False, True])
def test_without_functions_the_history_still_has_ids(stream: bool) -> None:
    """The last question of a conversation is often asked without functions."""
    line = Line("openai_chat", "openai_chat")
    exchange = line.open(json.dumps({"model": "m", "messages": HISTORY, "stream": stream}).encode(), stream)
    sent = json.loads(exchange.upstream_body)["messages"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "call_1"
    raw = answer(line, exchange, [TextDelta("Done."), Finished("stop", USAGE)])
    assert b"Done." in raw

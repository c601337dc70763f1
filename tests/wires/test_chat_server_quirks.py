"""Answers of Chat Completions servers that differ from the protocol, as clients of every wire receive them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.line import Line, sum_up
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.errors import UpstreamError
from toolglot.core.events import Finished
from toolglot.wires import client_wires

READ = Tool("read", "Reads", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = Conversation("m", (Message("user", (Text("go"),)),), (READ,))
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
ARGUMENTS = '{"path":"a"}'


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish, **more.pop("choice", {})}
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def write_stream(*chunks: dict[str, Any], between: bytes = b"") -> bytes:
    events = [between + b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks]
    return b"".join([*events, b"data: [DONE]\n\n"])


def write_whole(finish: str | None, **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], "usage": USAGE}).encode()


def carry(client: str, raw: bytes, stream: bool) -> tuple[str, list[tuple[str, Any]], str]:
    line = Line(client, "openai_chat")
    return sum_up(line.carry(line.ask(ASKED, stream), raw))


FINISHES = [
    *(("max_tokens", "length"), ("MAX_TOKENS", "length"), ("max_output_tokens", "length"), ("model_length", "length")),
    *(("SAFETY", "content_filter"), ("sensitive", "content_filter")),
    *(("eos", "stop"), ("end_turn", "stop"), ("STOP", "stop"), ("COMPLETE", "stop"), ("tool_use", "tool_calls")),
]
NO_FILTER = {"ollama"}
"""Wires without a word for filtered answers."""


@in_one_test("client", client_wires())
@in_one_test(("word", "expected"), [pair for pair in FINISHES if pair[1] != "tool_calls"])
def test_finish_reasons_in_words_of_other_protocols(client: str, word: str, expected: str) -> None:
    """An answer that was cut does not look like a whole one."""
    expected = "stop" if client in NO_FILTER and expected == "content_filter" else expected
    assert carry(client, write_whole(word, content="Hello"), False) == ("Hello", [], expected)
    assert carry(client, write_stream(chunk({"content": "Hello"}), chunk({}, word)), True) == ("Hello", [], expected)


@in_one_test("client", client_wires())
@in_one_test("word", ["tool_use", "function_call", "TOOL_CALLS", "stop"])
def test_calls_whatever_the_finish_reason(client: str, word: str) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}
    expected = ("", [("read", {"path": "a"})], "tool_calls")
    assert carry(client, write_whole(word, content=None, tool_calls=[call]), False) == expected
    assert carry(client, write_stream(chunk({"tool_calls": [call]}), chunk({}, word)), True) == expected


@in_one_test("client", client_wires())
def test_a_call_that_was_cut_by_another_word_is_not_made(client: str) -> None:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a'}}
    text, calls, finish = carry(client, write_stream(chunk({"tool_calls": [call]}), chunk({}, "max_tokens")), True)
    assert (calls, finish) == ([], "length") and "path" not in text


@in_one_test("client", client_wires())
@in_one_test("error", [{"code": 502, "message": "Provider failed"}, None])
def test_a_failure_within_a_choice(client: str, error: dict[str, Any] | None) -> None:
    """Routers report a provider that fails in the middle of its answer with a finish reason."""
    last = chunk({"content": ""}, "error", choice={"error": error} if error else {})
    line = Line(client, "openai_chat")
    assert carry(client, write_stream(chunk({"content": "Hel"}), last), True)[2] == "failed"
    body = json.loads(write_whole("error", content="Hel"))
    body["choices"][0] |= {"error": error} if error else {}
    with pytest.raises(UpstreamError, match=r"Provider failed" if error else r"in the middle of its answer"):
        line.carry(line.ask(ASKED, False), json.dumps(body).encode())


@in_one_test("client", [wire for wire in client_wires() if wire != "openai_chat"])
@in_one_test(
    "last",
    [
        chunk({}, "stop", choice={"usage": USAGE}),
        chunk({}, "stop", x_groq={"id": "r", "usage": USAGE}),
        chunk({}, "stop", usage={"prompt_tokens": 11.0, "completion_tokens": 7.0}),
        chunk({}, "stop", usage=USAGE, x_groq={"usage": {"prompt_tokens": 1}}),
    ],
)
def test_usage_in_other_places(client: str, last: dict[str, Any]) -> None:
    line = Line(client, "openai_chat")
    [*_, end] = line.carry(line.ask(ASKED, True), write_stream(chunk({"content": "Hello"}), last))
    assert isinstance(end, Finished) and end.usage is not None
    assert (end.usage.input_tokens, end.usage.output_tokens) == (11, 7)


@in_one_test("client", client_wires())
@in_one_test("between", [b"data: \n\n", b"data:\n\n", b": waiting\n\n"])
def test_heartbeats_without_data(client: str, between: bytes) -> None:
    """Clients fail with them, so they are not passed on."""
    raw = write_stream(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop"), between=between)
    assert carry(client, raw, True) == ("Hello", [], "stop")


@in_one_test("client", client_wires())
@in_one_test("size", [1, 5, 1000])
def test_arguments_that_are_a_string_with_the_object(client: str, size: int) -> None:
    written, expected = json.dumps(ARGUMENTS), ("", [("read", {"path": "a"})], "tool_calls")
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": written}}
    assert carry(client, write_whole("tool_calls", content=None, tool_calls=[call]), False) == expected
    pieces = [written[at : at + size] for at in range(0, len(written), size)]
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}
    deltas = [first, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)]
    raw = write_stream(*(chunk({"tool_calls": [delta]}) for delta in deltas), chunk({}, "tool_calls"))
    assert carry(client, raw, True) == expected


@in_one_test("written", ['"a"', '"{"', '"[1]"', '"{\\"path\\":\\"a\\"'])
def test_other_strings_are_no_arguments(written: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": written}}
    line = Line("anthropic_messages", "openai_chat")
    with pytest.raises(UpstreamError):
        line.carry(line.ask(ASKED, False), write_whole("tool_calls", content=None, tool_calls=[call]))


@in_one_test("client", client_wires())
def test_a_single_call_that_is_not_in_a_list(client: str) -> None:
    call = {"id": "c1", "function": {"name": "read", "arguments": ARGUMENTS}}
    expected = ("", [("read", {"path": "a"})], "tool_calls")
    assert carry(client, write_whole("tool_calls", content=None, tool_calls=call), False) == expected
    assert carry(client, write_stream(chunk({"tool_calls": call}), chunk({}, "tool_calls")), True) == expected

"""The chat wire: what is read, what is written, and that both are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.event_order import check_order
from support.rows import in_one_test

from toolglot.core.conversation import Conversation, Image, Message, Text, ToolCall, ToolChoice, ToolResult
from toolglot.core.errors import RequestError, ToolResultsError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    Started,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.wires.json_fields import end_call
from toolglot.wires.openai_chat import WIRE as wire
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.sse import EventStream

ANSWERER = ResponseIdentity("1", 1234567890, "qwen3-max")
PLAIN = ClientRequest(conversation=Conversation("m", ()))
COUNTED = ClientRequest(conversation=Conversation("m", ()), wants_usage=True)
READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}


def ask(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()


def decode(body: bytes) -> ClientRequest:
    return wire.decode_request(body, {})


def ids() -> Any:
    numbers = iter(range(1, 100))
    return lambda: f"made_{next(numbers)}"


def frames(*chunks: object, done: bool = True) -> bytes:
    received = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"] * done
    return "".join(received).encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call(index: int | None = 0, name: str | None = None, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    received = {"function": function, **fields}
    return delta(tool_calls=[received if index is None else {"index": index, **received}])


def read_whole(stream: bytes, size: int = 0) -> list[Event]:
    reader = wire.open_decoder(ids())
    size = size or len(stream)
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    events += reader.close()
    check_order(events)
    return list(merge_deltas(events))


# requests


def test_every_kind_of_message_is_read() -> None:
    asked = decode(
        ask(
            messages=[
                {"role": "developer", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{bad"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "out"}]},
                {"role": "assistant", "content": ""},
            ],
            tools=[READ],
            stream=True,
            stream_options={"include_usage": True},
            chat_template_kwargs={"enable_thinking": False},
        )
    )  # fmt: skip
    system, user, assistant, tool, last = asked.conversation.messages
    assert (system.role, system.text) == ("system", "be brief")
    assert user.parts == (Text("see"), Image(data="AAAA", media_type="image/png"))
    assert assistant.parts == (ToolCall("c1", "read", "{bad"),)
    assert tool.parts == (ToolResult("c1", "", (Text("out"),)),)
    assert last.parts == (Text(""),)
    assert asked.stream and asked.wants_usage
    assert asked.conversation.extra == {"chat_template_kwargs": {"enable_thinking": False}}


def test_a_request_written_again_is_the_same_request() -> None:
    body = ask(
        messages=[
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_audio", "input_audio": {"data": "x"}}]},
            {"role": "assistant", "content": "t", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        tools=[READ],
        tool_choice={"type": "function", "function": {"name": "read"}},
        parallel_tool_calls=False,
        temperature=0.5,
        max_tokens=7,
        stop=["x"],
        stream=True,
        stream_options={"include_usage": True},
        logit_bias={"1": 2},
    )  # fmt: skip
    asked = decode(body)
    again = wire.encode_request(asked.conversation, stream=asked.stream, wants_usage=asked.wants_usage)
    assert json.loads(again) == json.loads(body)
    assert decode(again) == asked


def test_the_newer_name_of_the_limit_is_kept() -> None:
    asked = decode(ask(max_completion_tokens=7)).conversation
    again = json.loads(wire.encode_request(asked, stream=False, wants_usage=False))
    assert asked.sampling.max_tokens == again["max_completion_tokens"] == 7 and "max_tokens" not in again


def test_what_results_hold_elsewhere_finds_a_place() -> None:
    picture = Image(data="AAAA", media_type="image/png")
    messages = (
        Message("assistant", (ToolCall("a", "read"), ToolCall("b", "read"))),
        Message(
            "tool",
            (ToolResult("a", "read", (Text("see"), picture)), ToolResult("b", "read", (Text("gone"),), error=True)),
        ),
        Message("user", (Text("well?"),)),
    )
    body = wire.encode_request(Conversation("m", messages), stream=False, wants_usage=False)
    _, first, second, shown, last = json.loads(body)["messages"]
    assert (first["content"], second["content"]) == ("see", "[The tool reported an error]\ngone")
    assert shown["role"] == "user" and shown["content"][0]["text"] == "From the result of the call a:"
    assert shown["content"][1]["type"] == "image_url" and last["content"] == "well?"
    _, _, again, _, _ = decode(body).conversation.messages
    assert again.parts == (ToolResult("b", "", (Text("gone"),), error=True),)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ("any", ToolChoice("required")),
        ({"type": "function", "function": {"name": "read"}}, ToolChoice.one("read")),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "name": "read"}]},
            },
            ToolChoice("auto", ("read",)),
        ),
    ],
)
def test_choices(choice: object, expected: ToolChoice) -> None:
    assert decode(ask(tools=[READ], tool_choice=choice)).conversation.choice == expected


@in_one_test(
    ("body", "where", "words"),
    [
        (b"{", None, "not valid JSON"),
        (b"[]", None, "object"),
        (ask(messages=[]), "messages", "not empty"),
        (ask(messages="x"), "messages", "list"),
        (ask(messages=[3]), "messages[0]", "role"),
        (ask(messages=[{"role": "wizard"}]), "messages[0].role", "one of"),
        (ask(messages=[{"role": "user", "content": 4}]), "messages[0].content", "parts"),
        (ask(n=2), "n", "n must be 1"),
        (ask(tools=3), "tools", "list"),
        (ask(tools=[READ], tool_choice="maybe"), "tool_choice", "maybe"),
        (ask(tools=[READ], tool_choice={"type": "function", "function": {"name": "rm"}}), "tool_choice", "rm"),
        (ask(tool_choice="required"), "tool_choice", "no usable tool"),
        (ask(temperature="hot"), "temperature", "number"),
    ],
)
def test_bad_requests_name_the_field(body: bytes, where: str | None, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        decode(body)
    assert caught.value.where == where
    error = json.loads(wire.encode_error(caught.value))["error"]
    assert error["type"] == "invalid_request_error" and error["param"] == where


@pytest.mark.parametrize("role", [[], {}, 1, None])
def test_a_role_of_any_type_is_looked_at(role: object) -> None:
    with pytest.raises(RequestError, match=r"messages\[0\].role must be one of"):
        decode(ask(messages=[{"role": role, "content": "x"}]))


@pytest.mark.parametrize("url", ["data:image/png;base64,", "data:;base64,", "", None, 1])
def test_an_image_that_shows_nothing_is_refused(url: object) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    with pytest.raises(RequestError, match="needs a url"):
        decode(ask(messages=[{"role": "user", "content": [part]}]))


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\uDE00 cut", "\ufffd cut"),
        (r"\ud83d\ude00 \ud83d\u0041 \\ud83d", "\U0001f600 \ufffdA \\ud83d"),
    ],
)
def test_a_text_that_was_cut_inside_a_character_is_read(sent: str, read: str) -> None:
    body = ask(messages=[{"role": "user", "content": "HERE"}]).replace(b"HERE", sent.encode())
    assert decode(body).conversation.messages[0].text == read


def test_a_result_without_content_is_refused() -> None:
    with pytest.raises(ToolResultsError, match=r"messages\[0\]"):
        decode(ask(messages=[{"role": "tool", "tool_call_id": "c"}]))


def test_tools_that_cannot_be_used_are_skipped_and_noted() -> None:
    broken = [7, {"type": "web_search"}, {"type": "function", "function": {"name": " "}}, READ, READ]
    asked = decode(ask(tools=broken))
    assert [tool.name for tool in asked.conversation.tools] == ["read"]
    assert [note.split(" ")[0] for note in asked.notes] == ["tools[0]", "tools[1]", "tools[2]", "tools[4]"]


def test_tools_that_come_again_are_read_once_and_noted_again() -> None:
    first, again = (decode(ask(tools=[READ, {"type": "web_search"}], user=user)) for user in ("a", "b"))
    assert first.conversation.tools is again.conversation.tools
    assert first.notes == again.notes == ("tools[1] skipped: not a function but 'web_search'",)
    for _ in range(2):
        with pytest.raises(RequestError, match="tools must be a list"):
            decode(ask(tools={"a": 1}))


def test_tools_are_read_also_where_a_text_was_cut_inside_a_character() -> None:
    body = ask(messages=[{"role": "user", "content": "HERE"}], tools=[READ])
    cut = decode(body.replace(b"HERE", rb"\ud83d"))
    described = decode(body.replace(b'"tools"', rb'"x":"\ud83d","tools"'))
    assert cut.conversation.tools == described.conversation.tools == decode(body).conversation.tools


# replies, read

STREAM = frames(
    delta(role="assistant", content="Ich lese – "),
    delta(reasoning_content="hm"),
    call(0, "read", "", id="c1", type="function"),
    call(0, None, '{"path":'),
    call(0, None, '"ä"}'),
    delta("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}},
)
EVENTS: list[Event] = [
    Started("", ""),
    TextDelta("Ich lese – "),
    ReasoningDelta("hm"),
    CallStarted(0, "c1", "read"),
    CallArguments(0, '{"path":"ä"}'),
    CallEnded(0),
    Finished("tool_calls", Usage(input_tokens=3, output_tokens=4, total_tokens=7)),
]


@in_one_test("size", [0, 1, 7, 64])
@in_one_test("ends", [b"\n", b"\r\n"])
def test_a_stream_is_read_however_it_is_cut(size: int, ends: bytes) -> None:
    assert read_whole(STREAM.replace(b"\n", ends), size) == EVENTS


@in_one_test(
    ("chunks", "calls"),
    [
        ([call(0, "f", "{}", id="a"), call(0, "f", "{}", id="b")], [("a", "f", "{}"), ("b", "f", "{}")]),
        ([call(None, "f", "{}", id="a"), call(None, "g", '{"x":1}', id="b")], [("a", "f", "{}"), ("b", "g", '{"x":1}')]),
        ([call(None, "f", "{", id="a"), call(None, None, "}")], [("a", "f", "{}")]),
        ([call(0, "f", "{", id="a"), call(0, "f", "}", id="a")], [("a", "f", "{}")]),
        ([call(0, "f", "{", id="a"), call(1, "g", "[", id="b"), call(0, None, "}"), call(1, None, "]")], [("a", "f", "{}"), ("b", "g", "[]")]),
        ([call(0, "f", {"x": [1]}, id="a")], [("a", "f", '{"x":[1]}')]),
        ([call("0", "f", "{}", id="a")], [("a", "f", "{}")]),  # type: ignore[arg-type]
        ([call(0, "f")], [("made_1", "f", "{}")]),
        ([call(0, "f", "", id="a"), call(0, None, "{}"), call(0, "g", "", id="b"), call(0, None, "[]")], [("a", "f", "{}"), ("b", "g", "[]")]),
        ([call(None, "f", "{}"), call(None, "g", "[]")], [("made_1", "f", "{}"), ("made_2", "g", "[]")]),
        ([call(0, "f", "{}"), call(0, "g", "[]")], [("made_1", "f", "{}"), ("made_2", "g", "[]")]),
        ([call(0, "f", "{}", id="a"), call(1, "f", "[]", id="a")], [("a", "f", "{}"), ("made_1", "f", "[]")]),
        ([call(0, None, "{", id="a"), call(0, "f", "}")], [("a", "f", "{}")]),
        ([call(0, None, "{}", id="a"), call(1, "f", "[]", id="b")], [("b", "f", "[]")]),
    ],
)  # fmt: skip
def test_servers_disagree_about_ids_and_indexes(chunks: list[Any], calls: list[tuple[str, str, str]]) -> None:
    events = read_whole(frames(*chunks, delta("tool_calls")))
    received = {event.index: [event.id, event.name, ""] for event in events if isinstance(event, CallStarted)}
    for event in events:
        if isinstance(event, CallArguments):
            received[event.index][2] += event.fragment
    assert [tuple(call) for call in received.values()] == calls
    assert {event.index for event in events if isinstance(event, CallEnded)} == set(received)


@pytest.mark.parametrize("name", ["", "a", None])
def test_every_entry_of_a_whole_reply_is_a_call_of_its_own(name: str | None) -> None:
    calls = [{"id": name, "function": {"name": "f", "arguments": arguments}} for arguments in ("{}", "[]")]
    events = wire.decode_response(json.dumps({"choices": [{"message": {"tool_calls": calls}}]}).encode(), ids()).events
    started = [event.id for event in events if isinstance(event, CallStarted)]
    assert len(set(started)) == 2 and "" not in started
    assert [event.fragment for event in events if isinstance(event, CallArguments)] == ["{}", "[]"]


def test_a_call_without_a_name_is_text() -> None:
    events = read_whole(frames(call(0, None, '{"a":1}', id="a"), delta("tool_calls")))
    assert events[1:] == [TextDelta('{"a":1}'), Finished("tool_calls")]


@in_one_test("odd", [5, True, "x", [5], {"a": 1}, "[" * 100_000 + "]" * 100_000])
@in_one_test("where", ["choices", "delta", "message", "tool_calls", "function", "usage", "error"])
def test_nothing_an_upstream_sends_raises(where: str, odd: object) -> None:
    chunk = delta("stop", content="x", tool_calls=[{"function": {"name": "f"}}]) | {"usage": {}, "error": None}
    text = json.dumps(chunk | {"message": 1})
    sent = text.replace(f'"{where}": ', f'"{where}": {odd if str(odd)[:1] == "[" else json.dumps(odd)}, "other": ', 1)
    check_order(read_whole(f"data: {sent}\n\ndata: [DONE]\n\n".encode()))


@pytest.mark.parametrize(
    ("stream", "last"),
    [
        (frames(delta(content="x"), delta("stop"), done=False), Finished("stop")),
        (frames(delta(content="x")), Finished("stop")),
        (frames(delta(content="x"), done=False), Failed("upstream_closed", "The upstream closed the connection in the middle of its answer.")),
        (frames(delta(content="x"), {"error": {"message": "boom", "code": 500}}), Failed("500", "boom")),
        (frames(delta(content="x"), {"error": "boom"}), Failed("upstream_refused", "boom")),
        (b'data: {"choices"\n\ndata: [DONE]\n\n', Failed("upstream_invalid", "The upstream sent no reply but '{\"choices\"'.")),
        (frames(delta(content=[{"type": "text", "text": "x"}]), delta("eos")), Finished("stop")),
    ],
)  # fmt: skip
def test_how_a_stream_ends(stream: bytes, last: Event) -> None:
    assert read_whole(stream)[-1] == last


def test_a_call_cut_by_the_limit_is_not_complete() -> None:
    events = read_whole(frames(call(0, "f", '{"a', id="a"), delta("length")))
    assert not any(isinstance(event, CallEnded) for event in events)
    assert events[-1] == Finished("length")


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_call_that_was_whole_before_the_cut_is_complete(finish: str) -> None:
    events = read_whole(
        frames(call(0, "f", '{"a":1', id="a"), call(0, None, "}"), call(1, "g", '{"b', id="b"), delta(finish))
    )
    assert [event for event in events if isinstance(event, CallEnded)] == [CallEnded(0)]
    assert events[-1] == Finished(finish)


@in_one_test("finish", [None, "stop", "tool_calls", "eos"])
@in_one_test("arguments", ['{"filePath":"a', '{"a":1', "{", '{"a":"two\nlines', '{"a":tru', '{"a":-'])
def test_a_call_without_its_end_was_cut_whatever_the_finish_reason(arguments: str, finish: str | None) -> None:
    pieces = [call(0, "f", "", id="a"), call(1, "g", "[]", id="b"), call(2, "h", arguments, id="c")]
    answer_text = [
        {"id": one, "function": {"name": "f", "arguments": text}}
        for one, text in (("a", ""), ("b", "[]"), ("c", arguments))
    ]
    whole = json.dumps({"choices": [{"message": {"tool_calls": answer_text}, "finish_reason": finish}]}).encode()
    reader = wire.open_decoder(ids())
    streamed = reader.feed(frames(*pieces, *([delta(finish)] if finish else [])))
    assert not reader.tidy
    for events in (streamed, wire.decode_response(whole, ids()).events):
        assert [event.index for event in events if isinstance(event, CallEnded)] == [0, 1]
        assert events[-1] == Finished("length")


@in_one_test(
    ("arguments", "odd"),
    [
        *((received, False) for received in ("", "{}", "[]", '{"a":"\\ud83d"}', '{"a":"b\nc"}')),
        *((received, True) for received in ("{'a': 1}", "{a: 1}", '{"a":1,}', "none")),
    ],
)
def test_arguments_that_are_no_json_are_not_cut(arguments: str, odd: bool) -> None:
    events = read_whole(frames(call(0, "f", arguments, id="a"), delta("tool_calls")))
    assert events[-2:] == [end_call(0, Reason.MALFORMED if odd else None), Finished("tool_calls")]


def test_half_a_surrogate_pair_passes_as_it_is() -> None:
    events = read_whole(b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\ndata: [DONE]\n\n')
    assert events[1] == TextDelta("\ud83d")
    assert b'"content":"\\ud83d"' in wire.open_encoder(ANSWERER, PLAIN).write(events)
    assert json.loads(wire.encode_response(events, ANSWERER, PLAIN))["choices"][0]["message"]["content"] == "\ud83d"


# replies, written


def test_half_a_surrogate_pair_in_a_name_or_an_error_is_escaped() -> None:
    half = "x\ud83d"
    out = wire.open_encoder(ANSWERER, PLAIN).write([CallStarted(0, half, half), Failed("x", half)])
    assert out.count(b'"x\\ud83d"') == 3


def test_what_is_written_is_read_the_same() -> None:
    writer = wire.open_encoder(ANSWERER, COUNTED)
    assert read_whole(writer.write(EVENTS), 11) == [Started("chatcmpl-1", "qwen3-max"), *EVENTS[1:]]
    whole = wire.decode_response(wire.encode_response(EVENTS, ANSWERER, PLAIN), ids()).events
    assert all(event in whole for event in EVENTS[1:]) and len(whole) == len(EVENTS)


def test_role_id_and_name_are_written_once() -> None:
    written = wire.open_encoder(ANSWERER, PLAIN).write(EVENTS)
    assert written.count(b'"role"') == written.count(b'"id":"c1"') == written.count(b'"name"') == 1
    assert written.count(b"[DONE]") == 1 and b'"usage"' not in written
    assert written.startswith(
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1234567890,"model":"qwen3-max","choices":[{"index":0,"delta":{"role":"assistant","content":'
    )


def test_a_heartbeat_is_an_empty_chunk() -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    beat = json.loads(writer.heartbeat()[6:])
    assert beat["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    assert b'"role":"assistant"' in writer.write([TextDelta("x")])


def test_a_failure_is_nested_under_error() -> None:
    written = wire.open_encoder(ANSWERER, PLAIN).write([Failed("upstream_closed", "gone")])
    assert json.loads(written[6:]) == {
        "error": {"message": "gone", "type": "server_error", "param": None, "code": "upstream_closed"}
    }


def test_a_whole_answer_without_text_has_null_content() -> None:
    message = json.loads(wire.encode_response(EVENTS[3:], ANSWERER, PLAIN))["choices"][0]["message"]
    assert message["content"] is None and message["tool_calls"][0]["function"]["arguments"] == '{"path":"ä"}'
    message = json.loads(wire.encode_response([TextDelta("hi"), Finished("stop")], ANSWERER, PLAIN))["choices"][0][
        "message"
    ]
    assert message == {"role": "assistant", "content": "hi"}


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"slow down","type":"rate_limit","code":"rate"}}', "slow down", "rate"),
        (b'{"object":"error","message":"no such model","code":404}', "no such model", "404"),
        (b'{"error":"text"}', "text", "upstream_refused"),
        (b'{"detail":"Not Found"}', "Not Found", "upstream_refused"),
        (b"<html>Bad Gateway</html>", "The upstream answered with status 502.", "upstream_refused"),
    ],
)
def test_errors_of_upstreams(body: bytes, message: str, code: str) -> None:
    error = wire.decode_error(502, body)
    assert (error.status, error.message, error.code) == (502, message, code)


# server-sent events


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_server_sent_events_of_every_kind(size: int) -> None:
    raw = b": hello\n\nevent: x\ndata: 1\n\ndata:2\n\n\n\ndata: 3\ndata: 4\n\nid: 7\n\ndata:\n\ndata: 5"
    for text in (raw, raw.replace(b"\n", b"\r\n"), raw.replace(b"\n", b"\r")):
        stream = EventStream()
        events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
        assert [*events, *stream.close()] == [b"1", b"2", b"3\n4", b"5"]


@pytest.mark.parametrize(
    "second", [b"data: 2", b"data:2", b"data: 2\nid: 7", b"event: x\ndata: 2", b"\ndata: 2", b": \ndata: 2"]
)
def test_a_read_of_whole_events_is_cut_the_same(second: bytes) -> None:
    raw = b"".join(block + b"\n\n" for block in (b"data: 1", second, b"data: 3"))
    whole, single = EventStream(), EventStream()
    assert whole.feed(raw) == [b"1", b"2", b"3"] and not whole.waiting
    assert [event for at in range(len(raw)) for event in single.feed(raw[at : at + 1])] == [b"1", b"2", b"3"]

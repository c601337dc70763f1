"""The Messages wire: what is read, what is written, and that both are the same."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.event_order import check_order
from support.rows import in_one_test

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    ProviderPart,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import InternalError, RequestError, ToolResultsError, UpstreamResponseError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reason,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.wires.anthropic_messages import WIRE as wire
from toolglot.wires.anthropic_messages.ids import NAME, REDACTED, scrub
from toolglot.wires.anthropic_messages.request_decoder import count_tokens
from toolglot.wires.json_fields import end_call
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "claude")
PLAIN = ClientRequest(conversation=Conversation("m", ()))
READ = {"name": "read", "description": "Reads", "input_schema": {"type": "object", "properties": {}}}
USER = Message("user", (Text("hi"),))


def ask(**fields: Any) -> bytes:
    return json.dumps(
        {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **fields}
    ).encode()


def decode(body: bytes) -> ClientRequest:
    return wire.decode_request(body, {})


def encode(*messages: Message, **fields: Any) -> Any:
    return json.loads(wire.encode_request(Conversation("m", messages, **fields), stream=False, wants_usage=False))


def ids() -> Any:
    numbers = iter(range(1, 100))
    return lambda: f"made_{next(numbers)}"


def frames(*events: dict[str, Any]) -> bytes:
    return "".join(
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events
    ).encode()


def block(index: int, opening: dict[str, Any], *deltas: dict[str, Any], stop: bool = True) -> list[dict[str, Any]]:
    received = [{"type": "content_block_start", "index": index, "content_block": opening}]
    received += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return received + [{"type": "content_block_stop", "index": index}] * stop


def args(*pieces: str) -> list[dict[str, Any]]:
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def tool(name: str = "read", id: str = "toolu_1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **fields}


def end(reason: str = "end_turn", **usage: int) -> list[dict[str, Any]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 4}}, {"type": "message_stop"}]


START = {"type": "message_start", "message": {"id": "msg_9", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None, "usage": {"input_tokens": 2, "cache_read_input_tokens": 1, "output_tokens": 1}}}  # fmt: skip
PING = {"type": "ping"}
TEXT = {"type": "text", "text": ""}
THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}


def text_delta(text: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": text}


def read_whole(stream: bytes, size: int = 0) -> list[Event]:
    reader = wire.open_decoder(ids())
    size = size or len(stream)
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    events += reader.close()
    check_order(events)
    return list(merge_deltas(events))


def parse(stream: bytes) -> list[Any]:
    """The events of a stream, held to the rules of the wire: names, one open block, no gap, all closed."""
    received: list[Any] = []
    opened, count = None, 0
    for frame in stream.decode().split("\n\n")[:-1]:
        name, data = frame.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        assert (event["type"] == "message_start") == (not received) or event["type"] == "error"
        match event["type"]:
            case "content_block_start":
                assert opened is None and event["index"] == count
                opened, count = count, count + 1
            case "content_block_delta":
                assert event["index"] == opened
            case "content_block_stop":
                assert event["index"] == opened
                opened = None
            case "message_delta":
                assert opened is None and "output_tokens" in event["usage"]
            case "message_start":
                assert "input_tokens" in event["message"]["usage"]
        received.append(event)
    return received


def write(events: list[Event], asked: ClientRequest = PLAIN) -> list[Any]:
    return parse(wire.open_encoder(ANSWERER, asked).write(events))


# requests


def test_every_kind_of_message_is_read() -> None:
    asked = decode(
        ask(
            system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            messages=[
                {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
                {"role": "system", "content": "a reminder"},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "xyz"},
                    {"type": "text", "text": "I read"},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ä"}},
                ]},
                {"role": "user", "content": [
                    {"type": "text", "text": "and now"},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": [
                        {"type": "text", "text": "out"},
                        {"type": "image", "source": {"type": "url", "url": "http://x/y.png"}},
                        {"type": "tool_reference", "tool_name": "Grep"},
                    ]},
                ]},
                {"role": "user", "content": [
                    {"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "words"}},
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}},
                ]},
                {"role": "assistant", "content": "Once"},
            ],
            tools=[READ, {"name": "Grep", "input_schema": {"type": "object"}, "defer_loading": True, "type": "custom"}],
            stream=True,
            thinking={"type": "adaptive"},
        )
    )  # fmt: skip
    system, user, inner, assistant, tool, answer_text, documents, prefill = asked.conversation.messages
    assert (system.role, system.text) == ("system", "be brief")
    assert user.parts == (Text("see"), Image(data="AAAA", media_type="image/png"))
    assert (inner.role, inner.text) == ("system", "a reminder")
    assert assistant.parts == (Reasoning("hm", "sig", NAME), Reasoning("", "xyz", REDACTED), Text("I read"), ToolCall("toolu_1", "read", '{"path":"ä"}'))  # fmt: skip
    [result] = tool.parts
    assert result == ToolResult("toolu_1", "", (Text("out"), Image(url="http://x/y.png"), Text("The tool Grep can be called now.")), True)  # fmt: skip
    assert answer_text == Message("user", (Text("and now"),))
    assert documents.parts[0] == Text("T\n\nwords") and isinstance(documents.parts[1], ProviderPart)
    assert prefill == Message("assistant", (Text("Once"),))
    assert [tool.name for tool in asked.conversation.tools] == ["read", "Grep"]
    assert asked.stream and asked.wants_usage and asked.conversation.extra == {"thinking": {"type": "adaptive"}}


def test_a_request_written_again_is_the_same_request() -> None:
    body = ask(
        system="s",
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "document", "source": {"type": "base64", "data": "x"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "t"}, {"type": "tool_use", "id": "c", "name": "read", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}, {"type": "text", "text": "go on"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "pre"}]},
        ],
        tools=[READ],
        tool_choice={"type": "tool", "name": "read", "disable_parallel_tool_use": True},
        temperature=0.5,
        top_k=3,
        stop_sequences=["x"],
        stream=True,
        metadata={"user_id": "u"},
    )  # fmt: skip
    asked = decode(body)
    again = wire.encode_request(asked.conversation, stream=asked.stream, wants_usage=asked.wants_usage)
    assert json.loads(again) == json.loads(body)
    assert decode(again) == asked


@pytest.mark.parametrize(
    ("choice", "expected", "parallel"),
    [
        ({"type": "none"}, ToolChoice("none"), None),
        ({"type": "auto"}, ToolChoice(), None),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice(), False),
        ({"type": "any", "disable_parallel_tool_use": False}, ToolChoice("required"), True),
        ({"type": "tool", "name": "read"}, ToolChoice.one("read"), None),
    ],
)
def test_choices(choice: object, expected: ToolChoice, parallel: bool | None) -> None:
    asked = decode(ask(tools=[READ], tool_choice=choice)).conversation
    assert (asked.choice, asked.sampling.parallel_calls) == (expected, parallel)
    written = json.loads(wire.encode_request(asked, stream=False, wants_usage=True)).get(
        "tool_choice", {"type": "auto"}
    )
    assert written == choice


@in_one_test(
    ("body", "where", "words"),
    [
        (b"{", None, "not valid JSON"),
        (b"[]", None, "object"),
        (ask(messages=[]), "messages", "not empty"),
        (ask(messages=[3]), "messages[0]", "role"),
        (ask(messages=[{"role": "wizard"}]), "messages[0].role", "one of"),
        (ask(messages=[{"role": "user", "content": 4}]), "messages[0].content", "blocks"),
        (ask(messages=[{"role": "user", "content": [4]}]), "messages[0].content[0]", "block"),
        (ask(messages=[{"role": "user", "content": [{"type": "tool_use", "name": "x"}]}]), "messages[0].content", "cannot hold"),
        (ask(messages=[{"role": "assistant", "content": [{"type": "tool_use", "name": ""}]}]), "messages[0].content[0].name", "name"),
        (ask(tools=3), "tools", "list"),
        (ask(tools=[READ], tool_choice={"type": "maybe"}), "tool_choice", "one of"),
        (ask(tools=[READ], tool_choice={"type": "tool", "name": "rm"}), "tool_choice", "rm"),
        (ask(tool_choice={"type": "any"}), "tool_choice", "no usable tool"),
        (ask(max_tokens="many"), "max_tokens", "number"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_field(body: bytes, where: str | None, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        decode(body)
    assert caught.value.where == where
    error = json.loads(wire.encode_error(caught.value))
    assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error"


def test_a_result_without_an_id_is_refused() -> None:
    with pytest.raises(ToolResultsError, match=r"messages\[0\]"):
        decode(ask(messages=[{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}]))


def test_tools_of_the_provider_are_skipped_and_noted() -> None:
    offered = [
        7,
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "bash_20250124", "name": "bash"},
        {"name": " "},
        READ,
        READ,
    ]
    asked = decode(ask(tools=offered))
    assert [tool.name for tool in asked.conversation.tools] == ["read"]
    assert [note.split(" ")[0] for note in asked.notes] == [f"tools[{at}]" for at in (0, 1, 2, 3, 5)]
    assert "web_search_20250305" in asked.notes[1]


def test_tokens_are_estimated_with_tools() -> None:
    few = json.loads(wire.extra_endpoints[0].answer(ask(), ()))["input_tokens"]
    many = count_tokens(decode(ask(system="x" * 400, tools=[READ])))
    assert few == 1 and 110 < many < 140


def test_a_request_for_another_model_keeps_everything_else() -> None:
    body = ask(tools=[READ], tool_choice={"type": "auto"}, mcp_servers=[])
    assert wire.adapt_request(body, "m", without_tools=False) == body
    encoded = json.loads(wire.adapt_request(body, "other", without_tools=True))
    assert encoded["model"] == "other" and "tools" not in encoded and "mcp_servers" in encoded


# requests, written from any conversation


def test_results_come_first_and_every_call_is_answered() -> None:
    encoded = encode(
        Message("system", (Text("one"),)),
        Message("system", (Text("two"),)),
        USER,
        Message("assistant", (Text(""), ToolCall("a", "read"), ToolCall("b", "read", "{bad"))),
        Message("system", (Text("by the way"),)),
        Message("user", (Text("more"),)),
        Message("tool", (ToolResult("b", "read", (Text("B"),)),)),
        Message("assistant", (ToolCall("a", "read", '{"x":1}'),)),
        Message("tool", (ToolResult("a", "read", (Image(data="AAAA", media_type="image/png"),)),)),
        Message("user", (Text("and?"),)),
        Message("user", (Text(" "), Text("well?"))),
        Message("assistant", (Reasoning("unsigned"), Text("so"), ToolCall("z", "read"))),
    )
    assert [block["text"] for block in encoded["system"]] == ["one", "two"]
    assert encoded["max_tokens"] == 4096
    _, first, results, aside, more, again, second, last, missing = encoded["messages"]
    assert [call["id"] for call in first["content"]] == ["a", "b"] and first["content"][1]["input"] == {
        "arguments": "{bad"
    }
    assert [(block["tool_use_id"], block.get("is_error")) for block in results["content"]] == [("b", None), ("a", True)]
    assert (results["role"], aside["role"], more["content"]) == ("user", "system", [{"type": "text", "text": "more"}])
    assert again["content"][0]["id"] == second["content"][0]["tool_use_id"] == "a_2"
    assert [block["type"] for block in second["content"]] == ["tool_result", "text", "text"]
    assert second["content"][0]["content"][0]["type"] == "image"
    assert [block["type"] for block in last["content"]] == ["text", "tool_use"]
    assert missing["content"][0]["is_error"] and missing["content"][0]["tool_use_id"] == "z"


def test_a_system_message_alone_is_a_question() -> None:
    encoded = encode(Message("system", (Text("a"),)), Message("system", (Text("b"),)))
    assert encoded["system"] == "a" and encoded["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "b"}]}
    ]


def test_ids_are_scrubbed_and_stay_apart() -> None:
    assert scrub("toolu_01-A") == "toolu_01-A"
    assert scrub("functions.read:0") != scrub("functions_read_0") == "functions_read_0"
    assert scrub("functions.read:0") == scrub("functions.read:0")
    encoded = encode(
        USER,
        Message("assistant", (ToolCall("f.r:0", "read"),)),
        Message("tool", (ToolResult("f.r:0", "", (Text("x"),)),)),
    )
    assert (
        encoded["messages"][1]["content"][0]["id"]
        == encoded["messages"][2]["content"][0]["tool_use_id"]
        == scrub("f.r:0")
    )


def test_only_what_the_wire_allows_is_sent() -> None:
    tools = (Tool("read", "", {"properties": {}}), Tool("write"))
    encoded = encode(
        USER,
        tools=tools,
        choice=ToolChoice("auto", ("read",)),
        sampling=Sampling(
            max_tokens=7, temperature=1.7, top_p=0.5, top_k=3, seed=42, stop=("\n", "END"), parallel_calls=False
        ),
    )
    assert [tool["name"] for tool in encoded["tools"]] == ["read"] and encoded["tools"][0]["input_schema"][
        "type"
    ] == "object"
    assert encoded["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert encoded["temperature"] == 1.0 and encoded["stop_sequences"] == ["END"] and encoded["top_k"] == 3
    assert "top_p" not in encoded and "seed" not in encoded and "stream" not in encoded
    assert encode(USER, sampling=Sampling(top_p=0.5))["top_p"] == 0.5


# replies, read

STREAM = frames(
    START,
    PING,
    *block(0, THOUGHT, {"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s1"}),
    *block(1, {"type": "redacted_thinking", "data": "xyz"}),
    *block(2, TEXT, text_delta("Ich "), text_delta("lese – ")),
    PING,
    *block(3, tool(), *args("", '{"path":', '"ä"}')),
    *block(4, tool("list", "toolu_2")),
    *end("tool_use", output_tokens=4),
)
EVENTS: list[Event] = [
    Started("msg_9", "claude"),
    ReasoningDelta("hm"),
    ReasoningSigned("s1", NAME),
    ReasoningSigned("xyz", REDACTED),
    TextDelta("Ich lese – "),
    CallStarted(0, "toolu_1", "read"),
    CallArguments(0, '{"path":"ä"}'),
    CallEnded(0),
    CallStarted(1, "toolu_2", "list"),
    CallArguments(1, "{}"),
    CallEnded(1),
    Finished("tool_calls", Usage(input_tokens=3, output_tokens=4, total_tokens=7)),
]


@in_one_test("size", [0, 1, 7, 64])
@in_one_test("ends", [b"\n", b"\r\n"])
def test_a_stream_is_read_however_it_is_cut(size: int, ends: bytes) -> None:
    assert read_whole(STREAM.replace(b"\n", ends), size) == EVENTS


@in_one_test(
    ("stream", "last"),
    [
        (frames(START, *block(0, TEXT, text_delta("x")), *end()), Finished("stop", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (frames(START, *block(0, TEXT, text_delta("x")), end()[0]), Finished("stop", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (frames(START, *block(0, TEXT, text_delta("x"), stop=False)), Failed("upstream_closed", "The upstream closed the connection in the middle of its answer.")),
        (frames(START, *block(0, TEXT, text_delta("x")), {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), Failed("overloaded_error", "Overloaded")),
        (b'data: {"error":"boom"}\n\n', Failed("upstream_refused", "boom")),
        (b"data: {\n\n", Failed("upstream_invalid", "The upstream sent no reply but '{'.")),
        (frames(START, *block(0, TEXT, text_delta("x")), *end("refusal")), Finished("content_filter", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (frames(START, *block(0, TEXT, text_delta("x")), *end("model_context_window_exceeded")), Finished("length", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (frames(START, *block(0, TEXT, text_delta("x")), *end("pause_turn")), Finished("stop", Usage(input_tokens=3, output_tokens=4, total_tokens=7))),
        (frames(START, *block(0, TEXT, text_delta("x")), *end("end_turn", input_tokens=9, output_tokens=1)), Finished("stop", Usage(input_tokens=10, output_tokens=1, total_tokens=11))),
    ],
)  # fmt: skip
def test_how_a_stream_ends(stream: bytes, last: Event) -> None:
    assert read_whole(stream)[-1] == last


def test_a_call_cut_by_the_limit_is_not_complete() -> None:
    events = read_whole(frames(START, *block(0, tool(), *args('{"a')), *end("max_tokens")))
    assert not any(isinstance(event, CallEnded) for event in events)
    assert events[-1] == Finished("length", Usage(input_tokens=3, output_tokens=4, total_tokens=7))


@pytest.mark.parametrize(
    ("reason", "finish"), [("tool_use", "length"), ("end_turn", "length"), ("refusal", "content_filter")]
)
@pytest.mark.parametrize("stop", [False, True])
def test_a_call_without_its_end_was_cut_whatever_the_finish_reason(reason: str, finish: str, stop: bool) -> None:
    data = [*block(0, tool(), *args('{"a":1}')), *block(1, tool(id="toolu_2"), *args('{"b":"x'), stop=stop)]
    events = read_whole(frames(START, *data, *end(reason)))
    assert [event.index for event in events if isinstance(event, CallEnded)] == [0]
    assert isinstance(events[-1], Finished) and events[-1].reason == finish


def test_the_input_of_a_call_may_be_in_its_start_event_and_may_be_no_json() -> None:
    opening = tool(input={"a": [1]})
    assert CallArguments(0, '{"a":[1]}') in read_whole(frames(START, *block(0, opening), *end("tool_use")))
    events = read_whole(frames(START, *block(0, tool(), *args("{oops}")), *end("tool_use")))
    assert events[-2] == end_call(0, Reason.MALFORMED)


# replies, written


def test_what_is_written_is_read_the_same() -> None:
    written = wire.open_encoder(ANSWERER, PLAIN).write(EVENTS)
    parse(written)
    assert read_whole(written, 11) == [Started("msg_1", "claude"), *EVENTS[1:]]
    whole = wire.decode_response(wire.encode_response(EVENTS, ANSWERER, PLAIN), ids()).events
    assert whole == [Started("msg_1", "claude"), *EVENTS[1:]]


def test_blocks_never_overlap() -> None:
    events: list[Event] = [
        CallStarted(0, "a", "read"),
        CallArguments(0, '{"x":'),
        CallStarted(1, "b", "list"),
        CallArguments(1, '{"y"'),
        TextDelta("between"),
        CallArguments(0, "1}"),
        TextDelta(" us"),
        CallArguments(1, ":2}"),
        CallEnded(0),
        CallEnded(1),
        Finished("tool_calls"),
    ]
    check_order(events)
    kinds = [event["content_block"]["type"] for event in write(events) if event["type"] == "content_block_start"]
    assert kinds == ["tool_use", "tool_use", "text"]
    written = wire.open_encoder(ANSWERER, PLAIN)
    received = b"".join(written.write([event]) for event in events)
    assert [event for event in read_whole(received) if isinstance(event, CallArguments | TextDelta)] == [
        CallArguments(0, '{"x":1}'),
        CallArguments(1, '{"y":2}'),
        TextDelta("between us"),
    ]


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    """Lawful answers in which calls, texts and thoughts are mixed at will."""
    chance: Random = draw(st.randoms(use_true_random=False))
    values = draw(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3), max_size=4))
    rows: list[list[Event]] = []
    for index, value in enumerate(values):
        text = json.dumps(value)
        cut = chance.randrange(len(text))
        fragments: list[Event] = [CallArguments(index, part) for part in (text[:cut], text[cut:]) if part]
        rows.append([CallStarted(index, f"c{index}", "read"), *fragments, CallEnded(index)])
    rendered: list[Event] = [TextDelta("a"), TextDelta("b"), ReasoningDelta("t"), ReasoningSigned("s", NAME)]
    rows.append(draw(st.lists(st.sampled_from(rendered), max_size=6)))
    events: list[Event] = []
    started = 0
    while any(rows):
        # calls must start in the order of their numbers
        ready = [row for at, row in enumerate(rows) if row and (at <= started or row is rows[-1])]
        event = chance.choice(ready).pop(0)
        started += isinstance(event, CallStarted)
        events.append(event)
    return [*events, Finished("stop")]


@given(answers())
def test_any_mixture_is_encoded_in_blocks(events: list[Event]) -> None:
    check_order(events)
    writer = wire.open_encoder(ANSWERER, PLAIN)
    written = b"".join(writer.write([event]) for event in events)
    parse(written)
    read = read_whole(written)
    for kind in (TextDelta, ReasoningDelta):
        assert "".join(event.text for event in read if isinstance(event, kind)) == "".join(
            event.text for event in events if isinstance(event, kind)
        )
    assert arguments_of(read) == arguments_of(events)
    assert sum(isinstance(event, CallEnded) for event in read) == sum(isinstance(event, CallEnded) for event in events)


def arguments_of(events: list[Event]) -> dict[int, str]:
    payload: dict[int, str] = {}
    for event in events:
        if isinstance(event, CallArguments):
            payload[event.index] = payload.get(event.index, "") + event.fragment
    return payload


def test_a_complete_call_is_released_at_once() -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    writer.write([CallStarted(0, "a", "read"), CallArguments(0, "{}")])
    assert b'"index":1' in writer.write([CallStarted(1, "b", "read")])


def test_a_call_is_closed_as_soon_as_it_ends() -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    writer.write([CallStarted(0, "a", "read")])
    out = writer.write([CallEnded(0)])
    assert b"content_block_stop" in out and b'"partial_json":"{}"' in out


def test_ids_are_new_in_the_conversation() -> None:
    asked = decode(
        ask(
            messages=[
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}]},
            ]
        )
    )
    events: list[Event] = [
        CallStarted(0, "c", "r"),
        CallEnded(0),
        CallStarted(1, "c", "r"),
        CallEnded(1),
        CallStarted(2, "f.r:0", "r"),
        CallEnded(2),
        Finished("tool_calls"),
    ]
    given = [event["content_block"]["id"] for event in write(events, asked) if event["type"] == "content_block_start"]
    assert given == ["c_1", "c_2", scrub("f.r:0")]


def test_signatures_of_other_vendors_come_back_unchanged() -> None:
    events: list[Event] = [
        ReasoningDelta("hm"),
        ReasoningSigned("gAAA", "openai_responses"),
        ReasoningDelta("so"),
        Finished("stop"),
    ]
    content = json.loads(wire.encode_response(events, ANSWERER, PLAIN))["content"]
    [message] = decode(ask(messages=[{"role": "assistant", "content": content}])).conversation.messages
    assert message.parts == (Reasoning("hm", "gAAA", "openai_responses"), Reasoning("so"))
    assert encode(USER, message)["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


def test_a_heartbeat_is_a_ping_behind_the_start() -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    received = writer.heartbeat() + writer.heartbeat() + writer.write([TextDelta("x"), Finished("stop")])
    assert [event["type"] for event in parse(received)][:4] == ["message_start", "ping", "ping", "content_block_start"]


@pytest.mark.parametrize(
    ("kind", "expected"), [("overloaded_error", "overloaded_error"), ("upstream_closed", "api_error")]
)
def test_a_failure_is_an_event_of_its_own(kind: str, expected: str) -> None:
    events = write([CallStarted(0, "a", "read"), CallArguments(0, "{"), Failed(kind, "gone")])
    assert events[-1] == {"type": "error", "error": {"type": expected, "message": "gone"}}
    assert not any(event["type"] == "content_block_stop" for event in events)
    assert [event["type"] for event in write([Failed("x", "gone")])] == ["error"]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("tool_calls", "tool_use")],
)
def test_stop_reasons(reason: str, stop: str) -> None:
    delta = write(
        [
            TextDelta("x"),
            Finished(
                reason, Usage(input_tokens=3, output_tokens=4, total_tokens=7, reported={"cache_read_input_tokens": 1})
            ),
        ]
    )[-2]
    assert delta["delta"]["stop_reason"] == stop
    assert delta["usage"] == {"input_tokens": 2, "output_tokens": 4, "cache_read_input_tokens": 1}


def test_a_whole_answer_leaves_out_calls_that_were_cut() -> None:
    events: list[Event] = [TextDelta("a"), CallStarted(0, "c", "r"), CallArguments(0, '{"'), Finished("length")]
    encoded = json.loads(wire.encode_response(events, ANSWERER, PLAIN))
    assert encoded["content"] == [{"type": "text", "text": "a"}] and encoded["stop_reason"] == "max_tokens"


def test_half_a_surrogate_pair_passes_as_it_is() -> None:
    events = read_whole(frames(START, *end()).replace(b'{"type": "message_stop"}', b'{"type":"message_stop"}') .replace(b"event: message_delta", b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}\n\nevent: message_delta'))  # fmt: skip
    assert TextDelta("\ud83d") in events
    assert b'"text":"\\ud83d"' in wire.open_encoder(ANSWERER, PLAIN).write(events)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"type":"error","error":{"type":"overloaded_error","message":"later"}}', "later", "overloaded_error"),
        (b'{"error":"text"}', "text", "upstream_refused"),
        (b"<html>Bad Gateway</html>", "The upstream answered with status 529.", "upstream_refused"),
    ],
)
def test_errors_of_upstreams(body: bytes, message: str, code: str) -> None:
    error = wire.decode_error(529, body)
    assert (error.status, error.message, error.code) == (529, message, code)
    assert json.loads(wire.encode_error(error))["error"]["type"] == "overloaded_error"


def test_errors_of_other_wires_are_encoded_in_this_wire() -> None:
    kinds = [
        json.loads(wire.encode_error(error))["error"]["type"]
        for error in (
            UpstreamResponseError("x", 429, "r", "tokens"),
            UpstreamResponseError("x", 422),
            InternalError("x"),
            UpstreamResponseError("x", 503),
        )
    ]
    assert kinds == ["rate_limit_error", "invalid_request_error", "api_error", "api_error"]

"""The Responses wire: what is read, what is written, and that both are the same."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from support.event_order import check_order
from support.rows import in_one_test
from support.wiring import ANSWERS, PATH, USAGE, call, new_ids, read_pieces, settle

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
from toolglot.core.errors import RequestError, RequestSizeError, ToolResultsError
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
    merge_deltas,
)
from toolglot.core.events import ProviderEvent as ForeignEvent
from toolglot.wires.json_fields import end_call
from toolglot.wires.openai_responses import WIRE as wire
from toolglot.wires.openai_responses.previous_responses import expand_request
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "qwen3-max")
PLAIN = ClientRequest(conversation=Conversation("m", ()))
READ = {
    "type": "function",
    "name": "read",
    "description": "Read",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Edit",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: hunk+"},
}
AGENTS = {
    "type": "namespace",
    "name": "agents",
    "description": "Others",
    "tools": [{**READ, "name": "spawn"}, {**PATCH, "name": "tell"}, {"type": "x"}],
}
CODEX = ClientRequest(
    conversation=Conversation("m", ()),
    memory={
        "custom": frozenset(("apply_patch", "agents__tell")),
        "namespaces": {"agents__spawn": ("agents", "spawn"), "agents__tell": ("agents", "tell")},
    },
)


def ask(**fields: Any) -> bytes:
    return json.dumps({"model": "m", "input": "hi", **fields}).encode()


def decode(**fields: Any) -> ClientRequest:
    return wire.decode_request(ask(**fields), {})


def write(events: list[Event], asked: ClientRequest = PLAIN) -> bytes:
    return wire.open_encoder(ANSWERER, asked).write(events)


def steps(stream: bytes) -> list[dict[str, Any]]:
    frames = [frame.split("\n") for frame in stream.decode().split("\n\n") if frame]
    payload: list[dict[str, Any]] = [json.loads(data.removeprefix("data: ")) for _, data in frames]
    assert [name.removeprefix("event: ") for name, _ in frames] == [step["type"] for step in payload]
    assert [step["sequence_number"] for step in payload] == list(range(len(payload)))
    return payload


# requests, read


def test_every_kind_of_item_is_read() -> None:
    asked = decode(
        instructions="be brief",
        input=[
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "encrypted_content": "SIGNATURE"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I read."}]},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": "{bad"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** \"x\"\n"},
            {"type": "function_call", "call_id": "c3", "namespace": "agents", "name": "spawn", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "[The tool reported an error]\nno file"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}, {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"}]},
            {"type": "function_call_output", "call_id": "c3", "output": {"a": 1}},
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "item_reference", "id": "fc_1"},
            {"type": "message", "role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
        ],
        stream=True,
        reasoning={"effort": "low"},
    )  # fmt: skip
    system, developer, user, turn, one, two, three, again, last = asked.conversation.messages
    assert [system, developer] == [Message("system", (Text("be brief"),)), Message("system", (Text("rules"),))]
    assert user.parts == (Text("see"), Image(data="AAAA", media_type="image/png"))
    assert turn.parts == (
        Reasoning("a\n\nb", "SIGNATURE", "openai_responses"),
        Text("I read."),
        ToolCall("c1", "read", "{bad"),
        ToolCall("c2", "apply_patch", '{"input":"*** \\"x\\"\\n"}'),
        ToolCall("c3", "agents__spawn", "{}"),
    )
    assert one.parts == (ToolResult("c1", "", (Text("no file"),), error=True),)
    assert two.parts == (ToolResult("c2", "", (Text("ok"), Image(url="https://x/y.png", detail="low"))),)
    assert three.parts == (ToolResult("c3", "", (Text('{"a":1}'),)),)
    assert again.parts == (ToolCall("c1", "read", "{bad"),)
    assert last.parts == (ProviderPart("openai_responses", {"type": "input_file", "file_id": "f"}),)
    assert asked.stream and asked.conversation.extra == {"reasoning": {"effort": "low"}}
    assert asked.notes == ("input[10] skipped: items of type 'web_search_call' mean nothing here",)


def test_custom_tools_namespaces_and_tools_that_come_as_items() -> None:
    more = {"type": "additional_tools", "role": "developer", "tools": [{**READ, "name": "late"}]}
    asked = decode(
        tools=[READ, PATCH, AGENTS, {"type": "web_search"}, READ], input=[more, {"role": "user", "content": "x"}]
    )
    tools = {tool.name: tool for tool in asked.conversation.tools}
    assert list(tools) == ["read", "apply_patch", "agents__spawn", "agents__tell", "late"]
    received = tools["apply_patch"].parameters
    assert received["required"] == ["input"] and "start: hunk+" in received["properties"]["input"]["description"]
    assert asked.memory == CODEX.memory
    assert asked.notes == (
        "tools[2].tools[2] skipped: not a function but 'x'",
        "tools[3] skipped: not a function but 'web_search'",
        "tools[4] skipped: a second tool named read",
    )


def test_tools_of_items_belong_to_their_request_alone() -> None:
    more = {"type": "additional_tools", "tools": [{**READ, "name": "late"}, {"type": "web_search"}]}
    text = {"role": "user", "content": "x"}
    asked = [decode(tools=[READ], input=input) for input in ([text], [more, text], [text])]
    assert [[tool.name for tool in one.conversation.tools] for one in asked] == [["read"], ["read", "late"], ["read"]]
    assert [len(one.notes) for one in asked] == [0, 1, 0]


@in_one_test(
    ("choice", "expected"),
    [
        ("none", ToolChoice("none")),
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "read"}, ToolChoice.one("read")),
        ({"type": "custom", "name": "apply_patch"}, ToolChoice.one("apply_patch")),
        ({"type": "function", "namespace": "agents", "name": "spawn"}, ToolChoice.one("agents__spawn")),
        ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "read"}, {"type": "web_search"}]}, ToolChoice("auto", ("read",))),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "namespace", "name": "agents"}]}, ToolChoice("required", ("agents__spawn", "agents__tell"))),
    ],
)  # fmt: skip
def test_choices(choice: object, expected: ToolChoice) -> None:
    assert decode(tools=[READ, PATCH, AGENTS], tool_choice=choice).conversation.choice == expected


@in_one_test(
    ("fields", "where", "words"),
    [
        ({"input": 3}, "input", "list of items"),
        ({"input": []}, "input", "not empty"),
        ({"input": [3]}, "input[0]", "object"),
        ({"input": [{"role": "wizard"}]}, "input[0].role", "one of"),
        ({"input": [{"role": "user", "content": 4}]}, "input[0].content", "parts"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:;base64,"}]}]}, "input[0].content[0]", "shows nothing"),
        ({"tools": 3}, "tools", "list"),
        ({"tools": [READ], "tool_choice": "maybe"}, "tool_choice", "maybe"),
        ({"tools": [READ], "tool_choice": {"type": "function", "name": "rm"}}, "tool_choice", "rm"),
        ({"tools": [READ], "tool_choice": {"type": "web_search"}}, "tool_choice", "web_search"),
        ({"tools": [READ], "tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp"}]}}, "tool_choice", "no tool"),
        ({"tool_choice": "required"}, "tool_choice", "no usable tool"),
        ({"temperature": "hot"}, "temperature", "number"),
    ],
)  # fmt: skip
def test_bad_requests_name_the_field(fields: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        decode(**fields)
    assert caught.value.where == where
    error = json.loads(wire.encode_error(caught.value))["error"]
    assert error["type"] == "invalid_request_error" and error["param"] == where


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"input": [{"type": "item_reference", "id": "rs_9"}]}, "input[0]", "rs_9, which is not known here"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "not known here"),
        ({"conversation": "conv_1"}, "conversation", "whole history"),
        ({"prompt": {"id": "p"}}, "prompt", "nothing of that kind"),
        ({"background": True}, "background", "background"),
    ],
)  # fmt: skip
def test_a_reference_that_only_its_server_knows_is_an_error_elsewhere(
    fields: dict[str, Any], where: str, words: str
) -> None:
    reference_error = decode(**fields).same_wire_only
    assert reference_error is not None and reference_error.where == where and words in reference_error.message
    error = json.loads(wire.encode_error(reference_error))["error"]
    assert error["type"] == "invalid_request_error" and error["param"] == where


def test_a_request_without_references_may_go_anywhere() -> None:
    received = {"role": "user", "content": "hi", "id": "msg_1"}
    for fields in ({"input": [received, {"type": "item_reference", "id": "msg_1"}]}, {"input": "hi", "store": True}):
        assert decode(**fields).same_wire_only is None
    assert decode(input="hi").may_be_referenced and not decode(input="hi", store=False).may_be_referenced


KEPT: dict[str, tuple[Any, list[Any]]] = {
    "resp_a": (
        {"input": "What is it?"},
        [
            {"type": "reasoning", "id": "rs_a_0", "summary": []},
            {"type": "reasoning", "id": "rs_a_1", "summary": [], "encrypted_content": "SIGNATURE"},
            {"type": "function_call", "id": "fc_a_2", "status": "completed", "call_id": "c", "name": "read", "arguments": "{}"},
        ],
    )
}  # fmt: skip
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "SIGNATURE"}
CALLED = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "done"}
ASKED = {"role": "user", "content": "What is it?"}


def refer(*ids: str) -> list[dict[str, Any]]:
    return [{"type": "item_reference", "id": one} for one in ids]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"input": [ASKED, *refer("rs_a_0", "rs_a_1", "fc_a_2"), RESULT]}, {"input": [ASKED, THOUGHT, CALLED, RESULT]}),
        ({"input": [RESULT], "previous_response_id": "resp_a"}, {"input": [ASKED, {"type": "reasoning", "summary": []}, THOUGHT, CALLED, RESULT]}),
        ({"input": "go on", "previous_response_id": "resp_b"}, None),
        ({"input": refer("fc_a_9", "fc_b_2", "x", "")}, None),
        ({"input": [{"role": "user", "content": "what is an item_reference?"}]}, None),
    ],
)  # fmt: skip
def test_references_are_resolved(fields: dict[str, Any], expected: dict[str, Any] | None) -> None:
    kept = {key: (json.dumps(body).encode(), json.dumps(output).encode()) for key, (body, output) in KEPT.items()}
    kept |= {item["id"]: kept[key] for key, (_, output) in KEPT.items() for item in output}
    body = json.dumps({"model": "m", **fields}).encode()
    expanded = expand_request(body, kept.get, 1 << 20)
    if expected is None:
        assert expanded is body
    else:
        assert json.loads(expanded) == {"model": "m", **expected}


@pytest.mark.parametrize(
    "fields", [{"input": refer("msg_1") * 300}, {"input": refer("msg_1"), "previous_response_id": "resp_1"}]
)
def test_references_do_not_grow_past_the_limit(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    item = {"type": "message", "id": "msg_1", "content": "x" * 10_000}
    found = json.dumps({"input": [ASKED]}).encode(), json.dumps([item]).encode()
    read: list[bytes] = []
    decode = msgspec.json.decode

    def watch(data: bytes) -> Any:
        read.append(data)
        return decode(data)

    monkeypatch.setattr(msgspec.json, "decode", watch)
    body = json.dumps({"model": "m", **fields}).encode()
    with pytest.raises(RequestSizeError, match="more than 15000 bytes"):
        expand_request(body, {"msg_1": found, "resp_1": found}.get, 15_000)
    assert read.count(found[1]) <= 2
    read.clear()
    assert len(expand_request(body, {"msg_1": found, "resp_1": found}.get, 4_000_000)) > 15_000
    assert read.count(found[1]) <= 2


@in_one_test(
    ("model", "asked"),
    [("gpt-5", True), ("openai/gpt-5.5-codex", True), ("o3-mini", True), ("gpt-6-sol", True), ("gpt-4o", False),
     ("gpt-5-chat-latest", False), ("qwen3", False), ("olmo-2", False)],
)  # fmt: skip
def test_signatures_are_requested_from_reasoning_models(model: str, asked: bool) -> None:
    conversation = Conversation(model, (Message("user", (Text("hi"),)),))
    encoded = json.loads(wire.encode_request(conversation, stream=False, wants_usage=False))
    assert encoded.get("include") == (["reasoning.encrypted_content"] if asked else None)


def test_a_result_without_output_is_refused() -> None:
    with pytest.raises(ToolResultsError, match=r"input\[0\]"):
        decode(input=[{"type": "function_call_output", "call_id": "c"}])


# requests, written

WRITTEN = Conversation(
    "m",
    (
        Message("system", (Text("s"),)),
        Message("system", (Text("also"),)),
        Message("user", (Text("a"), Image(data="AAAA", media_type="image/png"), ProviderPart("openai_responses", {"type": "input_file", "file_id": "f"}))),
        Message("assistant", (Reasoning("hm", "SIGNATURE", "openai_responses"), Text("I read."), ToolCall("c1", "read", "{}"), Text("And."), ToolCall("c2", "read", "{bad"))),
        Message("tool", (ToolResult("c1", "", (Text("no"), Image(url="https://x/y")), error=True),)),
        Message("tool", (ToolResult("c2", "", (Text("ok"),)),)),
    ),
    (Tool("read", "Read", {"type": "object", "properties": {}}),),
    ToolChoice("auto", ("read",)),
    Sampling(max_tokens=7, temperature=0.5, top_p=0.25, parallel_calls=False, effort="low"),
    {"reasoning": {"effort": "low"}},
)  # fmt: skip


def test_a_conversation_written_is_read_the_same() -> None:
    body = wire.encode_request(WRITTEN, stream=True, wants_usage=True)
    asked = wire.decode_request(body, {})
    assert asked.conversation == WRITTEN and asked.stream
    received = json.loads(body)
    assert received["instructions"] == "s" and received["store"] is False
    assert [item["type"] for item in received["input"]] == [
        "message", "message", "reasoning", "message", "function_call", "message", "function_call", "function_call_output", "function_call_output",
    ]  # fmt: skip


def test_what_another_wire_made_is_not_sent() -> None:
    thoughts = Message("assistant", (Reasoning("hm", "SIG", "gemini"), Reasoning("so"), Text("x")))
    encoded = json.loads(wire.encode_request(Conversation("m", (thoughts,)), stream=False, wants_usage=False))
    assert [item["type"] for item in encoded["input"]] == ["message"]
    with pytest.raises(RequestError, match="no word"):
        wire.encode_request(
            Conversation("m", (Message("user", (ProviderPart("gemini", {}),)),)), stream=False, wants_usage=False
        )


def test_a_request_is_adapted() -> None:
    body = ask(tools=[READ], tool_choice="auto", reasoning={"effort": "low"})
    assert wire.adapt_request(body, "m", without_tools=False) == body
    assert json.loads(wire.adapt_request(body, "x", without_tools=True)) == {
        "model": "x",
        "input": "hi",
        "reasoning": {"effort": "low"},
    }


# answers, written


@in_one_test("name", ANSWERS)
@in_one_test("size", [0, 1, 11])
def test_what_is_streamed_is_read_the_same(name: str, size: int) -> None:
    events = ANSWERS[name]
    received = read_pieces(wire.open_decoder(new_ids()), write(events), size)
    assert received == [Started("resp_1", "qwen3-max"), *settle(events)]


@in_one_test("name", sorted(set(ANSWERS) - {"error", "cut_call"}))
def test_what_is_written_whole_is_read_the_same(name: str) -> None:
    events = ANSWERS[name]
    encoded = wire.decode_response(wire.encode_response(events, ANSWERER, PLAIN), new_ids()).events
    check_order(encoded)
    assert list(merge_deltas(encoded)) == [Started("resp_1", "qwen3-max"), *settle(events)]


@in_one_test("name", ANSWERS)
def test_every_item_has_all_its_stream_events(name: str) -> None:
    events = steps(write(ANSWERS[name]))
    assert [step["type"] for step in events[:2]] == ["response.created", "response.in_progress"]
    progress: dict[int, list[str]] = {}
    for step in events:
        if "output_index" in step:
            kind = step["type"].removeprefix("response.")
            steps_seen = progress.setdefault(step["output_index"], [])
            if not steps_seen or steps_seen[-1] != kind:
                steps_seen.append(kind)
    whole = {
        "message": ["output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done"],
        "function_call": ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"],
        "reasoning": ["output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"],
    }  # fmt: skip
    assert list(progress) == list(range(len(progress)))
    done = {step["output_index"]: step["item"] for step in events if step["type"] == "response.output_item.done"}
    for at, steps_seen in progress.items():
        assert (at in done and steps_seen == whole[done[at]["type"]]) or name in ("cut_call", "error")
    ends = [step for step in events if step["type"] in ("response.completed", "response.incomplete")]
    assert all(end["response"]["output"] == list(done.values()) for end in ends)
    ids = [item["id"] for item in done.values()]
    assert len(set(ids)) == len(ids)


def test_a_call_has_two_ids() -> None:
    done = [step["item"] for step in steps(write(ANSWERS["calls"])) if step["type"] == "response.output_item.done"]
    assert [(item["id"], item["call_id"]) for item in done] == [("fc_1_0", "call_0"), ("fc_1_1", "call_1")]


def test_a_call_that_was_cut_is_never_done() -> None:
    events = steps(write(ANSWERS["cut_call"]))
    assert [step["item"]["type"] for step in events if step["type"] == "response.output_item.done"] == ["message"]
    end = events[-1]
    assert end["type"] == "response.incomplete"
    assert end["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in end["response"]["output"]] == ["message"]


@pytest.mark.parametrize(("name", "asked"), [("read", PLAIN), ("apply_patch", CODEX)])
@pytest.mark.parametrize("arguments", ["", '{"a": 1'])
def test_a_call_without_an_end_is_never_done(name: str, asked: ClientRequest, arguments: str) -> None:
    refused: list[Event] = [CallStarted(0, "c", name), CallArguments(0, arguments), Finished("tool_calls")]
    events = steps(write(refused, asked))
    assert [step["type"] for step in events[-2:]] == ["response.failed", "error"]
    assert "response.output_item.done" not in [step["type"] for step in events]


def test_a_failure_is_decoded_flat_and_nested() -> None:
    failed, error = steps(write([Failed("upstream_closed", "gone")]))[-2:]
    assert failed["type"] == "response.failed" and failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == failed["error"] == {"code": "upstream_closed", "message": "gone"}
    assert (error["type"], error["code"], error["message"]) == ("error", "upstream_closed", "gone")
    assert error["error"] == {"type": "server_error", "code": "upstream_closed", "message": "gone", "param": None}


def test_custom_tools_and_namespaces_are_encoded_as_the_client_declared_them() -> None:
    patch = '*** Begin Patch\n+"ä"\n*** End Patch\n'
    events = [
        *call(0, "apply_patch", json.dumps({"input": patch})),
        *call(1, "agents__spawn", "{}"),
        *call(2, "agents__tell", json.dumps({"text": "hello"})),
        Finished("tool_calls"),
    ]
    stream = write(events, CODEX)
    received = steps(stream)
    done = [step["item"] for step in received if step["type"] == "response.output_item.done"]
    assert [(item["type"], item.get("namespace"), item["name"]) for item in done] == [
        ("custom_tool_call", None, "apply_patch"),
        ("function_call", "agents", "spawn"),
        ("custom_tool_call", "agents", "tell"),
    ]
    assert (done[0]["input"], done[1]["arguments"], done[2]["input"]) == (patch, "{}", "hello")
    assert [step["input"] for step in received if step["type"] == "response.custom_tool_call_input.done"] == [
        patch,
        "hello",
    ]
    again = read_pieces(wire.open_decoder(new_ids()), stream, 7)
    started = [event.name for event in again if isinstance(event, CallStarted)]
    assert started == ["apply_patch", "agents__spawn", "agents__tell"]
    arguments = [json.loads(event.fragment) for event in again if isinstance(event, CallArguments)]
    assert arguments == [{"input": patch}, {}, {"input": "hello"}]
    whole = json.loads(wire.encode_response(events, ANSWERER, CODEX))
    assert whole["output"] == done and whole["status"] == "completed"


@pytest.mark.parametrize("kind", ["openai_responses", "gemini"])
def test_a_signature_comes_back_unchanged(kind: str) -> None:
    events: list[Event] = [
        ReasoningDelta("hm"),
        ReasoningSigned("SIGNATURE=", kind),
        ReasoningSigned("MORE", kind),
        *call(0),
        Finished("tool_calls", USAGE),
    ]
    stream = write(events)
    items = steps(stream)[-1]["response"]["output"]
    assert [item["type"] for item in items] == ["reasoning", "reasoning", "function_call"]
    turn = decode(input=[*items]).conversation.messages[0]
    assert turn.parts == (
        Reasoning("hm", "SIGNATURE=", kind),
        Reasoning("", "MORE", kind),
        ToolCall("call_0", "read", PATH),
    )
    assert read_pieces(wire.open_decoder(new_ids()), stream, 1) == [Started("resp_1", "qwen3-max"), *settle(events)]


def test_what_only_this_wire_knows_is_carried() -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    events: list[Event] = [
        TextDelta("a"),
        ForeignEvent("openai_responses", searched),
        TextDelta("b"),
        Finished("stop", USAGE),
    ]
    stream = write([*events[:1], ForeignEvent("gemini", {}), *events[1:]])
    assert read_pieces(wire.open_decoder(new_ids()), stream, 9)[1:] == events
    assert [item["type"] for item in steps(stream)[-1]["response"]["output"]] == [
        "message",
        "web_search_call",
        "message",
    ]


def test_a_heartbeat_is_a_response_in_progress() -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    events = steps(writer.heartbeat() + writer.heartbeat() + writer.write(ANSWERS["text"]))
    assert [step["type"] for step in events[:4]] == [
        "response.created",
        *["response.in_progress"] * 2,
        "response.output_item.added",
    ]


def test_half_a_surrogate_pair_passes_as_it_is() -> None:
    stream = write([TextDelta("\ud83d"), Finished("stop")])
    assert b'"delta":"\\ud83d"' in stream.replace(b": ", b":") or b'"delta": "\\ud83d"' in stream
    assert read_pieces(wire.open_decoder(new_ids()), stream)[1] == TextDelta("\ud83d")


# answers, read


def stream_of(*payload: dict[str, Any]) -> bytes:
    return "".join(f"event: {step.get('type')}\ndata: {json.dumps(step)}\n\n" for step in payload).encode()


CREATED = {"type": "response.created", "response": {"id": "r", "model": "g"}}
COMPLETED = {
    "type": "response.completed",
    "response": {"id": "r", "output": [], "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}},
}
FUNCTION = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": '{"a":1}'}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ([{"type": "response.output_item.done", "output_index": 0, "item": FUNCTION}], [CallStarted(0, "c", "f"), CallArguments(0, '{"a":1}'), CallEnded(0), Finished("tool_calls", USAGE)]),
        ([{"type": "response.output_item.added", "output_index": 0, "item": FUNCTION | {"arguments": ""}}], [CallStarted(0, "c", "f"), CallArguments(0, "{}"), CallEnded(0), Finished("tool_calls", USAGE)]),
        ([{"type": "response.reasoning_text.delta", "output_index": 0, "delta": "a"}, {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "b"}], [ReasoningDelta("a"), Finished("stop", USAGE)]),
        ([{"type": "response.refusal.delta", "output_index": 0, "delta": "No."}, {"type": "keepalive"}], [TextDelta("No."), Finished("stop", USAGE)]),
        ([{"type": "response.output_item.done", "item": {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "x"}]}}], [TextDelta("x"), Finished("stop", USAGE)]),
    ],
)  # fmt: skip
def test_servers_that_leave_out_steps(payload: list[dict[str, Any]], expected: list[Event]) -> None:
    stream = stream_of(CREATED, *payload, COMPLETED) + b"data: [DONE]\n\n"
    for size in (0, 1):
        assert read_pieces(wire.open_decoder(new_ids()), stream, size) == [Started("r", "g"), *expected]


@pytest.mark.parametrize(
    ("payload", "last"),
    [
        ([], Failed("upstream_closed", "The upstream closed the connection in the middle of its answer.")),
        ([{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}}], Failed("server_error", "boom")),
        ([{"type": "error", "code": "x", "message": "boom"}], Failed("x", "boom")),
        ([{"type": "error", "error": {"type": "t", "message": "boom"}}], Failed("t", "boom")),
        ([{"error": {"message": "boom", "code": 500}}], Failed("500", "boom")),
        ([{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}], Finished("content_filter")),
        ([{"type": "response.incomplete", "response": {"incomplete_details": {"reason": "steered"}}}], Finished("length")),
    ],
)  # fmt: skip
def test_how_a_stream_ends(payload: list[dict[str, Any]], last: Event) -> None:
    assert read_pieces(wire.open_decoder(new_ids()), stream_of(CREATED, *payload))[-1] == last


@pytest.mark.parametrize("stepped", ["at once", "in steps", "without an end"])
def test_a_call_without_its_end_was_cut_whatever_the_finish_reason(stepped: str) -> None:
    item = FUNCTION | {"arguments": '{"a":"x', "status": "completed"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item | {"arguments": ""}}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": item["arguments"]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    received = {"at once": [done], "in steps": [added, delta, done], "without an end": [added, delta]}[stepped]
    rejected = end_call(0, Reason.TRUNCATED)
    begun = [Started("r", "g"), CallStarted(0, "c", "f"), CallArguments(0, '{"a":"x')]
    cut = [*begun, rejected, Finished("length", USAGE)]
    reader = wire.open_decoder(new_ids())
    assert reader.feed(stream_of(CREATED, *received, COMPLETED)) == cut and not reader.tidy
    whole = {**json.loads(json.dumps(COMPLETED["response"])), "model": "g", "status": "completed", "output": [item]}
    assert wire.decode_response(json.dumps(whole).encode(), new_ids()).events == cut


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (b"oops", Failed("upstream_invalid", "The upstream sent no reply but 'oops'.")),
        (b'{"x":1}', Failed("upstream_invalid", "The upstream's answer holds neither text nor calls.")),
        (b'{"error":{"message":"boom","code":"c"}}', Failed("c", "boom")),
        (
            b'{"object":"response","status":"failed","error":{"message":"boom","code":"c"},"output":[]}',
            Failed("c", "boom"),
        ),
        (
            b'{"object":"response","status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},"output":[]}',
            Finished("length"),
        ),
    ],
)
def test_whole_answers_that_are_none(body: bytes, last: Event) -> None:
    assert wire.decode_response(body, new_ids()).events[-1] == last


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"message":"slow down","type":"rate_limit","code":"rate"}}', "slow down", "rate"),
        (b'{"error":"text"}', "text", "upstream_refused"),
        (b'{"detail":"Not Found"}', "Not Found", "upstream_refused"),
        (b"<html>", "The upstream answered with status 502.", "upstream_refused"),
    ],
)
def test_errors_of_upstreams(body: bytes, message: str, code: str) -> None:
    error = wire.decode_error(502, body)
    assert (error.status, error.message, error.code) == (502, message, code)


@pytest.mark.parametrize("role", [[], {}, 1, None, "unknown"])
def test_a_role_that_is_none_is_refused(role: Any) -> None:
    body = json.dumps({"model": "m", "input": [{"type": "message", "role": role, "content": "hi"}]}).encode()
    with pytest.raises(RequestError, match="role must be one of"):
        wire.decode_request(body, {})

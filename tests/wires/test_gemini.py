"""The Gemini wire: what is read, what is written, and that both are the same."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

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
from toolglot.core.errors import AuthenticationError, RequestError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    Started,
    TextDelta,
    Usage,
    merge_deltas,
)
from toolglot.core.events import ProviderEvent as ForeignEvent
from toolglot.wires.gemini import WIRE as wire
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "qwen3-max")
THINKING = ClientRequest(conversation=Conversation("m", ()), memory={"thoughts": True, "list": False})
PLAIN = ClientRequest(conversation=Conversation("m", ()), memory={"thoughts": False, "list": False})
LISTED = ClientRequest(conversation=Conversation("m", ()), memory={"thoughts": True, "list": True})
READ = {"name": "read", "description": "Read", "parametersJsonSchema": {"type": "object", "properties": {}}}
SIGNATURE = b64encode(b"\xff\xfe\xfb>>").decode()


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


def decode(path: dict[str, str] | None = None, **fields: Any) -> ClientRequest:
    asked = {"contents": [user({"text": "hi"})], **fields}
    return wire.decode_request(json.dumps(asked).encode(), {"model": "m", "method": "generateContent"} | (path or {}))


def write(events: list[Event], asked: ClientRequest = THINKING) -> bytes:
    return wire.open_encoder(ANSWERER, asked).write(events)


def pieces(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(frame.removeprefix("data: ")) for frame in stream.decode().split("\n\n") if frame]


def parts_of(payload: dict[str, Any]) -> list[dict[str, Any]]:
    return list(payload["candidates"][0]["content"]["parts"])


# requests, read


@pytest.mark.parametrize("snake", [False, True])
def test_every_kind_of_part_is_read_in_both_spellings(snake: bool) -> None:
    body = json.dumps(
        {
            "systemInstruction": {"parts": [{"text": "be brief"}]},
            "contents": [
                user({"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"fileData": {"mimeType": "image/gif", "fileUri": "gs://x"}}, {"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}}),
                model({"text": "hm", "thought": True}, {"functionCall": {"id": "a", "name": "read", "args": {"x": [1]}}, "thoughtSignature": "//77Pj4="}),
                model({"functionCall": {"id": "b", "name": "read"}}),
                user({"functionResponse": {"id": "b", "name": "read", "response": {"error": "no"}}}, {"functionResponse": {"id": "a", "name": "read", "response": {"output": "ok"}, "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}}, {"text": "and?"}),
                model({"text": "Do"}),
                model({"text": ""}),
                model({"text": "ne", "thoughtSignature": "AAAA"}),
            ],
            "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
            "tools": [{"functionDeclarations": [READ, {"name": "write", "parametersJsonSchema": {"a_b": 1}}]}, {"googleSearch": {}}],
            "generationConfig": {"maxOutputTokens": 5, "temperature": 0.5, "topP": 0.25, "topK": 3.0, "seed": 7, "stopSequences": ["x"], "thinkingConfig": {"includeThoughts": True}},
            "safetySettings": [],
        }
    )  # fmt: skip
    if snake:
        for name in ("systemInstruction", "inlineData", "mimeType", "fileData", "fileUri", "functionCall", "functionCallingConfig", "thoughtSignature", "functionResponse", "toolConfig", "allowedFunctionNames", "functionDeclarations", "parametersJsonSchema", "generationConfig", "maxOutputTokens", "topP", "topK", "stopSequences", "thinkingConfig", "includeThoughts"):  # fmt: skip
            body = body.replace(f'"{name}"', '"' + "".join(f"_{c.lower()}" if c.isupper() else c for c in name) + '"')
    asked = wire.decode_request(body.encode(), {"model": "m", "method": "streamGenerateContent", "alt": "sse"})
    system, first, turn, tool, more, last = asked.conversation.messages
    assert system == Message("system", (Text("be brief"),))
    assert first.parts[:3] == (
        Text("see"),
        Image(data="AAAA", media_type="image/png"),
        Image(url="gs://x", media_type="image/gif"),
    )
    assert isinstance(first.parts[3], ProviderPart)
    assert turn.parts == (
        Reasoning("hm", "//77Pj4=", "gemini"),
        ToolCall("a", "read", '{"x":[1]}'),
        ToolCall("b", "read", "{}"),
    )
    assert tool.parts == (
        ToolResult("b", "read", (Text("no"),), error=True),
        ToolResult("a", "read", (Text("ok"), Image(data="AAAA", media_type="image/png"))),
    )
    assert more == Message("user", (Text("and?"),))
    assert last.parts == (Text("Do"), Reasoning("", "AAAA", "gemini"), Text("ne"))
    conversation = asked.conversation
    assert conversation.choice == ToolChoice.one("read")
    assert conversation.sampling == Sampling(max_tokens=5, temperature=0.5, top_p=0.25, top_k=3, seed=7, stop=("x",))
    assert [tool.name for tool in conversation.tools] == ["read", "write"]
    assert conversation.tools[1].parameters == {"a_b": 1}
    assert asked.stream and asked.memory == {"thoughts": True, "list": False} and not asked.stream_type
    assert asked.notes == ("tools[1] skipped: not a function but 'googleSearch'",)
    assert set(conversation.extra) == {"safetySettings", "generationConfig"}


def test_the_path_selects_the_method() -> None:
    assert not decode().stream
    listed = decode({"method": "streamGenerateContent"})
    assert listed.stream and listed.memory["list"] and listed.stream_type == "application/json"
    assert decode({"model": "qwen3:8b"}).conversation.model == "qwen3:8b"


def test_ids_that_are_missing_are_made_and_results_find_their_calls() -> None:
    call_a, call_b = {"functionCall": {"name": "f", "args": {}}}, {"functionCall": {"name": "g", "args": {}}}
    result_a, result_b = ({"functionResponse": {"name": name, "response": {"result": 1}}} for name in "fg")
    named = {"functionResponse": {"id": "mine", "name": "f", "response": {}}}
    asked = decode(
        contents=[
            user({"text": "hi"}), model(call_a, call_b, call_a), user(result_b, result_a, result_a),
            model(call_a), user(named), model(call_a), user({"functionResponse": {"name": "other", "response": {"x": 1}}}),
        ]
    )  # fmt: skip
    ids = [call.id for message in asked.conversation.messages for call in message.calls]
    assert ids == ["call_1", "call_2", "call_3", "call_4", "call_5"]
    results = [
        part for message in asked.conversation.messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert [result.call_id for result in results] == ["call_2", "call_1", "call_3", "call_4", "call_5"]
    assert [result.content for result in results[2:]] == [(Text("1"),), (Text("{}"),), (Text('{"x":1}'),)]


def test_schemas_in_the_vendors_own_form() -> None:
    parameters = {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "STRING", "nullable": True, "min_length": "2"},
            "type": {"type": "ARRAY", "items": {"any_of": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]}},
        },
        "property_ordering": ["a"],
        "required": ["a"],
    }
    asked = decode(tools=[{"function_declarations": [{"name": "f", "parameters": parameters}]}])
    assert asked.conversation.tools[0].parameters == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "minLength": 2},
            "type": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}},
        },
        "required": ["a"],
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ToolChoice()),
        ({"mode": "AUTO"}, ToolChoice()),
        ({"mode": "VALIDATED"}, ToolChoice()),
        ({"mode": "NONE"}, ToolChoice("none")),
        ({"mode": "ANY"}, ToolChoice("required")),
        ({"mode": "ANY", "allowed_function_names": ["read"]}, ToolChoice.one("read")),
    ],
)
def test_choices(config: dict[str, Any], expected: ToolChoice) -> None:
    asked = decode(tools=[{"functionDeclarations": [READ]}], tool_config={"function_calling_config": config})
    assert asked.conversation.choice == expected


@in_one_test(
    ("fields", "where", "words"),
    [
        ({"contents": 3}, "contents[0]", "content"),
        ({"contents": None}, "contents[0]", "content"),
        ({"contents": [{"parts": 3}]}, "contents[0].parts", "list"),
        ({"contents": [{"role": "wizard", "parts": []}]}, "contents[0].role", "user or model"),
        ({"systemInstruction": 3}, "systemInstruction", "parts"),
        ({"tools": 3}, "tools", "list"),
        (
            {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            "toolConfig.functionCallingConfig",
            "no usable tool",
        ),
        ({"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount", "must be 1"),
        ({"generationConfig": {"temperature": "hot"}}, "generationConfig.temperature", "number"),
    ],
)
def test_bad_requests_name_the_field(fields: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        decode(**fields)
    assert caught.value.where == where
    error = json.loads(wire.encode_error(caught.value))["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["details"][0]["metadata"] == {"field": where}


# requests, written

WRITTEN = Conversation(
    "m",
    (
        Message("system", (Text("s"),)),
        Message("user", (Text("a"), Image(data="AAAA", media_type="image/png"), Image(url="https://x/y.png", media_type="image/png"), ProviderPart("gemini", {"videoMetadata": {}}))),
        Message("assistant", (Reasoning("hm", SIGNATURE, "gemini"), ToolCall("c1", "read", '{"a":1}'), ToolCall("c2", "read", "{}"), Text("And."))),
        Message("tool", (ToolResult("c1", "read", (Text("no"), Image(url="https://x/y", media_type="image/png")), error=True), ToolResult("c2", "read", (Text("ok"),)))),
        Message("user", (Text("go on"),)),
        Message("assistant", (Text("t"), ToolCall("c3", "read", "{}"), Reasoning("", SIGNATURE, "gemini"))),
    ),
    (Tool("read", "Read", {"type": "object", "properties": {}}),),
    ToolChoice.one("read"),
    Sampling(max_tokens=7, temperature=0.5, top_p=0.25, top_k=3, seed=1, stop=("x",)),
    {"safetySettings": [], "generationConfig": {"thinkingConfig": {}}},
)  # fmt: skip


def test_a_conversation_written_is_read_the_same() -> None:
    body = wire.encode_request(WRITTEN, stream=True, wants_usage=True)
    assert wire.decode_request(body, {"model": "m"}).conversation == WRITTEN
    turn, last = (json.loads(body)["contents"][at]["parts"] for at in (1, 4))
    assert [part.get("thoughtSignature") for part in turn] == [None, SIGNATURE, None, None]
    unsealed = b64encode(b"skip_thought_signature_validator").decode()
    assert [part.get("thoughtSignature") for part in last] == [None, unsealed, SIGNATURE]


def test_what_another_wire_made_is_not_sent() -> None:
    messages = (
        Message("assistant", (Reasoning("hm", "X", "anthropic_messages"), Reasoning("so"), ToolCall("c", "f", "{bad"))),
        Message("tool", (ToolResult("c", "", (Text("r"),)),)),
        Message("system", (Text("late"),)),
        Message("assistant", ()),
    )
    conversation = Conversation("m", messages, (Tool("f"), Tool("g")), ToolChoice("auto", ("g",)))
    encoded = json.loads(wire.encode_request(conversation, stream=False, wants_usage=False))
    assert [content["role"] for content in encoded["contents"]] == ["model", "user", "user"]
    assert [part["functionCall"]["args"] for part in encoded["contents"][0]["parts"]] == [{"arguments": "{bad"}]
    assert encoded["contents"][1]["parts"][0]["functionResponse"]["name"] == "f"
    assert [tool["name"] for tool in encoded["tools"][0]["functionDeclarations"]] == ["g"]
    with pytest.raises(RequestError, match="no word"):
        wire.encode_request(
            Conversation("m", (Message("user", (ProviderPart("x"),)),)), stream=False, wants_usage=False
        )


def test_a_request_is_adapted() -> None:
    body = json.dumps({"contents": [], "tools": [], "tool_config": {}}).encode()
    assert wire.adapt_request(body, "x", without_tools=False) == body
    assert json.loads(wire.adapt_request(body, "x", without_tools=True)) == {"contents": []}
    assert wire.locate("models/a b", stream=True) == "/models/a%20b:streamGenerateContent?alt=sse"
    assert wire.locate("qwen3:8b", stream=False) == "/models/qwen3:8b:generateContent"


@pytest.mark.parametrize("model", ["../../../admin/delete", "models/..", "a/./b", ".", "models/a/.."])
def test_a_model_name_cannot_change_the_path(model: str) -> None:
    for stream in (False, True):
        with pytest.raises(RequestError, match="cannot be the name of a model"):
            wire.locate(model, stream=stream)
    assert wire.locate("tuned/a..b/v1.", stream=False) == "/models/tuned/a..b/v1.:generateContent"


# answers, written


def whole_calls(events: list[Event]) -> list[Event]:
    """A cut call is left out here, and arguments are compact."""
    cut = {event.index for event in events if isinstance(event, CallStarted)} - {
        event.index for event in events if isinstance(event, CallEnded)
    }
    return [event for event in settle(events) if getattr(event, "index", None) not in cut]


@in_one_test("name", ANSWERS)
@in_one_test("size", [0, 1, 11])
def test_what_is_streamed_is_read_the_same(name: str, size: int) -> None:
    events = ANSWERS[name]
    received = read_pieces(wire.open_decoder(new_ids()), write(events), size)
    assert received == [Started("1", "qwen3-max"), *whole_calls(events)]


@in_one_test("name", sorted(set(ANSWERS) - {"error"}))
def test_what_is_written_whole_or_as_a_list_is_read_the_same(name: str) -> None:
    events = ANSWERS[name]
    writer = wire.open_encoder(ANSWERER, LISTED)
    listed = writer.heartbeat() + b"".join(writer.write([event]) + writer.heartbeat() for event in events)
    assert isinstance(json.loads(listed), list)
    for body in (wire.encode_response(events, ANSWERER, THINKING), listed):
        received = wire.decode_response(body, new_ids()).events
        check_order(received)
        assert list(merge_deltas(received)) == [Started("1", "qwen3-max"), *whole_calls(events)]


def test_a_failure_in_a_list_ends_it() -> None:
    listed = write([TextDelta("x"), Failed("upstream_closed", "gone")], LISTED)
    assert json.loads(listed)[1]["error"]["message"] == "gone"
    assert wire.decode_response(listed, new_ids()).events[-1] == Failed("upstream_closed", "gone")


@in_one_test("name", sorted(set(ANSWERS) - {"error"}))
def test_every_piece_holds_a_part(name: str) -> None:
    writer = wire.open_encoder(ANSWERER, PLAIN)
    stream = writer.heartbeat() + b"".join(writer.write([event]) for event in ANSWERS[name])
    assert all(parts_of(received) for received in pieces(stream))
    assert b"[DONE]" not in stream and b"event:" not in stream
    *early, last = pieces(stream)
    assert all("finishReason" not in received["candidates"][0] for received in early)
    assert last["candidates"][0]["finishReason"] and last["usageMetadata"]["totalTokenCount"] == 18


def test_thoughts_are_sent_if_requested() -> None:
    assert b"Hm" not in write(ANSWERS["reasoning"], PLAIN) and b"Hm" in write(ANSWERS["reasoning"])
    assert b"Hm" not in wire.encode_response(ANSWERS["reasoning"], ANSWERER, PLAIN)


def test_a_call_that_was_refused_has_no_form() -> None:
    refused: list[Event] = [CallStarted(0, "c", "read"), CallArguments(0, '{"a": 1 (refused)'), Finished("tool_calls")]
    assert b"functionCall" not in write(refused)
    ended: list[Event] = [*refused[:2], CallEnded(0), refused[2]]
    assert pieces(write(ended))[-1]["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
    events = read_pieces(wire.open_decoder(new_ids()), write(ended))
    assert events[-1] == Failed("malformed_function_call", 'Malformed call: read: {"a": 1 (refused)')


@pytest.mark.parametrize("kind", ["gemini", "openai_responses"])
def test_a_signature_comes_back_unchanged(kind: str) -> None:
    events: list[Event] = [
        ReasoningDelta("hm"),
        ReasoningSigned(SIGNATURE, kind),
        *call(0),
        ReasoningSigned("AAAA", kind),
        ReasoningSigned("BBBB", kind),
        Finished("tool_calls", USAGE),
    ]
    stream = write(events)
    assert read_pieces(wire.open_decoder(new_ids()), stream, 1) == [Started("1", "qwen3-max"), *settle(events)]
    contents = [received["candidates"][0]["content"] for received in pieces(stream)]
    assert "thoughtSignature" in contents[1]["parts"][0]
    turn = decode(contents=contents).conversation.messages[0]
    signed = Reasoning("hm", SIGNATURE, kind), ToolCall("call_0", "read", PATH)
    assert turn.parts == (*signed, Reasoning("", "AAAA", kind), Reasoning("", "BBBB", kind))


def test_what_only_this_wire_knows_is_carried() -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    events: list[Event] = [ForeignEvent("gemini", part), ForeignEvent("x", {}), Finished("stop", USAGE)]
    assert read_pieces(wire.open_decoder(new_ids()), write(events))[1:] == [events[0], events[2]]


# answers, read


def stream_of(*payload: dict[str, Any]) -> bytes:
    return "".join(f"data: {json.dumps(piece)}\r\n\r\n" for piece in payload).encode()


def candidate(*parts: Any, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    payload: dict[str, Any] = {"content": model(*parts), **fields}
    return {"candidates": [payload | {"finishReason": finish} if finish else payload]}


@pytest.mark.parametrize("size", [0, 1, 7])
def test_a_canonical_stream(size: int) -> None:
    counts = {
        "promptTokenCount": 8,
        "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
        "totalTokenCount": 18,
    }
    stream = stream_of(
        candidate({"text": "hm", "thought": True}) | {"responseId": "r", "modelVersion": "g"},
        candidate(
            {"text": "I read. "},
            {"functionCall": {"name": "read", "args": {"path": "ä"}}, "thoughtSignature": SIGNATURE},
        ),
        candidate({"functionCall": {"name": "ls", "id": "x"}}, finish="STOP") | {"usageMetadata": counts},
    )
    events = read_pieces(wire.open_decoder(new_ids()), stream, size)
    assert events == [
        Started("r", "g"),
        ReasoningDelta("hm"),
        TextDelta("I read. "),
        ReasoningSigned(SIGNATURE, "gemini"),
        *(CallStarted(0, "made_1", "read"), CallArguments(0, '{"path":"ä"}'), CallEnded(0)),
        *(CallStarted(1, "x", "ls"), CallArguments(1, "{}"), CallEnded(1)),
        Finished("tool_calls", Usage(input_tokens=11, output_tokens=7, total_tokens=18)),
    ]
    assert json.loads(wire.encode_response(events, ANSWERER, PLAIN))["usageMetadata"] == counts


@in_one_test(
    ("payload", "last"),
    [
        ([candidate({"text": "x"})], Failed("upstream_closed", "The upstream closed the connection in the middle of its answer.")),
        ([candidate({"text": "x"}, finish="STOP")], Finished("stop")),
        ([candidate({"text": "x"}, finish="WHATEVER")], Finished("stop")),
        ([candidate({"text": "x"}, finish="SAFETY")], Finished("content_filter")),
        ([candidate({"text": "x"}, finish="MAX_TOKENS")], Finished("length")),
        ([candidate({"text": "x"}, finish="CONTINUATION")], Finished("length")),
        ([candidate(finish="MALFORMED_FUNCTION_CALL", finishMessage="bad")], Failed("malformed_function_call", "bad")),
        ([candidate(finish="UNEXPECTED_TOOL_CALL")], Failed("unexpected_tool_call", "The model ended its answer with UNEXPECTED_TOOL_CALL.")),
        ([{"promptFeedback": {"blockReason": "OTHER"}}], Finished("content_filter")),
        ([{"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}], Failed("UNAVAILABLE", "busy")),
    ],
)  # fmt: skip
def test_how_a_stream_ends(payload: list[dict[str, Any]], last: Event) -> None:
    assert read_pieces(wire.open_decoder(new_ids()), stream_of(*payload))[-1] == last


@pytest.mark.parametrize(
    ("body", "last"),
    [
        (b"oops", Failed("upstream_invalid", "The upstream sent no reply but 'oops'.")),
        (b"{}", Failed("upstream_invalid", "The upstream's answer holds neither text nor calls.")),
        (b"[1]", Failed("upstream_invalid", "The upstream sent no reply but '[1]'.")),
        (b'{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}', Finished("stop")),
    ],
)
def test_whole_answers_that_are_odd(body: bytes, last: Event) -> None:
    assert wire.decode_response(body, new_ids()).events[-1] == last


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (b'{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}', "slow down", "RESOURCE_EXHAUSTED"),
        (b'[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]', "bad", "API_KEY_INVALID"),
        (b'{"error":"text"}', "text", "upstream_refused"),
        (b"<html>", "The upstream answered with status 502.", "upstream_refused"),
    ],
)  # fmt: skip
def test_errors_of_upstreams(body: bytes, message: str, code: str) -> None:
    error = wire.decode_error(502, body)
    assert (error.status, error.message, error.code) == (502, message, code)


def test_errors_have_the_status_that_the_wire_knows() -> None:
    error = json.loads(wire.encode_error(AuthenticationError("No key.")))["error"]
    assert (error["code"], error["status"], error["details"][0]["reason"]) == (
        401,
        "UNAUTHENTICATED",
        "invalid_api_key",
    )

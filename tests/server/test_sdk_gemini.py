"""The google-genai package reads what the Gemini wire writes, and asks what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from support.loopback import Loop, running_loop
from support.wiring import ANSWERS, PATH, Replay, call, replaying

from toolglot.core.conversation import Conversation, Reasoning, Text, ToolCall, ToolChoice, ToolResult
from toolglot.core.errors import RequestError
from toolglot.core.events import (
    CallEnded,
    CallStarted,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
)
from toolglot.wires.gemini import WIRE as wire
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

ANSWERER = ResponseIdentity("1", 1234567890, "m")
THINKING = ClientRequest(conversation=Conversation("m", ()), memory={"thoughts": True, "list": False})
EXPECTED: dict[str, list[Event]] = {
    **ANSWERS,
    "signed": [
        ReasoningDelta("hm"),
        ReasoningSigned("SIGNATURE", "openai_responses"),
        *call(0),
        Finished("tool_calls"),
    ],
}
FINISHES = {
    "length": "MAX_TOKENS",
    "cut_call": "MAX_TOKENS",
    "filtered": "SAFETY",
}
READABLE = [name for name in EXPECTED if name != "error"]


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def server(loop: Loop) -> Iterator[tuple[Replay, str]]:
    with replaying(loop) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: tuple[Replay, str]) -> Iterator[genai.Client]:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server[1]))
    yield client
    client.close()


def expect(events: list[Event]) -> tuple[str, str, list[Any]]:
    """Text, thoughts and calls that a client must see."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    ended = {event.index for event in events if isinstance(event, CallEnded)}
    calls = [(event.id, event.name) for event in events if isinstance(event, CallStarted) and event.index in ended]
    return text, thought, calls


def see(replies: list[types.GenerateContentResponse]) -> tuple[str, str, list[Any]]:
    text, thought, calls = "", "", []
    for reply in replies:
        assert reply.candidates and reply.candidates[0].content
        for part in reply.candidates[0].content.parts or []:
            if part.function_call:
                assert part.function_call.name == "write" or part.function_call.args == json.loads(PATH)
                calls.append((part.function_call.id, part.function_call.name))
            elif part.thought:
                thought += part.text or ""
            else:
                text += part.text or ""
    return text, thought, calls


def prepare(replay: Replay, name: str, *, beating: bool = False) -> None:
    writer = wire.open_encoder(ANSWERER, THINKING)
    replay.content_type = "text/event-stream"
    frames = [writer.write([event]) for event in EXPECTED[name]]
    replay.body = b"".join(writer.heartbeat() + frame if beating else frame for frame in frames)


def prepare_whole(replay: Replay, name: str) -> None:
    replay.body, replay.content_type = wire.encode_response(EXPECTED[name], ANSWERER, THINKING), "application/json"


@pytest.mark.parametrize("name", READABLE)
def test_whole_answers(server: tuple[Replay, str], client: genai.Client, name: str) -> None:
    prepare_whole(server[0], name)
    reply = client.models.generate_content(model="m", contents="hi")
    assert see([reply]) == expect(EXPECTED[name])
    assert reply.usage_metadata and reply.candidates
    assert reply.candidates[0].finish_reason == FINISHES.get(name, "STOP")


@pytest.mark.parametrize("beating", [False, True])
@pytest.mark.parametrize("name", READABLE)
def test_streams(server: tuple[Replay, str], client: genai.Client, name: str, beating: bool) -> None:
    prepare(server[0], name, beating=beating)
    replies = list(client.models.generate_content_stream(model="m", contents="hi"))
    assert see(replies) == expect(EXPECTED[name])
    assert replies[-1].candidates and replies[-1].candidates[0].finish_reason == FINISHES.get(name, "STOP")


@pytest.mark.parametrize("beating", [False, True])
@pytest.mark.parametrize("name", ["text", "calls", "signed"])
def test_a_chat_keeps_the_turn(server: tuple[Replay, str], client: genai.Client, name: str, beating: bool) -> None:
    """A chat throws away a turn with a piece that it does not like, so its next request shows whether it likes ours."""
    prepare(server[0], name, beating=beating)
    chat = client.chats.create(model="m")
    list(chat.send_message_stream("hi"))
    list(chat.send_message_stream("and?"))
    path, _, body = server[0].asked[-1]
    assert path == "/v1/models/m:streamGenerateContent?alt=sse"
    messages = wire.decode_request(json.dumps(body).encode(), {"model": "m"}).conversation.messages
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    text, thought, calls = expect(EXPECTED[name])
    turn = messages[1]
    assert turn.text == text and [(call.id, call.name) for call in turn.calls] == calls
    if name == "signed":
        assert turn.parts[0] == Reasoning("hm", "SIGNATURE", "openai_responses") and thought == "hm"


def test_a_failure_in_a_stream_is_raised(server: tuple[Replay, str], client: genai.Client) -> None:
    prepare(server[0], "error")
    with pytest.raises(errors.ServerError, match="gone"):
        list(client.models.generate_content_stream(model="m", contents="hi"))


def test_an_error_is_raised(server: tuple[Replay, str], client: genai.Client) -> None:
    replay = server[0]
    replay.body, replay.status = wire.encode_error(RequestError("Not so.", "contents[0]")), 400
    replay.content_type = "application/json"
    with pytest.raises(errors.ClientError, match="INVALID_ARGUMENT"):
        client.models.generate_content(model="m", contents="hi")
    replay.status = 200


def test_what_the_package_asks_is_read(server: tuple[Replay, str], client: genai.Client) -> None:
    prepare(server[0], "text")
    declared = types.FunctionDeclaration(name="f", parameters_json_schema={"type": "object", "properties": {}})
    typed = types.FunctionDeclaration(
        name="g",
        parameters=types.Schema(type=types.Type.OBJECT, properties={"a": types.Schema(type=types.Type.STRING)}),
    )
    calling = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=["f"])
    config = types.GenerateContentConfig(
        system_instruction="be brief",
        tools=[types.Tool(function_declarations=[declared, typed])],
        tool_config=types.ToolConfig(function_calling_config=calling),
        max_output_tokens=5,
        thinking_config=types.ThinkingConfig(include_thoughts=True),
    )
    called = types.FunctionCall(name="f", args={"a": 1})
    contents = [
        types.Content(role="user", parts=[types.Part(text="hi")]),
        types.Content(role="model", parts=[types.Part(function_call=called, thought_signature=b"\xff\xfe\xfb>>")]),
        types.Content(role="user", parts=[types.Part.from_function_response(name="f", response={"error": "no"})]),
    ]
    list(client.models.generate_content_stream(model="m", contents=contents, config=config))
    asked = wire.decode_request(json.dumps(server[0].asked[-1][2]).encode(), {"model": "m"})
    system, user, turn, tool = asked.conversation.messages
    assert system.text == "be brief" and user.text == "hi"
    assert turn.parts == (Reasoning("", "//77Pj4=", "gemini"), ToolCall("call_1", "f", '{"a":1}'))
    assert tool.parts == (ToolResult("call_1", "f", (Text("no"),), error=True),)
    assert asked.conversation.choice == ToolChoice.one("f") and asked.conversation.sampling.max_tokens == 5
    assert [dict(tool.parameters) for tool in asked.conversation.tools] == [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ]
    assert asked.memory["thoughts"] and server[0].asked[-1][1]["x-goog-api-key"] == "k"

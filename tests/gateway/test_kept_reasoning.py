"""Reasoning signatures: those that a client's wire cannot carry are stored, and sent with the step they belong to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from support.gateway import gateway, run
from support.line import Clock, Line
from support.rows import in_one_test
from support.wiring import PATH, Replay, call

from toolglot.clients.toolsets import all_mappings
from toolglot.core.conversation import Conversation, Message, Reasoning, Text, Tool, ToolCall, ToolChoice, ToolResult
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningSigned,
    TextDelta,
    merge_deltas,
)
from toolglot.core.identity import hash_texts
from toolglot.gateway.sessions.kept_reasoning import Keeping, ReasoningCollector, TurnKey, find_turn, restore
from toolglot.gateway.sessions.ttl_store import OVERHEAD, TtlStore
from toolglot.wires import all_wires, client_wires
from toolglot.wires.anthropic_messages.ids import REDACTED, write_signature
from toolglot.wires.gemini.field_names import NO_SIGNATURE
from toolglot.wires.protocol import ClientRequest, ResponseIdentity
from toolglot.wires.translation import wrap_signature

SIGNATURE = "c2VhbCBvbmU="
OTHER = "c2VhbCB0d28="
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = (Tool("read", "Read a file", SCHEMA), Tool("write", "Write a file", SCHEMA))
QUESTION = Message("user", (Text("What is this?"),))
SEALING = sorted(name for name, wire in client_wires().items() if wire.models_sign_reasoning)
CARRYING = {name for name, wire in client_wires().items() if wire.client_returns_signatures}
PAIRS = [(client, upstream) for client in sorted(client_wires()) for upstream in SEALING if client != upstream]

SIGNED_ANSWERS: dict[str, Callable[[str], list[Event]]] = {
    "call": lambda kind: [ReasoningDelta("Hm."), ReasoningSigned(SIGNATURE, kind), *call(0)],
    "text_call": lambda kind: [ReasoningDelta("Hm."), ReasoningSigned(SIGNATURE, kind), TextDelta("I read."), *call(0)],
    "calls": lambda kind: [ReasoningSigned(SIGNATURE, kind), *call(0), *call(1, "write")],
    "each": lambda kind: [ReasoningSigned(SIGNATURE, kind), *call(0), ReasoningSigned(OTHER, kind), *call(1, "write")],
    "text": lambda kind: [ReasoningDelta("Hm."), ReasoningSigned(SIGNATURE, kind), TextDelta("It is a file.")],
}
"""Answers with signatures, by kind."""


LENT: dict[str, Callable[[str, str], str]] = {
    "anthropic_messages": lambda sign, kind: write_signature(kind, sign),
    "openai_responses": lambda sign, kind: wrap_signature(sign, kind, "openai_responses"),
}
"""Wires that carry signatures: their clients send them back unchanged."""


def remember(events: list[Event], client: str) -> tuple[Message, ...]:
    """The turn as a client sends it back, and what follows; signatures only where its wire carries them."""
    parts: list[Any] = []
    calls: dict[int, ToolCall] = {}
    thought = ""
    for event in merge_deltas(events):
        match event:
            case ReasoningDelta(text=text):
                thought = text
            case ReasoningSigned(signature=sign, kind=kind) if client in LENT:
                parts.append(Reasoning(thought, LENT[client](sign, kind), client))
                thought = ""
            case TextDelta(text=text):
                parts.append(Text(text))
            case CallStarted(index=index, id=call_id, name=name):
                calls[index] = ToolCall(call_id, name)
                parts.append(index)
            case CallArguments(index=index, fragment=fragment):
                # as most clients do, read and written anew
                calls[index] = structs.replace(calls[index], arguments=json.dumps(json.loads(fragment), indent=1))
    turn = Message("assistant", tuple(calls[part] if isinstance(part, int) else part for part in parts))
    if not calls:
        return turn, Message("user", (Text("And now?"),))
    return turn, Message("tool", tuple(ToolResult(one.id, one.name, (Text("done"),)) for one in calls.values()))


def shape(parts: list[Any]) -> list[Any]:
    """What must arrive: signatures with their thoughts, and the part that follows them."""
    received = [(part.text, part.signature) if isinstance(part, Reasoning) else type(part).__name__ for part in parts]
    return [part for part in received if part != ("", "")]


EXPECTED: dict[str, list[Any]] = {
    "call": [("Hm.", SIGNATURE), "ToolCall"],
    "text_call": [("Hm.", SIGNATURE), "Text", "ToolCall"],
    "calls": [("", SIGNATURE), "ToolCall", "ToolCall"],
    "each": [("", SIGNATURE), "ToolCall", ("", OTHER), "ToolCall"],
    "text": [("Hm.", SIGNATURE), "Text"],
}


@in_one_test("stream", [False, True])
@in_one_test("name", SIGNED_ANSWERS)
@in_one_test(("client", "upstream"), PAIRS)
def test_signatures_come_back(client: str, upstream: str, name: str, stream: bool) -> None:
    line = Line(client, upstream)
    first = line.ask(Conversation("m", (QUESTION,), TOOLS), stream)
    events = line.answer(first, [*SIGNED_ANSWERS[name](upstream), Finished("tool_calls" if "call" in name else "stop")])
    if client not in CARRYING and client != "gemini":
        assert not any(isinstance(event, ReasoningSigned) for event in events)
    history = (QUESTION, *remember(events, client))
    for _ in range(2):  # and in every turn that follows
        again = line.ask(Conversation("m", history, TOOLS), stream)
        assert shape(line.see(again)) == EXPECTED[name]
    assert bool(len(line.capabilities.store)) == (client not in CARRYING)


@pytest.mark.parametrize("client", ["openai_chat", "ollama"])
def test_thinking_that_is_only_a_signature_comes_back(client: str) -> None:
    line = Line(client, "anthropic_messages")
    first = line.ask(Conversation("m", (QUESTION,), TOOLS), True)
    events: list[Event] = [
        ReasoningSigned(SIGNATURE, REDACTED),
        ReasoningDelta("Hm."),
        ReasoningSigned(OTHER, "anthropic_messages"),
    ]
    received = line.answer(first, [*events, *call(0), Finished("tool_calls")])
    again = line.ask(Conversation("m", (QUESTION, *remember(received, client)), TOOLS), True)
    blocks = json.loads(again.upstream_body)["messages"][1]["content"]
    assert blocks[:2] == [
        {"type": "redacted_thinking", "data": SIGNATURE},
        {"type": "thinking", "thinking": "Hm.", "signature": OTHER},
    ]
    assert blocks[2]["type"] == "tool_use"


def change(message: Message, **changes: str) -> Message:
    """The turn with a different call."""
    parts = tuple(structs.replace(part, **changes) if isinstance(part, ToolCall) else part for part in message.parts)
    return structs.replace(message, parts=parts)


def use_another_key(line: Line, turn: Message) -> tuple[Message, str]:
    return turn, "another"


def change_the_call(line: Line, turn: Message) -> tuple[Message, str]:
    return change(turn, arguments='{"path":"b"}'), "k"


def wait_too_long(line: Line, turn: Message) -> tuple[Message, str]:
    line.clock.time += 1e6
    return turn, "k"


def fill_the_store(line: Line, turn: Message) -> tuple[Message, str]:
    line.capabilities.store.keep(("big",), 0, (64 << 20) - OVERHEAD)
    return turn, "k"


LOST_SIGNATURE = (use_another_key, change_the_call, wait_too_long, fill_the_store)


@in_one_test("case", LOST_SIGNATURE)
@in_one_test("upstream", SEALING)
def test_a_step_without_its_signature_is_sent_without(
    upstream: str, case: Callable[[Line, Message], tuple[Message, str]]
) -> None:
    """Another key, a call that was changed, a signature that expired: the request is one that the upstream accepts."""
    line = Line("openai_chat", upstream)
    events = line.answer(
        line.ask(Conversation("m", (QUESTION,), TOOLS), True),
        [*SIGNED_ANSWERS["call"](upstream), Finished("tool_calls")],
    )
    turn, result = remember(events, "openai_chat")
    turn, owner = case(line, turn)
    again = line.ask(Conversation("m", (QUESTION, turn, result), TOOLS), True, owner)
    assert shape(line.see(again)) == ["ToolCall"] and SIGNATURE.encode() not in again.upstream_body
    assert (NO_SIGNATURE.encode() in again.upstream_body) == (upstream == "gemini")


def test_signatures_of_one_upstream_are_not_sent_to_another() -> None:
    line = Line("openai_chat", "gemini")
    events = line.answer(
        line.ask(Conversation("m", (QUESTION,), TOOLS), True),
        [*SIGNED_ANSWERS["call"]("gemini"), Finished("tool_calls")],
    )
    elsewhere = replace(line.settings.upstreams[0], base_url="http://127.0.0.1:2/v1")
    line.settings = replace(line.settings, upstreams=(elsewhere,))
    again = line.ask(Conversation("m", (QUESTION, *remember(events, "openai_chat")), TOOLS), True)
    assert NO_SIGNATURE.encode() in again.upstream_body and SIGNATURE.encode() not in again.upstream_body


EDITOR = "str_replace_based_edit_tool"
EDIT = '{"command":"str_replace","path":"a.py","old_str":"a","new_str":"b"}'


def edited(client: str, upstream: str) -> Line:
    """A line behind which the model knows other tools for editing."""
    line = Line(client, upstream)
    models = tuple(replace(model, editing="anthropic") for model in line.settings.models)
    line.settings = replace(line.settings, models=models)
    return line


ROO = next(
    mapping.tools for mapping in all_mappings() if (mapping.client.name, mapping.model.name) == ("roo", "anthropic")
)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", SEALING)
def test_signatures_come_back_where_tools_are_mapped(upstream: str, stream: bool) -> None:
    """The client makes another call than the model did; it is the client's that is known again."""
    line = edited("openai_chat", upstream)
    events = [ReasoningSigned(SIGNATURE, upstream), *call(0, EDITOR, EDIT), Finished("tool_calls")]
    received = line.answer(line.ask(Conversation("m", (QUESTION,), ROO), stream), events)
    [made] = [event.name for event in received if isinstance(event, CallStarted)]
    assert made == "edit"
    again = line.ask(Conversation("m", (QUESTION, *remember(received, "openai_chat")), ROO), stream)
    assert shape(line.see(again)) == [("", SIGNATURE), "ToolCall"]
    assert [part.name for part in line.see(again) if isinstance(part, ToolCall)] == [EDITOR]


@pytest.mark.parametrize("stream", [False, True])
def test_a_choice_among_tools_that_are_mapped(stream: bool) -> None:
    line = edited("openai_chat", "anthropic_messages")
    for choice, calls in ((ToolChoice("auto", ("edit",)), ["edit"]), (ToolChoice.one("edit"), ["edit"])):
        exchange = line.ask(Conversation("m", (QUESTION,), ROO, choice), stream)
        events = line.answer(exchange, [*call(0, EDITOR, EDIT), Finished("tool_calls")])
        assert [event.name for event in events if isinstance(event, CallStarted)] == calls


# -- servers of the chat wire that sign their calls ----------------------------------------------------------------------

GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"


@in_one_test("stream", [False, True])
@in_one_test("name", SIGNED_ANSWERS)
@in_one_test("client", sorted(client_wires()))
def test_signatures_of_a_chat_server_come_back(client: str, name: str, stream: bool) -> None:
    """Whether the client keeps them, as newer packages do, or not."""
    line = Line(client, "openai_chat", base_url=GOOGLE)
    first = line.ask(Conversation("m", (QUESTION,), TOOLS), stream)
    events = line.answer(
        first, [*SIGNED_ANSWERS[name]("openai_chat"), Finished("tool_calls" if "call" in name else "stop")]
    )
    expected = [part if isinstance(part, str) else ("", part[1]) for part in EXPECTED[name]]
    if "text" in name:
        expected = ["Text", *(part for part in expected if part != "Text")]  # the wire has one place for text
    if client == "openai_chat":
        assert [event.signature for event in events if isinstance(event, ReasoningSigned)] == [
            part[1] for part in expected if isinstance(part, tuple)
        ]
    again = line.ask(Conversation("m", (QUESTION, *remember(events, client)), TOOLS), stream)
    assert shape(line.see(again)) == expected
    assert b"Hm." not in again.upstream_body, "this server knows no field for thoughts"


def test_a_client_that_carries_signatures_itself_is_passed_on_as_it_is() -> None:
    call_made = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    signed = call_made | {"extra_content": {"google": {"thought_signature": SIGNATURE}}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [signed]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    asked = {
        "model": "m",
        "messages": messages,
        "tools": [{"type": "function", "function": {"name": "read"}}],
        "odd": 1,
    }
    line = Line("openai_chat", "openai_chat", base_url=GOOGLE)
    assert json.loads(line.open(json.dumps(asked).encode(), False).upstream_body) == asked


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_a_server_that_signs_nothing_gets_no_signatures(client: str) -> None:
    """After a change of the upstream in the middle of a conversation."""
    signing = Line(client, "openai_chat", base_url=GOOGLE)
    events = signing.answer(
        signing.ask(Conversation("m", (QUESTION,), TOOLS), True),
        [*SIGNED_ANSWERS["call"]("openai_chat"), Finished("tool_calls")],
    )
    other = Line(client, "openai_chat")
    again = other.ask(Conversation("m", (QUESTION, *remember(events, client)), TOOLS), True)
    assert b"extra_content" not in again.upstream_body and SIGNATURE.encode() not in again.upstream_body


def test_nothing_is_stored_without_signatures() -> None:
    line = Line("openai_chat", "anthropic_messages")
    line.answer(
        line.ask(Conversation("m", (QUESTION,), TOOLS), True),
        [ReasoningDelta("Hm."), *call(0), Finished("tool_calls")],
    )
    assert len(line.capabilities.store) == 0


def test_the_same_text_in_another_turn_is_another_answer() -> None:
    """Without an id a step is identified by the user messages and the number of answers since."""
    kept = TtlStore(Clock()).open("k")
    first, second = Message("user", (Text("a"),)), Message("user", (Text("b"),))
    ReasoningCollector(lambda: kept, find_turn([first])).feed(
        [ReasoningSigned(SIGNATURE, "gemini"), TextDelta("Done. "), Finished("stop")]
    )
    message = Message("assistant", (Text("Done."),))
    assert restore([first, message], kept)[1].parts == (Reasoning("", SIGNATURE, "gemini"), Text("Done."))
    assert restore([second, message], kept)[1] == message
    assert restore([first, message, message], kept)[2] == message
    assert find_turn([first, message, second, message]) == TurnKey(hash_texts(hash_texts("", "a").hex(), "b"), 1)


@pytest.mark.parametrize("call_id", ["functions.read:0", "call_0", "0", ""])
def test_conversations_that_go_on_alike_do_not_share_reasoning(call_id: str) -> None:
    """Same last message, same answer, and ids that models count from zero in each conversation."""
    kept = TtlStore(Clock()).open("k")
    openings = [Message("user", (Text(f"About {topic}"),)) for topic in ("one", "two")]
    more = Message("user", (Text("continue"),))
    answers = (Message("assistant", (Text("done"),)), Message("assistant", (ToolCall(call_id, "read", "{}"),)))
    for opening, thought in zip(openings, ("first", "second"), strict=True):
        turn = find_turn([opening, answers[0], more])
        events: list[Event] = [
            ReasoningDelta(thought),
            CallStarted(0, call_id, "read"),
            CallArguments(0, "{}"),
            CallEnded(0),
        ]
        ReasoningCollector(lambda: kept, turn, Keeping(unsigned=True)).feed([*events, Finished("tool_calls")])
    for opening, thought in zip(openings, ("first", "second"), strict=True):
        restored = restore([opening, answers[0], more, answers[1]], kept, Keeping(unsigned=True, returned=True))
        assert restored[-1].parts[0] == Reasoning(thought)


# -- over a network ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", SEALING)
def test_a_gateway_stores_signatures_by_client_key(upstream: str, stream: bool) -> None:
    wire, replay = all_wires()[upstream], Replay()
    asked = ClientRequest(
        conversation=Conversation("m", ()), stream=stream, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    events, answerer = [*SIGNED_ANSWERS["text_call"](upstream), Finished("tool_calls")], ResponseIdentity("1", 1, "m")
    replay.body = (
        wire.open_encoder(answerer, asked).write(events) if stream else wire.encode_response(events, answerer, asked)
    )
    replay.content_type = wire.stream_type if stream else "application/json"
    body: dict[str, Any] = {
        "model": "m",
        "stream": stream,
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    }

    async def test() -> None:
        async with gateway(app=replay.app, upstream={"wire": upstream}, mode="native") as gate:
            first = await gate.ask(body, Authorization="Bearer one")
            if stream:
                called = [
                    call
                    for chunk in first.chunks
                    for choice in chunk["choices"]
                    for call in choice["delta"].get("tool_calls", ())
                ]
                call_id = called[0]["id"]
            else:
                call_id = first.message["tool_calls"][0]["id"]
            function = {"name": "read", "arguments": PATH}
            made = {"id": call_id, "type": "function", "function": function}
            turns = [
                {"role": "assistant", "content": "I read.", "tool_calls": [made]},
                {"role": "tool", "tool_call_id": call_id, "content": "x"},
            ]
            again = body | {"messages": [*body["messages"], *turns]}
            for key in ("one", "two"):
                assert (await gate.ask(again, Authorization=f"Bearer {key}")).status == 200

    run(test)
    received = [SIGNATURE in json.dumps(sent) for _, _, sent in replay.asked]
    assert received == [False, True, False]


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_was_not_used_is_put_out_first() -> None:
    clock = Clock()
    kept = TtlStore(clock, most_bytes=3 * (OVERHEAD + 100), seconds=60)
    own = kept.open("k")
    for name in "abc":
        assert own.keep((name,), name, 100)
    assert own.find(("a",)) == "a"
    own.keep(("d",), "d", 100)
    assert [own.find((name,)) for name in "abcd"] == ["a", None, "c", "d"]
    assert kept.bytes == 3 * (OVERHEAD + 100) and len(kept) == 3


def test_what_is_old_is_gone() -> None:
    clock = Clock()
    kept = TtlStore(clock, seconds=60)
    own = kept.open("k")
    own.keep(("a",), "a", 1)
    clock.time += 50
    assert own.find(("a",)) == "a"  # and young again
    clock.time += 50
    assert own.find(("a",)) == "a"
    clock.time += 60
    assert own.find(("a",)) is None and (len(kept), kept.bytes) == (0, 0)


def test_what_is_too_big_is_not_kept_and_replaces_nothing_else() -> None:
    kept = TtlStore(Clock(), most_bytes=1000)
    own = kept.open("k")
    own.keep(("a",), "a", 1)
    assert not own.keep(("b",), "b", 1000)
    assert own.find(("a",)) == "a" and own.find(("b",)) is None


def test_every_owner_has_a_part_and_no_key_is_held() -> None:
    kept = TtlStore(Clock())
    kept.open("secret", "place").keep(("a",), 1, 1)
    for words in (("other", "place"), ("secret", "other"), ("secretp", "lace"), ("secret",)):
        assert kept.open(*words).find(("a",)) is None
    assert kept.open("secret", "place").find(("a",)) == 1
    assert "secret" not in str(kept._entries)

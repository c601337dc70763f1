"""Every wire before a gateway with every wire behind it: what is asked and what is answered arrives on the other side."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.gateway import Gate, gateway, run
from support.replay import ANSWERS, SEEN, replaying

from toolglot.core.conversation import Conversation, Image, Message, Sampling, Text, Tool, ToolCall, ToolResult
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    check_order,
    merge_deltas,
)
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import Wire

NO_STOP = {"openai_responses"}
"""Wires that know no stop sequences."""

THOUGHTS_ON_DEMAND = {"gemini"}
"""Wires that tell thoughts only to clients who ask for them, as these do not."""

SCHEMA = {"type": "object", "properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}}
TOOLS = (Tool("read", "Reads", SCHEMA), Tool("write", "Writes", SCHEMA))
PICTURE = Image(data="iVBORw0KGgo=", media_type="image/png")
HISTORY = (
    Message("system", (Text("Be brief."),)),
    Message("user", (Text("Look."), PICTURE)),
    Message("assistant", (Text("I look."), ToolCall("a1", "read", '{"filePath":"a"}'), ToolCall("b2", "write", '{"n":[1,null]}'))),
    Message("tool", (ToolResult("a1", "read", (Text("seen"), PICTURE)), ToolResult("b2", "write", (Text("denied"),), error=True))),
    Message("user", (Text("Go on."),)),
)  # fmt: skip


def new_id() -> str:
    return "made"


async def ask(gate: Gate, wire: Wire, conversation: Conversation, streamed: bool) -> list[Event]:
    """What a client of the wire is told."""
    body = wire.encode_request(conversation, stream=streamed, wants_usage=True)
    path = "/v1" + wire.locate(conversation.model, stream=streamed)
    answer = await gate.ask(body, wire.routes[0] if "{" not in wire.routes[0] else path)
    if answer.status >= 400:
        return [Failed("", wire.decode_error(answer.status, answer.body).message)]
    if not streamed:
        return wire.decode_response(answer.body, new_id).events
    assert answer.headers["Content-Type"].startswith(wire.stream_type)
    reader = wire.open_decoder(new_id)
    return [*reader.feed(answer.body), *reader.close()]


def sum_up(events: list[Event]) -> dict[str, Any]:
    """What an answer says, whatever it is cut into."""
    told: dict[str, Any] = {"text": "", "thought": "", "calls": {}, "whole": set()}
    for event in merge_deltas(events):
        match event:
            case TextDelta(text=text):
                told["text"] += text
            case ReasoningDelta(text=text):
                told["thought"] += text
            case CallStarted(index=index, name=name):
                told["calls"][index] = [name, ""]
            case CallArguments(index=index, fragment=fragment):
                told["calls"][index][1] += fragment
            case CallEnded(index=index):
                told["whole"].add(index)
            case Finished(reason=reason, usage=usage):
                told["end"] = reason, usage and (usage.input_tokens, usage.output_tokens)
            case Failed(message=message):
                told["end"] = message
    told["calls"] = {index: (name, json.loads(text)) for index, (name, text) in told["calls"].items()}
    return told


@pytest.mark.parametrize("behind", client_wires())
@pytest.mark.parametrize("before", client_wires())
def test_answers_arrive(before: str, behind: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode="native") as gate:
            for name, events in ANSWERS.items():
                for streamed in (True, False):
                    asked = Conversation(name, (Message("user", (Text("hi"),)),), TOOLS)
                    told = await ask(gate, all_wires()[before], asked, streamed)
                    check_order(told)
                    expected = sum_up(events)
                    if name == "error" and not streamed:
                        expected["text"] = ""
                    if {before, behind} & THOUGHTS_ON_DEMAND:
                        expected["thought"] = ""
                    assert sum_up(told) == expected, (name, streamed)

    run(compare)


@pytest.mark.parametrize("mode", ["text", "native"])
@pytest.mark.parametrize("behind", client_wires())
@pytest.mark.parametrize("before", client_wires())
def test_calls_that_are_written_as_text_arrive_as_calls(before: str, behind: str, mode: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode=mode, dialect="hermes") as gate:
            for streamed in (True, False):
                asked = Conversation("written", HISTORY, TOOLS)
                told = sum_up(await ask(gate, all_wires()[before], asked, streamed))
                assert told["calls"] == {0: ("read", {"filePath": "package.json"})} and told["whole"] == {0}
                assert told["text"].strip() == "Now." and told["end"][0] == "tool_calls"
                seen = app[SEEN][-1]
                assert bool(seen.tools) == (mode == "native")
                if mode == "text":
                    assert "<tool_call>" in seen.messages[0].text and "denied" in seen.messages[-1].text
                    assert not any(
                        isinstance(part, ToolCall | ToolResult) for message in seen.messages for part in message.parts
                    )

    run(compare)


@pytest.mark.parametrize("behind", client_wires())
@pytest.mark.parametrize("before", client_wires())
def test_questions_arrive(before: str, behind: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode="native") as gate:
            asked = Conversation("text", HISTORY, TOOLS, limits=Sampling(99, 0.5, stop=("END",)))
            await ask(gate, all_wires()[before], asked, True)
            [seen] = app[SEEN]
        stop = () if {before, behind} & NO_STOP else ("END",)
        assert seen.tools == TOOLS and seen.limits == Sampling(99, 0.5, stop=stop)
        assert [message.role for message in seen.messages if message.role in ("system", "assistant")] == [
            "system",
            "assistant",
        ]
        told = [part for message in seen.messages for part in message.parts]
        calls = [part for part in told if isinstance(part, ToolCall)]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == [
            ("read", {"filePath": "a"}),
            ("write", {"n": [1, None]}),
        ]
        results = [part for part in told if isinstance(part, ToolResult)]
        assert [result.call_id for result in results] == [call.id for call in calls]
        texts = ["".join(part.text for part in result.content if isinstance(part, Text)) for result in results]
        assert texts == ["seen", "denied"] and [result.error for result in results] == [False, True]
        shown = [part for part in told if isinstance(part, Image)]
        shown += [part for result in results for part in result.content if isinstance(part, Image)]
        assert shown == [PICTURE, PICTURE]
        assert [part.text for part in told if isinstance(part, Text) and "call a1" not in part.text] == [
            "Be brief.",
            "Look.",
            "I look.",
            "Go on.",
        ]

    run(compare)

"""Every wire before a gateway with every wire behind it: requests and answers arrive on the other side."""

from __future__ import annotations

import json
import re
from typing import Any

from support.event_order import check_order
from support.gateway import Gate, gateway, run
from support.replay import ANSWERS, SEEN, replaying
from support.rows import in_one_test

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
    merge_deltas,
)
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import Wire

NO_STOP = {"openai_responses"}
"""Wires that know no stop sequences."""

THOUGHTS_ON_DEMAND = {"gemini"}
"""Wires that send thoughts only if the client asks for them, as these clients do not."""

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
    """What a client of the wire receives."""
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
    """The content of an answer, however it is cut."""
    payload: dict[str, Any] = {"text": "", "thought": "", "calls": {}, "whole": set()}
    for event in merge_deltas(events):
        match event:
            case TextDelta(text=text):
                payload["text"] += text
            case ReasoningDelta(text=text):
                payload["thought"] += text
            case CallStarted(index=index, name=name):
                payload["calls"][index] = [name, ""]
            case CallArguments(index=index, fragment=fragment):
                payload["calls"][index][1] += fragment
            case CallEnded(index=index):
                payload["whole"].add(index)
            case Finished(reason=reason, usage=usage):
                payload["end"] = reason, usage and (usage.input_tokens, usage.output_tokens)
            case Failed(message=message):
                payload["end"] = re.split(r" \(upstream '| Next \(", message)[0]
    payload["calls"] = {index: (name, json.loads(text)) for index, (name, text) in payload["calls"].items()}
    return payload


@in_one_test("behind", client_wires())
@in_one_test("before", client_wires())
def test_answers_arrive(before: str, behind: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode="native") as gate:
            for name, events in ANSWERS.items():
                for streamed in (True, False):
                    asked = Conversation(name, (Message("user", (Text("hi"),)),), TOOLS)
                    received = await ask(gate, all_wires()[before], asked, streamed)
                    check_order(received)
                    expected = sum_up(events)
                    if name == "error" and not streamed:
                        expected["text"] = ""
                    if {before, behind} & THOUGHTS_ON_DEMAND:
                        expected["thought"] = ""
                    assert sum_up(received) == expected, (name, streamed)

    run(compare)


@in_one_test("mode", ["text", "native"])
@in_one_test("behind", client_wires())
@in_one_test("before", client_wires())
def test_calls_that_are_written_as_text_arrive_as_calls(before: str, behind: str, mode: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode=mode, dialect="hermes") as gate:
            for streamed in (True, False):
                asked = Conversation("written", HISTORY, TOOLS)
                received = sum_up(await ask(gate, all_wires()[before], asked, streamed))
                assert received["calls"] == {0: ("read", {"filePath": "package.json"})} and received["whole"] == {0}
                assert received["text"].strip() == "Now." and received["end"][0] == "tool_calls"
                seen = app[SEEN][-1]
                assert bool(seen.tools) == (mode == "native")
                if mode == "text":
                    assert "<tool_call>" in seen.messages[0].text and "denied" in seen.messages[-1].text
                    assert not any(
                        isinstance(part, ToolCall | ToolResult) for message in seen.messages for part in message.parts
                    )

    run(compare)


@in_one_test("behind", client_wires())
@in_one_test("before", client_wires())
def test_questions_arrive(before: str, behind: str) -> None:
    async def compare() -> None:
        app = replaying(all_wires()[behind])
        async with gateway(app=app, upstream={"wire": behind}, mode="native") as gate:
            asked = Conversation(
                "text", HISTORY, TOOLS, sampling=Sampling(max_tokens=99, temperature=0.5, stop=("END",))
            )
            await ask(gate, all_wires()[before], asked, True)
            [seen] = app[SEEN]
        stop = () if {before, behind} & NO_STOP else ("END",)
        assert seen.tools == TOOLS and seen.sampling == Sampling(max_tokens=99, temperature=0.5, stop=stop)
        assert [message.role for message in seen.messages if message.role in ("system", "assistant")] == [
            "system",
            "assistant",
        ]
        received = [part for message in seen.messages for part in message.parts]
        calls = [part for part in received if isinstance(part, ToolCall)]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == [
            ("read", {"filePath": "a"}),
            ("write", {"n": [1, None]}),
        ]
        results = [part for part in received if isinstance(part, ToolResult)]
        assert [result.call_id for result in results] == [call.id for call in calls]
        texts = ["".join(part.text for part in result.content if isinstance(part, Text)) for result in results]
        assert texts == ["seen", "denied"] and [result.error for result in results] == [False, True]
        shown = [part for part in received if isinstance(part, Image)]
        shown += [part for result in results for part in result.content if isinstance(part, Image)]
        assert shown == [PICTURE, PICTURE]
        assert [part.text for part in received if isinstance(part, Text) and "call a1" not in part.text] == [
            "Be brief.",
            "Look.",
            "I look.",
            "Go on.",
        ]

    run(compare)

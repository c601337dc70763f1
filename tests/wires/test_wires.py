"""Every wire before every wire: requests arrive and answers come back, whole and streamed, between any two wires.

Nothing is sent anywhere: an exchange gets the bytes that each end would write. Fields that a wire does not have are listed
at the top.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import time
from typing import Any

import pytest
from support.error_texts import what_failed
from support.event_order import check_order
from support.line import open_exchange, path_of
from support.rows import in_one_test
from support.wiring import ANSWERS, new_ids

from toolglot import wires
from toolglot.config import load
from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
)
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import open_stream
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

WIRES = sorted(client_wires())
PAIRS = list(product(WIRES, WIRES))
NO_CHOICE = {"ollama"}
"""Wires on which a call cannot be required: only the chosen tools are offered, and a line asks for a call."""

NO_FILTER = {"ollama"}
"""Wires that cannot report that an answer was filtered."""

PIXEL = Image(data="iVBORw0KGgo=", media_type="image/png")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ASKED = Conversation(
    "m",
    (
        Message("system", (Text("Be brief."),)),
        Message("user", (Text("What is this?"), PIXEL)),
        Message("assistant", (Text("I look."), ToolCall("a", "read", '{"path":"ä"}'), ToolCall("b", "write", '{"n":[1,null]}'))),
        Message("tool", (ToolResult("a", "read", (Text("no such file"),), error=True),)),
        Message("tool", (ToolResult("b", "write", (Text("done"), PIXEL)),)),
        Message("user", (Text("And now?"),)),
    ),
    (Tool("read", "Read a file", SCHEMA), Tool("write", "Write a file", {"type": "object", "properties": {}})),
    ToolChoice.one("read"),
    Sampling(max_tokens=50, temperature=0.5),
)  # fmt: skip


def exchange_between(client: str, upstream: str, asked: Conversation, stream: bool) -> Exchange:
    settings = load({"base_url": "http://127.0.0.1:1/v1", "mode": "native"}, {})
    settings = replace(settings, upstreams=(replace(settings.upstreams[0], wire=upstream),))
    if client == "gemini":
        thinking = {"thinkingConfig": {"includeThoughts": True}}
        asked = Conversation(
            asked.model, asked.messages, asked.tools, asked.choice, asked.sampling, {"generationConfig": thinking}
        )
    wire = all_wires()[client]
    body = wire.encode_request(asked, stream=stream, wants_usage=True)
    watch = Telemetry().begin("r", client)
    context = GatewayContext(settings, Source(time, new_ids()), load_capabilities(settings, time))
    return open_exchange(IncomingRequest(wire, body, watch, path_of(client, stream)), context)


def view_request(conversation: Conversation) -> dict[str, Any]:
    """What must arrive, whatever the order in which a wire puts it."""
    parts = [(message.role, part) for message in conversation.messages for part in message.parts]
    results = [part for _, part in parts if isinstance(part, ToolResult)]
    images = [part for _, part in parts if isinstance(part, Image)]
    images += [part for result in results for part in result.content if isinstance(part, Image)]
    return {
        "answered": [(role, part.text) for role, part in parts if isinstance(part, Text) and "call b" not in part.text],
        "calls": [(part.name, json.loads(part.arguments)) for _, part in parts if isinstance(part, ToolCall)],
        "results": [("".join(p.text for p in one.content if isinstance(p, Text)), one.error) for one in results],
        "images": [image.data for image in images],
        "tools": [(tool.name, tool.description, dict(tool.parameters)) for tool in conversation.tools],
        "sampling": conversation.sampling,
    }


@in_one_test("stream", [False, True])
@in_one_test(("client", "upstream"), PAIRS)
def test_a_request_arrives(client: str, upstream: str, stream: bool) -> None:
    exchange = exchange_between(client, upstream, ASKED, stream)
    seen = all_wires()[upstream].decode_request(exchange.upstream_body, path_of(upstream, stream))
    assert seen.stream == stream
    received, expected = view_request(seen.conversation), view_request(ASKED)
    if {client, upstream} & NO_CHOICE:
        expected["tools"] = expected["tools"][:1]
        asking = received["answered"].pop(0)
        assert asking == ("system", "Your next answer must be a call of read.")
    else:
        assert seen.conversation.choice == ASKED.choice
    assert received == expected
    ids = [part.id for message in seen.conversation.messages for part in message.parts if isinstance(part, ToolCall)]
    answered = [
        part.call_id for message in seen.conversation.messages for part in message.parts if isinstance(part, ToolResult)
    ]
    assert ids == answered and len(set(ids)) == 2 and all(ids)


def view_answer(events: list[Event]) -> dict[str, Any]:
    """What the client must understand."""
    check_order(events)
    named = {event.index: event.name for event in events if isinstance(event, CallStarted)}
    arguments = dict.fromkeys(named, "")
    for event in events:
        if isinstance(event, CallArguments):
            arguments[event.index] += event.fragment
    last = events[-1]
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "thought": "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        "calls": [(named[e.index], json.loads(arguments[e.index])) for e in events if isinstance(e, CallEnded)],
        "finish": last.reason if isinstance(last, Finished) else "",
        "failure": last.message.partition(" (upstream '")[0] if isinstance(last, Failed) else "",
        "usage": last.usage if isinstance(last, Finished) else None,
    }


def answer_of(upstream: str, name: str, stream: bool) -> bytes:
    wire = all_wires()[upstream]
    received = ClientRequest(
        conversation=Conversation("m", ()), stream=stream, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    answerer = ResponseIdentity("1", 1234567890, "m")
    if not stream:
        return wire.encode_response(ANSWERS[name], answerer, received)
    writer = wire.open_encoder(answerer, received)
    return b"".join(writer.write([event]) for event in ANSWERS[name])


@in_one_test("name", ANSWERS)
@in_one_test(("client", "upstream"), PAIRS)
def test_a_streamed_answer_comes_back(client: str, upstream: str, name: str) -> None:
    asked = Conversation("m", ASKED.messages, ASKED.tools)
    stream = open_stream(exchange_between(client, upstream, asked, True))
    raw = answer_of(upstream, name, True)
    reader = all_wires()[client].open_decoder(new_ids())
    events = [event for at in range(0, len(raw), 7) for event in reader.feed(stream.feed(raw[at : at + 7]))]
    events += reader.feed(stream.close())
    check_answer(view_answer([*events, *reader.close()]), name, client, upstream)


@in_one_test("name", sorted(set(ANSWERS) - {"error", "cut_call"}))
@in_one_test(("client", "upstream"), PAIRS)
def test_a_whole_answer_comes_back(client: str, upstream: str, name: str) -> None:
    asked = Conversation("m", ASKED.messages, ASKED.tools)
    body = reply(exchange_between(client, upstream, asked, False), answer_of(upstream, name, False))
    check_answer(view_answer(all_wires()[client].decode_response(body, new_ids()).events), name, client, upstream)


def check_answer(payload: dict[str, Any], name: str, client: str, upstream: str) -> None:
    expected = view_answer(ANSWERS[name])
    if name == "cut_call" and all_wires()[client].sends_whole_calls > all_wires()[upstream].sends_whole_calls:
        expected["text"] += "\n\n(The call of read was cut off before it was complete, and was not made.)"
    if name == "filtered" and {client, upstream} & NO_FILTER:
        payload["finish"] = expected["finish"]
    assert payload == expected


@pytest.mark.parametrize("client", WIRES)
def test_an_error_is_encoded_in_every_wire(client: str) -> None:
    wire = all_wires()[client]
    error = wire.decode_error(429, wire.encode_error(ToolglotError("slow down")))
    assert (error.status, what_failed(error.message)) == (429, "slow down.")


@pytest.mark.parametrize("name", WIRES)
def test_a_wire_is_one_record_named_like_its_package(name: str) -> None:
    wire = all_wires()[name]
    assert wire.name == name
    assert wire.base_path == {"gemini": "/v1beta", "ollama": "/api"}.get(name, "/v1")


FILES = {"request_decoder", "request_encoder", "response_decoder", "response_encoder", "errors", "schemas"}


@pytest.mark.parametrize("name", client_wires())
def test_every_wire_has_the_same_files(name: str) -> None:
    assert FILES <= {file.stem for file in (Path(wires.__path__[0]) / name).glob("*.py")}


def test_reasoning_of_one_wire_is_not_sent_to_another() -> None:
    thought = Reasoning("hm", "c2VhbA==", "anthropic_messages")
    for upstream in WIRES:
        asked = Conversation("m", (Message("user", (Text("hi"),)), Message("assistant", (thought, Text("x")))))
        body = all_wires()[upstream].encode_request(asked, stream=False, wants_usage=False)
        assert (b"c2VhbA==" in body) == (upstream == "anthropic_messages")

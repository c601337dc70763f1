"""Native answers: a healthy one passes byte for byte, any other is corrected as if it had been translated from the start."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest
from support.fragments import SCALE
from support.gateway import ASK, Answer
from support.line import open_exchange
from support.rows import in_one_test

from toolglot.config import load
from toolglot.core.conversation import Conversation
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
)
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.response_streams import Stream, TranslatedStream, open_stream
from toolglot.gateway.telemetry.log import RequestRecorder, Telemetry
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.sim import FAULTS, SimOptions, Simulation
from toolglot.sim.script import parse_script
from toolglot.wires import all_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

CHAT = all_wires()["openai_chat"]
QUESTIONS = (
    'Read the file "package.json"',
    'call read with {"filePath": "a"} and call read with {"filePath": "b"}',
    "Hello, who are you?",
    "call read with {}",
)
SILENT = {name for name in FAULTS if name.startswith(("http_", "hang_", "no_tools", "no_parser", "parse_500"))} | {
    "reset",
    "json_instead_of_sse",
}
"""Faults that leave no stream to look at."""


def answer_of(body: dict[str, Any], options: SimOptions) -> bytes:
    """The bytes of a streamed answer."""
    plan = Simulation(options).plan(body, 1000, {})
    return b"".join(step for step in plan.steps if isinstance(step, bytes))


def carry(body: dict[str, Any], pieces: list[bytes]) -> tuple[list[bytes], RequestRecorder]:
    """What a client is sent for these pieces of an answer."""
    settings = load({"base_url": "http://h/v1", "mode": "native", "state_dir": "none", "recovery_retries": 0}, {})
    capabilities = load_capabilities(settings, lambda: 0.0)
    numbers = iter(range(10_000))
    watch = Telemetry().begin("r", "openai_chat")
    source = Source(lambda: 0.0, lambda: str(next(numbers)))
    request = IncomingRequest(CHAT, json.dumps(body).encode(), watch)
    stream = open_stream(open_exchange(request, GatewayContext(settings, source, capabilities)))
    out = [stream.feed(piece) for piece in pieces if not stream.over]
    return [*out, stream.close()], watch


def events_of(raw: bytes) -> list[bytes]:
    blank = b"\r\n\r\n" if b"\r" in raw else b"\n\n"
    return [event + blank for event in raw.split(blank) if event]


def joined(out: list[bytes]) -> Any:
    body = b"".join(out).replace(b"\r\n", b"\n")
    answer = Answer(200, {}, body)
    failed = [chunk["error"]["message"] for chunk in answer.chunks if chunk.get("error")]
    choices = [choice["delta"] for chunk in answer.chunks for choice in chunk.get("choices", ())]
    thought = "".join(delta.get("reasoning_content") or "" for delta in choices)
    ids = [call["id"] for delta in choices for call in delta.get("tool_calls") or () if call.get("id")]
    assert len(set(ids)) == len(ids)
    return answer.joined, failed, thought, body.endswith(b"data: [DONE]\n\n"), len(ids)


def stream_body(question: str) -> dict[str, Any]:
    return ASK | {
        "messages": [{"role": "user", "content": question}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@in_one_test("question", QUESTIONS[:3])
@in_one_test("chunk", [1, 12, 400])
def test_a_healthy_answer_passes_byte_for_byte(question: str, chunk: int) -> None:
    body = stream_body(question)
    script = parse_script(
        {"answer": [{"when": "who are you", "text": "I am <b>a</b> {model} [x] 1 < 2 `<tool_call>`.\n"}]}
    )
    raw = answer_of(body, SimOptions(dialect="native", chunk=chunk, script=script))
    out, watch = carry(body, events_of(raw))
    assert b"".join(out) == raw
    assert watch.calls == raw.count(b'"id":"call_sim') and not watch.read_as
    for seed in range(5 * SCALE):
        cuts = sorted(random.Random(seed).sample(range(1, len(raw)), 20))
        pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
        assert b"".join(carry(body, pieces)[0]) == raw


def test_text_is_sent_with_the_event_that_brings_it() -> None:
    body = stream_body(QUESTIONS[2])
    script = parse_script({"answer": [{"text": "Nothing but plain words, one after the other."}]})
    events = events_of(answer_of(body, SimOptions(script=script, chunk=5)))
    out, _ = carry(body, events)
    assert out[0] == b"" and out[1] == events[0] + events[1]
    assert out[2:-4] == events[2:-3]
    assert b"".join(out[-4:]) == b"".join(events[-3:])


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - SILENT))
@pytest.mark.parametrize("dialect", ["native", "hermes"])
def test_any_other_stream_is_corrected(monkeypatch: pytest.MonkeyPatch, fault: str, dialect: str) -> None:
    """The same as if it had been translated from the first event on."""
    for question in QUESTIONS:
        body = stream_body(question)
        raw = answer_of(body, SimOptions(dialect=dialect, faults=(fault,), chunk=9))
        carried = carry(body, events_of(raw))
        with monkeypatch.context() as patch:
            patch.setattr(Exchange, "may_pass_through", False)
            translated = carry(body, events_of(raw))
        received, expected = joined(carried[0]), joined(translated[0])
        assert b"".join(carried[0]).count(b'"role"') <= 1 or fault == "role_every_chunk"
        assert received == expected, question
        assert carried[1].calls == translated[1].calls


@pytest.mark.parametrize("finish", [None, "stop", "tool_calls"])
def test_a_call_without_its_end_does_not_pass_as_whole(finish: str | None) -> None:
    function = {"name": "read", "arguments": '{"filePath":"a'}
    deltas: list[dict[str, Any]] = [
        {"delta": {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}},
        *([{"delta": {}, "finish_reason": finish}] if finish else []),
    ]
    sent = [f"data: {json.dumps({'id': 'x', 'choices': [{'index': 0, **one}]})}\n\n".encode() for one in deltas]
    out, watch = carry(stream_body("Hello"), [*sent, b"data: [DONE]\n\n"])
    assert b'"finish_reason":"' not in b"".join(out) and b'"error":' in b"".join(out)
    assert (watch.error, watch.rejected) == ("truncated_call", ["truncated"])


def test_a_call_at_the_end_of_reasoning_is_delivered() -> None:
    call = '<tool_call>\n{"name": "read", "arguments": {"filePath": "a"}}\n</tool_call>'
    script = parse_script({"answer": [{"text": "", "reasoning": f"Let me see. {call}"}]})
    body = stream_body("hi")
    out, watch = carry(body, events_of(answer_of(body, SimOptions(script=script))))
    (text, calls, finish), *_ = joined(out)
    assert (text, calls, finish) == ("", [("read", '{"filePath":"a"}')], "tool_calls")
    assert watch.repairs == ["promoted_from_reasoning"]


# -- other wires -------------------------------------------------------------------------------------------------------

CALL = '<tool_call>\n{"name": "read", "arguments": {"filePath": "a"}}\n</tool_call>'
MADE = (CallStarted(0, "toolu_1", "read"), CallArguments(0, '{"filePath":'), CallArguments(0, '"a"}'), CallEnded(0))
ANSWERS: dict[str, tuple[Event, ...]] = {
    "words": (TextDelta("Well, "), TextDelta("1 < 2 and `<tool` is {no} call."), Finished("stop")),
    "call": (TextDelta("See: "), *MADE, Finished("tool_calls")),
    "thought": (ReasoningDelta("Hm."), ReasoningSigned("c2VhbA=="), TextDelta("Yes."), *MADE, Finished("tool_calls")),
    "cut": (TextDelta("I was"), Finished("length")),
}
LEAKED: dict[str, tuple[Event, ...]] = {
    "leak": (TextDelta("See: "), *map(TextDelta, re.findall(r"(?s).{1,9}", CALL)), Finished("stop")),
    "leak behind a call": (*MADE, TextDelta("And: "), TextDelta(CALL.replace('"a"', '"b"')), Finished("tool_calls")),
    "leak behind words": (TextDelta("See: "), TextDelta(CALL), Finished("stop")),
    "only thought": (ReasoningDelta("Let me see. "), ReasoningDelta(CALL), Finished("stop")),
    "words in thought": (ReasoningDelta("Hm."), ReasoningSigned("c2VhbA=="), TextDelta(CALL), Finished("stop")),
    "failed": (TextDelta("I was"), Failed("overloaded", "Too much.")),
    "cut behind a call": (*MADE, Finished("length")),
    "empty": (Finished("stop"),),
}
OTHERS = ("anthropic_messages", "openai_responses", "gemini", "ollama")
BODIES: dict[str, dict[str, Any]] = {
    "openai_chat": ASK,
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "read", "input_schema": {"type": "object"}}],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {"type": "object"}}]}],
    },
    "openai_responses": {
        "model": "m",
        "input": "hi",
        "tools": [
            {"type": "function", "name": "read", "parameters": {"type": "object"}},
            {"type": "custom", "name": "patch"},
        ],
    },
    "ollama": {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": ASK["tools"]},
}
PATHS = {"gemini": {"model": "m", "method": "streamGenerateContent", "alt": "sse"}}


def start(wire: str, mode: str = "native") -> Stream:
    """An answer of an upstream of this wire to a client of the same."""
    settings = load({"base_url": "http://h/v1", "state_dir": "none", "recovery_retries": 0}, {})
    settings = replace(settings, upstreams=(replace(settings.upstreams[0], wire=wire),))
    numbers = iter(range(10_000))
    body = json.dumps(BODIES[wire] | {"stream": True}).encode()
    source, known = Source(lambda: 0.0, lambda: str(next(numbers))), load_capabilities(settings, lambda: 0.0)
    request = IncomingRequest(all_wires()[wire], body, Telemetry().begin("r", wire), PATHS.get(wire, {}), mode)
    return open_stream(open_exchange(request, GatewayContext(settings, source, known)))


def carry_on(wire: str, pieces: list[bytes], unchanged: bool = True) -> list[bytes]:
    """What a client of this wire is sent for these pieces of an upstream of the same wire."""
    stream = start(wire)
    if not unchanged:
        assert isinstance(stream, TranslatedStream)
        stream.passthrough = None
    out = [stream.feed(piece) for piece in pieces if not stream.over]
    return [*out, stream.close()]


def write(wire: str, events: Sequence[Event]) -> list[bytes]:
    asked = ClientRequest(conversation=Conversation("m", ()), stream=True, memory={"thoughts": True})
    writer = all_wires()[wire].open_encoder(ResponseIdentity("7", 0, "their-name"), asked)
    return [writer.write([event]) for event in events]


def read(wire: str, out: list[bytes]) -> list[Event]:
    reader = all_wires()[wire].open_decoder(lambda: "new")
    return summarize([*reader.feed(b"".join(out)), *reader.close()])


def summarize(events: Iterable[Event]) -> list[Event]:
    """Adjacent text joined; without identity, generated ids and usage."""
    received: list[Event] = []
    for event in events:
        last = received[-1] if received else None
        match event:
            case TextDelta() | ReasoningDelta() if type(last) is type(event):
                received[-1] = type(event)(last.text + event.text)
            case CallArguments() if isinstance(last, CallArguments) and last.index == event.index:
                received[-1] = CallArguments(event.index, last.fragment + event.fragment)
            case CallStarted():
                received.append(CallStarted(event.index, "", event.name))
            case Finished():
                received.append(Finished(event.reason))
            case Started():
                pass
            case _:
                received.append(event)
    return received


@in_one_test("wire", OTHERS)
@in_one_test("text", ANSWERS)
def test_other_wires_let_pass_what_is_healthy(wire: str, text: str) -> None:
    pieces = write(wire, ANSWERS[text])
    raw = b"".join(pieces)
    assert b"their-name" in raw
    assert b"".join(carry_on(wire, pieces)) == raw
    for seed in range(20):
        cuts = sorted(random.Random(seed).sample(range(1, len(raw)), 9))
        cut = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, None], strict=True)]
        assert b"".join(carry_on(wire, cut)) == raw


@in_one_test("wire", OTHERS)
@in_one_test("text", LEAKED)
def test_other_wires_correct_broken_streams(wire: str, text: str) -> None:
    pieces = write(wire, LEAKED[text])
    carried, translated = carry_on(wire, pieces), carry_on(wire, pieces, unchanged=False)
    assert read(wire, carried) == read(wire, translated)


def shift(events: list[bytes], by: int) -> list[bytes]:
    """The same bytes in reads that each end inside of the next event."""
    raw, ends = b"".join(events), list(accumulate(map(len, events)))
    cuts = [0, *(min(end + by, len(raw)) for end in ends)]
    return [raw[start:end] for start, end in pairwise(cuts) if end > start]


@in_one_test("line_end", [b"\n", b"\r\n", b"\r"])
@in_one_test("by", [1, 8, 40])
@in_one_test("wire", sorted(BODIES))
def test_whole_events_leave_though_the_next_has_begun(wire: str, by: int, line_end: bytes) -> None:
    words = [TextDelta(f"word {number} ") for number in range(50)]
    written = b"".join(write(wire, [*words, Finished("stop")]))
    end = b"\n" if wire == "ollama" else b"\n\n"
    events = [(event + end).replace(b"\n", line_end) for event in written.split(end) if event]
    if wire == "ollama" and line_end == b"\r":
        return  # no line end there
    raw = b"".join(events)
    stream, came, left = start(wire), b"", b""
    for piece in shift(events, by):
        came += piece
        left += stream.feed(piece)
        assert raw.startswith(left)
        if b"word 2 " in came and b"word 49 " not in came:
            assert left == came[:-by]
    assert left + stream.close() == raw


@in_one_test("by", [1, 40, 70])
@in_one_test("wire", OTHERS)
@in_one_test("text", LEAKED)
def test_what_leaves_early_can_be_taken_up(wire: str, text: str, by: int) -> None:
    """An answer that has to be put right behind some words that left while another event had begun."""
    words = [TextDelta(f"word {number}. ") for number in range(5)]
    pieces = write(wire, [*words, *LEAKED[text]])
    carried, translated = carry_on(wire, shift(pieces, by)), carry_on(wire, pieces, unchanged=False)
    assert read(wire, carried) == read(wire, translated)


def test_a_long_event_is_not_joined_again_and_again() -> None:
    stream, size = start("openai_chat"), 3000
    words = write("openai_chat", [TextDelta("Well, "), TextDelta("x" * size)])
    assert isinstance(stream, TranslatedStream) and stream.passthrough
    out = [stream.feed(words[0])]
    waiting = stream.passthrough.waiting
    for at in range(len(words[1]) - 1):
        out.append(stream.feed(words[1][at : at + 1]))
    assert len(waiting) == len(words[1]) - 1
    assert b"".join(out) == words[0] and stream.feed(words[1][-1:]) == words[1]


MESSAGE = b"".join(write("anthropic_messages", ANSWERS["call"]))


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        pytest.param(b"event: message_start", b"", id="no names of events"),
        pytest.param(b'"id":"toolu_1"', b'"id":""', id="no id"),
        pytest.param(b'"index":1', b'"index":4', id="a gap in the numbers"),
        pytest.param(b'"input":{}', b'"input":{"filePath":"a"}', id="input at the beginning"),
    ],
)
def test_the_messages_wire_re_encodes_what_its_clients_cannot_read(found: bytes, instead: bytes) -> None:
    raw = MESSAGE.replace(found, instead)
    assert raw != MESSAGE
    out = carry_on("anthropic_messages", [event + b"\n\n" for event in raw.split(b"\n\n")[:-1]])
    assert read("anthropic_messages", out) == read("anthropic_messages", [MESSAGE])
    assert b"".join(out) != raw
    numbers = [int(number) for number in re.findall(rb'_start","index":(\d)', b"".join(out))]
    assert numbers == [0, 1]


def test_a_sign_of_life_begins_no_second_message() -> None:
    for mode in ("native", "off"):
        stream = start("anthropic_messages", mode)
        out = [stream.heartbeat()]
        for piece in write("anthropic_messages", ANSWERS["call"]):
            out += [stream.feed(piece), stream.heartbeat()]
        raw = b"".join(out)
        assert raw.count(b"event: message_start") == 1 and raw.count(b"event: ping") == 7
        assert raw.replace(b'event: ping\ndata: {"type":"ping"}\n\n', b"") == MESSAGE


def steps_of(out: list[bytes]) -> list[dict[str, Any]]:
    lines = b"".join(out).split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


@in_one_test("text", LEAKED)
def test_a_response_that_is_taken_up_is_one_response(text: str) -> None:
    """One row of numbers and items, each with one id from its first step to the end."""
    steps = steps_of(carry_on("openai_responses", write("openai_responses", LEAKED[text])))
    numbers = [step["sequence_number"] for step in steps]
    assert steps[-1]["type"] == "error" or numbers == list(range(len(steps)))
    created = [step["response"]["id"] for step in steps if "response" in step]
    assert len(set(created)) <= 1
    ids = {step["output_index"]: step["item"]["id"] for step in steps if step["type"].endswith("item.added")}
    assert sorted(ids) == list(range(len(ids)))
    for step in steps:
        if "output_index" in step:
            assert ids[step["output_index"]] == step.get("item_id", step.get("item", {}).get("id"))
    if steps[-1]["type"] == "response.completed":
        assert [item["id"] for item in steps[-1]["response"]["output"]] == list(ids.values())
        answer_text = "".join(step["delta"] for step in steps if step["type"] == "response.output_text.delta")
        output = steps[-1]["response"]["output"]
        assert answer_text == "".join(part["text"] for item in output for part in item.get("content") or ())


@in_one_test("text", LEAKED)
def test_a_message_that_is_taken_up_is_one_message(text: str) -> None:
    steps = steps_of(carry_on("anthropic_messages", write("anthropic_messages", LEAKED[text])))
    at, blocks = None, 0
    for step in steps:
        match step["type"]:
            case "content_block_start":
                assert at is None and step["index"] == blocks
                at, blocks = blocks, blocks + 1
            case "content_block_delta":
                assert step["index"] == at
            case "content_block_stop":
                assert step["index"] == at
                at = None
    assert at is None or steps[-1]["type"] == "error"
    assert len([step for step in steps if step["type"] == "message_start"]) <= 1


def test_raw_text_for_a_custom_tool_passes() -> None:
    asked = ClientRequest(conversation=Conversation("m", ()), stream=True, memory={"custom": frozenset(("patch",))})
    writer = all_wires()["openai_responses"].open_encoder(ResponseIdentity("7", 0, "their-name"), asked)
    call = (CallStarted(0, "c", "patch"), CallArguments(0, '{"input":"*** Begin'), CallArguments(0, ' Patch"}'))
    events: tuple[Event, ...] = (*call, CallEnded(0), Finished("tool_calls"))
    pieces = [writer.write([event]) for event in events]
    assert b"custom_tool_call" in b"".join(pieces)
    assert b"".join(carry_on("openai_responses", pieces)) == b"".join(pieces)


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        pytest.param(b"event: response.created", b"", id="no names of events"),
        pytest.param(b'"call_id":"toolu_1"', b'"call_id":""', id="no id"),
        pytest.param(b'"output_index":1', b'"output_index":4', id="a gap in the numbers"),
        pytest.param(b'"sequence_number"', b'"number"', id="steps without numbers"),
        pytest.param(b".delta", b".part", id="no deltas"),
    ],
)
def test_the_responses_wire_re_encodes_what_its_clients_cannot_read(found: bytes, instead: bytes) -> None:
    response = b"".join(write("openai_responses", ANSWERS["call"]))
    raw = response.replace(found, instead)
    assert raw != response
    out = carry_on("openai_responses", [event + b"\n\n" for event in raw.split(b"\n\n")[:-1]])
    assert read("openai_responses", out) == read("openai_responses", [response])
    assert b"".join(out) != raw

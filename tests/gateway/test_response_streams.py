"""Answers that pass unchanged, byte for byte, and their records."""

from __future__ import annotations

import json
from dataclasses import replace
from time import process_time, time
from typing import Any

import pytest
from support.line import Line, open_exchange, path_of, sum_up
from support.rows import in_one_test
from support.wiring import USAGE, new_ids

from toolglot.config import load
from toolglot.core.conversation import Conversation, Message, Text, Tool, Tools
from toolglot.core.errors import AnswerSizeError, UpstreamError
from toolglot.core.events import (
    PIECE,
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    ReasoningDelta,
    TextDelta,
    merge_deltas,
)
from toolglot.gateway import outcomes
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange
from toolglot.gateway.relay import RECENT, RelayedStream
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import Stream, TranslatedStream, open_stream
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.reading.reader import Reader
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.wires import all_wires, client_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity

WIRES = sorted(client_wires())
SETTINGS = load({"base_url": "http://127.0.0.1:1/v1", "state_dir": "none"}, {})
LONG: list[Event] = [ReasoningDelta("Hm."), *(TextDelta(f"word {number} ä ") for number in range(300))]


def relay(wire: str, stream: bool = True) -> Exchange:
    """A request without tools, whose answer passes as it is."""
    settings = replace(SETTINGS, upstreams=(replace(SETTINGS.upstreams[0], wire=wire),))
    client = all_wires()[wire]
    asked = Conversation("m", (Message("user", (Text("hi"),)),))
    body = client.encode_request(asked, stream=stream, wants_usage=True)
    watch = Telemetry().begin("r", wire)
    capabilities = load_capabilities(settings, time)
    context = GatewayContext(settings, Source(time, new_ids()), capabilities)
    exchange = open_exchange(IncomingRequest(client, body, watch, path_of(wire, stream)), context)
    assert exchange.is_relayed
    return exchange


def frames_of(wire: str, events: list[Event]) -> list[bytes]:
    """An answer as a server writes it, event by event."""
    asked = ClientRequest(
        conversation=Conversation("m", ()), stream=True, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    writer = all_wires()[wire].open_encoder(ResponseIdentity("1", 1234567890, "m"), asked)
    return [frame for event in events if (frame := writer.write([event]))]


def cut(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


@in_one_test("size", [0, 61, 1000, 10**9])
@in_one_test("wire", WIRES)
def test_bytes_pass_and_the_end_is_known(wire: str, size: int) -> None:
    exchange = relay(wire)
    frames = frames_of(wire, [*LONG, Finished("length", USAGE)])
    raw = b"".join(frames)
    stream = open_stream(exchange)
    assert isinstance(stream, RelayedStream)
    events = b"".join(stream.feed(piece) for piece in (cut(raw, size) if size else frames)) + stream.close()
    assert events == raw
    exchange.conclude()
    watch = exchange.recorder
    assert (watch.finish, watch.error, watch.notes) == ("length", "", [])
    assert watch.usage is not None
    assert (watch.usage.input_tokens, watch.usage.output_tokens) == (USAGE.input_tokens, USAGE.output_tokens)


@in_one_test("line_end", [b"\r\n", b"\r"])
@in_one_test("wire", sorted(set(WIRES) - {"ollama"}))
def test_other_line_ends(wire: str, line_end: bytes) -> None:
    exchange = relay(wire)
    stream = open_stream(exchange)
    for frame in frames_of(wire, [*LONG, Finished("stop", USAGE)]):
        stream.feed(frame.replace(b"\n", line_end))
    exchange.conclude()
    assert exchange.recorder.finish == "stop" and exchange.recorder.usage == USAGE


@pytest.mark.parametrize("mode", ["text", "native", "off"])
def test_an_answer_of_too_many_objects_is_not_decoded(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each object takes far more memory than its brackets."""
    monkeypatch.setattr(outcomes, "MAX_OBJECTS", 1000)
    line = Line("openai_chat", "openai_chat", mode)
    body = b'{"id": "1", "object": "chat.completion", "choices": [' + b"{}," * 1000 + b"{}]}"
    asked = Conversation("m", (Message("user", (Text("hi"),)),))
    with pytest.raises(AnswerSizeError):
        reply(line.ask(asked, stream=False), body)
    if mode == "text":
        with pytest.raises(AnswerSizeError):
            TranslatedStream(line.ask(asked, stream=True)).feed_large(b"data: " + body + b"\n\n")


@in_one_test("begun", [False, True])
@in_one_test("streamed", [True, False])
@in_one_test("mode", ["text", "native"])
def test_long_text_is_read_in_pieces(mode: str, streamed: bool, begun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No search covers more than one piece: it would hold the interpreter until it is over."""
    prose, path = "Prose and <b>tags</b>.\n" * 3000, "x" * 40_000
    call = f'<tool_call>{{"name": "write_file", "arguments": {{"path": "{path}"}}}}</tool_call>'
    pieces = ["word "] * 40 if begun else []
    sizes: list[int] = []
    feed = Reader.feed

    def feed_and_note(reader: Reader, chunk: str) -> list[Event]:
        sizes.append(len(chunk))
        return feed(reader, chunk)

    monkeypatch.setattr(Reader, "feed", feed_and_note)
    line = Line("openai_chat", "openai_chat", mode, recovery_retries=1)
    tools = Tools((Tool("write_file", "", {"type": "object", "properties": {"path": {"type": "string"}}}),))
    exchange = line.ask(Conversation("m", (Message("user", (Text("hi"),)),), tools=tools), stream=streamed)
    events: list[Event] = [*map(TextDelta, pieces), TextDelta(prose + call), Finished("stop")]
    if streamed:
        stream = open_stream(exchange)
        frames = frames_of("openai_chat", events)
        out = b"".join((stream.feed_large if len(frame) > PIECE else stream.feed)(frame) for frame in frames)
        out += stream.close()
        received = line.client.open_decoder(line.source.token).feed(out)
    else:
        received = line.answer(exchange, events)
    text, calls, finish = sum_up(received)
    assert (text, calls, finish) == ("".join(pieces) + prose.rstrip(), [("write_file", {"path": path})], "tool_calls")
    assert sum(sizes) == len("".join(pieces) + prose + call) and max(sizes) <= PIECE


@in_one_test("first", ["", '{"pa'])
@in_one_test("usage", [True, False])
@in_one_test("reason", ["tool_calls", "length"])
def test_a_call_whose_middle_was_not_looked_at_was_not_cut(first: str, usage: bool, reason: str) -> None:
    arguments: list[dict[str, Any]] = [{"arguments": piece} for piece in ('":', '"', "a", ".", "txt", '"}')]
    deltas: list[dict[str, Any]] = [
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": first}}]},
        *({"tool_calls": [{"index": 0, "function": received}]} for received in arguments),
    ]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    chunks += [{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}] * usage
    exchange = relay(CHAT)
    stream = open_stream(exchange)
    for chunk in [*map(json.dumps, chunks), "[DONE]"]:
        stream.feed(f"data: {chunk}\n\n".encode())
    exchange.conclude()
    assert exchange.recorder.finish == reason and (exchange.recorder.usage is not None) is usage


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_without_a_finish_reason(wire: str) -> None:
    exchange = relay(wire)
    stream = open_stream(exchange)
    for frame in frames_of(wire, LONG):
        stream.feed(frame)
    exchange.conclude()
    assert exchange.recorder.error == "upstream_closed"
    assert exchange.recorder.notes == ["the answer did not say how it ended"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_failure_inside_is_recorded(wire: str) -> None:
    exchange = relay(wire)
    stream = open_stream(exchange)
    for frame in frames_of(wire, [*LONG, Failed("overloaded", "too much")]):
        stream.feed(frame)
    exchange.conclude()
    assert exchange.recorder.error and not exchange.recorder.finish and exchange.recorder.notes == []


@pytest.mark.parametrize("wire", WIRES)
def test_what_the_server_knows_better_stays(wire: str) -> None:
    """The part that sees a broken connection reports and records it."""
    exchange = relay(wire)
    stream = open_stream(exchange)
    stream.feed(frames_of(wire, LONG)[0])
    exchange.recorder.error = "upstream_unreachable"
    assert b"it broke" in stream.fail(UpstreamError("it broke"))
    exchange.conclude()
    assert (exchange.recorder.error, exchange.recorder.notes) == ("upstream_unreachable", [])


@pytest.mark.parametrize("wire", WIRES)
def test_nothing_came(wire: str) -> None:
    exchange = relay(wire)
    stream = open_stream(exchange)
    assert b"closed the connection" in stream.close()
    exchange.conclude()
    assert exchange.recorder.error == "upstream_closed"


@pytest.mark.parametrize("wire", WIRES)
def test_a_whole_answer(wire: str) -> None:
    exchange = relay(wire, stream=False)
    asked = ClientRequest(
        conversation=Conversation("m", ()), stream=False, wants_usage=True, memory={"thoughts": True, "list": False}
    )
    answerer = ResponseIdentity("1", 1234567890, "m")
    body = all_wires()[wire].encode_response([TextDelta("hi"), Finished("length", USAGE)], answerer, asked)
    assert reply(exchange, body) is body
    exchange.conclude()
    assert exchange.recorder.finish == "length" and exchange.recorder.usage == USAGE


CHAT, MESSAGES = "openai_chat", "anthropic_messages"


@in_one_test(
    ("wire", "read"),
    [
        (CHAT, b'data: {"choices":[{"delta":{"content":"SSE streams end with: data: [DONE]'),
        (CHAT, b'data: {"choices":[{"delta":{"content":"SSE streams end with:\\n\\ndata: [DONE]'),
        (CHAT, b'data: {"choices":[{"delta":{"content":"data: [DONE]\\n\\n'),
        (CHAT, b": data: [DONE]\n\n"),
        (CHAT, b'data: {"data: [DONE]'),
        (MESSAGES, b'event: content_block_start\ndata: {"content_block":{"input":{"event":"message_stop"}'),
        (MESSAGES, b'event: content_block_start\ndata: {"a":"message_stop"}'),
        (MESSAGES, b'event: ping\ndata: {"type":"ping","of":"message_stop"}\n\n'),
        (MESSAGES, b'data: {"' + b"a" * 100 + b'":{"type":"message_stop"}}\n\n'),
    ],
)
@in_one_test("before", [b"", b"data: {}\n\n"])
def test_a_terminator_inside_an_event_does_not_end_the_stream(wire: str, read: bytes, before: bytes) -> None:
    """Wherever a read happens to end."""
    exchange = relay(wire)
    for at in range(len(read)):
        stream = RelayedStream(exchange)
        stream.feed(before + read[:at])
        stream.feed(read[at:])
        assert not stream.over, at


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_the_end_passes_to_its_last_byte(wire: str, line_end: bytes) -> None:
    """What comes behind the end of an answer is not asked for, so it must not be over before its blank line."""
    exchange = relay(wire)
    raw = b"".join(frames_of(wire, [TextDelta("hi"), Finished("stop", USAGE)])).replace(b"\n", line_end)
    for at in range(len(raw) - 40, len(raw)):
        stream, events = RelayedStream(exchange), b""
        for piece in (raw[:at], raw[at:]):
            assert not stream.over
            events += stream.feed(piece)
        assert stream.over and events == raw


@pytest.mark.parametrize("wire", [CHAT, MESSAGES])
def test_a_failure_after_the_terminator_does_not_matter(wire: str) -> None:
    exchange = relay(wire)
    raw = b"".join(frames_of(wire, [TextDelta("hi"), Finished("stop", USAGE)]))
    for lost in range(3):
        stream = RelayedStream(exchange)
        events = stream.feed(raw[: len(raw) - lost]) + stream.fail(UpstreamError("it broke"))
        assert events.startswith(raw) and not events[len(raw) :].strip()


ALIVE = b": keepalive\n\n"


@in_one_test("together", [True, False])
@in_one_test("beats", [0, 1, 2, 4, 2 * RECENT])
@in_one_test("wire", [CHAT, MESSAGES])
def test_signs_of_life_hide_no_end_and_none_is_made_up(wire: str, beats: int, together: bool) -> None:
    exchange = relay(wire)
    stream = open_stream(exchange)
    raw = b"".join(frames_of(wire, [*LONG, Finished("length", USAGE)]))
    *events, last = (event + b"\n\n" for event in raw.split(b"\n\n")[:-1])
    silence = [ALIVE * beats] if together else [ALIVE] * beats
    for piece in (*events, *silence, last):
        stream.feed(piece)
    assert stream.over
    exchange.conclude()
    lost = not together and beats > RECENT
    finish = "" if lost and wire != CHAT else "length"  # on that wire it is kept when it comes
    assert (exchange.recorder.finish, exchange.recorder.error) == (finish, "")
    assert lost or (
        exchange.recorder.usage is not None and exchange.recorder.usage.output_tokens == USAGE.output_tokens
    )


def test_what_is_kept_does_not_grow_and_costs_nothing() -> None:
    exchange = relay("openai_chat")
    stream = open_stream(exchange)
    assert isinstance(stream, RelayedStream)
    pieces = frames_of("openai_chat", [TextDelta("so "), TextDelta("word "), TextDelta("next ")])[1:]
    best = min(_time(stream, pieces) for _ in range(5))
    assert len(stream.recent) == RECENT
    assert best < 3e-6, f"{best * 1e9:.0f} ns for a piece"


def _time(stream: RelayedStream, pieces: list[bytes]) -> float:
    began = process_time()
    for _ in range(10_000 // len(pieces)):
        for piece in pieces:
            stream.feed(piece)
    return (process_time() - began) / 10_000


def stream_in_text_mode(wire: str, pieces: list[bytes]) -> bytes:
    settings = load({"base_url": "http://127.0.0.1:1/v1", "state_dir": "none", "mode": "text", "dialect": "hermes"}, {})
    tool = {
        "type": "function",
        "function": {"name": "save", "parameters": {"properties": {"text": {"type": "string"}}}},
    }
    body = {"model": "m", "messages": [{"role": "user", "content": "Save it."}], "tools": [tool], "stream": True}
    settings = replace(settings, upstreams=(replace(settings.upstreams[0], wire=wire),))
    context = GatewayContext(settings, Source(lambda: 0.0, new_ids()), load_capabilities(settings, time))
    request = IncomingRequest(all_wires()[CHAT], json.dumps(body).encode(), Telemetry().begin("r", CHAT))
    stream = open_stream(open_exchange(request, context))
    return b"".join(stream.feed(piece) for piece in pieces) + stream.close()


@in_one_test("wire", WIRES)
def test_many_deltas_of_one_read_leave_in_few_pieces(wire: str) -> None:
    call = '<tool_call>\n{"name": "save", "arguments": {"text": "' + "é word " * 90 + '"}}\n</tool_call>'
    written = "Let me think. " * 30 + call
    deltas: list[Event] = [TextDelta(written[at : at + 4]) for at in range(0, len(written), 4)]
    frames = frames_of(wire, [*deltas, Finished("stop", USAGE)])
    one_by_one, together = (stream_in_text_mode(wire, each) for each in (frames, [b"".join(frames)]))
    joined = []
    for sent in (one_by_one, together):
        events = list(merge_deltas(all_wires()[CHAT].open_decoder(new_ids()).feed(sent)))
        joined.append(events[1:])  # without the id of the answer
    assert joined[0] == joined[1] and len(joined[1]) == 5
    assert one_by_one.count(b"data:") > 200 and together.count(b"data:") < 12


DEEP = "[" * 3000 + "]" * 3000


def offer_tools(client: str) -> tuple[Line, Stream]:
    line = Line(client, "openai_chat", recovery_retries=1)
    asked = Conversation("m", (Message("user", (Text("hi"),)),), Tools([Tool("read")]))
    return line, open_stream(line.ask(asked, stream=True))


def read_failure(line: Line, stream: Stream) -> str:
    """The message of a stream that fails, as the client reads it."""
    reader = line.client.open_decoder(line.source.token)
    last = [*reader.feed(stream.fail(UpstreamError("It broke."))), *reader.close()][-1]
    assert isinstance(last, Failed)
    return last.message


@in_one_test("client", ["gemini", "ollama"])
def test_an_answer_whose_end_cannot_be_encoded_ends_with_the_error(client: str) -> None:
    line, stream = offer_tools(client)
    (frame,) = frames_of("openai_chat", [CallStarted(0, "a", "read"), CallArguments(0, f'{{"a":{DEEP}}}')])[-1:]
    begin = frames_of("openai_chat", [CallStarted(0, "a", "read")])
    with pytest.raises(RecursionError):
        stream.feed(b"".join([*begin, frame, *frames_of("openai_chat", [Finished("tool_calls")])]))
    assert "It broke." in read_failure(line, stream)
    assert stream.close() == b""


class Broken:
    def feed(self, events: list[Event]) -> list[Event]:
        raise ValueError("a bug")


@in_one_test("client", WIRES)
def test_a_failure_that_comes_again_at_the_end_is_still_sent(client: str) -> None:
    line, stream = offer_tools(client)
    assert isinstance(stream, TranslatedStream)
    stream.steps = [Broken()]
    assert b"one" in stream.feed(b"".join(frames_of("openai_chat", [TextDelta("one")])))
    stream.steps = [Broken()]
    with pytest.raises(ValueError, match="a bug"):
        stream.feed(b"".join(frames_of("openai_chat", [TextDelta("two")])))
    assert "It broke." in read_failure(line, stream)

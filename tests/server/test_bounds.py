"""What an upstream sends is bounded: an event, an answer, what is compressed; on all wires, in all modes.

The upstreams here send without an end, so that a limit that is not enforced while reading shows: all that they are willing to
send is sent, instead of a connection that is closed.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from faults.cells import MODES, Records, closed_port, exchange, find_record, recording, settle
from faults.client_readers import Outcome, read_answer
from faults.faulty_upstream import faulty_upstream
from faults.network_faults import Step
from faults.wire_data import STREAM_TYPES, WIRES, make_answer, make_request

from toolglot.config import Secret, Upstream
from toolglot.core.errors import EventSizeError
from toolglot.server.lifecycle import listening
from toolglot.wires.sse import MAX_PIECES, EventMeter

EVENT, ANSWER = 4000, 900_000
ENOUGH: Final = 8 << 20
"""Bytes after which an upstream stops whose connection is still open."""
PIECES = ["Hello ", "there, "]
NOISE = bytes(97 + (number * 7919 >> 3) % 26 for number in range(1000))


def open_event(wire: str) -> bytes:
    return b'{"x":"' if wire == "ollama" else b'data: {"x":"'


def send_event(wire: str) -> Iterator[bytes]:
    """Some events, and then one without an end."""
    yield from make_answer(wire, PIECES, None, stream=True).events[:2]
    yield open_event(wire)
    while True:
        yield NOISE


def send_lines(wire: str) -> Iterator[bytes]:
    """An event of short lines without an end."""
    yield from make_answer(wire, PIECES, None, stream=True).events[:2]
    yield open_event(wire)
    while True:
        yield b"x" * 1000 if wire == "ollama" else b"data: x\n" * 100


def send_events(wire: str) -> Iterator[bytes]:
    """Events without an end."""
    first, again, *_ = make_answer(wire, PIECES, None, stream=True).events
    if wire in ("anthropic_messages", "openai_responses"):
        yield from make_answer(wire, PIECES, None, stream=True).events[:3]
        again = next(one for one in make_answer(wire, PIECES, None, stream=True).events if b"delta" in one)
    else:
        yield first
    while True:
        yield again * 20


def send_body(wire: str) -> Iterator[bytes]:
    """A JSON body without an end."""
    yield b'{"x":"'
    while True:
        yield NOISE


def send_zeros(wire: str) -> Iterator[bytes]:
    """A body that compresses to a thousandth."""
    yield b'{"x":"'
    while True:
        yield bytes(1 << 16)


def compress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        yield compressor.compress(piece) + compressor.flush(zlib.Z_SYNC_FLUSH)


@dataclass(frozen=True)
class Form:
    make: Any
    code: str
    streamed: bool = True
    head: str = ""


GZIP = "Content-Encoding: gzip\r\n"
FORMS = {
    "event": Form(send_event, "event_too_large"),
    "lines": Form(send_lines, "event_too_large"),
    "events": Form(send_events, "answer_too_large"),
    "whole": Form(send_body, "answer_too_large", streamed=False),
    "sized": Form(send_body, "answer_too_large", streamed=False, head="Content-Length: 99999999\r\n"),
    "gzip-event": Form(lambda wire: compress(send_event(wire)), "event_too_large", head=GZIP),
    "gzip-events": Form(lambda wire: compress(send_events(wire)), "answer_too_large", head=GZIP),
    "gzip-whole": Form(lambda wire: compress(send_body(wire)), "answer_too_large", streamed=False, head=GZIP),
}


@dataclass
class Hostile:
    """A gateway before an upstream that sends without an end. ``left``: models whose connection was closed."""

    port: int
    records: Records
    left: set[str] = field(default_factory=set)

    async def ask(self, client: str, model: str, *, stream: bool, tools: bool) -> tuple[Outcome, bytes]:
        path, body = make_request(client, model, stream=stream, tools=tools)
        async with asyncio.timeout(60):
            status, received, complete = await exchange(self.port, path, json.dumps(body).encode(), model)
        return read_answer(client, status, received, stream=stream, complete=complete), received

    async def was_left(self, name: str) -> bool:
        for _ in range(200):
            if name in self.left:
                return True
            await asyncio.sleep(0.02)
        return False


@asynccontextmanager
async def hostile(status: str = "200 OK", forms: Any = None, **limits: int) -> AsyncIterator[Hostile]:
    known: dict[str, Form] = forms or FORMS
    left: set[str] = set()

    def play(name: str) -> Iterator[Step]:
        form_name, wire = name.split(".")[:2]
        form, sent, ended = known[form_name], 0, False
        kind = STREAM_TYPES[wire] if form.streamed else "application/json"
        yield f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n{form.head}\r\n".encode()
        try:
            for piece in form.make(wire):
                sent += len(piece)
                if sent > ENOUGH:
                    ended = True
                    return
                yield piece
        finally:
            if not ended:
                left.add(name)

    with recording() as records:
        async with faulty_upstream(play) as port:  # type: ignore[arg-type]
            settings = settle(port, closed_port())
            settings = replace(settings, limits=replace(settings.limits, **limits))
            async with listening(settings) as address:
                yield Hostile(int(address.rpartition(":")[2]), records, left)


PAIRS = [(wire, WIRES[(at + shift) % len(WIRES)]) for at, wire in enumerate(WIRES) for shift in (0, 1)]


@pytest.mark.parametrize(("client", "upstream"), PAIRS)
def test_a_limit_ends_the_answer_in_the_wire_of_the_client(client: str, upstream: str) -> None:
    async def check(gate: Hostile, form_name: str, mode: str) -> None:
        form, name = FORMS[form_name], f"{form_name}.{upstream}.{client}.{mode}"
        outcome, received = await gate.ask(
            client, f"up.{mode}.{upstream}.{name}", stream=form.streamed, tools=mode != "relay"
        )
        where = f"{name}: {outcome} {received[-300:]!r}"
        assert outcome.end in (("error_event", "error") if form.streamed else ("error",)), where
        assert outcome.status == (502 if outcome.end == "error" else 200), where
        assert form.code.encode() in received, where
        assert await gate.was_left(name), where
        record = await find_record(gate.records, f"up.{mode}.{upstream}.{name}")
        assert record is not None and (record.error, record.fault) == (form.code, "upstream"), record

    async def test() -> None:
        async with hostile(event_bytes=EVENT, answer_bytes=ANSWER) as gate:
            modes = MODES if client == upstream else ("text",)
            await asyncio.gather(*(check(gate, form, mode) for form in FORMS for mode in modes))

    asyncio.run(test())


def test_what_is_compressed_too_much() -> None:
    async def test() -> None:
        forms = {"zeros": Form(lambda wire: compress(send_zeros(wire)), "", streamed=False, head=GZIP)}
        async with hostile(forms=forms) as gate:
            outcome, received = await gate.ask(
                "openai_chat", "up.native.openai_chat.zeros.openai_chat", stream=False, tools=False
            )
            assert (outcome.end, outcome.status) == ("error", 502) and b"compression_too_high" in received
            assert await gate.was_left("zeros.openai_chat")
            _, metrics = await fetch(gate.port, "/metrics")
            assert b'toolglot_errors_total{kind="compression_too_high"} 1' in metrics

    asyncio.run(test())


def test_text_that_repeats_itself_is_not_compressed_too_much() -> None:
    answer = make_answer("openai_chat", ["again and again " * 50_000], None, stream=False)
    assert len(b"".join(answer.events)) < 1 << 20
    outcome, _ = pass_on("openai_chat", "relay", answer.events, head=GZIP, stream=False, compression_ratio=2)
    assert outcome.end == "ok" and outcome.text == "again and again " * 50_000


def test_the_text_of_an_error_is_bounded() -> None:
    async def test() -> None:
        async with hostile("500 No") as gate:
            outcome, received = await gate.ask(
                "anthropic_messages", "up.native.anthropic_messages.whole.anthropic_messages", stream=True, tools=False
            )
            assert (outcome.end, outcome.status) == ("error", 502) and b"answer_too_large" in received
            assert await gate.was_left("whole.anthropic_messages")

    asyncio.run(test())


def test_a_list_of_models_is_bounded() -> None:
    async def test() -> None:
        left = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"data": ["')
            try:
                for _ in range(8 * ENOUGH // len(NOISE)):
                    writer.write(NOISE)
                    await writer.drain()
                writer.write(b'"]}')
            except ConnectionError:
                left.set()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        upstream = Upstream("up", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        settings = replace(settle(1, 1), upstreams=(), models=()).answered_by(upstream)
        async with listening(settings) as address, asyncio.timeout(60):
            status, received = await fetch(int(address.rpartition(":")[2]), "/v1/models")
            assert (status, json.loads(received)["data"]) == (200, [])
            await left.wait()
        server.close()

    asyncio.run(test())


async def fetch(port: int, path: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


# -- just within the limits --------------------------------------------------------------------------------------------


def pass_on(
    wire: str, mode: str, events: tuple[bytes, ...], *, stream: bool = True, head: str = "", **limits: int
) -> tuple[Outcome, bytes]:
    """What a client gets of these bytes, with these limits."""

    async def test() -> tuple[Outcome, bytes]:
        body = b"".join(events)
        encoded = zlib.compress(body) if head else body
        lines = head.replace("gzip", "deflate") + f"Content-Length: {len(encoded)}\r\n"
        forms = {"given": Form(lambda wire: iter([encoded]), "", streamed=stream, head=lines)}
        async with hostile("200 OK", forms, **limits) as gate:
            return await gate.ask(wire, f"up.{mode}.{wire}.given.{wire}", stream=stream, tools=mode != "relay")

    return asyncio.run(test())


LONG = ["Hello ", "x" * 3000, "y" * 5000]


@pytest.mark.parametrize("head", ["", GZIP], ids=["plain", "compressed"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_just_within_the_limits_passes(wire: str, mode: str, head: str) -> None:
    answer = make_answer(wire, LONG, None, stream=True)
    sizes = [len(event) for event in answer.events]
    fits, received = pass_on(wire, mode, answer.events, head=head, event_bytes=max(sizes), answer_bytes=sum(sizes))
    assert (fits.end, fits.text) == ("ok", "".join(LONG)), fits
    if mode == "relay":
        assert received == b"".join(answer.events)
    for event, all_events, code in ((-1, 0, b"event_too_large"), (0, -1, b"answer_too_large")):
        limits = {"event_bytes": max(sizes) + event, "answer_bytes": sum(sizes) + all_events}
        exceeds, received = pass_on(wire, mode, answer.events, head=head, stream=True, **limits)
        assert exceeds.end in ("error", "error_event") and code in received, exceeds


@pytest.mark.parametrize("head", ["", GZIP], ids=["plain", "compressed"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_body_just_within_the_limit_passes(wire: str, mode: str, head: str) -> None:
    answer = make_answer(wire, LONG, None, stream=False)
    size = len(b"".join(answer.events))
    fits, received = pass_on(wire, mode, answer.events, stream=False, head=head, answer_bytes=size)
    assert (fits.end, fits.text) == ("ok", "".join(LONG)), fits
    if mode == "relay":
        assert received == b"".join(answer.events)
    exceeds, received = pass_on(wire, mode, answer.events, stream=False, head=head, answer_bytes=size - 1)
    assert (exceeds.end, exceeds.status) == ("error", 502) and b"answer_too_large" in received


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wire", WIRES)
def test_a_large_event_passes_in_a_thread(wire: str, mode: str) -> None:
    """It is converted as a small one would be, and so is what comes with it."""
    pieces = ["Hello ", "word " * 100_000, "and on ", "\u00e4\U0001f600" * 60_000, "."]
    answer = make_answer(wire, pieces, None, stream=True)
    outcome, received = pass_on(wire, mode, answer.events)
    assert (outcome.end, outcome.text) == ("ok", "".join(pieces))
    if mode == "relay":
        assert received == b"".join(answer.events)


# -- events ------------------------------------------------------------------------------------------------------------

ENDS = {"lf": b"\n\n", "crlf": b"\r\n\r\n", "cr": b"\r\r"}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_measured_however_they_are_cut(end: bytes, size: int) -> None:
    events = [b"data: " + b"x" * length + end for length in (5, 90, 1, 40)]
    data, most = b"".join(events), max(map(len, events))
    exact, short = EventMeter(most, lines=False), EventMeter(most - len(end) - 1, lines=False)
    for at in range(0, len(data), size):
        exact.add(data[at : at + size])
    assert exact.size == 0
    with pytest.raises(EventSizeError):
        for at in range(0, len(data), size):
            short.add(data[at : at + size])


def test_an_event_may_not_come_in_endless_pieces() -> None:
    meter = EventMeter(1 << 30, lines=False)
    with pytest.raises(EventSizeError):
        for _ in range(MAX_PIECES + 2):
            meter.add(b"x")


# -- stateful upstreams ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_an_upstream_with_chats_is_bounded(stream: bool) -> None:
    async def test() -> None:
        left = False

        def play(name: str) -> Iterator[Step]:
            nonlocal left
            if name == "new":
                body = b'{"success": true, "data": {"id": "c1"}}'
                yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
                    len(body),
                    body,
                )
                return
            yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
            created = {"chat_id": "c1", "parent_id": "u", "response_id": "a", "response_index": "0"}
            yield b'data: {"response.created": %b}\n\n' % json.dumps(created).encode()
            yield b'data: {"choices": [{"delta": {"role": "assistant", "phase": "answer", "content": "Hello"}}]}\n\n'
            yield b'data: {"choices": [{"delta": {"content": "'
            try:
                for _ in range(ENOUGH // len(NOISE)):
                    yield NOISE
            except GeneratorExit:
                left = True
                raise

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                for step in play("new" if b"/chats/new" in head else "answer"):
                    assert isinstance(step, bytes)
                    writer.write(step)
                    await writer.drain()
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        upstream = Upstream(
            "qwen", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", Secret("token-0123456789"), wire="qwen_web", accept_terms=True
        )  # fmt: skip
        with recording() as records:
            settings = settle(1, 1).answered_by(upstream)
            settings = replace(settings, limits=replace(settings.limits, event_bytes=EVENT, answer_bytes=ANSWER))
            async with listening(settings) as address:
                gate = Hostile(int(address.rpartition(":")[2]), records)
                outcome, received = await gate.ask("openai_chat", "qwen3-max", stream=stream, tools=True)
                code = "event_too_large" if stream else "answer_too_large"
                assert outcome.end in ("error_event", "error") and code.encode() in received, (outcome, received)
                record = await find_record(records, "qwen3-max")
                assert record is not None and record.error == code
        server.close()
        assert left

    asyncio.run(test())

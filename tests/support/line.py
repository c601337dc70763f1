"""A gateway without a network: one client wire, one upstream wire, and the exchange between them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from support.event_order import check_order
from support.wiring import new_ids
from toolglot.config import load
from toolglot.core.conversation import Conversation
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallStarted,
    Event,
    Finished,
    TextDelta,
)
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.exchange import Exchange, prepare
from toolglot.gateway.response_pipeline import reply
from toolglot.gateway.response_streams import TranslatedStream, open_stream
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.server.upstream.discovery import load_capabilities
from toolglot.wires import all_wires
from toolglot.wires.protocol import ClientRequest, ResponseIdentity


def open_exchange(request: IncomingRequest, context: GatewayContext) -> Exchange:
    """The exchange of a request whose upstream need not be asked what it supports."""
    exchange = prepare(request, context)
    assert isinstance(exchange, Exchange)
    return exchange


def path_of(wire: str, stream: bool) -> dict[str, str]:
    """The named parts of the path at which a client of the wire asks."""
    if wire != "gemini":
        return {}
    method = "streamGenerateContent" if stream else "generateContent"
    return {"model": "m", "method": method, "alt": "sse"}


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class Line:
    """A gateway without a network: one client wire, one upstream wire, and all that is kept between requests."""

    def __init__(
        self, client: str, upstream: str, mode: str = "native", base_url: str = "http://127.0.0.1:1/v1", **more: Any
    ) -> None:
        settings = load({"base_url": base_url, "mode": mode, "state_dir": "none", "recovery_retries": 0, **more}, {})
        self.settings = replace(settings, upstreams=(replace(settings.upstreams[0], wire=upstream),))
        self.clock = Clock()
        self.capabilities: Capabilities = load_capabilities(self.settings, self.clock)
        self.client, self.upstream = all_wires()[client], all_wires()[upstream]
        self.source = Source(self.clock, new_ids())

    def ask(self, asked: Conversation, stream: bool, owner: str = "k") -> Exchange:
        return self.open(self.client.encode_request(asked, stream=stream, wants_usage=True), stream, owner)

    def open(self, body: bytes, stream: bool, owner: str = "k", headers: Mapping[str, str] | None = None) -> Exchange:
        path = path_of(self.client.name, stream)
        watch = Telemetry().begin("r", self.client.name)
        context = GatewayContext(self.settings, self.source, self.capabilities)
        return open_exchange(IncomingRequest(self.client, body, watch, path, key=owner, headers=headers), context)

    def answer(self, exchange: Exchange, events: Sequence[Event]) -> list[Event]:
        """What the client reads of an answer."""
        asked = ClientRequest(
            conversation=Conversation("m", ()),
            stream=exchange.streamed,
            wants_usage=True,
            memory={"thoughts": True, "list": False},
        )
        answerer = ResponseIdentity("1", 1234567890, "m")
        if not exchange.streamed:
            return self.carry(exchange, self.upstream.encode_response(events, answerer, asked))
        return self.carry(exchange, self.upstream.open_encoder(answerer, asked).write(events))

    def break_off(self, exchange: Exchange, events: Sequence[Event], error: ToolglotError) -> list[Event]:
        """What the client reads of a stream that fails after these events."""
        asked = ClientRequest(conversation=Conversation("m", ()), stream=True)
        written = self.upstream.open_encoder(ResponseIdentity("1", 1234567890, "m"), asked).write(events)
        stream, reader = open_stream(exchange), self.client.open_decoder(self.source.token)
        return [*reader.feed(stream.feed(written) + stream.fail(error)), *reader.close()]

    def carry(self, exchange: Exchange, raw: bytes) -> list[Event]:
        """What the client reads of the bytes that the upstream wrote."""
        if not exchange.streamed:
            return self.client.decode_response(reply(exchange, raw), self.source.token).events
        stream, reader = open_stream(exchange), self.client.open_decoder(self.source.token)
        return [*reader.feed(stream.feed(raw) + stream.close()), *reader.close()]

    def answer_in_turn(self, exchange: Exchange, attempts: Sequence[Sequence[Event]]) -> tuple[list[Event], list[Any]]:
        """What the client reads if the upstream gives these answers, one for each request, and the requests after the
        first one, as the upstream understands them."""
        asked = ClientRequest(
            conversation=Conversation("m", ()),
            stream=exchange.streamed,
            wants_usage=True,
            memory={"thoughts": True, "list": False},
        )
        identity, requests = ResponseIdentity("1", 1234567890, "m"), []
        stream, out = open_stream(exchange) if exchange.streamed else None, b""
        for events in attempts:
            if stream is None:
                out = reply(exchange, self.upstream.encode_response(list(events), identity, asked))
            else:
                out += stream.feed(self.upstream.open_encoder(identity, asked).write(list(events))) + stream.close()
            if not exchange.asks_again:
                break
            exchange.ask_again()
            requests.append(self.arrive(exchange))
            if isinstance(stream, TranslatedStream):
                stream.begin_attempt()
        else:
            assert not exchange.asks_again, "another answer was asked for"
        if stream is None:
            return self.client.decode_response(out, self.source.token).events, requests
        reader = self.client.open_decoder(self.source.token)
        return [*reader.feed(out), *reader.close()], requests

    def arrive(self, exchange: Exchange) -> Conversation:
        """The request as the upstream understands it."""
        return self.upstream.decode_request(
            exchange.upstream_body, path_of(self.upstream.name, exchange.streamed)
        ).conversation

    def see(self, exchange: Exchange) -> list[Any]:
        """The parts of the assistant, as the upstream gets them."""
        messages = self.arrive(exchange).messages
        return [part for message in messages if message.role == "assistant" for part in message.parts]


def sum_up(events: Iterable[Event]) -> tuple[str, list[tuple[str, Any]], str]:
    """What a client makes of an answer: text, the calls that are whole, and how it ended (a failure: ``failed``)."""
    events = list(events)
    check_order(events)
    names = {event.index: event.name for event in events if isinstance(event, CallStarted)}
    arguments = dict.fromkeys(names, "")
    for event in events:
        if isinstance(event, CallArguments):
            arguments[event.index] += event.fragment
    calls = [(names[e.index], json.loads(arguments[e.index] or "{}")) for e in events if isinstance(e, CallEnded)]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, calls, events[-1].reason if isinstance(events[-1], Finished) else "failed"

"""One request going through all of it: the straight line, without any input or output.

    exchange = Exchange(wire, body, ...)            the request is read, routed and spoken
    exchange.request                                the bytes that go to the upstream
    stream = exchange.stream()                      its answer: feed(bytes) -> bytes, close() -> bytes
    exchange.reply(body)                            or the whole of it at once

The server moves the bytes; everything that is decided is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from toolglot import editing
from toolglot.config import Settings
from toolglot.conversation import Conversation, Tool
from toolglot.delivery import Delivery
from toolglot.errors import RequestError, ToolglotError, ToolSchemaError, UpstreamError
from toolglot.events import Event, Failed, Finished
from toolglot.history import mend
from toolglot.lessons import coach
from toolglot.reading import Reader
from toolglot.routing import Manner, Route, choose
from toolglot.schema import Toolbox
from toolglot.speaking import Speech, speak
from toolglot.telemetry import Watch
from toolglot.wire import Answerer, Asked, Wire
from toolglot.wires import all_wires

TAIL = 64
"""How much of a relayed answer is kept to see how it ends."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where time and chance come from."""

    now: Callable[[], float]
    token: Callable[[], str]

    def new_call_id(self) -> str:
        return f"call_{self.token()}"


class Stream(Protocol):
    """An answer that is handed on while it comes. ``over``: it has said that this was all."""

    @property
    def over(self) -> bool: ...

    def feed(self, piece: bytes) -> bytes: ...

    def close(self) -> bytes: ...

    def fail(self, error: ToolglotError) -> bytes: ...

    def beat(self) -> bytes: ...


class Exchange:
    """One request and its answer."""

    def __init__(
        self,
        wire: Wire,
        body: bytes,
        path: Mapping[str, str],
        settings: Settings,
        source: Source,
        watch: Watch,
        mode: str = "",
    ) -> None:
        self.wire = wire
        self.settings = settings
        self.source = source
        self.asked: Asked = wire.decode_request(body, path)
        self.watch = watch
        watch.notes += self.asked.notes
        conversation = self.asked.conversation
        if len(conversation.messages) > settings.limits.messages:
            raise RequestError(f"More than {settings.limits.messages} messages.", "messages")
        watch.model = conversation.model
        self.route: Route = choose(conversation, settings, mode)
        self.upstream_wire = all_wires()[self.route.upstream.wire]
        self._tell_route()
        self.speech: Speech | None = None
        self.mapping = self._map(conversation)
        self.offered = conversation
        if self.route.manner is Manner.TEXT or self.mapping is not None:
            self.offered = self._mend(conversation)
        if self.route.manner is Manner.TEXT:
            self.speech = self._speak(self.offered)
            self.request = self._encode(self.speech.conversation)
        elif self.mapping is not None:
            self.request = self._encode(self.offered)
        else:
            without_tools = self.route.mode == "off"
            self.request = wire.adapt_request(body, self.route.model.model, without_tools=without_tools)
        self._forget_messages()

    def _forget_messages(self) -> None:
        """They are never looked at again, and an agent's history is long: no open answer should hold it."""
        conversation = replace(self.asked.conversation, messages=())
        self.asked = replace(self.asked, conversation=conversation)
        self.offered = replace(self.offered, messages=())
        if self.speech is not None:
            self.speech = replace(self.speech, conversation=conversation)

    def _tell_route(self) -> None:
        route, watch = self.route, self.watch
        watch.upstream, watch.upstream_model, watch.mode = route.upstream.name, route.model.model, route.manner.value
        if route.manner is Manner.TEXT:
            watch.dialect = route.dialect

    @property
    def streamed(self) -> bool:
        return self.asked.stream

    # -- the way there -------------------------------------------------------------------------------------------------

    def _map(self, conversation: Conversation) -> editing.Mapping | None:
        """The tools that the model was trained on for those of the client, where that is wished."""
        wanted = self.route.model.editing
        if not wanted or self.route.manner is Manner.RELAY:
            return None
        only, parallel = conversation.choice.only, self.route.parallel
        return editing.find(conversation.tools, wanted, only=only, parallel=parallel, known_as=conversation.model)

    def _mend(self, conversation: Conversation) -> Conversation:
        messages, notes = mend(conversation.messages, self.source.new_call_id)
        self.watch.notes += notes
        conversation = replace(conversation, messages=messages)
        return self.mapping.offer(conversation, self.watch.notes) if self.mapping else conversation

    def _speak(self, conversation: Conversation) -> Speech:
        dialect = self.route.dialect
        if self.route.upstream.coached:
            speech = coach(conversation, dialect)
        else:
            speech = speak(conversation, dialect, parallel=self.route.parallel)
        self.watch.notes += speech.notes
        return speech

    def _encode(self, spoken: Conversation) -> bytes:
        return self.upstream_wire.encode_request(
            replace(spoken, model=self.route.model.model), stream=self.asked.stream, wants_usage=self.asked.wants_usage
        )

    # -- the way back --------------------------------------------------------------------------------------------------

    def stream(self) -> Stream:
        """The answer while it comes."""
        return Relay(self) if self.route.manner is Manner.RELAY else Translation(self)

    def answerer(self) -> Answerer:
        model = self.asked.conversation.model or self.route.model.model
        return Answerer(self.source.token(), int(self.source.now()), model)

    def reply(self, body: bytes, streamed: bool = False) -> bytes:
        """The whole answer; ``streamed`` when the upstream wrote it as a stream all the same."""
        if self.route.manner is Manner.RELAY and not streamed and body.lstrip()[:1] == b"{":
            return body
        delivery = self.delivery(streamed=False)
        if streamed:
            reader = self.upstream_wire.read_stream(self.source.new_call_id)
            events = [*reader.feed(body), *reader.close()]
        else:
            events = self.upstream_wire.decode_reply(body, self.source.new_call_id)
        told = self.bring_back(streamed=False)(delivery.deliver(events))
        if told and isinstance(told[-1], Failed):
            raise describe_failure(told[-1])
        return self.wire.encode_reply(told, self.answerer(), self.asked)

    def bring_back(self, streamed: bool) -> Callable[[list[Event]], list[Event]]:
        """How the model's calls become the client's; where tools are not mapped they are already."""
        return editing.Return(self.mapping, self.watch.notes, streamed).feed if self.mapping else lambda events: events

    def delivery(self, streamed: bool) -> Delivery:
        speech, choice = self.speech, self.asked.conversation.choice
        reader = self._reader() if self.route.manner is not Manner.RELAY and choice.mode != "none" else None
        names: Mapping[str, str] = speech.names if speech else {}
        joiner = speech.joiner if speech else ""
        secrets = self.route.upstream.secrets
        return Delivery(reader, self.watch, names, joiner, choice.mode == "required", streamed, secrets)

    def _reader(self) -> Reader:
        conversation, reading = self.offered, self.settings.reading
        tools = self.speech.tools if self.speech else conversation.tools
        restricted = bool(conversation.choice.only) or not conversation.tools
        return Reader(
            toolbox(tools, self.settings.tool_calling.supported_tools),
            self.route.dialect,
            unknown_tools="text" if restricted else reading.unknown_tools,
            min_confidence=reading.min_confidence,
            parallel=self.route.parallel,
            supported_tools=self.settings.tool_calling.supported_tools,
            shell=reading.shell,
            new_id=self.source.new_call_id,
        )


class Translation:
    """An answer that is read and written anew."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.reader = exchange.upstream_wire.read_stream(exchange.source.new_call_id)
        self.delivery = exchange.delivery(streamed=True)
        self.bring_back = exchange.bring_back(streamed=True)
        self.writer = exchange.wire.write_stream(exchange.answerer(), exchange.asked)

    @property
    def over(self) -> bool:
        return self.reader.over

    def feed(self, piece: bytes) -> bytes:
        return self.writer.write(self.bring_back(self.delivery.deliver(self.reader.feed(piece))))

    def close(self) -> bytes:
        return self.write(self.reader.close())

    def whole(self, body: bytes) -> bytes:
        """The upstream answered in one piece although a stream was asked for. Raises if that is no answer."""
        told = self.delivery.deliver(self.exchange.upstream_wire.decode_reply(body, self.exchange.source.new_call_id))
        if isinstance(told[-1], Failed):
            raise describe_failure(told[-1])
        return self.writer.write(self.bring_back(told))

    def fail(self, error: ToolglotError) -> bytes:
        """What broke behind the end of an answer does not matter."""
        if self.reader.over:
            return b""
        *told, last = self.reader.close()
        return self.write([*told, last if isinstance(last, Finished) else Failed(error.code, error.message)])

    def beat(self) -> bytes:
        return self.writer.beat()

    def write(self, events: list[Event]) -> bytes:
        return self.writer.write(self.bring_back(self.delivery.deliver(events)))


class Relay:
    """An answer that passes untouched. Only its end is watched: an event that is cut is not followed by another."""

    def __init__(self, exchange: Exchange) -> None:
        self.writer = exchange.wire.write_stream(exchange.answerer(), exchange.asked)
        self.last_words = exchange.wire.LAST_WORDS
        self.last = b"\n\n"

    @property
    def over(self) -> bool:
        return bool(self.last_words) and self.last.rstrip().endswith(self.last_words)

    def feed(self, piece: bytes) -> bytes:
        self.last = (self.last + piece[-TAIL:])[-TAIL:]
        return piece

    def close(self) -> bytes:
        return b""

    def fail(self, error: ToolglotError) -> bytes:
        if self.over:
            return b""
        gap = b"" if self.between_events else b"\n\n"
        return gap + self.writer.write([Failed(error.code, error.message)])

    def beat(self) -> bytes:
        return self.writer.beat() if self.between_events else b""

    @property
    def between_events(self) -> bool:
        return self.last.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))


def describe_failure(event: Failed) -> ToolglotError:
    error = UpstreamError(event.message)
    error.code = event.kind
    return error


@lru_cache(maxsize=256)
def toolbox(tools: tuple[Tool, ...], supported: tuple[str, ...]) -> Toolbox:
    """The compiled tools. Agents send the same ones with every turn, so they are compiled once."""
    declared = [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in tools]
    return Toolbox([tool if _is_usable(tool) else {"name": tool["name"]} for tool in declared], supported)


def _is_usable(tool: Mapping[str, Any]) -> bool:
    try:
        Toolbox([tool])
    except ToolSchemaError:
        return False
    return True

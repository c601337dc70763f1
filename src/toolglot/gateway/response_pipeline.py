"""The way back of an exchange: from what an upstream says to what the client is told.

reply(exchange, body)                the whole answer at once
open_delivery(exchange, ...)         what puts the upstream's events right for the client, while they come
bring_back(exchange, ...)            the steps behind that: mapped tools, guarded values, kept seals
rehearse(exchange, ...)              a dry run beside the answer, if one is wished
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from toolglot.clients import toolsets as editing
from toolglot.clients.xml.argument_guarding import ArgumentGuard
from toolglot.clients.xml.response_renderer import shorten
from toolglot.config.rollout import SHELL
from toolglot.core.events import CallArguments, CallEnded, CallStarted, Event, Failed, Started, TextDelta
from toolglot.gateway.delivery import Bounds, Delivery
from toolglot.gateway.exchange import Exchange, describe_failure
from toolglot.gateway.experiment import DryRun, deliver_whole
from toolglot.gateway.outcomes import find_emptiness, redact_failure
from toolglot.gateway.readers import make_reader
from toolglot.gateway.routing import Route, ToolMode, takes_one_call
from toolglot.gateway.sessions.reasoning_signatures import SignatureCollector
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.gateway.xml_delivery import XmlDelivery
from toolglot.reading.reader import Reader
from toolglot.wires.protocol import ClientRequest, ResponseDecoder, ResponseIdentity, Whole
from toolglot.wires.sse import BOM


class Step(Protocol):
    """Something between what was delivered and what the client is told."""

    def feed(self, events: list[Event]) -> list[Event]: ...


def open_prepared(*given: Any) -> Exchange:
    """An exchange (see there), with all that is made for its answer once and takes time: compiled tools."""
    exchange = Exchange(*given)
    if exchange.route.manner is not ToolMode.RELAY and exchange.asked.conversation.choice.mode != "none":
        _open_reader(exchange, exchange.route, False)
    return exchange


def name_answerer(exchange: Exchange) -> ResponseIdentity:
    model = exchange.asked.conversation.model or exchange.route.model.model
    return ResponseIdentity(exchange.source.token(), int(exchange.source.now()), model)


def reply(exchange: Exchange, body: bytes, streamed: bool = False) -> bytes:
    """The whole answer; ``streamed`` when the upstream wrote it as a stream all the same."""
    wire, new_id = exchange.upstream_wire, exchange.source.new_call_id
    body = body.removeprefix(BOM)
    if exchange.untouched and not streamed and body.lstrip()[:1] == b"{":
        return _relay_whole(exchange, body)
    if streamed:
        reader = wire.read_stream(new_id)
        whole = Whole([*reader.feed(body), *reader.close()])
    else:
        whole = wire.read_reply(body, new_id)
    events = whole.events
    exchange.watch.keep_model_text(events)
    told = deliver_whole(open_delivery(exchange, streamed=False), events)
    for step in bring_back(exchange, streamed=False):
        told = step.feed(told)
    if told and isinstance(told[-1], Failed):
        raise describe_failure(told[-1])
    complete = _leave_out_unfinished(told)
    healthy = exchange.unchanged and whole.tidy and _suits(whole, exchange.asked)
    if healthy and _joined(events) == _joined(complete) and _is_text(body):
        remember(exchange, whole)
        return body
    return exchange.wire.encode_reply(complete, name_answerer(exchange), exchange.asked)


def _joined(events: list[Event]) -> list[Event]:
    """What is told, however its text is cut."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        elif not isinstance(event, Started):
            joined.append(event)
    return joined


def _suits(whole: Whole, asked: ClientRequest) -> bool:
    """Whether the client can take the calls as they are: its tools are functions, and no id was used before."""
    taken = asked.memory.get("ids", ())
    used = any(isinstance(event, CallStarted) and event.id in taken for event in whole.events)
    return not used and whole.functions.isdisjoint(asked.retold)


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _relay_whole(exchange: Exchange, body: bytes) -> bytes:
    """The answer as it is. Raises if it is none."""
    events = exchange.upstream_wire.decode_reply(body, exchange.source.new_call_id)
    failure = find_emptiness(events, exchange.wire.SUCCESSES)
    if failure is not None:
        raise describe_failure(redact_failure(failure, exchange.secrets))
    exchange.afterwards = lambda: events
    if rehearsal := rehearse(exchange, streamed=False):
        rehearsal.attempt(exchange.afterwards)
    return body


def _leave_out_unfinished(told: list[Event]) -> list[Event]:
    """The answer without calls that were cut or refused: agents run whatever is there. What they said is text."""
    ended = {event.index for event in told if isinstance(event, CallEnded)}
    return [event for event in told if not isinstance(event, CallStarted | CallArguments) or event.index in ended]


def remember(exchange: Exchange, reader: ResponseDecoder | Whole) -> None:
    """An answer that has passed may be referred to, unless it is kept where it was made."""
    answer = getattr(reader, "answer", None)
    if answer is not None and exchange.asked.keep is not None:
        exchange.asked.keep(*answer)


def bring_back(exchange: Exchange, streamed: bool) -> list[Step]:
    """How what was delivered becomes what the client should be given, one step after the other."""
    notes = exchange.watch.notes
    steps: list[Step] = []
    if exchange.mapping and exchange.guest is None:
        steps.append(editing.ResponseMapper(exchange.mapping, notes, streamed))
    if exchange.guards:
        steps.append(ArgumentGuard(exchange.guards, exchange.asked.conversation.model, notes))
    if exchange.place is not None:
        steps.append(
            SignatureCollector(exchange.memory.open_signatures(exchange.route.upstream.base_url), exchange.place)
        )
    return steps


def listen(exchange: Exchange, delivery: Delivery) -> Callable[[list[Event]], list[Event]]:
    """How the delivery takes events: the model's own text is kept on the way, if bodies are logged."""
    watch = exchange.watch
    if watch.model_text is None:
        return delivery.deliver

    def deliver(events: list[Event]) -> list[Event]:
        watch.keep_model_text(events)
        return delivery.deliver(events)

    return deliver


def open_delivery(exchange: Exchange, streamed: bool) -> Delivery:
    """What puts the upstream's events right for the client, with a dry run beside it if one is wished."""
    delivery = _deliver(exchange, exchange.route, exchange.watch, streamed)
    if rehearsal := rehearse(exchange, streamed):
        delivery.beside = rehearsal.see
    return delivery


def rehearse(exchange: Exchange, streamed: bool) -> DryRun | None:
    """A dry run, if one is wished."""
    route = exchange.trial.meant
    if route is None or not exchange.trial.rehearses:
        return None
    watch = exchange.watch.start_dry_run(route.manner, route.client)
    reader = exchange.upstream_wire.read_stream(exchange.source.new_call_id)
    return DryRun(_deliver(exchange, route, watch, streamed), reader)


def _deliver(exchange: Exchange, route: Route, watch: RequestRecorder, streamed: bool) -> Delivery:
    choice, rehearsed = exchange.asked.conversation.choice, watch is not exchange.watch
    native, relayed = route.manner is ToolMode.NATIVE, route.manner is ToolMode.RELAY
    guest = None if relayed else exchange.guest
    given = (
        None if relayed or choice.mode == "none" else _open_reader(exchange, route, rehearsed),
        watch,
        exchange.names,
        exchange.speech.joiner if exchange.speech else "",
        _find_bounds(exchange),
        streamed and guest is None and not exchange.wire.WHOLE_CALLS,
        exchange.secrets,
        native,
        exchange.doubt if route.learns and not rehearsed else None,
        exchange.wire.SUCCESSES,
        exchange.settings.tool_calling.max_parameter_bytes,
    )
    if guest is None:
        delivery = Delivery(*given)
        delivery.only_last = route.detected
        return delivery
    mapped = editing.ResponseMapper(exchange.mapping, watch.notes, shown=shorten) if exchange.mapping else None
    return XmlDelivery(guest.render(native), *given, mapped=mapped)


def _find_bounds(exchange: Exchange) -> Bounds:
    """What of the calls that an upstream makes the client wants to see."""
    return Bounds(exchange.choice, single=takes_one_call(exchange.asked.conversation, exchange.settings))


def _open_reader(exchange: Exchange, route: Route, rehearsed: bool) -> Reader:
    conversation, reading, choice = exchange.asked.conversation, exchange.settings.reading, exchange.choice
    tools, names = exchange.tools, exchange.names
    if choice.only and exchange.speech is None:
        tools = tuple(tool for tool in tools if choice.allows(names.get(tool.name, tool.name)))
    restricted = bool(choice.only) or not conversation.tools
    unknown = "reject" if exchange.guest else "text" if restricted else reading.unknown_tools
    shell = reading.shell if reading.shell and exchange.trial.runs(SHELL, rehearsed) else ()
    options = exchange.settings.reader_options(unknown, not route.single, route.supported, shell, route.detected)
    if exchange.guest:
        options = replace(options, elements=exchange.guest.calls)
    strictness = exchange.trial.restrict(options, route)
    new_id, quotations = exchange.source.new_call_id, exchange.quotations
    return make_reader(tools, names, route.dialect, strictness, new_id, quotations)

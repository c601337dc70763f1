"""The response path of an exchange: from the upstream's events to those that the client receives.

reply(exchange, body)                converts a whole response
open_delivery(exchange, ...)         turns the upstream's events into the client's, as they arrive
open_steps(exchange, ...)            the steps after delivery: mapped tools, guarded arguments, kept reasoning
open_dry_run(exchange, ...)          a dry run beside the response, if the rollout asks for one
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from toolglot.clients.toolsets import ResponseMapper
from toolglot.clients.xml.argument_escaping import ArgumentEscaper
from toolglot.clients.xml.response_renderer import shorten_arguments
from toolglot.config.recovery_settings import HOLD_ALWAYS, HOLD_NEVER
from toolglot.config.rollout import SHELL
from toolglot.core.call_patterns import read_patterns
from toolglot.core.conversation import ToolChoice
from toolglot.core.errors import ToolglotError
from toolglot.core.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Event,
    Failed,
    Started,
    merge_deltas,
    split_text,
)
from toolglot.core.options import Options, make_options
from toolglot.core.schema.toolset import compile_tools
from toolglot.core.schema.validation import CallChecker
from toolglot.gateway.capabilities.profiles import DEFECTIVE_CALLS
from toolglot.gateway.context import GatewayContext, IncomingRequest
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.delivery_plan import DeliveryPlan, EventDelivery
from toolglot.gateway.dry_run import DryRun
from toolglot.gateway.exchange import Exchange, Prepared, prepare
from toolglot.gateway.outcomes import check_objects, explain_to_client, find_emptiness, make_explained_error
from toolglot.gateway.recovery.attempts import Recovery
from toolglot.gateway.recovery.checked_delivery import CheckedDelivery
from toolglot.gateway.recovery.narrated_stops import announces_action, wants_action
from toolglot.gateway.routing import NATIVE, RELAY, Route, takes_one_call
from toolglot.gateway.sessions.kept_reasoning import ReasoningCollector
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.gateway.xml_delivery import XmlDelivery
from toolglot.prompting.feedback import write_feedback
from toolglot.reading.reader import Reader
from toolglot.wires.protocol import ClientRequest, DecodedResponse, ResponseDecoder, ResponseIdentity
from toolglot.wires.sse import BOM
from toolglot.wires.vendor_fields import restore_fields

LOG = logging.getLogger("toolglot.rollout")
NO_PATTERNS = read_patterns(dict.fromkeys(("json_code_blocks", "bare_json", "python_calls"), False))


class ResponseStep(Protocol):
    """A step between delivery and encoding."""

    def feed(self, events: list[Event]) -> list[Event]: ...


def prepare_with_tools(request: IncomingRequest, context: GatewayContext) -> Prepared:
    """Prepare a large request and open the reader of its response, which compiles tools and marks."""
    exchange = prepare(request, context)
    if isinstance(exchange, Exchange) and _reads_calls(exchange, exchange.route):
        exchange.reader = _open_reader(exchange, exchange.route, False)
    return exchange


def make_identity(exchange: Exchange) -> ResponseIdentity:
    model = exchange.client_request.conversation.model or exchange.route.model.model
    return ResponseIdentity(exchange.source.token(), int(exchange.source.now()), model)


# -- whole responses ---------------------------------------------------------------------------------------------------


def reply(exchange: Exchange, body: bytes, streamed: bool = False) -> bytes:
    """Convert a whole response. ``streamed``: the upstream sent a stream although none was requested.

    Returns: the client's response, empty if the model has to be asked again. Raises: ToolglotError if the response
    is no answer.
    """
    check_objects(body)
    wire, new_id = exchange.upstream_wire, exchange.new_call_id
    body = body.removeprefix(BOM)
    if exchange.is_relayed and not streamed and body.lstrip()[:1] == b"{":
        return _relay_whole(exchange, body)
    if streamed:
        decoder = wire.open_decoder(new_id)
        whole = DecodedResponse([*decoder.feed(body), *decoder.close()])
    else:
        whole = wire.decode_response(body, new_id)
    events = whole.events
    events[:] = split_text(events)
    exchange.recorder.keep_model_text(events)
    if exchange.chat_turn is not None:
        exchange.chat_turn.answer.observe(events)
    delivered = deliver_whole(open_delivery(exchange, streamed=False), events)
    if exchange.recovery is not None:
        exchange.recovery.delivered += delivered
        if exchange.asks_again:
            return b""
        delivered = exchange.recovery.delivered
    complete = _complete(exchange, delivered)
    healthy = exchange.may_pass_through and whole.tidy and _fits_client(whole, exchange.client_request)
    if healthy and _join_text(events) == _join_text(complete) and _is_utf8(body):
        keep_for_reference(exchange, whole)
        return body
    encoded = exchange.wire.encode_response(complete, make_identity(exchange), exchange.client_request)
    return restore_fields(encoded, body, exchange.wire.known_fields) if exchange.same_wire else encoded


def reply_to_failure(exchange: Exchange, error: ToolglotError) -> bytes:
    """The whole response to an error of the upstream that may be its parser's, empty if the model has to be asked
    again. Raises: the error, if it is not."""
    assert exchange.recovery is not None
    exchange.recovery.delivered += open_delivery(exchange, streamed=False).deliver([Failed(error.code, error.message)])
    if exchange.asks_again:
        return b""
    if isinstance(exchange.recovery.delivered[-1], Failed):
        raise error
    complete = _complete(exchange, exchange.recovery.delivered)
    return exchange.wire.encode_response(complete, make_identity(exchange), exchange.client_request)


def settle_whole(exchange: Exchange) -> bytes:
    """The whole response if the model could not be asked again. Raises: ToolglotError if there is no answer."""
    assert exchange.recovery is not None
    complete = _complete(exchange, exchange.recovery.delivered + settle_answer(exchange))
    return exchange.wire.encode_response(complete, make_identity(exchange), exchange.client_request)


def settle_answer(exchange: Exchange) -> list[Event]:
    """The end of the first answer of a model that could not be asked again."""
    assert exchange.recovery is not None and exchange.recovery.delivery is not None
    return exchange.recovery.delivery.settle()


def _complete(exchange: Exchange, delivered: list[Event]) -> list[Event]:
    """The events of a whole response, after all steps. Raises: ToolglotError if it failed."""
    for step in open_steps(exchange, streamed=False):
        delivered = step.feed(delivered)
    if delivered and isinstance(delivered[-1], Failed):
        raise make_explained_error(delivered[-1], exchange.upstream_wire)
    return _drop_unfinished(delivered)


def deliver_whole(delivery: EventDelivery, events: Sequence[Event]) -> list[Event]:
    """Deliver a whole response. If an unexpected exception occurs, it is logged and the response passes unread."""
    try:
        return delivery.deliver(events)
    except ToolglotError:
        raise
    except Exception:
        LOG.exception("the answer of request %s could not be read and passes as it is", delivery.recorder.request_id)
        return open_plain(delivery).deliver(events)


def open_plain(delivery: EventDelivery) -> Delivery:
    """The delivery of a response as it comes, after an exception. The calls recorded so far are forgotten."""
    recorder, plan = delivery.recorder, delivery.plan
    recorder.discard_calls()
    recorder.notes.append("the answer could not be read and is left as it is")
    return Delivery(
        None,
        recorder,
        DeliveryPlan(
            names=plan.names,
            break_character=plan.break_character,
            streamed=plan.streamed,
            secrets=plan.secrets,
            place=plan.place,
        ),
    )


def _relay_whole(exchange: Exchange, body: bytes) -> bytes:
    """The response unchanged. Raises ToolglotError if it is no answer."""
    whole = exchange.upstream_wire.decode_response(body, exchange.new_call_id)
    events = whole.events
    failure = find_emptiness(events, exchange.wire.success_reasons)
    if failure is not None:
        raise make_explained_error(
            explain_to_client(failure, exchange.route.upstream.place, exchange.secrets), exchange.upstream_wire
        )
    keep_for_reference(exchange, whole)
    exchange.remaining_events = lambda: events
    if dry_run := open_dry_run(exchange, streamed=False):
        dry_run.observe(events)
    return body


def _drop_unfinished(events: list[Event]) -> list[Event]:
    """The response without calls that were cut or rejected: agents run whatever they get. Their text is kept."""
    ended = {event.index for event in events if isinstance(event, CallEnded)}
    return [event for event in events if not isinstance(event, CallStarted | CallArguments) or event.index in ended]


def _join_text(events: list[Event]) -> list[Event]:
    """The events in a form that does not depend on how text was split."""
    return [*merge_deltas(event for event in events if not isinstance(event, Started))]


def _fits_client(whole: DecodedResponse, client_request: ClientRequest) -> bool:
    """Whether the client can take the calls as they are: its tools are functions, and no id was used before."""
    taken = client_request.memory.get("ids", ())
    used = any(isinstance(event, CallStarted) and event.id in taken for event in whole.events)
    return not used and whole.functions.isdisjoint(client_request.special_tools)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def keep_for_reference(exchange: Exchange, response: ResponseDecoder | DecodedResponse) -> None:
    """Keep what a later request may refer to of a response that passed unchanged: all of it, or, if the upstream stores
    it, that its ids belong to this client."""
    handed_out, keep = response.handed_out, exchange.client_request.on_complete
    if handed_out is None:
        return
    if handed_out.response is not None and keep is not None:
        keep(*handed_out.response)
    exchange.client_state.keep_ids(handed_out.ids)


# -- parts of the path -------------------------------------------------------------------------------------------------


def open_steps(exchange: Exchange, streamed: bool) -> list[ResponseStep]:
    """The steps after delivery, in order."""
    notes = exchange.recorder.notes
    steps: list[ResponseStep] = []
    if exchange.mapping and exchange.xml_session is None:
        steps.append(ResponseMapper(exchange.mapping, notes, streamed))
    if exchange.guards:
        steps.append(ArgumentEscaper(exchange.guards, exchange.client_request.conversation.model, notes))
    if exchange.turn_key is not None:
        open_store = partial(exchange.client_state.open_reasoning, exchange.route.upstream.base_url)
        steps.append(ReasoningCollector(open_store, exchange.turn_key, exchange.keeping))
    if exchange.chat_turn is not None:
        steps.append(exchange.chat_turn.answer)
    return steps


def observe_upstream(exchange: Exchange, delivery: EventDelivery) -> Callable[[list[Event]], list[Event]]:
    """The deliver function. If bodies are recorded, or the upstream is stateful, one that notes the upstream's own
    events as well."""
    recorder, turn = exchange.recorder, exchange.chat_turn
    if recorder.model_text is None and turn is None:
        return delivery.deliver

    def deliver(events: list[Event]) -> list[Event]:
        recorder.keep_model_text(events)
        if turn is not None:
            turn.answer.observe(events)
        return delivery.deliver(events)

    return deliver


def open_delivery(exchange: Exchange, streamed: bool) -> EventDelivery:
    """The delivery of the response, observed by a dry run if the rollout asks for one."""
    delivery = _open_delivery(exchange, exchange.route, exchange.recorder, streamed)
    if exchange.experiment.has_dry_run and (dry_run := open_dry_run(exchange, streamed)):
        delivery.set_observer(dry_run.observe)
    return delivery


def open_dry_run(exchange: Exchange, streamed: bool) -> DryRun | None:
    route = exchange.experiment.intended
    if route is None or not exchange.experiment.has_dry_run:
        return None
    recorder = exchange.recorder.start_dry_run(route.tool_mode, route.client)
    decoder = exchange.upstream_wire.open_decoder(exchange.new_call_id)
    return DryRun(_open_delivery(exchange, route, recorder, streamed), decoder)


def _open_delivery(exchange: Exchange, route: Route, recorder: RequestRecorder, streamed: bool) -> EventDelivery:
    dry_run = recorder is not exchange.recorder
    session = None if route.tool_mode is RELAY else exchange.xml_session
    reader = _take_reader(exchange, route, dry_run) if _reads_calls(exchange, route) else None
    plan, recovery = _make_plan(exchange, route, dry_run, streamed), None if dry_run else exchange.recovery
    if recovery is not None and recovery.delivery is not None:
        recovery.delivery.begin_attempt(reader, plan)
        return recovery.delivery
    if session is None:
        delivery = Delivery(reader, recorder, plan)
        if recovery is None:
            return delivery
        checked = recovery.delivery = _open_recovery(exchange, recovery, delivery)
        return checked
    mapper = ResponseMapper(exchange.mapping, recorder.notes, shown=shorten_arguments) if exchange.mapping else None
    recover = partial(_open_recovery, exchange, recovery) if recovery else None
    rendered = XmlDelivery(session.make_renderer(plan.native), reader, recorder, plan, mapper, recover)
    if recovery is not None:
        recovery.delivery = rendered
    return rendered


def _make_plan(exchange: Exchange, route: Route, dry_run: bool, streamed: bool) -> DeliveryPlan:
    recovery = None if dry_run else exchange.recovery
    holds = streamed and recovery is not None and holds_calls(exchange)
    falls_back, asked = route.tool_mode is NATIVE and route.can_fall_back, exchange.client_request.conversation
    may_ask_again = exchange.chat_turn is not None or falls_back  # as long as nothing was sent to the client
    return DeliveryPlan(
        names=exchange.names,
        break_character=exchange.prompted.break_character if exchange.prompted else "",
        choice=exchange.choice if exchange.upstream_wire.chat is None else _limit_choice(exchange),
        single=takes_one_call(asked, exchange.settings) if route.client else route.single,
        streamed=streamed and not exchange.wire.sends_whole_calls and not holds,
        secrets=exchange.secrets,
        place=route.upstream.place,
        native=route.tool_mode is NATIVE,
        on_failure=exchange.check_failure if may_ask_again and not dry_run else None,
        successes=exchange.wire.success_reasons,
        max_argument_bytes=exchange.settings.tool_calling.max_parameter_bytes,
        only_last=route.detected,
        marks_rejected=recovery is not None,
        rejects_leaks=exchange.rejects_leaks,
        explain=_explain_to_client(exchange) if recovery is not None and recovery.settings.feedback_only else None,
    )


def holds_calls(exchange: Exchange) -> bool:
    """Whether streamed calls are sent only when they are complete and checked."""
    hold, route = exchange.settings.recovery.hold_calls, exchange.route
    if hold in (HOLD_ALWAYS, HOLD_NEVER):
        return hold == HOLD_ALWAYS
    if route.upstream.coached or (route.rule is not None and DEFECTIVE_CALLS in route.rule.quirks):
        return True
    recent = exchange.context.capabilities.recent_defects
    return bool(recent.until) and recent.has(route.upstream.base_url, route.model.model)


def _explain_to_client(exchange: Exchange) -> Callable[[list[CallRejected]], str]:
    """How rejected calls are explained to the client, which is asked again instead of the model."""
    dialect = None if exchange.route.tool_mode is NATIVE else exchange.route.dialect
    return lambda rejected: write_feedback(rejected, exchange.tools, dialect)


def _open_recovery(exchange: Exchange, recovery: Recovery, delivery: Delivery) -> CheckedDelivery:
    """The delivery of an answer that may need several attempts."""
    names, session = exchange.names, exchange.xml_session
    tools = {names.get(tool.name, tool.name): tool for tool in exchange.tools}
    others = (*exchange.route.supported, *exchange.client_request.special_tools)
    asked = recovery.conversation

    def announces(text: str) -> bool:
        if not announces_action(text):
            return False
        native = asked if session is None else session.to_native(asked)
        return wants_action(native.messages)

    rendering = session.find_call_defects if session is not None and exchange.mapping is None else None
    return CheckedDelivery(delivery, recovery, CallChecker(tools, others, rendering), announces, exchange.new_call_id)


def _limit_choice(exchange: Exchange) -> ToolChoice:
    """The calls of a stateful upstream that the client takes: only those of tools that its prompt describes. It has
    tools of its own, which are not the client's."""
    choice, names = exchange.choice, exchange.names
    if choice.only or choice.mode == "none":
        return choice
    known = dict.fromkeys((*(names.get(tool.name, tool.name) for tool in exchange.tools), *exchange.route.supported))
    return ToolChoice(choice.mode, tuple(known)) if known else ToolChoice("none")


def _reads_calls(exchange: Exchange, route: Route) -> bool:
    return route.tool_mode is not RELAY and exchange.client_request.conversation.choice.mode != "none"


def _take_reader(exchange: Exchange, route: Route, dry_run: bool) -> Reader:
    """The reader that was opened with the request; a new one for a dry run and when the upstream is asked again."""
    if dry_run or exchange.reader is None:
        return _open_reader(exchange, route, dry_run)
    reader, exchange.reader = exchange.reader, None
    return reader


def _open_reader(exchange: Exchange, route: Route, dry_run: bool) -> Reader:
    """The reader of the response, for the tools that the client and the rollout allow."""
    tools, names, choice = exchange.tools, exchange.names, exchange.choice
    if choice.only and exchange.prompted is None:
        tools = tuple(tool for tool in tools if choice.allows(names.get(tool.name, tool.name)))
    options: Options = _find_options(exchange, route, dry_run)
    only: tuple[str, ...] = ()
    if exchange.experiment.rollout.restricts:
        options, only = exchange.experiment.restrict(options, route)
    supported = options.supported_tools
    if only:
        tools = tuple(tool for tool in tools if names.get(tool.name, tool.name) in only)
        supported = tuple(name for name in supported if name in only)
    compiled, new_id = compile_tools(tools, supported), exchange.new_call_id
    own_prompt = exchange.prompted is not None or exchange.is_retry
    return Reader.prepared(compiled, route.dialect, options, new_id, exchange.quotations, own_prompt)


def _find_options(exchange: Exchange, route: Route, dry_run: bool) -> Options:
    """How strict reading is, by the settings and the kind of client."""
    reading, session = exchange.settings.reading, exchange.xml_session
    restricted = bool(exchange.choice.only) or not exchange.client_request.conversation.tools
    unknown = "reject" if session else "text" if restricted else reading.unknown_tools
    shell = reading.shell if reading.shell and exchange.experiment.runs(SHELL, dry_run) else ()
    syntax = reading.shell_syntax, reading.shell_cwd
    patterns = NO_PATTERNS if route.detected else exchange.settings.compiled_patterns
    given = unknown, reading.min_confidence, not route.single, route.supported, shell, *syntax
    options = make_options(*given, patterns=patterns)
    return replace(options, elements=session.verbatim_calls) if session else options

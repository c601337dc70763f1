"""Prepares one request without any input or output: decodes it, chooses its route and encodes it for the upstream.

    exchange = prepare(request, context)            decode, route, encode
    exchange.upstream_body                          the bytes that go to the upstream
    response_streams.open_stream(exchange)          its response as a stream
    response_pipeline.reply(exchange, body)         or as a whole

The server moves the bytes. This module takes every decision about a request; ``response_pipeline`` those about its
response.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache, partial
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from toolglot.clients import toolsets
from toolglot.clients.complaints import find_complaints
from toolglot.clients.edit_failures import edits_fail
from toolglot.clients.volatile_lines import VOLATILE_MARKS, VolatileLine
from toolglot.clients.xml.session import XmlSession, detect_session
from toolglot.config import SECRET_LENGTH, Settings
from toolglot.config.rollout import DRY_RUN, EDITING, NATIVE_CALLS, ON, READING, RECOVERY, XML
from toolglot.config.settings import FEEDBACK
from toolglot.config.upstreams import extend_url
from toolglot.core.conversation import Conversation, ProviderPart, Tool, ToolChoice
from toolglot.core.errors import ClientError, RequestError, ToolglotError, UpstreamResponseError
from toolglot.core.events import Event, Failed, Finished
from toolglot.core.offload import LARGE_REQUEST
from toolglot.core.provenance import NO_QUOTATIONS, Quotations, find_quotations, list_quotable
from toolglot.gateway import request_encoding
from toolglot.gateway.capabilities.learned import LearnedFailure
from toolglot.gateway.capabilities.profiles import REASONING_MISSING
from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
from toolglot.gateway.outcomes import UNFINISHED, make_error, redact_failure
from toolglot.gateway.prompt_stability import remove_volatile_lines
from toolglot.gateway.recovery.attempts import Recovery, Step
from toolglot.gateway.recovery.unparsed_calls import read_failure
from toolglot.gateway.routing import NATIVE, RELAY, TEXT, CapabilitiesUnknown, Experiment, Route, choose_route
from toolglot.gateway.sessions.client_state import ClientState
from toolglot.gateway.sessions.conversation_state import NO_MESSAGES, ConversationMode, ConversationState
from toolglot.gateway.sessions.kept_reasoning import KEEP_SIGNED, Keeping, TurnKey
from toolglot.gateway.sessions.recognition import recognise
from toolglot.gateway.sessions.turns import ChatTurn, SessionTurn
from toolglot.gateway.telemetry.log import RequestRecorder, redact
from toolglot.prompting.conversation import PromptedConversation
from toolglot.reading.plugins import list_call_marks
from toolglot.reading.reader import Reader
from toolglot.wires import all_wires
from toolglot.wires.json_fields import adapt_body
from toolglot.wires.protocol import ClientRequest, Wire
from toolglot.wires.translation import NO_NAMES, drop_empty_texts, list_not_carried

LOG: Final = logging.getLogger("toolglot.decisions")


class ValuesNeeded(Enum):
    """The store may have values that a request needs."""

    VALUES_NEEDED = 1


class Exchange(Struct, eq=False):
    """What was decided about one request, and what its response needs to know of it.

    ``client_request`` and ``prompted`` have lost their messages: nothing reads these again, agent histories are long,
    and an open response must not hold them. ``tools`` are those that calls are read with, ``names`` maps their names to
    the client's. ``turn_key`` and ``keeping`` are set if reasoning is kept for the client. ``fallback`` is the
    conversation to send again if the upstream refuses it, as text or with reasoning of earlier turns; None once the
    client has received something. ``volatile_lines``: rules whose lines are removed from the client's own bytes.
    ``may_use_text``: it may be sent as text if native tools fail. ``remaining_events`` yields, at the end of a relayed
    response, the events that the recorder has not seen. ``session_turn`` recognises the conversation; ``chat_turn`` is
    set, instead of ``upstream_body``, if the upstream is stateful. ``before_end`` are called and awaited before the
    client gets the end of the response. ``recovery`` is set if the model may be asked again because its call is
    defective. ``keeps_values``: later requests may need something of this one. ``reader`` is the reader of the
    response, if it was opened while the request was prepared.
    """

    wire: Wire
    upstream_wire: Wire
    same_wire: bool
    streamed: bool
    stream_type: str
    context: GatewayContext
    settings: Settings
    source: Source
    recorder: RequestRecorder
    client_request: ClientRequest
    client_state: ClientState
    conversation_state: ConversationState
    experiment: Experiment
    route: Route
    xml_session: XmlSession | None
    is_large: bool
    choice: ToolChoice
    tools: tuple[Tool, ...]
    names: Mapping[str, str] = NO_NAMES
    mapping: toolsets.ToolMapping | None = None
    guards: tuple[str, ...] = ()
    volatile_lines: tuple[VolatileLine, ...] = ()
    prompted: PromptedConversation | None = None
    turn_key: TurnKey | None = None
    keeping: Keeping = KEEP_SIGNED
    fallback: Conversation | None = None
    may_use_text: bool = False
    upstream_body: bytes = b""
    quotations: Quotations = NO_QUOTATIONS
    remaining_events: Callable[[], Iterable[Event]] | None = None
    session_turn: SessionTurn | None = None
    chat_turn: ChatTurn | None = None
    before_end: list[Callable[[], Awaitable[None]]] = []
    recovery: Recovery | None = None
    reader: Reader | None = None

    @property
    def asks_again(self) -> bool:
        """Whether the answer was defective, and the model has to be asked again."""
        return self.recovery is not None and self.recovery.defect is not None

    @property
    def is_retry(self) -> bool:
        """Whether the model was asked again because its answer was defective."""
        return self.recovery is not None and self.recovery.attempts > 1

    @property
    def keeps_values(self) -> bool:
        return self.client_request.on_complete is not None or self.turn_key is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """The upstream's secrets, and the client's own key, which may have been sent to the upstream."""
        key = self.client_state.key
        own = (key,) if len(key) >= SECRET_LENGTH else ()
        return (*self.route.upstream.secrets, *own)

    @property
    def address(self) -> str:
        """The URL that the request goes to."""
        upstream = self.route.upstream
        return _find_address(upstream.base_url, upstream.wire, self.route.model.model, self.streamed)

    @property
    def is_relayed(self) -> bool:
        """Whether the response passes unread. Upstreams are always asked for the default type of stream."""
        default = self.stream_type == self.upstream_wire.stream_type and not self.client_request.is_older_form
        return self.same_wire and default and self.route.tool_mode is RELAY

    @property
    def may_pass_through(self) -> bool:
        """Whether the bytes of the response may pass as they are, as long as nothing in it has to be corrected."""
        default = self.stream_type == self.upstream_wire.stream_type and not self.client_request.is_older_form
        altered = self.mapping is not None or self.xml_session is not None or self.guards
        return self.same_wire and default and self.route.tool_mode is NATIVE and not altered

    @property
    def rejects_leaks(self) -> bool:
        """Whether a call is not made if the model writes it as text, because it has native tools."""
        is_strict = self.settings.reading.leaked_calls == FEEDBACK and self.xml_session is None
        return is_strict and self.route.tool_mode is NATIVE

    @property
    def forwarded_headers(self) -> dict[str, str]:
        """The client's headers for an upstream of the same wire, but for those that the settings give."""
        given, names = self.conversation_state.headers or {}, self.wire.forwarded_headers if self.same_wire else ()
        own = {name.lower() for name in self.route.upstream.own_headers}
        return {name: given[name] for name in names if name in given and name not in own}

    def new_call_id(self) -> str:
        return f"call_{self.source.token()}"

    def take_upstream_body(self) -> bytes:
        """The request body, which is not kept after it was sent."""
        body, self.upstream_body = self.upstream_body, b""
        return body

    # -- asking again: with tools as text, or with reasoning -----------------------------------------------------------

    def commit(self) -> None:
        """The client has received a part of the response: from now on the upstream is not asked again."""
        self.fallback = None
        if self.chat_turn is not None:
            self.chat_turn.may_retry = False

    def may_ask_again(self, error: ToolglotError) -> bool:
        """Whether the upstream may be asked again after this error: with tools as text, with reasoning of earlier
        turns, or in another chat."""
        if self.chat_turn is not None:
            return self.chat_turn.may_retry
        kind = self._judge(error) if self.fallback is not None else ""
        return bool(kind) and (self.may_use_text or kind == REASONING_MISSING)

    def fall_back(self, error: ToolglotError) -> bool:
        """Encode the request again, if this error means that native tools do not work: with tools as text; or that
        reasoning of earlier turns is missing: with reasoning. The failure is learned even if it is too late for that.
        Returns whether there is a new request to send."""
        fallback, self.fallback, self.reader = self.fallback, None, None
        kind = self._judge(error)
        if self.recovery is not None:
            self.recovery.delivery = None
        if kind == REASONING_MISSING and self.route.tool_mode is NATIVE:
            self._learn(kind, error)
            again = fallback is not None and request_encoding.encode_with_reasoning(self, fallback)
            if again:
                self.recorder.end_attempt(error.code)
            return again
        if not kind or not self.route.can_fall_back:
            return False
        failure = self._learn(kind, error)
        self.recorder.count(NATIVE_CALLS, kind)
        if fallback is None or not self.may_use_text:
            return False
        self.recorder.end_attempt(error.code)
        self.conversation_state.set_mode(ConversationMode(native=False, dialect=self.route.dialect))
        self.route = self.experiment.enter(self.route.fall_back(failure))
        _record_route(self)
        self.recorder.notes.append(f"native tools {kind}, asked again with text: {failure.evidence}")
        self.tools, self.names = self.xml_session.tools if self.xml_session else fallback.tools, NO_NAMES
        self.upstream_body = request_encoding.encode_as_text(self, fallback)
        self.quotations = _find_quotations(self, fallback)
        _finish_request(self)
        return True

    def is_unparsed(self, error: ToolglotError) -> bool:
        """Whether the upstream could not parse what its model wrote, and recovery can deal with that: the error shows a
        readable call, or the request is not sent as text anyway."""
        recovery = self.recovery
        if recovery is None or recovery.attempts > 1:
            return False
        read = recovery.read_failure(Failed(error.code, error.message))
        is_readable = read is not None and any(isinstance(event, Finished) for event in read)
        return is_readable or (read is not None and not self.may_ask_again(error))

    def ask_again(self) -> None:
        """Encode the request again, with what was wrong with the answer."""
        assert self.recovery is not None
        defect, step = self.recovery.begin_attempt()
        self.recorder.end_attempt(str(defect.kind))
        self.fallback = None
        if step is Step.FALLBACK:
            self._switch_model(self.recovery.settings.fallback_model)
        self.upstream_body = request_encoding.encode_retry(self, self.recovery.conversation, defect, step)
        if self.chat_turn is not None:
            self.chat_turn.may_retry = False
        _finish_request(self)

    def _switch_model(self, name: str) -> None:
        """Send the next request to another model, if there is one of this name."""
        assert self.recovery is not None
        conversation = replace(self.recovery.conversation, model=name)
        try:
            route = choose_route(conversation, self.settings, self.context.capabilities, client=self.route.client)
            if isinstance(route, CapabilitiesUnknown):  # there is no time to ask the upstream
                client = self.route.client
                route = choose_route(conversation, self.settings, self.context.capabilities, "text", client)
        except ClientError as error:
            self.recorder.notes.append(f"the fallback model is not asked: {error.message}")
            return
        assert isinstance(route, Route)
        self.route = self.experiment.enter(route)
        self.upstream_wire = all_wires()[route.upstream.wire]
        self.same_wire = self.wire.name == self.upstream_wire.name
        self.chat_turn = None
        _record_route(self)
        self.recovery.conversation = _cross_wires(self, conversation)

    def check_failure(self, event: Failed, sent: bool) -> None:
        """A response failed while it was read. Raises the failure if the client has received nothing of it and the
        request can fall back to text."""
        error = make_error(redact_failure(event, self.secrets), self.upstream_wire)
        if not sent and self.may_ask_again(error):
            raise error
        self.commit()
        self.fall_back(error)

    def _judge(self, error: ToolglotError) -> str:
        """How native tools failed, if that is what the error means."""
        status = error.status if isinstance(error, UpstreamResponseError) else None
        return self.context.capabilities.profiles.classify_error(f"{error.code} {error.message}", status)

    def _learn(self, kind: str, error: ToolglotError) -> LearnedFailure:
        capabilities, model = self.context.capabilities, (self.route.upstream.base_url, self.route.model.model)
        status = f"{error.status}: " if isinstance(error, UpstreamResponseError) else ""
        evidence = redact(status + error.message, self.secrets)
        return capabilities.failures.learn(*model, kind, evidence, capabilities.now())

    def conclude(self) -> None:
        """The response is complete: record what was not read on its way, and what it shows about native tools."""
        remaining, self.remaining_events = self.remaining_events, None
        if remaining is not None:
            self._record_remaining(remaining())
        if self.mapping is not None:
            self.recorder.count(EDITING, times=self.recorder.calls)
        if self.route.tool_mode is NATIVE and self.route.can_fall_back:
            self._learn_from_answer()

    def _learn_from_answer(self) -> None:
        """Record whether the model makes native calls, or writes them as text."""
        capabilities, model = self.context.capabilities, (self.route.upstream.base_url, self.route.model.model)
        if self.recorder.read_as:
            capabilities.failures.count_leak(*model, ", ".join(self.recorder.read_as), capabilities.now())
        elif self.recorder.calls:
            capabilities.failures.count_success(*model)

    def _record_remaining(self, events: Iterable[Event]) -> None:
        """Record the events of a response that passed unread. An error that was recorded before takes precedence."""
        recorder, known = self.recorder, self.recorder.error
        for event in events:
            if isinstance(event, Failed) and event.kind == UNFINISHED and not known:
                recorder.notes.append("the answer did not say how it ended")
            recorder.observe(event)
        recorder.error = known or recorder.error


@lru_cache(maxsize=256)
def _find_address(base_url: str, wire_name: str, model: str, stream: bool) -> str:
    """The URL that requests for a model go to."""
    wire = all_wires()[wire_name]
    return extend_url(base_url, wire.base_path, wire.locate(model, stream=stream))


# -- preparing a request -----------------------------------------------------------------------------------------------


Prepared: TypeAlias = Exchange | CapabilitiesUnknown | ValuesNeeded


def prepare(request: IncomingRequest, context: GatewayContext) -> Prepared:
    """Decode a request, choose its route and encode it for the upstream.

    Returns ``CapabilitiesUnknown`` if the route depends on what the upstream supports: ask the upstream, then prepare
    the request again. Returns ``ValuesNeeded`` if the store may have values that it needs: load those that
    ``request.lookup`` misses, then prepare the request again. Raises: RequestError if the request is malformed or
    cannot be sent to its upstream.
    """
    settings, recorder = context.settings, request.recorder
    state = ClientState(context.capabilities.store, request.key, request.lookup, request.owner)
    body, lookup = _expand(request, state, settings.limits.body_bytes), request.lookup
    if lookup is not None and lookup.missing:
        return ValuesNeeded.VALUES_NEEDED
    client_request = _decode(request, body, settings)
    conversation = client_request.conversation
    recorder.model = conversation.model
    session = _examine_client(request, conversation, settings)
    client = session.profile if session else ""
    experiment = Experiment(settings.live.rollout or settings.planned, conversation, recorder)
    kept = ConversationState(context.capabilities.conversations, request.owner, request.headers, conversation)
    route = choose_route(conversation, settings, context.capabilities, request.mode, client, kept)
    if isinstance(route, CapabilitiesUnknown):
        return route
    session, route = session if route.client else None, experiment.enter(route)
    wire, upstream_wire = request.wire, all_wires()[route.upstream.wire]
    exchange = Exchange(
        wire,
        upstream_wire,
        same_wire=wire.name == upstream_wire.name,
        streamed=client_request.stream,
        stream_type=client_request.stream_type or wire.stream_type,
        context=context,
        settings=settings,
        source=context.source,
        recorder=recorder,
        client_request=client_request,
        client_state=state,
        conversation_state=kept,
        experiment=experiment,
        route=route,
        xml_session=session,
        is_large=len(request.body) >= LARGE_REQUEST,
        session_turn=recognise(request, conversation, route, context) if context.chain_secret else None,
        choice=conversation.choice,
        tools=session.tools if session else conversation.tools,
        may_use_text=_may_use_text(route, experiment),
    )
    _record_route(exchange)
    conversation, body = _drop_refused(exchange, _adapt_conversation(exchange, conversation, body), body)
    exchange.upstream_body = request_encoding.encode(exchange, conversation, body)
    if lookup is not None and lookup.missing:
        return ValuesNeeded.VALUES_NEEDED
    _keep_fallback(exchange, conversation)
    exchange.quotations = _find_quotations(exchange, conversation)
    exchange.recovery = _prepare_recovery(exchange, conversation, body)
    recorder.offered, recorder.stripped = _count_tools(exchange, conversation.tools)
    if client_request.may_be_referenced or (request.owner and request.wire.expand_request is not None):
        exchange.client_request = state.store_answer(client_request, body, request.wire.references)
    _finish_request(exchange)
    return exchange


def _expand(request: IncomingRequest, state: ClientState, limit: int) -> bytes:
    """The body with references to earlier responses replaced by their content, as far as it is stored and the body
    stays within ``limit`` bytes."""
    expand = request.wire.expand_request
    return request.body if expand is None else expand(request.body, state.find_answer, limit)


def _may_use_text(route: Route, experiment: Experiment) -> bool:
    """Whether the request may be sent with tools as text if native tools fail."""
    if route.tool_mode is not NATIVE or not route.can_fall_back:
        return False
    return experiment.admits(XML if route.client else READING)


def _decode(request: IncomingRequest, body: bytes, settings: Settings) -> ClientRequest:
    """Decode the request and check its size; add the default model if it names none."""
    try:
        decoded: ClientRequest = request.wire.decode_request(body, request.path)
    except ValueError as error:  # an impossible conversation, say with a blank tool name
        raise RequestError(f"The request cannot be read: {error}.") from error
    request.recorder.notes += decoded.notes
    conversation, default = decoded.conversation, settings.server.default_model
    if default and not conversation.model:
        decoded = replace(decoded, conversation=replace(conversation, model=default))
    if len(conversation.messages) > settings.limits.messages:
        raise RequestError(f"More than {settings.limits.messages} messages.", "messages")
    return decoded


def _examine_client(request: IncomingRequest, conversation: Conversation, settings: Settings) -> XmlSession | None:
    """Record what the client complains about. Returns the session of an XML client."""
    if len(conversation.messages) > 1:  # a first message cannot be a complaint
        request.recorder.complaints = find_complaints(conversation.messages)
    if conversation.tools:  # XML clients describe theirs in the prompt
        return None
    return detect_session(conversation, request.headers, settings.clients.xml)


def _keep_fallback(exchange: Exchange, conversation: Conversation) -> None:
    """Keep the conversation if it may have to be sent again: as text, or with reasoning."""
    lacking = exchange.keeping.unsigned and request_encoding.may_lack_reasoning(exchange, conversation)
    if exchange.may_use_text or lacking:
        exchange.fallback = conversation


def _record_route(exchange: Exchange) -> None:
    route, recorder = exchange.route, exchange.recorder
    recorder.turn = exchange.session_turn
    recorder.upstream, recorder.upstream_model = route.upstream.name, route.model.model
    recorder.mode, recorder.client = str(route.tool_mode), route.client
    if route.tool_mode is TEXT:
        recorder.dialect = route.dialect
    if route.detected:
        recorder.notes.append("no tools are offered; calls to the usual ones are looked for (auto_detect)")


def _adapt_conversation(exchange: Exchange, conversation: Conversation, body: bytes) -> Conversation:
    """Remove what the upstream cannot use."""
    conversation = _cross_wires(exchange, conversation)
    volatile = any(mark in body for mark in VOLATILE_MARKS)
    return remove_volatile_lines(exchange, conversation, body) if volatile else conversation


def _cross_wires(exchange: Exchange, conversation: Conversation) -> Conversation:
    """Remove what only the client's wire knows, if the upstream uses another one.

    Raises: RequestError if the request depends on something that only an upstream of the same wire has.
    """
    error = exchange.client_request.same_wire_only
    if error is not None and (not exchange.same_wire or exchange.route.tool_mode is TEXT):
        raise error
    if exchange.same_wire:
        return conversation
    for at, message in enumerate(conversation.messages):
        for part in message.parts:
            if isinstance(part, ProviderPart):
                where, kind = f"messages[{at}]", part.data.get("type", "unknown")
                raise RequestError(f"{where}: a part of type {kind} cannot be carried to this model.", where)
    carried = request_encoding.list_carried(exchange, conversation)
    if left := list_not_carried(conversation, exchange.client_request.modelled, carried):
        exchange.recorder.notes.append(f"not carried to another wire: {', '.join(left)}")
    return replace(conversation, messages=drop_empty_texts(conversation.messages), extra={})


def _drop_refused(exchange: Exchange, conversation: Conversation, body: bytes) -> tuple[Conversation, bytes]:
    """Remove the sampling parameters that the upstream refuses in the version of its wire that it is asked for."""
    wire, sampling = exchange.upstream_wire, conversation.sampling
    if wire.list_refused is None:
        return conversation, body
    own = {name.lower(): value for name, value in exchange.route.upstream.own_headers.items()}
    refused = [
        name for name in wire.list_refused(exchange.forwarded_headers | own) if getattr(sampling, name) is not None
    ]
    if not refused:
        return conversation, body
    exchange.recorder.notes.append(f"not sent, because this version of the upstream refuses it: {', '.join(refused)}")
    extra = {name: value for name, value in conversation.extra.items() if name not in refused}
    conversation = replace(conversation, sampling=replace(sampling, **dict.fromkeys(refused)), extra=extra)
    return conversation, adapt_body(body, "", refused) if exchange.same_wire else body


def _find_quotations(exchange: Exchange, conversation: Conversation) -> Quotations:
    """The call markup that the response may quote, if calls are read from it."""
    if exchange.route.tool_mode is RELAY and not exchange.experiment.has_dry_run:
        return NO_QUOTATIONS
    messages, session = conversation.messages, exchange.xml_session
    if session is not None and session.prompt_at is not None:  # its prompt teaches calls and is not quoted
        messages = (*messages[: session.prompt_at[0]], *messages[session.prompt_at[0] + 1 :])
    names = (*[tool.name for tool in exchange.tools], *exchange.route.supported)
    return find_quotations(list_quotable(messages), names, bool(exchange.settings.reading.shell), list_call_marks())


def _prepare_recovery(exchange: Exchange, conversation: Conversation, body: bytes) -> Recovery | None:
    """The recovery of an exchange, if its answer may contain calls and the settings and the rollout admit it."""
    settings, route = exchange.settings.recovery, exchange.route
    applies = route.tool_mode is not RELAY and not route.detected and exchange.tools
    if not applies or exchange.choice.mode == "none" or not (settings.retries or settings.feedback_only):
        return None
    arm = exchange.experiment.find_arm(RECOVERY)
    if arm not in (ON, DRY_RUN):
        return None
    defects, model = exchange.context.capabilities.recent_defects, (route.upstream.base_url, route.model.model)
    on_defect, read = partial(defects.note, *model), partial(read_failure, exchange)
    body = body if exchange.same_wire and route.tool_mode is NATIVE else b""
    return Recovery(conversation, body, settings, exchange.recorder, arm, on_defect, read)


def _count_tools(exchange: Exchange, offered: tuple[Tool, ...]) -> tuple[int, int]:
    """How many tools the request offers, and how many of them the model does not get."""
    if not exchange.settings.tool_calling.enabled:
        return len(offered), len(offered)
    return len(offered), max(0, len(offered) - len(exchange.prompted.tools)) if exchange.prompted else 0


def _finish_request(exchange: Exchange) -> None:
    """The request is ready to be sent: log what was decided at ``debug``, and forget its messages."""
    messages = exchange.client_request.conversation.messages
    if messages and messages[-1].role == "tool" and edits_fail(messages):
        from toolglot.gateway.decisions import suggest_editing

        exchange.recorder.notes += filter(None, [suggest_editing(exchange, fails=True)])
    if LOG.isEnabledFor(logging.DEBUG):
        from toolglot.gateway.decisions import log_decisions

        log_decisions(exchange)
    exchange.conversation_state.conversation = NO_MESSAGES
    conversation = replace(exchange.client_request.conversation, messages=())
    exchange.client_request = replace(exchange.client_request, conversation=conversation)
    if (prompted := exchange.prompted) is not None:
        exchange.prompted = PromptedConversation(conversation, prompted.tools, prompted.names, prompted.break_character)

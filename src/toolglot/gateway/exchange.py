"""One request going through all of it: the straight line, without any input or output.

    exchange = Exchange(wire, body, ...)            the request is read, routed and spoken
    exchange.request                                the bytes that go to the upstream
    streams.open_stream(exchange)                   its answer, while it comes
    answers.reply(exchange, body)                   or the whole of it at once

The server moves the bytes; everything that is decided about a request is decided here, and in ``answers`` what becomes
of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from toolglot.clients import toolsets as editing
from toolglot.clients.complaints import complaints
from toolglot.clients.xml.argument_guarding import TOOLS as GUARDED
from toolglot.clients.xml.session import detect_session
from toolglot.config import SECRET_LENGTH, Settings
from toolglot.config.rollout import EDITING, NATIVE_CALLS, READING, XML
from toolglot.core.conversation import Conversation, ProviderPart, Tool, ToolChoice
from toolglot.core.errors import RefusedError, RequestError, ToolglotError, UpstreamError
from toolglot.core.events import Event, Failed
from toolglot.core.offload import LARGE_REQUEST
from toolglot.core.provenance import NO_QUOTATIONS, Quotations, find_quotations, list_quotable
from toolglot.gateway.capabilities.learned import LearnedFailure
from toolglot.gateway.capabilities.profiles import SIGNED_CALLS, Rule
from toolglot.gateway.capabilities.workarounds import adapt_reasoning, enforce_call, restrict_tools
from toolglot.gateway.experiment import Experiment
from toolglot.gateway.routing import NATIVE, RELAY, TEXT, Capabilities, Route, choose
from toolglot.gateway.sessions.client_state import ClientState
from toolglot.gateway.sessions.reasoning_signatures import TurnKey, find_turn, restore
from toolglot.gateway.telemetry.log import RequestRecorder, redact
from toolglot.gateway.tool_results import match_results
from toolglot.prompting.conversation import PromptedConversation, render_as_text
from toolglot.prompting.few_shot import coach
from toolglot.wires import all_wires
from toolglot.wires.protocol import ClientRequest, Wire
from toolglot.wires.translation import NO_NAMES, drop_empty_texts, list_left, rename_tools

UNFINISHED = "upstream_closed"
"""What readers of all wires call an answer that did not say how it ended."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where time and chance come from."""

    now: Callable[[], float]
    token: Callable[[], str]

    def new_call_id(self) -> str:
        return f"call_{self.token()}"


class Exchange:
    """One request and its answer.

    ``streamed``: it is answered piece by piece, as ``stream_type``. ``one_wire``: client and upstream speak the same.
    """

    def __init__(
        self,
        wire: Wire,
        body: bytes,
        path: Mapping[str, str],
        settings: Settings,
        source: Source,
        watch: RequestRecorder,
        knowledge: Capabilities,
        mode: str = "",
        owner: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.wire = wire
        self.knowledge = knowledge
        self.settings = settings
        self.source = source
        self.memory = ClientState(knowledge.kept, owner)
        self.owner = owner
        self.watch = watch
        self.afterwards: Callable[[], Iterable[Event]] | None = None
        self.large = len(body) >= LARGE_REQUEST
        body = self.memory.expand(wire, body, settings.limits.body_bytes)
        self.asked: ClientRequest = _decode(wire, body, path)
        self.streamed = self.asked.stream
        self.stream_type = self.asked.stream_type or wire.STREAM_TYPE
        watch.notes += self.asked.notes
        conversation = self._name_model(self.asked.conversation)
        if len(conversation.messages) > settings.limits.messages:
            raise RequestError(f"More than {settings.limits.messages} messages.", "messages")
        watch.model = conversation.model
        watch.complaints = complaints(conversation.messages)
        self.trial = Experiment(settings.rollout_now, conversation, watch)
        guest = detect_session(conversation, headers, settings.clients.xml)
        route = choose(conversation, settings, knowledge, mode, guest.profile if guest else "")
        self.guest = guest if route.client else None
        self.route: Route = self.trial.enter(route)
        self.upstream_wire = all_wires()[self.route.upstream.wire]
        self.one_wire = wire.NAME == self.upstream_wire.NAME
        self._tell_route()
        if self.asked.bond is not None:
            self._check_bonds(self.asked.bond)
        if not self.one_wire:
            conversation = self._cross(conversation)
        self.speech: PromptedConversation | None = None
        self.place: TurnKey | None = None
        spared = self.route.learns and self.trial.admits(XML if self.guest else READING)
        self.spare = conversation if spared else None
        self.choice = conversation.choice
        self.mapping: editing.ToolMapping | None = None
        self.guards: tuple[str, ...] = ()
        self.tools, self.names = self.guest.tools if self.guest else conversation.tools, NO_NAMES
        self.request = self._ask(conversation, body)
        self.quotations = self._find_quotations(conversation)
        watch.offered, watch.stripped = self._count_tools(conversation.tools)
        if self.asked.kept:
            self.asked = self.memory.store_answer(self.asked, body)
        self._forget_messages()

    def _name_model(self, conversation: Conversation) -> Conversation:
        """The conversation with a model, if the request names none and the settings do."""
        default = self.settings.server.default_model
        if conversation.model or not default:
            return conversation
        conversation = replace(conversation, model=default)
        self.asked = replace(self.asked, conversation=conversation)
        return conversation

    @property
    def secrets(self) -> tuple[str, ...]:
        """The upstream's, and the client's own key, which the upstream may have been sent."""
        own = (self.owner,) if len(self.owner) >= SECRET_LENGTH else ()
        return (*self.route.upstream.secrets, *own)

    @property
    def address(self) -> str:
        """Where the request goes."""
        place = self.upstream_wire.locate(self.route.model.model, stream=self.streamed)
        return self.route.upstream.endpoint(place, self.upstream_wire.ROOT)

    def take_request(self) -> bytes:
        """The request, to be sent and not to be kept."""
        request, self.request = self.request, b""
        return request

    def _forget_messages(self) -> None:
        """They are never looked at again, and an agent's history is long: no open answer should hold it."""
        conversation = replace(self.asked.conversation, messages=())
        self.asked = replace(self.asked, conversation=conversation)
        if self.speech is not None:
            self.speech = PromptedConversation(conversation, self.speech.tools, self.speech.names, self.speech.joiner)

    def _find_quotations(self, conversation: Conversation) -> Quotations:
        """What the answer may quote, if anybody reads calls from it."""
        if self.route.manner is RELAY and not self.trial.rehearses:
            return NO_QUOTATIONS
        messages = conversation.messages
        if self.guest is not None and self.guest.at is not None:  # its prompt teaches calls, wherever it stands
            messages = (*messages[: self.guest.at[0]], *messages[self.guest.at[0] + 1 :])
        names = (*(tool.name for tool in self.tools), *self.route.supported)
        return find_quotations(list_quotable(messages), names, bool(self.settings.reading.shell))

    def _tell_route(self) -> None:
        route, watch = self.route, self.watch
        watch.upstream, watch.upstream_model, watch.mode = route.upstream.name, route.model.model, str(route.manner)
        watch.client = route.client
        if route.manner is TEXT:
            watch.dialect = route.dialect
        if route.detected:
            watch.notes.append("no tools are offered; calls to the usual ones are looked for (auto_detect)")

    @property
    def untouched(self) -> bool:
        """Whether bytes pass as they are: upstreams are always asked for the usual kind of stream."""
        usual = self.stream_type == self.upstream_wire.STREAM_TYPE
        return self.one_wire and usual and self.route.manner is RELAY

    @property
    def unchanged(self) -> bool:
        """Whether bytes may pass as they are, as long as nothing about the answer has to be put right."""
        usual = self.stream_type == self.upstream_wire.STREAM_TYPE
        touched = self.mapping is not None or self.guest is not None or self.guards
        return self.one_wire and usual and self.route.manner is NATIVE and not touched

    def _count_tools(self, offered: tuple[Tool, ...]) -> tuple[int, int]:
        """How many tools the request offers, and how many of them the model is not told of."""
        if self.route.mode == "off":
            return len(offered), len(offered)
        return len(offered), max(0, len(offered) - len(self.speech.tools)) if self.speech else 0

    # -- the way there -------------------------------------------------------------------------------------------------

    def _ask(self, conversation: Conversation, body: bytes) -> bytes:
        """The request as it goes to the upstream: in the client's own words, wherever that can be."""
        manner = self.route.manner
        if manner is not RELAY:
            self.mapping, self.guards = self._map(conversation), self._find_guards(conversation)
        if manner is TEXT:
            return self._ask_as_text(conversation, body)
        if self.one_wire and (manner is RELAY or (self.guest is None and self.mapping is None)):
            return self._adapt(body, conversation)
        return self._ask_natively(conversation)

    def _ask_as_text(self, conversation: Conversation, body: bytes = b"") -> bytes:
        """Tools taught and told as text. An XML client has done that itself, and its words go on as they are, unless
        its tools are told as others."""
        guest, coached = self.guest, self.route.upstream.coached
        if guest is not None and not coached and self.mapping is None:
            if body and self.one_wire and not self.route.extra:
                return self.wire.adapt_request(body, self.route.model.model, without_tools=False)
            return self._encode(conversation)
        self.speech = self._speak(guest.translate(conversation) if guest else conversation)
        self.tools, self.names = self._list_readable(self.speech.tools), self.speech.names
        return self._encode(self.speech.conversation)

    def _ask_natively(self, conversation: Conversation) -> bytes:
        if self.guest is not None and self.route.manner is not RELAY:
            conversation = self.guest.translate(conversation)
        conversation = self._suit(self._mend(self._seal(conversation)))
        conversation, self.names = rename_tools(conversation, self.upstream_wire.TOOL_NAMES)
        self.tools = self._list_readable(conversation.tools)
        return self._encode(conversation)

    def _list_readable(self, asked: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools that calls in the answer's text are read with, where the model was asked with these."""
        if self.guest is None:
            return asked
        if self.mapping is None:
            return asked if self.speech else self.guest.tools
        return self.guest.add_tools(asked, hidden=self.mapping.offered)

    def _speak(self, conversation: Conversation) -> PromptedConversation:
        conversation, dialect = self._mend(conversation), self.route.dialect
        if self.route.upstream.coached:
            speech = coach(conversation, dialect)
        else:
            speech = render_as_text(conversation, dialect, parallel=self.route.parallel)
            if conversation.choice.mode == "required" and self.upstream_wire.THOUGHT_FIELDS:
                speech = enforce_call(speech, self._rule(), dialect, parallel=self.route.parallel)
        self.watch.notes += speech.notes
        return speech

    def _mend(self, conversation: Conversation) -> Conversation:
        messages, notes = match_results(conversation.messages, self.source.new_call_id)
        self.watch.notes += notes
        if messages != conversation.messages:
            conversation = replace(conversation, messages=messages)
        if self.mapping:
            conversation = self.mapping.offer(conversation, self.watch.notes)
            self.choice = conversation.choice
        return conversation

    def _map(self, conversation: Conversation) -> editing.ToolMapping | None:
        """The tools that the model was trained on for those of the client, where that is wished."""
        wanted = self.route.model.editing
        if not wanted or not self.trial.runs(EDITING):
            return None
        guest, only = self.guest, conversation.choice.only
        tools = conversation.tools if guest is None else guest.offered
        several, check = not self.route.single, guest.check_call if guest else None
        found = editing.find(tools, wanted, only=only, parallel=several, known_as=conversation.model, check=check)
        if found is None and tools:
            self.watch.notes.append(f"the client's tools have no twins in {wanted} and stay as they are")
        return found

    def _find_guards(self, conversation: Conversation) -> tuple[str, ...]:
        """What keeps a client with native tools from changing arguments, where that is wished and it has such tools."""
        guard = self.settings.clients.guard
        return guard if guard and any(tool.name in GUARDED for tool in conversation.tools) else ()

    def _adapt(self, body: bytes, conversation: Conversation) -> bytes:
        """The client's own words, unless the server would not understand its choice among the tools."""
        if self.route.manner is NATIVE:
            sealed = self._seal(conversation)
            narrowed = restrict_tools(sealed, self._rule()) if sealed.choice != ToolChoice() else sealed
            if narrowed is not conversation:
                return self._encode(self._suit(narrowed))
        return self.wire.adapt_request(body, self.route.model.model, without_tools=self.route.mode == "off")

    def _suit(self, conversation: Conversation) -> Conversation:
        """The conversation as this very server takes it."""
        rule = self._rule()
        if self.upstream_wire.THOUGHT_FIELDS:
            conversation = adapt_reasoning(conversation, rule)
        return restrict_tools(conversation, rule)

    def _rule(self) -> Rule:
        return self.route.rule or self.knowledge.guess_rule(self.route.upstream, self.route.model.model)

    def _encode(self, spoken: Conversation) -> bytes:
        if self.route.mode == "off":
            spoken = replace(spoken, tools=(), choice=ToolChoice(), limits=replace(spoken.limits, parallel_calls=None))
        model, extra = self.route.model.model, self.route.extra
        if extra or spoken.model != model:
            spoken = replace(spoken, model=model, extra={**extra, **spoken.extra})
        return self.upstream_wire.encode_request(spoken, stream=self.asked.stream, wants_usage=self.asked.wants_usage)

    # -- what is kept between requests ---------------------------------------------------------------------------------

    def _check_bonds(self, bond: RequestError) -> None:
        """What only an upstream of the client's own wire can know goes to no other."""
        if not self.one_wire or self.route.manner is TEXT:
            raise bond

    def _seal(self, conversation: Conversation) -> Conversation:
        """Seals that the client's wire cannot carry are kept here, by the client's key and the upstream."""
        if not self._seals or self.wire.CARRIES_SEALS:
            return conversation
        self.place = find_turn(conversation.messages)
        restored = restore(conversation.messages, self.memory.open_signatures(self.route.upstream.base_url))
        return conversation if restored == conversation.messages else replace(conversation, messages=restored)

    @property
    def _seals(self) -> bool:
        """Whether the upstream proves its reasoning; on a wire that has no agreed place for it only some do."""
        if self.upstream_wire.THOUGHT_FIELDS:
            return SIGNED_CALLS in self._rule().quirks
        return self.upstream_wire.SEALS and not self.one_wire

    # -- the second way there ------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The client has been told something: from now on there is no way back."""
        self.spare = None

    def may_retreat(self, error: ToolglotError) -> bool:
        return self.spare is not None and bool(self._trouble(error))

    def retreat(self, error: ToolglotError) -> bool:
        """Ask again with tools as text, if this error means that native tools do not work; remember it anyway."""
        spare, self.spare = self.spare, None
        kind = self._trouble(error) if self.route.learns else ""
        if not kind:
            return False
        lesson = self._learn(kind, error)
        self.watch.count(NATIVE_CALLS, kind)
        if spare is None:
            return False
        self.route = self.trial.enter(self.route.retreat(lesson))
        self._tell_route()
        self.watch.notes.append(f"native tools {kind}, asked again with text: {lesson.evidence}")
        self.tools, self.names = self.guest.tools if self.guest else spare.tools, NO_NAMES
        self.request = self._ask_as_text(spare)
        self.quotations = self._find_quotations(spare)
        self._forget_messages()
        return True

    def conclude(self) -> None:
        """The answer is over: what of it was not seen on its way, and what it taught about native tools."""
        afterwards, self.afterwards = self.afterwards, None
        if afterwards is not None:
            self._take_note(afterwards())
        if self.mapping is not None:
            self.watch.count(EDITING, times=self.watch.calls)
        if not self.route.learns:
            return
        place, experience = (self.route.upstream.base_url, self.route.model.model), self.knowledge.experience
        if self.watch.read_as:
            experience.count_leak(*place, ", ".join(self.watch.read_as), self.knowledge.now())
        elif self.watch.calls:
            experience.count_success(*place)

    def _take_note(self, events: Iterable[Event]) -> None:
        """What the record wants to know of an answer that has passed as it was."""
        watch, known = self.watch, self.watch.error
        for event in events:
            if isinstance(event, Failed) and event.kind == UNFINISHED and not known:
                watch.notes.append("the answer did not say how it ended")
            watch.observe(event)
        watch.error = known or watch.error

    def _trouble(self, error: ToolglotError) -> str:
        status = error.status if isinstance(error, RefusedError) else None
        return self.knowledge.profiles.classify_error(f"{error.code} {error.message}", status)

    def _learn(self, kind: str, error: ToolglotError) -> LearnedFailure:
        place = self.route.upstream.base_url, self.route.model.model
        status = f"{error.status}: " if isinstance(error, RefusedError) else ""
        evidence = redact(status + error.message, self.secrets)
        return self.knowledge.experience.learn(*place, kind, evidence, self.knowledge.now())

    def doubt(self, event: Failed, told: bool) -> None:
        """An answer failed on its way. If the client has been told nothing of it, another way may be tried."""
        error = describe_failure(event)
        if not told and self.may_retreat(error):
            raise error
        self.settle()
        self.retreat(error)

    def _cross(self, conversation: Conversation) -> Conversation:
        """What can go from one wire to another: no settings and no parts that only the client's wire knows."""
        for at, message in enumerate(conversation.messages):
            for part in message.parts:
                if isinstance(part, ProviderPart):
                    where, kind = f"messages[{at}]", part.data.get("type", "unknown")
                    raise RequestError(f"{where}: a part of type {kind} cannot be carried to this model.", where)
        if left := list(list_left(conversation.extra, self.asked.modelled)):
            self.watch.notes.append(f"not carried to another wire: {', '.join(left)}")
        return replace(conversation, messages=drop_empty_texts(conversation.messages), extra={})


def _decode(wire: Wire, body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """What the client asks. A conversation that cannot be, say with a blank for a name, is the client's mistake."""
    try:
        return wire.decode_request(body, path)
    except ValueError as error:
        raise RequestError(f"The request cannot be read: {error}.") from error


def describe_failure(event: Failed) -> ToolglotError:
    error = UpstreamError(event.message)
    error.code = event.kind
    return error

"""Chooses the route of one request: the upstream, and how tools are passed to it.

relay    the request does not concern tools, or tool calling is off: bytes pass unchanged
native   the upstream supports tools; calls that leak into its text are read as well
text     the upstream only writes text: the prompt teaches the tools, calls are read from the answer

The prompt of an XML client already teaches its tools, so a text model gets that prompt unchanged; the answer is
rendered as the client's XML.

The mode ``auto`` means native if the profiles say that the upstream supports tools and no failure was learned since. It
decides once for each conversation: what is learned later applies to new conversations, because a model that sees its
own earlier calls in another form imitates both. Only a failed request changes the mode of its conversation. A stateful
upstream has no tools of its own, so ``auto`` means text there.

Each request is part of the rollout (``Experiment``): its arm is chosen before anything is done to it. A transformation
that is off leaves the request and its response unchanged: where tools would have been taught or leaked calls read, the
request passes as the client wrote it, as it would without toolglot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Final

from msgspec import Struct, structs

from toolglot.config import DEFAULT_DIALECT, MODES, USUAL_TOOLS, ModelSettings, Settings, Upstream
from toolglot.config.rollout import DRY_RUN, ON, READING, RESCUE, SHELL, XML, Arm, Rollout
from toolglot.core.conversation import Conversation, ToolCall, ToolResult
from toolglot.core.errors import RequestError
from toolglot.core.identity import identify
from toolglot.core.options import Options
from toolglot.gateway.capabilities.learned import LearnedFailure, LearnedFailures
from toolglot.gateway.capabilities.profiles import (
    NO_FACTS,
    REASONING_MISSING,
    REASONING_RETURNED,
    THOUGHTS,
    Facts,
    Profiles,
    Rule,
)
from toolglot.gateway.capabilities.workarounds import quirk_fields
from toolglot.gateway.recovery.attempts import RecentDefects
from toolglot.gateway.sessions.conversation_state import MEMORY_BYTES, ConversationMode, ConversationState
from toolglot.gateway.sessions.ttl_store import TtlStore
from toolglot.gateway.telemetry.recorder import SHELL_DIALECT, RequestRecorder
from toolglot.reading.reader import dialect_index
from toolglot.wires import all_wires

AUTO: Final = "auto"
MAX_CACHED_RULES: Final = 512
INTENT: Final = re.compile(
    r"\b(?:read|write|edit|list|search)\s+(?:(?:a|all|the|this)\s+)?files?\b|\bexecute\b"
    r"|\brun\s+(?:(?:a|the|this)\s+)?commands?\b",
)
"""Matches a user message that asks for what the default tools do."""
INTENT_WORDS: Final = ("file", "execute", "command")
"""Every match of ``INTENT`` contains one of these."""
INTENT_SCAN_CHARS: Final = 10_000
"""Only the first characters of a message are searched for an intent."""


class ToolMode(StrEnum):
    RELAY = "relay"
    NATIVE = "native"
    TEXT = "text"


RELAY, NATIVE, TEXT = ToolMode
"""Module-level names: looking up enum members is slow, and each request does so a dozen times."""

TRANSFORMATIONS: Final[Mapping[ToolMode, str | None]] = {RELAY: None, NATIVE: RESCUE, TEXT: READING}
DRY_RUNNABLE: Final = (READING, RESCUE, SHELL, XML)
"""Transformations of the response alone. One that changes the request cannot be tried without doing so."""


class Route(Struct, frozen=True):
    """The decision for one request.

    ``parallel``: the prompt allows the model several calls in one answer. ``single``: the client takes one call at
    most, so further ones are not delivered. ``rule`` and ``failure`` explain the choice in mode ``auto``. ``extra``:
    request fields that the upstream needs in addition. ``client``: the profile of an XML client, which takes one call,
    as text; empty for other clients. ``supported``: tools that are readable although the request does not offer them.
    ``detected``: the request offers no tools but asks for what they do; a call counts only at the end of the answer.
    """

    upstream: Upstream
    model: ModelSettings
    tool_mode: ToolMode
    mode: str
    dialect: str
    parallel: bool
    single: bool = False
    rule: Rule | None = None
    failure: LearnedFailure | None = None
    extra: Mapping[str, object] = {}
    client: str = ""
    supported: tuple[str, ...] = ()
    detected: bool = False

    @property
    def can_fall_back(self) -> bool:
        """Whether text replaces native tools if these fail. Only in mode ``auto``: an explicit mode is obeyed."""
        return self.mode == AUTO and self.tool_mode is NATIVE

    def fall_back(self, failure: LearnedFailure) -> Route:
        """The same route with tools as text, because of this failure."""
        return structs.replace(self, tool_mode=TEXT, failure=failure, extra=quirk_fields(self.rule))


class CapabilitiesUnknown(Struct, frozen=True):
    """The route depends on what this upstream supports; discovery has to ask it first."""

    upstream: Upstream
    model: str


class Capabilities:
    """What upstreams and their models support: from the profiles, from discovery and from learned failures. Also holds
    the store of what is kept between requests."""

    def __init__(
        self,
        profiles: Profiles,
        failures: LearnedFailures,
        now: Callable[[], float],
        store: TtlStore | None = None,
    ) -> None:
        self.profiles = profiles
        self.failures = failures
        self.now = now
        self.store = TtlStore(now) if store is None else store  # an empty store is falsy
        self.conversations = TtlStore(now, most_bytes=MEMORY_BYTES)
        self._rules: dict[tuple[str, str], tuple[Rule, float]] = {}
        self._guesses: dict[tuple[str, str], Rule] = {}
        self.recent_defects = RecentDefects(now)

    def find_rule(self, upstream: Upstream, model: str) -> Rule | CapabilitiesUnknown:
        """The rule for a model, unless the upstream has to be asked first."""
        rule = self._find_cached(upstream, model)
        if rule is not None:
            return rule
        if self.profiles.needs_facts(upstream.base_url, model):
            return CapabilitiesUnknown(upstream, model)
        return self.set_facts(upstream, model, NO_FACTS, inf)

    def guess_rule(self, upstream: Upstream, model: str) -> Rule:
        """The rule by what is known so far; the upstream is not asked."""
        known, key = self._find_cached(upstream, model), (upstream.base_url, model)
        if known is None and key not in self._guesses:
            if len(self._guesses) >= MAX_CACHED_RULES:
                self._guesses.clear()
            self._guesses[key] = self.profiles.find(*key)
        return known or self._guesses[key]

    def _find_cached(self, upstream: Upstream, model: str) -> Rule | None:
        rule, until = self._rules.get((upstream.base_url, model)) or (None, 0.0)
        return rule if self.now() < until else None

    def set_facts(self, upstream: Upstream, model: str, facts: Facts, seconds: float) -> Rule:
        """Cache the rule that follows from these facts, for so many seconds."""
        rule = self.profiles.find(upstream.base_url, model, facts)
        if len(self._rules) >= MAX_CACHED_RULES:
            self._rules.clear()
        self._rules[upstream.base_url, model] = rule, self.now() + seconds
        return rule

    def find_failure(self, upstream: Upstream, model: str) -> LearnedFailure | None:
        """The learned failure of native tools."""
        failure = self.failures.recall(upstream.base_url, model, self.now())
        return None if failure is None or failure.kind == REASONING_MISSING else failure

    def add_learned(self, rule: Rule, upstream: Upstream, model: str) -> Rule:
        """The rule with what the upstream was learned to want."""
        if not self.failures.failures or REASONING_RETURNED in rule.quirks:
            return rule
        learned = self.failures.recall(upstream.base_url, model, self.now())
        if learned is None or learned.kind != REASONING_MISSING:
            return rule
        return structs.replace(rule, quirks=(*rule.quirks, REASONING_RETURNED), reasoning=rule.reasoning or THOUGHTS[0])


def choose_route(
    conversation: Conversation,
    settings: Settings,
    capabilities: Capabilities,
    mode: str = "",
    client: str = "",
    state: ConversationState | None = None,
) -> Route | CapabilitiesUnknown:
    """Choose the route of a request.

    ``mode`` is the mode that the request itself asks for, if any; ``client`` is the profile of an XML client; ``state``
    has the mode that the conversation began in.
    Raises: RequestError if the mode is unknown or the request offers too many tools.
    """
    name = conversation.model
    model, upstream = settings.known_models.get(name) or settings.model_for(name)
    mode = _choose_mode(mode, model, upstream, settings)
    detected = mode != "off" and not client and _asks_for_tools(conversation, settings)
    mode = "native" if detected else mode
    tool_mode = _find_tool_mode(mode, bool(detected or client), conversation, settings)
    parallel = _find_parallel(conversation, settings)
    decided = upstream, model, tool_mode, mode, model.dialect, _teaches_parallel(model, parallel), parallel is False
    route = Route(*decided, supported=_list_supported(settings, detected), detected=detected)
    if mode == AUTO and tool_mode is not RELAY and not upstream.coached:
        known = _apply_capabilities(route, conversation, settings, capabilities, state)
        if isinstance(known, CapabilitiesUnknown):
            return known
        route = known
    if client and tool_mode is not RELAY:
        return structs.replace(route, client=client, parallel=False, single=True)
    return route


def _choose_mode(asked: str, model: ModelSettings, upstream: Upstream, settings: Settings) -> str:
    """The mode: as the request asks, else as the settings say. Raises RequestError if that is not possible."""
    if asked and asked not in MODES:
        raise RequestError(f"The mode {asked!r} is not one of {', '.join(MODES)}.", "x-toolglot-mode")
    mode = asked or model.mode if settings.tool_calling.enabled else "off"
    if all_wires()[upstream.wire].chat is None:
        return mode
    if mode == "native":
        raise RequestError("The upstream of this model has no native tools: ask for auto or text.", "x-toolglot-mode")
    return "text" if mode == AUTO else mode


def _find_tool_mode(mode: str, concerned: bool, conversation: Conversation, settings: Settings) -> ToolMode:
    """How tools are passed on in a mode. ``concerned``: the request is about tools even if it offers none."""
    if mode == "off" or not (concerned or _matters(conversation, settings)):
        return RELAY
    return NATIVE if mode == "native" else TEXT


def _apply_capabilities(
    route: Route,
    conversation: Conversation,
    settings: Settings,
    capabilities: Capabilities,
    state: ConversationState | None,
) -> Route | CapabilitiesUnknown:
    """Native or text, by what is known of the upstream and its model, or as the conversation began."""
    upstream, model = route.upstream, route.model
    rule = capabilities.find_rule(upstream, model.model)
    if isinstance(rule, CapabilitiesUnknown):
        return rule
    failure, parallel = capabilities.find_failure(upstream, model.model), _find_parallel(conversation, settings)
    own_dialect = rule.dialect and not settings.set_dialect(conversation.model)
    chosen = ConversationMode(rule.native and failure is None, rule.dialect if own_dialect else route.dialect)
    kept = chosen if state is None else state.begin_mode(chosen)
    if kept.dialect != route.dialect:
        model = replace(model, dialect=kept.dialect)
        route = structs.replace(route, dialect=kept.dialect, model=model)
    route = structs.replace(route, rule=rule, failure=None if kept.native else failure)
    if kept.native:
        return structs.replace(route, tool_mode=NATIVE, parallel=_teaches_parallel(model, parallel, rule.parallel))
    known = None if rule.native else rule.parallel
    return structs.replace(route, parallel=_teaches_parallel(model, parallel, known), extra=quirk_fields(rule))


def _matters(conversation: Conversation, settings: Settings) -> bool:
    """Whether a request concerns tools. Raises RequestError if it offers too many."""
    tools = settings.tool_calling
    if not (concerns_tools(conversation) or (tools.auto_detect and _has_own_tools(settings))):
        return False
    if len(conversation.tools) > tools.max_tools:
        raise RequestError(
            f"{len(conversation.tools)} tools are offered; this gateway takes at most {tools.max_tools}.", "tools"
        )
    return True


def _list_supported(settings: Settings, detected: bool) -> tuple[str, ...]:
    """The tools that are readable without being offered."""
    return settings.tool_calling.supported_tools if detected or _has_own_tools(settings) else ()


def _has_own_tools(settings: Settings) -> bool:
    """Whether the settings name tools that are always readable."""
    return settings.tool_calling.supported_tools not in ((), USUAL_TOOLS)


def _asks_for_tools(conversation: Conversation, settings: Settings) -> bool:
    """Whether a request without tools asks for something that the default tools do. Then calls to them are looked for
    in the answer; the request stays unchanged."""
    tools, messages = settings.tool_calling, conversation.messages
    if conversation.tools or not tools.auto_detect or tools.supported_tools != USUAL_TOOLS:
        return False
    if not messages or messages[-1].role != "user":
        return False
    text = messages[-1].text[:INTENT_SCAN_CHARS].lower()
    # most texts contain none of the words, and a substring search is much faster than the regular expression
    return (
        any(map(text.__contains__, INTENT_WORDS))
        and INTENT.search(text) is not None
        and not concerns_tools(conversation)
    )


def concerns_tools(conversation: Conversation) -> bool:
    """Whether a conversation offers tools, or has used some."""
    if conversation.tools:
        return True
    for message in conversation.messages:
        if message.role in ("assistant", "tool"):
            for part in message.parts:
                if isinstance(part, (ToolCall, ToolResult)):
                    return True
    return False


def _teaches_parallel(model: ModelSettings, allowed: bool | None, known: bool | None = None) -> bool:
    """Whether the prompt allows several calls: if requested, or if the model writes its own dialect. Other models are
    taught one call per message, which they do better; further calls that they make are delivered anyway.

    The dialect of clients that take one call per message teaches one.
    """
    if allowed is None:
        allowed = known
    if allowed is not None:
        return allowed
    return model.dialect != DEFAULT_DIALECT and _find_own_dialect(model.model) == model.dialect


def takes_one_call(conversation: Conversation, settings: Settings) -> bool:
    """Whether the request, or else the setting, allows one call per answer at most."""
    return _find_parallel(conversation, settings) is False


def _find_parallel(conversation: Conversation, settings: Settings) -> bool | None:
    """Whether several calls in one answer are allowed: by the request, else by the setting; None if neither decides."""
    requested = conversation.sampling.parallel_calls
    return settings.reading.parallel_calls if requested is None else requested


@lru_cache(maxsize=256)
def _find_own_dialect(model: str) -> str | None:
    """Cached: every request asks for one of a few models, and each lookup tries the patterns of all dialects."""
    return dialect_index().resolve_hint(model)


# -- rollout -----------------------------------------------------------------------------------------------------------


def name_transformation(route: Route) -> str | None:
    """The transformation that this route applies. For an XML client it is a single one."""
    return XML if route.client and route.tool_mode is not RELAY else TRANSFORMATIONS[route.tool_mode]


class Experiment:
    """The arms of one request. The recorder gets each arm that is asked for. ``has_dry_run``: one of them is a dry run;
    ``intended`` is the route without the experiment."""

    def __init__(self, rollout: Rollout, conversation: Conversation, recorder: RequestRecorder) -> None:
        self.rollout = rollout
        self.recorder = recorder
        if rollout.divides:
            recorder.conversation = identify(conversation)
        self.intended: Route | None = None
        self.has_dry_run = False

    def find_arm(self, transformation: str) -> Arm:
        rollout = self.rollout
        arm = rollout.fixed_arms.get(transformation) or rollout.decide(transformation, self.recorder.conversation)
        self.recorder.arms[transformation] = str(arm)
        if arm is DRY_RUN and transformation in DRY_RUNNABLE:
            self.has_dry_run = True
        return arm

    def runs(self, transformation: str, dry_run: bool = False) -> bool:
        """Whether the transformation is applied; in a dry run, those whose arm is a dry run are too."""
        arm = self.find_arm(transformation)
        return arm is ON or (dry_run and arm is DRY_RUN)

    def admits(self, transformation: str) -> bool:
        """Whether the transformation would be applied; nothing is recorded."""
        return self.rollout.decide(transformation, self.recorder.conversation) is ON

    def enter(self, route: Route) -> Route:
        """The chosen route, or a relay if its transformation is off."""
        self.intended = route
        transformation = name_transformation(route)
        if transformation is None or self.find_arm(transformation) is ON:
            return route
        return structs.replace(route, tool_mode=RELAY)

    def restrict(self, options: Options, route: Route) -> tuple[Options, tuple[str, ...]]:
        """Apply the plan of the rollout: the options, and the tools that may be called (none named: all)."""
        if not self.rollout.restricts:
            return options, ()
        plan, shell = self.rollout.plan_of(name_transformation(route) or READING), self.rollout.plan_of(SHELL)
        if plan.tools and not route.client:
            options = replace(options, unknown_tools="text")
        if plan.min_confidence is not None:
            options = replace(options, min_confidence=plan.min_confidence)
        if shell.min_confidence is not None:
            options = replace(options, thresholds={SHELL_DIALECT: shell.min_confidence})
        return options, plan.tools

"""The choice made for one request: who answers, and in which way tools are spoken of on the way there.

relay    nothing in it concerns tools, or tool calling is off: bytes pass untouched
native   the upstream knows tools itself; calls that leak into its text are read nevertheless
text     the upstream only writes text: tools are taught, calls are read

An XML client has taught its tools itself, so a text model is asked in its words; the answer is written as its XML.

The mode ``auto`` is native where the profiles say that the upstream has tools, and nothing else was learned since.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import lru_cache
from math import inf
from typing import Any, Final

from msgspec import Struct, structs

from toolglot.config import DEFAULT_DIALECT, MODES, USUAL_TOOLS, ModelSettings, Settings, Upstream
from toolglot.core.conversation import Conversation, ToolCall, ToolResult
from toolglot.core.errors import RequestError
from toolglot.gateway.capabilities.learned import LearnedFailure, LearnedFailures
from toolglot.gateway.capabilities.profiles import NO_FACTS, Facts, Profiles, Rule
from toolglot.gateway.capabilities.workarounds import quirk_fields
from toolglot.gateway.sessions.ttl_store import TtlStore
from toolglot.reading.reader import vocabulary

AUTO: Final = "auto"
KNOWN: Final = 512
INTENT: Final = re.compile(
    r"\b(?:read|write|edit|list|search)\s+(?:(?:a|all|the|this)\s+)?files?\b|\bexecute\b"
    r"|\brun\s+(?:(?:a|the|this)\s+)?commands?\b",
)
"""What a user says who wants the usual tools to be used."""
INTENT_WORDS: Final = ("file", "execute", "command")
"""One of these is part of it."""
LOOKED_AT: Final = 10_000
"""How many characters of a message are searched for it."""


class ToolMode(StrEnum):
    RELAY = "relay"
    NATIVE = "native"
    TEXT = "text"


RELAY, NATIVE, TEXT = ToolMode
"""An enumeration takes its time to find its own members, and these are asked for a dozen times in every request."""


class Route(Struct, frozen=True):
    """Where a request goes. ``parallel``: whether the model is told that it may make several calls in one answer;
    ``single``: whether the client takes one call at most, so that further ones are not delivered.

    In mode ``auto`` the rule and the lesson say why. ``extra`` are fields that the upstream needs besides. ``client``
    is the profile of an XML client, which takes one call and as text; it is empty for all others. ``supported`` are
    tools that are known though the request does not offer them. ``detected``: the request has no tools, but asks for
    what they do; a call counts only at the end of the answer.
    """

    upstream: Upstream
    model: ModelSettings
    manner: ToolMode
    mode: str
    dialect: str
    parallel: bool
    single: bool = False
    rule: Rule | None = None
    lesson: LearnedFailure | None = None
    extra: Mapping[str, Any] = {}
    client: str = ""
    supported: tuple[str, ...] = ()
    detected: bool = False

    @property
    def learns(self) -> bool:
        """Whether native tools are on trial: a mode that was set is not called into question."""
        return self.mode == AUTO and self.manner is NATIVE

    def retreat(self, lesson: LearnedFailure) -> Route:
        """The same as text, for this is what was learned."""
        return structs.replace(self, manner=TEXT, lesson=lesson, extra=quirk_fields(self.rule))


class CapabilitiesUnknown(Exception):
    """What an upstream can do is not known yet: it has to be asked."""

    def __init__(self, upstream: Upstream, model: str) -> None:
        super().__init__(f"{upstream.name}: {model}")
        self.upstream = upstream
        self.model = model


class Capabilities:
    """What is known of upstreams and their models: from the profiles, from themselves, and from experience. And what is
    kept of their answers."""

    def __init__(
        self,
        profiles: Profiles,
        experience: LearnedFailures,
        now: Callable[[], float],
        kept: TtlStore | None = None,
    ) -> None:
        self.profiles = profiles
        self.experience = experience
        self.now = now
        self.kept = TtlStore(now) if kept is None else kept  # one that is empty is false
        self._rules: dict[tuple[str, str], tuple[Rule, float]] = {}
        self._guesses: dict[tuple[str, str], Rule] = {}

    def find_rule(self, upstream: Upstream, model: str) -> Rule:
        """The rule for a model; raises ``CapabilitiesUnknown`` if the upstream has to be asked before."""
        rule = self._recall(upstream, model)
        if rule is not None:
            return rule
        if self.profiles.needs_facts(upstream.base_url, model):
            raise CapabilitiesUnknown(upstream, model)
        return self.tell(upstream, model, NO_FACTS, inf)

    def guess_rule(self, upstream: Upstream, model: str) -> Rule:
        """The rule as far as it is known; nobody is asked for more."""
        known, place = self._recall(upstream, model), (upstream.base_url, model)
        if known is None and place not in self._guesses:
            if len(self._guesses) >= KNOWN:
                self._guesses.clear()
            self._guesses[place] = self.profiles.find(*place)
        return known or self._guesses[place]

    def _recall(self, upstream: Upstream, model: str) -> Rule | None:
        rule, until = self._rules.get((upstream.base_url, model)) or (None, 0.0)
        return rule if self.now() < until else None

    def tell(self, upstream: Upstream, model: str, facts: Facts, seconds: float) -> Rule:
        """These are the facts, and for so long."""
        rule = self.profiles.find(upstream.base_url, model, facts)
        if len(self._rules) >= KNOWN:
            self._rules.clear()
        self._rules[upstream.base_url, model] = rule, self.now() + seconds
        return rule

    def find_lesson(self, upstream: Upstream, model: str) -> LearnedFailure | None:
        return self.experience.recall(upstream.base_url, model, self.now())


def choose(
    conversation: Conversation, settings: Settings, knowledge: Capabilities, mode: str = "", client: str = ""
) -> Route:
    """The route of a request; ``mode`` is what the request itself asks for, if it does, ``client`` the XML client."""
    if mode and mode not in MODES:
        raise RequestError(f"The mode {mode!r} is not one of {', '.join(MODES)}.", "x-toolglot-mode")
    model, upstream = settings.model_for(conversation.model)
    mode = "off" if not settings.tool_calling.enabled else mode or model.mode
    detected = mode != "off" and not client and _asks_for_tools(conversation, settings)
    mode = "native" if detected else mode
    manner = _find_manner(mode, bool(detected or client), conversation, settings)
    parallel = _parallel(conversation, settings, model)
    single = takes_one_call(conversation, settings)
    supported = _list_supported(settings, detected)
    given = upstream, model, manner, mode, model.dialect, parallel, single
    route = Route(*given, supported=supported, detected=detected)
    if mode == AUTO and manner is not RELAY and not upstream.coached:
        route = _decide(route, conversation, settings, knowledge)
    if client and manner is not RELAY:
        return structs.replace(route, client=client, parallel=False, single=True)
    return route


def _find_manner(mode: str, concerned: bool, conversation: Conversation, settings: Settings) -> ToolMode:
    """How tools are spoken of in a mode; ``concerned``: this request is about tools, though it may offer none."""
    if mode == "off" or not (concerned or _matters(conversation, settings)):
        return RELAY
    return NATIVE if mode == "native" else TEXT


def _decide(route: Route, conversation: Conversation, settings: Settings, knowledge: Capabilities) -> Route:
    """Native or text, by what is known of the upstream and its model."""
    place = route.upstream, route.model.model
    rule, lesson = knowledge.find_rule(*place), knowledge.find_lesson(*place)
    route = structs.replace(route, rule=rule, lesson=lesson)
    if rule.dialect and not settings.set_dialect(conversation.model):
        route = structs.replace(route, dialect=rule.dialect, model=replace(route.model, dialect=rule.dialect))
    if rule.native and lesson is None:
        return structs.replace(
            route, manner=NATIVE, parallel=_parallel(conversation, settings, route.model, rule.parallel)
        )
    return structs.replace(route, parallel=_parallel(conversation, settings, route.model), extra=quirk_fields(rule))


def _matters(conversation: Conversation, settings: Settings) -> bool:
    """Whether a request concerns tools, and not too many of them."""
    tools = settings.tool_calling
    if not (concerns_tools(conversation) or (tools.auto_detect and _names_tools(settings))):
        return False
    if len(conversation.tools) > tools.max_tools:
        raise RequestError(
            f"{len(conversation.tools)} tools are offered; this gateway takes at most {tools.max_tools}.", "tools"
        )
    return True


def _list_supported(settings: Settings, detected: bool) -> tuple[str, ...]:
    """The tools that are known without being offered."""
    return settings.tool_calling.supported_tools if detected or _names_tools(settings) else ()


def _names_tools(settings: Settings) -> bool:
    """Whether the settings themselves name tools that are always known."""
    return settings.tool_calling.supported_tools not in ((), USUAL_TOOLS)


def _asks_for_tools(conversation: Conversation, settings: Settings) -> bool:
    """Whether a request that has no tools asks for something that the usual tools do. Then calls to them are looked for
    in the answer; the request stays as it is."""
    tools, last = settings.tool_calling, conversation.messages[-1:]
    if conversation.tools or not tools.auto_detect or tools.supported_tools != USUAL_TOOLS:
        return False
    if not last or last[0].role != "user":
        return False
    asked = last[0].text[:LOOKED_AT].lower()
    # most texts have none of the words, and these are found much sooner than an expression
    return (
        any(word in asked for word in INTENT_WORDS)
        and INTENT.search(asked) is not None
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


def _parallel(conversation: Conversation, settings: Settings, model: ModelSettings, known: bool | None = None) -> bool:
    """Whether the model is told that it may make several calls: if asked for, or if its own dialect is spoken. Other
    models are taught one call per message, which they do better; what they make nevertheless is delivered.

    The dialect of clients that take one call in a message teaches one.
    """
    for told in (_wanted(conversation, settings), known):
        if told is not None:
            return told
    return model.dialect != DEFAULT_DIALECT and _own_dialect(model.model) == model.dialect


def takes_one_call(conversation: Conversation, settings: Settings) -> bool:
    """Whether the request, or else the setting, allows one call per answer at most."""
    return _wanted(conversation, settings) is False


def _wanted(conversation: Conversation, settings: Settings) -> bool | None:
    """Several calls in one answer, as the request says, else as it is set; None if neither does."""
    told = conversation.limits.parallel_calls
    return settings.reading.parallel_calls if told is None else told


@lru_cache(maxsize=256)
def _own_dialect(model: str) -> str | None:
    """Asked for every request, of a handful of models; the patterns of all dialects are tried for each."""
    return vocabulary().resolve_hint(model)

"""Where recovery meets the rest of the gateway: whether it applies to a request, and its parts for one exchange."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from toolglot.config.recovery_settings import HOLD_ALWAYS, HOLD_NEVER
from toolglot.config.rollout import DRY_RUN, ON, RECOVERY
from toolglot.core.conversation import Conversation, Tool
from toolglot.core.events import CallRejected, Defect, Event, Failed, Finished, Reason, TextDelta
from toolglot.core.schema.toolset import compile_tools
from toolglot.core.schema.validation import find_argument_defects
from toolglot.gateway.capabilities.profiles import DEFECTIVE_CALLS, UNPARSED
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.recovery.attempts import Recovery
from toolglot.gateway.recovery.checked_delivery import CheckedDelivery
from toolglot.gateway.routing import NATIVE, RELAY
from toolglot.prompting.feedback import write_feedback
from toolglot.reading.narrated_stops import announces_action, wants_action
from toolglot.reading.reader import read

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange

MAX_LISTED: Final = 20
"""How many known tools the defect of an unknown one names."""


def prepare_recovery(exchange: Exchange, conversation: Conversation) -> Recovery | None:
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
    return Recovery(conversation, settings, exchange.recorder, arm, on_defect, read)


def read_failure(exchange: Exchange, failure: Failed) -> list[Event] | None:
    """The events of the calls in the error of a server that could not parse what its model wrote; empty if there are no
    readable ones. None if the error means something else."""
    profiles = exchange.context.capabilities.profiles
    if profiles.classify_error(f"{failure.kind} {failure.message}") != UNPARSED:
        return None
    written = profiles.find_generation(failure.message)
    tools = compile_tools(exchange.tools, ())
    reading = read(written, tools, unknown_tools="reject") if written else None
    if reading is None or not reading.calls or reading.rejected or reading.text.strip():
        return []
    exchange.recorder.notes.append("the call was read from the error of the upstream, which could not parse it")
    return [TextDelta(written), Finished("stop")]


def holds_calls(exchange: Exchange) -> bool:
    """Whether streamed calls are sent only when they are complete and checked."""
    hold, route = exchange.settings.recovery.hold_calls, exchange.route
    if hold in (HOLD_ALWAYS, HOLD_NEVER):
        return hold == HOLD_ALWAYS
    if route.upstream.coached or (route.rule is not None and DEFECTIVE_CALLS in route.rule.quirks):
        return True
    return exchange.context.capabilities.recent_defects.has(route.upstream.base_url, route.model.model)


def open_recovery(exchange: Exchange, recovery: Recovery, delivery: Delivery) -> CheckedDelivery:
    """The delivery of an answer that may need several attempts."""
    names, session = exchange.names, exchange.xml_session
    tools = {names.get(tool.name, tool.name): tool for tool in exchange.tools}
    others = (*exchange.route.supported, *exchange.client_request.special_tools)
    messages = recovery.conversation.messages

    def announces(text: str) -> bool:
        return announces_action(text) and wants_action(messages)

    rendering = session.find_call_defects if session is not None and exchange.mapping is None else None
    checker = ToolCallChecker(tools, others, rendering)
    new_id = exchange.source.new_call_id
    return CheckedDelivery(delivery, recovery, checker, announces, new_id, holds=holds_calls(exchange))


def explain_to_client(exchange: Exchange) -> Callable[[list[CallRejected]], str] | None:
    """How rejected calls are explained to the client, if the model is not asked again but the client is."""
    if not exchange.settings.recovery.feedback_only:
        return None
    dialect = None if exchange.route.tool_mode is NATIVE else exchange.route.dialect
    return lambda rejected: write_feedback(rejected, exchange.tools, dialect)


class ToolCallChecker:
    """Checks complete calls against the tools on offer.

    ``tools`` are those on offer, by the names that the client knows; ``others`` are further names that may be called.
    ``check_rendering`` finds why a call cannot be rendered for an XML client.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        others: Collection[str] = (),
        check_rendering: Callable[[str, str], tuple[Defect, ...]] | None = None,
    ) -> None:
        self.tools = tools
        self.others = others
        self.check_rendering = check_rendering

    def knows(self, name: str) -> bool:
        return name in self.tools or name in self.others

    def find_defects(self, name: str, arguments: str) -> tuple[Defect, ...]:
        """What is wrong with a complete call; empty if nothing is."""
        tool = self.tools.get(name)
        if tool is not None:
            defects = find_argument_defects(tool, arguments, as_text=self.check_rendering is not None)
            if defects or self.check_rendering is None:
                return defects
            found, declared = self.check_rendering(name, arguments), tool.parameters.get("properties", {})
            return tuple(replace(it, where=f"argument {it.where}") if it.where in declared else it for it in found)
        if name in self.others:
            return ()
        known = ", ".join([*self.tools][:MAX_LISTED])
        return (Defect(reason=Reason.UNKNOWN_TOOL, where="tool", found=repr(name), expected=f"one of {known}"),)

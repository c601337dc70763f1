"""One request as part of the rollout: which transformations it undergoes, and a dry run of those it does not.

*Strategy.* The arm is chosen before anything is done to the request. A transformation that is not on leaves the request
and its answer alone: where tools would have been taught or calls rescued, the request passes as the client wrote it, as
it would without toolglot. A dry run is the same to the client. Beside the answer a second delivery reads what passes
and tells a watch of its own, whose findings become part of the record; whatever goes wrong with it is logged, and
concerns nobody else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from toolglot.config.rollout import DRY_RUN, ON, READING, RESCUE, SHELL, XML, Arm, Rollout, identify
from toolglot.core.conversation import Conversation
from toolglot.core.errors import ToolglotError
from toolglot.core.events import Event
from toolglot.core.options import Options
from toolglot.gateway.delivery import Delivery
from toolglot.gateway.routing import NATIVE, RELAY, TEXT, Route, ToolMode
from toolglot.gateway.telemetry.records import SHELL_DIALECT, RequestRecorder
from toolglot.wires.protocol import ResponseDecoder

LOG = logging.getLogger("toolglot.rollout")
OF_MANNER: Final[Mapping[ToolMode, str | None]] = {RELAY: None, NATIVE: RESCUE, TEXT: READING}
REHEARSED: Final = (READING, RESCUE, SHELL, XML)
"""Transformations of answers alone; one that changes the request first cannot be seen without doing so."""
BROKEN: Final = "rehearsal_failed"


def name_transformation(route: Route) -> str | None:
    """What is done to a request and its answer on this way. For an XML client all of it is one step."""
    return XML if route.client and route.manner is not RELAY else OF_MANNER[route.manner]


class Experiment:
    """The arms of one request. An arm that was asked for is told by the record; ``rehearses``: it is a dry run."""

    def __init__(self, rollout: Rollout, conversation: Conversation, watch: RequestRecorder) -> None:
        self.rollout = rollout
        self.watch = watch
        if rollout.divides:
            watch.conversation = identify(conversation)
        self.meant: Route | None = None
        self.rehearses = False

    def arm(self, transformation: str) -> Arm:
        arm = self.rollout.decide(transformation, self.watch.conversation)
        self.watch.arms[transformation] = str(arm)
        if arm is DRY_RUN and transformation in REHEARSED:
            self.rehearses = True
        return arm

    def runs(self, transformation: str, rehearsed: bool = False) -> bool:
        """Whether the transformation is done; in a rehearsal those of a dry run are too."""
        arm = self.arm(transformation)
        return arm is ON or (rehearsed and arm is DRY_RUN)

    def admits(self, transformation: str) -> bool:
        """Whether it would be done if it came to that; nothing is told."""
        return self.rollout.decide(transformation, self.watch.conversation) is ON

    def enter(self, route: Route) -> Route:
        """The way of the request: as it was chosen, or past what is not on."""
        self.meant = route
        transformation = name_transformation(route)
        if transformation is None or self.runs(transformation):
            return route
        return structs.replace(route, manner=RELAY)

    def restrict(self, options: Options, route: Route) -> tuple[Options, tuple[str, ...]]:
        """How careful reading is by plan: the options, and the tools that calls are made to (none named: to all)."""
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


class DryRun:
    """A delivery that nobody receives. It is shown the events of an answer, or its bytes where these pass unread."""

    def __init__(self, delivery: Delivery, reader: ResponseDecoder) -> None:
        self.delivery = delivery
        self.reader = reader
        self.broken = False

    def see(self, events: Iterable[Event]) -> None:
        self.attempt(lambda: events)

    def feed(self, piece: bytes) -> None:
        self.attempt(lambda: self.reader.feed(piece))

    def close(self) -> None:
        self.attempt(self.reader.close)

    def attempt(self, read: Callable[[], Iterable[Event]]) -> None:
        if self.broken:
            return
        watch = self.delivery.watch
        try:
            events = read()
            watch.keep_model_text(events)
            watch.keep_delivered(self.delivery.deliver(events))
        except Exception:
            self.broken, watch.error = True, BROKEN
            LOG.exception("a dry run of request %s", watch.request_id)


def deliver_whole(delivery: Delivery, events: Sequence[Event]) -> list[Event]:
    """What the client is told of an answer that came whole. A mistake of ours costs no answer: then it is told as it
    came."""
    try:
        return delivery.deliver(events)
    except ToolglotError:
        raise
    except Exception:
        watch = delivery.watch
        LOG.exception("request %s: its answer is left as it is", watch.request_id)
        watch.discard_calls()
        watch.notes.append("the answer could not be read and is left as it is")
        plain = Delivery(None, watch, delivery.names, delivery.joiner, streamed=False, secrets=delivery.secrets)
        return plain.deliver(events)

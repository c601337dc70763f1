"""One request as part of the rollout: which transformations are applied to it, and a dry run of those that are not.

*Strategy.* The arm is chosen before anything is done to the request. A transformation that is off leaves the request
and its response unchanged: where tools would have been taught or leaked calls read, the request passes as the client
wrote it, as it would without toolglot. A dry run looks the same to the client. A second delivery reads the same
response and reports to its own recorder, whose findings become part of the record. An error in it is logged and has no
other effect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from msgspec import structs

from toolglot.config.rollout import DRY_RUN, ON, READING, RESCUE, SHELL, XML, Arm, Rollout, identify
from toolglot.core.conversation import Conversation
from toolglot.core.events import Event
from toolglot.core.options import Options
from toolglot.gateway.delivery_plan import EventDelivery
from toolglot.gateway.routing import NATIVE, RELAY, TEXT, Route, ToolMode
from toolglot.gateway.telemetry.records import SHELL_DIALECT, RequestRecorder
from toolglot.wires.protocol import ResponseDecoder

LOG = logging.getLogger("toolglot.rollout")
TRANSFORMATIONS: Final[Mapping[ToolMode, str | None]] = {RELAY: None, NATIVE: RESCUE, TEXT: READING}
DRY_RUNNABLE: Final = (READING, RESCUE, SHELL, XML)
"""Transformations of the response alone. One that changes the request cannot be tried without doing so."""
BROKEN: Final = "rehearsal_failed"


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
        arm = self.rollout.decide(transformation, self.recorder.conversation)
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
        if transformation is None or self.runs(transformation):
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


class DryRun:
    """A delivery whose result is only recorded. It gets the events of a response, or its bytes if these are relayed."""

    def __init__(self, delivery: EventDelivery, decoder: ResponseDecoder) -> None:
        self.delivery = delivery
        self.decoder = decoder
        self.broken = False

    def observe(self, events: Iterable[Event]) -> None:
        self.attempt(lambda: events)

    def feed(self, chunk: bytes) -> None:
        self.attempt(lambda: self.decoder.feed(chunk))

    def close(self) -> None:
        self.attempt(self.decoder.close)

    def attempt(self, read: Callable[[], Iterable[Event]]) -> None:
        """Deliver these events. After the first exception, which is logged, do nothing."""
        if self.broken:
            return
        recorder = self.delivery.recorder
        try:
            events = read()
            recorder.keep_model_text(events)
            recorder.keep_delivered(self.delivery.deliver(events))
        except Exception:
            self.broken, recorder.error = True, BROKEN
            LOG.exception("the dry run of request %s failed", recorder.request_id)

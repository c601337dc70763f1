"""Rollout plans of the transformations, and the arm of a conversation.

    rollout = Rollout(plans={"reading": read_plan("canary-10")})
    rollout.decide("reading", identify(conversation))   # ON for one conversation in ten, CONTROL for others

*Strategy.* All turns of a conversation must get the same arm, so it is a hash of the transformation and of what stays
the same in a conversation: the requested model and the user's first message. Later turns, and a system prompt that
contains the time, do not count. A larger percentage includes all conversations of a smaller one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from toolglot.core.events import Reason

READING, RESCUE, XML, SHELL, EDITING, RECOVERY = "reading", "rescue", "xml", "shell", "editing", "recovery"
TRANSFORMATIONS: Final[Mapping[str, str]] = {
    READING: "describe tools as text in the prompt, and parse calls from text",
    RESCUE: "parse calls that leak into the text of a model with native tools",
    XML: "for XML clients: render all calls as the XML that they parse",
    SHELL: "parse shell code blocks as calls",
    EDITING: "translate editing tools to those that the model was trained on",
    RECOVERY: "ask the model again if its call is defective",
}
"""All transformations of an answer, by the names used in settings, records and metrics."""

NATIVE_CALLS: Final = "native"
"""Native calls are counted beside the transformations, although they are none and have no rollout."""
LEAKED: Final = "leaked"

BUCKETS: Final = 10_000

_STAGE = re.compile(r"(?:(?P<stage>[a-z]+)(?:-(?=\d)|$))?(?P<percent>\d+(?:\.\d+)?)?(?<=.)")


class Arm(StrEnum):
    """What a transformation does to a conversation.

    off       nothing, in all conversations
    control   nothing: this conversation is the control group
    dry_run   nothing; what it would have done is recorded
    on        transforms the answers
    """

    OFF = "off"
    CONTROL = "control"
    DRY_RUN = "dry_run"
    ON = "on"


OFF, CONTROL, DRY_RUN, ON = Arm
UNTOUCHED: Final = {"none": OFF.value}
"""The arms of a request without transformations, so that its complaints are counted too."""

SUCCESS: Final = "success"
LEFT: Final = "left_as_text"
NEAR_MISS: Final = "near_miss"
SKIPPED: Final = frozenset(
    {LEFT, Reason.LOW_CONFIDENCE, Reason.SWITCHED_OFF, Reason.UNKNOWN_TOOL, Reason.EXTRA_CALL, Reason.QUOTATION}
)
"""Outcomes of attempts that are skipped on purpose. Any other outcome except success is a failure.

A near miss is a failure too: text that was intended as a call to a known tool and could not be parsed.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The rollout of one transformation.

    ``percent`` of all conversations take part; a dry run delivers nothing. Only calls to ``tools`` (empty: all) with at
    least ``min_confidence`` (None: as set for reading) are made from text.
    """

    percent: float = 100.0
    dry_run: bool = False
    tools: tuple[str, ...] = ()
    min_confidence: float | None = None

    @property
    def divides(self) -> bool:
        """Whether conversations get different arms."""
        return 0 < self.percent < 100

    @property
    def stage(self) -> str:
        """The stage, as written in a setting."""
        if self.percent == 0:
            return "off"
        if self.percent == 100:
            return "shadow" if self.dry_run else "full"
        return f"{'shadow' if self.dry_run else 'canary'}-{self.percent:g}"

    def __str__(self) -> str:
        limits = [f"tools {', '.join(self.tools)}"] if self.tools else []
        if self.min_confidence is not None:
            limits.append(f"min_confidence {self.min_confidence:g}")
        return f"{self.stage} ({'; '.join(limits)})" if limits else self.stage


STAGES: Final[Mapping[str, Plan]] = {
    "off": Plan(0),
    "shadow": Plan(dry_run=True),
    "canary": Plan(10),
    "full": Plan(),
}
"""The usual stages of a rollout, in order; ``canary-N`` and ``shadow-N`` set the percentage."""

FULL: Final = STAGES["full"]
FIXED: Final = ("off", "full")


def read_plan(raw: object) -> Plan:
    """Parse a plan: a stage, a percentage or a table. Raises: ValueError for anything else."""
    if isinstance(raw, Mapping):
        return _read_table(raw)
    found = None if isinstance(raw, bool) else _STAGE.fullmatch(str(raw).strip().lower())
    plan = STAGES.get(found["stage"] or "canary") if found else None
    if found is None or plan is None or (found["percent"] and found["stage"] in FIXED):
        raise ValueError(raw)
    return replace(plan, percent=_percent(float(found["percent"]))) if found["percent"] else plan


def _read_table(table: Mapping[str, Any]) -> Plan:
    if set(table) - {"stage", "percent", "dry_run", "tools", "min_confidence"}:
        raise ValueError(table)
    plan = read_plan(table.get("stage", "full"))
    percent, dry_run = table.get("percent", plan.percent), table.get("dry_run", plan.dry_run)
    tools, confidence = table.get("tools", ()), table.get("min_confidence")
    listed = isinstance(tools, (list, tuple)) and all(isinstance(name, str) and name for name in tools)
    sure = confidence is None or (_is_number(confidence) and 0 <= confidence <= 1)
    if not (_is_number(percent) and isinstance(dry_run, bool) and listed and sure):
        raise ValueError(table)
    return Plan(_percent(percent), dry_run, tuple(tools), None if confidence is None else float(confidence))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _percent(value: float) -> float:
    if not 0 <= value <= 100:
        raise ValueError(value)
    return float(value)


@dataclass(frozen=True)
class Rollout:
    """The plans of all transformations; ``plan`` is for those without their own."""

    plan: Plan = FULL
    plans: Mapping[str, Plan] = field(default_factory=dict, hash=False)

    @cached_property
    def divides(self) -> bool:
        return self.plan.divides or any(plan.divides for plan in self.plans.values())

    @cached_property
    def restricts(self) -> bool:
        """Whether any plan restricts tools or confidence further than the settings."""
        return any(plan.tools or plan.min_confidence is not None for plan in (self.plan, *self.plans.values()))

    @cached_property
    def fixed_arms(self) -> Mapping[str, Arm]:
        """The arms that are the same for all conversations."""
        return {name: self.decide(name, "") for name in TRANSFORMATIONS if not self.plan_of(name).divides}

    def plan_of(self, transformation: str) -> Plan:
        return self.plans.get(transformation, self.plan)

    def decide(self, transformation: str, conversation_key: str) -> Arm:
        """The arm of a conversation, the same for all its turns."""
        plan = self.plan_of(transformation)
        if plan.percent == 0:
            return OFF
        if plan.percent < 100 and _bucket(transformation, conversation_key) >= plan.percent:
            return CONTROL
        return DRY_RUN if plan.dry_run else ON

    def compare(self, newer: Rollout) -> list[str]:
        """The changes of each transformation from this rollout to a newer one."""
        plans = ((name, self.plan_of(name), newer.plan_of(name)) for name in TRANSFORMATIONS)
        return [f"{name}: {before} -> {after}" for name, before, after in plans if before != after]


class Live:
    """The current rollout if it was changed since the start. It is replaced as a whole, between two requests.
    ``on_change`` is called if the settings file has changed it."""

    __slots__ = ("on_change", "rollout")

    def __init__(self) -> None:
        self.rollout: Rollout | None = None
        self.on_change: Callable[[Rollout], None] | None = None

    def change(self, rollout: Rollout) -> None:
        self.rollout = rollout
        if self.on_change is not None:
            self.on_change(rollout)


def _bucket(transformation: str, conversation_key: str) -> float:
    """The bucket of a conversation, from 0 up to 100; independent for each transformation."""
    digest = blake2b(f"{transformation}\0{conversation_key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % BUCKETS * 100 / BUCKETS

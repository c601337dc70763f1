"""How far each transformation of the gateway is rolled out, and on which side of it a conversation falls.

    rollout = Rollout(plans={"reading": read_plan("canary-10")})
    rollout.decide("reading", identify(conversation))   # ON for one conversation in ten, CONTROL for others

*Strategy.* Chance would give one conversation two faces, so the arm is a hash of the transformation and of what stays
the same in a conversation: the model asked for and the user's first message. Its later turns, and a system prompt that
tells the time, do not count. A larger share keeps everybody who was in the smaller one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from toolglot.core.conversation import Conversation, Image, Message
from toolglot.core.events import Reason

READING, RESCUE, XML, SHELL, EDITING = "reading", "rescue", "xml", "shell", "editing"
TRANSFORMATIONS: Final[Mapping[str, str]] = {
    READING: "tools taught as text, and calls read from it",
    RESCUE: "calls read that leak into the text of a model with native tools",
    XML: "for XML clients: calls of any kind written as the XML that they read",
    SHELL: "shell fences read as calls",
    EDITING: "tools for editing told as those that the model was trained on",
}
"""Everything that changes an answer, by the names that settings, records and metrics use."""

NATIVE_CALLS: Final = "native"
"""Native calls are counted beside the transformations: they are no transformation, and nothing is rolled out."""
LEAKED: Final = "leaked"

BUCKETS: Final = 10_000
HEAD: Final = 8192
"""How much of a first message tells conversations apart; its length counts besides."""

_STAGE = re.compile(r"(?:(?P<stage>[a-z]+)(?:-(?=\d)|$))?(?P<percent>\d+(?:\.\d+)?)?(?<=.)")


class Arm(StrEnum):
    """What a transformation does to a conversation.

    off       nothing, for anybody
    control   nothing: this conversation is what the others are compared with
    dry_run   nothing; what it would have done is recorded
    on        its work
    """

    OFF = "off"
    CONTROL = "control"
    DRY_RUN = "dry_run"
    ON = "on"


OFF, CONTROL, DRY_RUN, ON = Arm
UNTOUCHED: Final = {"none": OFF.value}
"""The arms of a request that met no transformation: what clients complain of there is worth knowing too."""

SUCCESS: Final = "success"
LEFT: Final = "left_as_text"
NEAR_MISS: Final = "near_miss"
SKIPPED: Final = frozenset(
    {LEFT, Reason.LOW_CONFIDENCE, Reason.SWITCHED_OFF, Reason.UNKNOWN_TOOL, Reason.EXTRA_CALL, Reason.QUOTATION}
)
"""How an attempt can end: in success, by being skipped on purpose, or for any other reason, which is a failure.

A near miss is a failure too: text that was meant as a call to a known tool and could not be read as one.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How far one transformation is rolled out, and how careful it is.

    ``percent`` of all conversations take part, in a dry run without noticing. Only calls to ``tools`` (none named: to
    all), read with at least ``min_confidence`` (None: as reading is set), are made out of text.
    """

    percent: float = 100.0
    dry_run: bool = False
    tools: tuple[str, ...] = ()
    min_confidence: float | None = None

    @property
    def divides(self) -> bool:
        """Whether it treats some conversations otherwise than others."""
        return 0 < self.percent < 100

    @property
    def stage(self) -> str:
        """Its stage, as a setting would write it."""
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
"""The usual way of a transformation into service, step by step; ``canary-N`` and ``shadow-N`` set the share."""

FULL: Final = STAGES["full"]
FIXED: Final = ("off", "full")


def read_plan(raw: object) -> Plan:
    """A plan as settings write it: a stage, a percentage, or a table. Raises ValueError for anything else."""
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
    """The plans of all transformations; one without a plan of its own has the plan of all."""

    plan: Plan = FULL
    plans: Mapping[str, Plan] = field(default_factory=dict, hash=False)

    @cached_property
    def divides(self) -> bool:
        return self.plan.divides or any(plan.divides for plan in self.plans.values())

    @cached_property
    def restricts(self) -> bool:
        """Whether any plan is more careful about reading than the settings are."""
        return any(plan.tools or plan.min_confidence is not None for plan in (self.plan, *self.plans.values()))

    def plan_of(self, transformation: str) -> Plan:
        return self.plans.get(transformation, self.plan)

    def decide(self, transformation: str, conversation_key: str) -> Arm:
        """The arm of a conversation; every turn of it gets the same one."""
        plan = self.plan_of(transformation)
        if plan.percent == 0:
            return OFF
        if plan.percent < 100 and _bucket(transformation, conversation_key) >= plan.percent:
            return CONTROL
        return DRY_RUN if plan.dry_run else ON

    def compare(self, newer: Rollout) -> list[str]:
        """What changes for each transformation when the newer one comes into force."""
        told = ((name, self.plan_of(name), newer.plan_of(name)) for name in TRANSFORMATIONS)
        return [f"{name}: {before} -> {after}" for name, before, after in told if before != after]


class Live:
    """The rollout in force where it was changed since the start. It is replaced as a whole, between two requests."""

    __slots__ = ("rollout",)

    def __init__(self) -> None:
        self.rollout: Rollout | None = None


def _bucket(transformation: str, conversation_key: str) -> float:
    """Where a conversation lies, from 0 up to 100; independent for each transformation."""
    digest = blake2b(f"{transformation}\0{conversation_key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % BUCKETS * 100 / BUCKETS


def identify(conversation: Conversation) -> str:
    """What all turns of a conversation share, short enough for a record."""
    text = _opening(conversation.messages)
    told = f"{conversation.model}\0{len(text)}\0{text[:HEAD]}"
    return blake2b(told.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _opening(messages: tuple[Message, ...]) -> str:
    """What the user began with, pictures too; without a user the first words of anybody. Later turns never change it,
    even if the first one has no words."""
    first = next((message for message in messages if message.role == "user"), None)
    if first is None:
        return next((text for message in messages if (text := message.text)), "")
    pictures = (f"{part.url}\0{part.data}" for part in first.parts if isinstance(part, Image))
    seen = (blake2b(shown.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest() for shown in pictures)
    return "".join((*seen, first.text))

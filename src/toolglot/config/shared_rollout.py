"""The rollout that all gateways with the same store use.

*Strategy.* The newest change wins, whether it was made in the settings file of a gateway or with ``toolglot rollout``.
A gateway that starts has to know whether its file was changed since. So the store holds, besides the current rollout,
a fingerprint of the rollout in the file of each gateway when it was last read. Of a gateway that the store does not
know, the file counts as changed if it has a rollout that no other had before.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.config.rollout import TRANSFORMATIONS, Plan, Rollout, read_plan

MAX_REPLACED: Final = 200
MAX_FILES: Final = 1000
ALL: Final = "stage"
"""The name of the plan for transformations without their own."""


class SharedRollout(Struct, frozen=True):
    """The stored form: a plan for each name as a table; fingerprints of the files by gateway, and of earlier
    rollouts."""

    plans: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, str] = {}
    replaced: tuple[str, ...] = ()

    @property
    def rollout(self) -> Rollout:
        """Raises: ValueError if a plan is not valid."""
        plans = {name: read_plan(table) for name, table in self.plans.items()}
        return Rollout(plans.pop(ALL, Plan()), plans)

    def is_changed(self, gateway: str, file: Rollout) -> bool:
        """Whether the file of a gateway has changed since it was last read."""
        own, known = fingerprint(file), self.files.get(gateway)
        if known is not None:
            return known != own
        return own not in (*self.replaced, fingerprint(Rollout()), fingerprint(self.rollout))

    def add_file(self, gateway: str, file: Rollout) -> SharedRollout:
        files = {name: read for name, read in self.files.items() if name != gateway}
        latest = list(files.items())[-MAX_FILES:]
        return replace(self, files={**dict(latest), gateway: fingerprint(file)})

    def encode(self) -> bytes:
        return msgspec.json.encode(self)


def change_rollout(before: SharedRollout | None, rollout: Rollout, *replaced: Rollout) -> SharedRollout:
    """A change to a new rollout, which also replaces these."""
    old = [*before.replaced, fingerprint(before.rollout)] if before is not None else []
    old += map(fingerprint, replaced)
    current = fingerprint(rollout)
    kept = [one for one in dict.fromkeys(old) if one != current][-MAX_REPLACED:]
    plans = {ALL: rollout.plan, **rollout.plans}
    files = before.files if before is not None else {}
    return SharedRollout({name: _write_plan(plan) for name, plan in plans.items()}, files, tuple(kept))


def set_plan(rollout: Rollout, name: str, plan: Plan) -> Rollout:
    """The rollout with another stage; restrictions to tools and confidence stay."""
    old = rollout.plan if name == ALL else rollout.plan_of(name)
    plan = dataclasses.replace(plan, tools=old.tools, min_confidence=old.min_confidence)
    return Rollout(plan, rollout.plans) if name == ALL else Rollout(rollout.plan, {**rollout.plans, name: plan})


def decode_rollout(stored: bytes) -> SharedRollout | None:
    """The stored rollout; None if it is not valid, as that of a later version may be."""
    try:
        decoded = msgspec.json.decode(stored, type=SharedRollout)
        return decoded if decoded.rollout else None
    except (msgspec.DecodeError, ValueError):
        return None


def fingerprint(rollout: Rollout) -> str:
    """Equal for rollouts that do the same."""
    plans = {name: _write_plan(rollout.plan_of(name)) for name in TRANSFORMATIONS}
    return blake2b(json.dumps(plans, sort_keys=True).encode(), digest_size=12).hexdigest()


def _write_plan(plan: Plan) -> dict[str, Any]:
    table: dict[str, Any] = {"percent": plan.percent, "dry_run": plan.dry_run}
    if plan.tools:
        table["tools"] = list(plan.tools)
    if plan.min_confidence is not None:
        table["min_confidence"] = plan.min_confidence
    return table

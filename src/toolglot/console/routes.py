"""The API of the view Routes: what is known of each model, the rollout, and the effective settings.

GET  /routes               each model with its upstream, mode, dialect, rule and learned failure
POST /routes/pin           {"model"}: send tools as text to it until that is forgotten
POST /routes/forget        {"model"}: forget what was learned of it
GET  /rollout              the plan of each transformation
POST /rollout/preview      {"name", "plan"}: who would be affected, of the conversations of the last day
POST /rollout              {"name", "plan"}: change it, on all gateways with the same store
GET  /settings             every setting and where it came from; secrets are masked
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.config.description import describe_settings
from toolglot.config.keys import mask_address
from toolglot.config.rollout import STAGES, TRANSFORMATIONS, Plan, Rollout, read_plan
from toolglot.config.shared_rollout import ALL, change_rollout, decode_rollout, set_plan
from toolglot.console import work
from toolglot.console.app import ConsoleContext
from toolglot.console.parameters import make_response, read_body
from toolglot.core.errors import RequestError, ToolglotError
from toolglot.gateway.mounting import HttpRequest, Response, Route
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.store.interface import RecordQuery, RecordRow

DAY: Final = 86_400
RECENT: Final = 1000
"""The newest records in which models and conversations are looked for."""
CLIENTS_SHOWN: Final = 5
PLAN_NAMES: Final = (ALL, *TRANSFORMATIONS)
AUTO: Final = "auto"
PATTERN: Final = "*"


class ModelName(Struct, frozen=True, forbid_unknown_fields=True):
    model: str


class PlanChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Another plan: ``off``, ``shadow``, ``canary-25``, ``full`` or a percentage."""

    name: str
    plan: str


class _Used(Struct, frozen=True):
    """The fields of a record that say who sent it. ``conversation`` is recorded only while a rollout divides
    conversations; ``session`` is always there."""

    model: str = ""
    conversation: str = ""
    session: str = ""
    client: str = ""
    agent: str = ""

    @property
    def key(self) -> str:
        return self.conversation or self.session

    @property
    def owner(self) -> str:
        return self.client or self.agent or "unknown"


class RoutesView:
    """Routes, rollout and settings of this gateway."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context
        self.settings = context.settings
        self.capabilities = context.gateway.capabilities

    def routes(self) -> Iterable[Route]:
        yield "GET", "/routes", self.list_routes
        yield "POST", "/routes/pin", self.pin
        yield "POST", "/routes/forget", self.forget
        yield "GET", "/rollout", self.show_rollout
        yield "POST", "/rollout/preview", self.preview
        yield "POST", "/rollout", self.change_rollout
        yield "GET", "/settings", self.show_settings

    # -- models --------------------------------------------------------------------------------------------------------

    async def list_routes(self, request: HttpRequest) -> Response:
        used = Counter(one.model for one in await self._list_recent() if one.model)
        named = [model.name for model in self.settings.models if PATTERN not in model.name]
        names = dict.fromkeys([*named, *(name for name, _ in used.most_common())])
        return make_response({"routes": [self._describe(name, used[name]) for name in names]})

    def _describe(self, name: str, requests: int) -> dict[str, Any]:
        try:
            model, upstream = self.settings.model_for(name)
        except ToolglotError as error:
            return {"model": name, "requests": requests, "problem": error.message}
        rule = self.capabilities.guess_rule(upstream, model.model)
        failure = self.capabilities.failures.recall(upstream.base_url, model.model, self.capabilities.now())
        native = rule.native and failure is None and not upstream.coached
        return {
            "model": name,
            "requests": requests,
            "upstream": upstream.name,
            "address": mask_address(upstream.base_url),
            "wire": upstream.wire,
            "upstream_model": model.model,
            "mode": model.mode,
            "decided": ("native" if native else "text") if model.mode == AUTO else model.mode,
            "dialect": model.dialect,
            "rule": rule.explain(),
            "learned": failure
            and {
                "kind": failure.kind,
                "evidence": failure.evidence,
                "learned": failure.learned,
                "expires": failure.expires,
                "pinned": failure.is_pinned,
            },
        }

    async def pin(self, request: HttpRequest) -> Response:
        address, model = await self._read_model(request)
        self.capabilities.failures.pin(address, model, self.capabilities.now())
        return await self.list_routes(request)

    async def forget(self, request: HttpRequest) -> Response:
        address, model = await self._read_model(request)
        self.capabilities.failures.forget(address, model, self.capabilities.now())
        return await self.list_routes(request)

    async def _read_model(self, request: HttpRequest) -> tuple[str, str]:
        """The address and the upstream's name of the model that a change is about. Raises: RequestError."""
        name = (await read_body(request, ModelName)).model
        model, upstream = self.settings.model_for(name)
        return upstream.base_url, model.model

    # -- rollout -------------------------------------------------------------------------------------------------------

    async def show_rollout(self, request: HttpRequest) -> Response:
        rollout = self.settings.rollout_now
        shared = self.context.telemetry.writer is not None
        plans = [
            {"name": name, "about": TRANSFORMATIONS[name], **describe_plan(rollout.plan_of(name))}
            for name in TRANSFORMATIONS
        ]
        return make_response({"plans": plans, "stages": list(STAGES), "shared": shared})

    async def preview(self, request: HttpRequest) -> Response:
        change, plan = await self._read_change(request)
        after = set_plan(self.settings.rollout_now, change.name, plan)
        names = list(TRANSFORMATIONS) if change.name == ALL else [change.name]
        recent = await self._list_recent()
        return make_response(await work.run(count_affected, recent, self.settings.rollout_now, after, names))

    async def change_rollout(self, request: HttpRequest) -> Response:
        change, plan = await self._read_change(request)
        own, before = self.settings.rollout.as_rollout(), self.settings.rollout_now
        after = set_plan(before, change.name, plan)
        if self.context.telemetry.writer is not None:
            store = await self.context.open_store(fresh=False)
            found = await call_store(store.load_rollout())
            stored = decode_rollout(found[1]) if found is not None else None
            await call_store(store.save_rollout(change_rollout(stored, after, own, before).encode()))
        self.settings.live.rollout = after
        return await self.show_rollout(request)

    async def _read_change(self, request: HttpRequest) -> tuple[PlanChange, Plan]:
        change = await read_body(request, PlanChange)
        if change.name not in PLAN_NAMES:
            raise RequestError(f"name must be one of {', '.join(PLAN_NAMES)}.", "name")
        try:
            return change, read_plan(change.plan)
        except ValueError:
            raise RequestError("plan must be off, shadow, canary-25, full or a percentage.", "plan") from None

    # -- settings ------------------------------------------------------------------------------------------------------

    async def show_settings(self, request: HttpRequest) -> Response:
        return make_response(describe_settings(self.settings))

    async def _list_recent(self) -> list[_Used]:
        """Who sent the newest requests of the last day; nothing without a store."""
        if self.context.telemetry.writer is None:
            return []
        store, since = await self.context.open_store(), self.context.gateway.source.now() - DAY
        rows = await call_store(store.list_records(None, RecordQuery(limit=RECENT)))
        return await work.run(read_used, [row for row in rows if row.time >= since])


def read_used(rows: list[RecordRow]) -> list[_Used]:
    found = [msgspec.json.decode(row.data, type=_Used) for row in rows]
    return [replace(one, session=row.session) for one, row in zip(found, rows, strict=True)]


def describe_plan(plan: Plan) -> dict[str, Any]:
    return {
        "plan": str(plan),
        "stage": plan.stage,
        "percent": plan.percent,
        "dry_run": plan.dry_run,
        "tools": plan.tools,
        "min_confidence": plan.min_confidence,
    }


def count_affected(recent: list[_Used], before: Rollout, after: Rollout, names: list[str]) -> dict[str, Any]:
    """How many conversations have which arm, how many of them get another one, and whose they are. The numbers are
    estimates where only sessions are known: the arm of a conversation depends on its first message."""
    owners = {one.key: one.owner for one in recent if one.key}
    pairs = [(name, key) for name in names for key in owners]
    arms = Counter(after.decide(name, key) for name, key in pairs)
    changed = {key for name, key in pairs if before.decide(name, key) != after.decide(name, key)}
    clients = Counter(owners[key] for key in changed).most_common(CLIENTS_SHOWN)
    return {
        "conversations": len(owners),
        "exact": all(one.conversation for one in recent),
        "arms": {arm.value: times for arm, times in arms.items()},
        "changed": len(changed),
        "clients": [{"client": client, "conversations": times} for client, times in clients],
    }

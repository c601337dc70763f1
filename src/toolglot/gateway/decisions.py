"""Says in words what was decided about a request, and why: for ``toolglot explain`` and the log.

Requests do not need it, so it is imported where it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.clients.toolsets import suggest_toolset
from toolglot.gateway.exchange import LOG, Exchange
from toolglot.gateway.response_pipeline import holds_calls
from toolglot.gateway.routing import RELAY, TEXT, Route

ARM_TEXTS: Final = {
    "off": "off",
    "control": "left to others (this conversation is in the control group)",
    "dry_run": "in a dry run",
}


def explain_arms(arms: Mapping[str, str]) -> str:
    """The transformations that the rollout does not apply to the request."""
    return "; ".join(f"{name} is {ARM_TEXTS[arm]} by the rollout" for name, arm in arms.items() if arm in ARM_TEXTS)


def explain_route(route: Route, now: float) -> str:
    if route.detected:
        return "no tools are offered, but the last message asks for what the usual ones do (auto_detect)"
    if route.failure is not None:
        return route.failure.explain(now)
    if route.rule is not None:
        return route.rule.explain()
    if route.tool_mode.value == "relay":
        return "tool calling is off" if route.mode == "off" else "nothing in the request concerns tools"
    return "the upstream is coached" if route.upstream.coached else f"the mode {route.mode} is set"


def suggest_editing(exchange: Exchange, fails: bool = False) -> str:
    """That other tools for editing would help; empty if they are set, would not, or are not known to."""
    session, route = exchange.xml_session, exchange.route
    if route.model.editing or route.tool_mode is RELAY:
        return ""
    wanted = suggest_toolset(exchange.tools if session is None else session.offered, route.model.model, fails)
    why = "its edits with the client's tools fail" if fails else "it was trained on other tools than the client's"
    return f'set editing = "{wanted}" for this model: {why} (docs/toolsets.md)' if wanted else ""


def log_decisions(exchange: Exchange) -> None:
    """Log what was decided, before a request to an upstream."""
    route, recorder, recovery = exchange.route, exchange.recorder, exchange.recovery
    asked = exchange.client_request.conversation.model
    request, model, sent_model = recorder.clean(recorder.request_id, asked, route.model.model)
    dialect = f", dialect {route.dialect}" if route.tool_mode is TEXT else ""
    retries = recovery.settings.retries - recovery.attempts + 1 if recovery is not None else 0
    facts = [
        f"{model!r} is asked as {sent_model!r} at {route.upstream.name!r} ({route.upstream.wire})",
        f"tools {route.tool_mode} (mode {route.mode}{dialect})",
        f"because {explain_arms(recorder.arms) or explain_route(route, exchange.source.now())}",
        f"{len(exchange.tools)} tools can be read, {recorder.stripped} of {recorder.offered} are not offered",
        f"streamed calls are {'held until they are checked' if holds_calls(exchange) else 'sent while they arrive'}",
        f"{retries} further requests after a defective answer",
        *recorder.notes,
    ]
    LOG.debug("request %s: %s", request, "; ".join(facts))

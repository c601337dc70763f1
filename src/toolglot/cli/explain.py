"""``toolglot explain``: what would become of a request, and why. Nobody is asked unless that is wished."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolglot.cli.common_options import add_options, load_settings
from toolglot.cli.config import mask_address
from toolglot.cli.exit_codes import OK, Commands
from toolglot.cli.serve import EMBEDDED_DIALECT
from toolglot.config import ModelSettings, Settings, Upstream
from toolglot.config.keys import MASK
from toolglot.core.errors import UsageError

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange
    from toolglot.gateway.routing import Capabilities, CapabilitiesUnknown, Route

EXAMPLES = """\
examples:
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1         nobody is asked
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1 --ask   the server is asked what it can
  toolglot explain request.json --config toolglot.toml --json               one JSON document
  toolglot explain --learned                                                what 'auto' has learned so far
"""
UNASKED = "the server was not asked what it can do; --ask asks it"
SECRET_HEADERS = ("Authorization", "x-api-key", "x-goog-api-key", "api-key")
SAID = {
    "off": "off",
    "control": "left to others (this conversation is in the control group)",
    "dry_run": "in a dry run",
}
CAPABILITIES = ("native", "parallel", "dialect", "reasoning", "structured", "quirks")


def add(commands: Commands) -> None:
    explain = commands.add_parser(
        "explain",
        help="show what would become of a request, and why",
        description="Show the route of a request: upstream, tier (native, text or relay), dialect, the profile that"
        " decided, and what the upstream would be sent.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument(
        "request", nargs="?", default="-", metavar="FILE", help="the request, as JSON (default: stdin)"
    )
    explain.add_argument("--wire", default="openai_chat", help="the wire it comes by (default: openai_chat)")
    explain.add_argument("--ask", action="store_true", help="ask the upstream what it can do")
    explain.add_argument("--learned", action="store_true", help="show what was learned about native tools, and leave")
    explain.add_argument("--json", action="store_true", help="print one JSON document")
    add_options(explain)
    explain.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        from toolglot.server.upstream.discovery import load_capabilities
    except ImportError as error:
        raise UsageError(f"explain needs more than the library: pip install 'toolglot[server]' ({error})") from None
    from time import time

    settings = _fed(load_settings(arguments))
    knowledge = load_capabilities(settings, time)
    if arguments.learned:
        document: Any = [asdict(lesson) for lesson in knowledge.experience.recall_all(time())]
        told = [f"{one['address']}  {one['model']}  {one['kind']}: {one['evidence']}" for one in document]
        lines = iter(told or ["nothing was learned"])
    else:
        body = _load(arguments.request)
        document = describe(*_exchange(body, arguments, settings, knowledge), knowledge.now())
        lines = show(document)
    print(json.dumps(document, ensure_ascii=False, indent=2) if arguments.json else "\n".join(lines))
    return OK


def _fed(settings: Settings) -> Settings:
    """As the gateway would: with the embedded model if nothing is configured."""
    if settings.upstreams:
        return settings
    upstream = Upstream(name="embedded", base_url="http://embedded.invalid/v1", coached=True)
    return settings.answered_by(upstream, ModelSettings(dialect=EMBEDDED_DIALECT))


def _load(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None


def _exchange(
    body: bytes, arguments: argparse.Namespace, settings: Settings, knowledge: Capabilities
) -> tuple[Exchange, list[str]]:
    """The exchange, as far as it goes without an upstream, and notes on how it came about."""
    from toolglot.gateway.exchange import Exchange, Source
    from toolglot.gateway.routing import CapabilitiesUnknown
    from toolglot.gateway.telemetry.log import Telemetry
    from toolglot.wires import all_wires

    if arguments.wire not in all_wires():
        raise UsageError(f"there is no wire {arguments.wire!r}; wires are {', '.join(all_wires())}")
    wire, source = all_wires()[arguments.wire], Source(knowledge.now, lambda: "0")
    path = {"model": arguments.model or ""}

    def make() -> Exchange:
        watch = Telemetry().begin("explain", wire.NAME)
        return Exchange(wire, body, path, settings, source, watch, knowledge)

    try:
        return make(), []
    except CapabilitiesUnknown as unsure:
        notes = _ask(unsure, knowledge) if arguments.ask else _leave(unsure, knowledge)
    return make(), notes


def _leave(unsure: CapabilitiesUnknown, knowledge: Capabilities) -> list[str]:
    knowledge.tell(unsure.upstream, unsure.model, {}, 60)
    return [UNASKED]


def _ask(unsure: CapabilitiesUnknown, knowledge: Capabilities) -> list[str]:
    import asyncio

    from toolglot.server.upstream.discovery import Discovery, default_headers
    from toolglot.server.upstream.probe import fresh_pool

    async def ask() -> None:
        async with fresh_pool() as transport:
            await Discovery(transport, knowledge).discover(
                unsure.upstream, unsure.model, default_headers(unsure.upstream)
            )

    asyncio.run(ask())
    return ["the server was asked what it can do"]


def describe(exchange: Exchange, notes: list[str], now: float) -> dict[str, Any]:
    """The route and the request as a document without secrets."""
    from toolglot.gateway.telemetry.log import redact
    from toolglot.server.upstream.discovery import default_headers

    route, upstream = exchange.route, exchange.route.upstream
    secret = {*SECRET_HEADERS, *upstream.headers}
    headers = {name: MASK if name in secret else value for name, value in default_headers(upstream).items()}
    body = _blacken(json.loads(exchange.request), lambda text: redact(text, upstream.secrets))
    return {
        "model": route.model.name,
        "upstream": {
            "name": upstream.name,
            "address": mask_address(upstream.base_url),
            "wire": upstream.wire,
            "model": route.model.model,
        },
        "mode": route.mode,
        "tier": route.manner.value,
        "why": explain_arms(exchange.watch.arms) or explain_route(route, now),
        "arms": exchange.watch.arms,
        "dialect": route.dialect if exchange.speech is not None else "",
        "parallel": route.parallel,
        "single": route.single,
        "profile": route.rule
        and {"rule": route.rule.explain()} | {key: getattr(route.rule, key) for key in CAPABILITIES},
        "client": exchange.guest and exchange.guest.describe(),
        "mapping": exchange.mapping and exchange.mapping.describe(),
        "learned": route.lesson and asdict(route.lesson),
        "notes": [*notes, *exchange.watch.notes],
        "request": {"url": mask_address(exchange.address), "headers": headers, "body": body},
    }


def _blacken(value: Any, redact: Callable[[str], str]) -> Any:
    """The same JSON with every text in it fit to be shown."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_blacken(item, redact) for item in value]
    return {key: _blacken(item, redact) for key, item in value.items()} if isinstance(value, dict) else value


def explain_arms(arms: Mapping[str, str]) -> str:
    """What is not done to the request because of the rollout."""
    return "; ".join(f"{name} is {SAID[arm]} by the rollout" for name, arm in arms.items() if arm in SAID)


def explain_route(route: Route, now: float) -> str:
    if route.detected:
        return "no tools are offered, but the last message asks for what the usual ones do (auto_detect)"
    if route.lesson is not None:
        return route.lesson.explain(now)
    if route.rule is not None:
        return route.rule.explain()
    if route.manner.value == "relay":
        return "tool calling is off" if route.mode == "off" else "nothing in the request concerns tools"
    return f"the mode {route.mode} is set" if route.mode != "auto" else "the upstream is coached"


def show(document: Mapping[str, Any]) -> Iterator[str]:
    upstream, profile, request = document["upstream"], document["profile"], document["request"]
    rows = {
        "model": f"{document['model'] or '-'} -> {upstream['model'] or '-'}",
        "upstream": f"{upstream['name']}, {upstream['address']} ({upstream['wire']})",
        "tier": f"{document['tier']} (mode {document['mode']})",
        "why": document["why"],
        "dialect": document["dialect"],
        "parallel": _describe_number(document),
        "profile": profile and (profile["rule"] + "; " if document["learned"] else "") + _capabilities(profile),
        "client": document["client"],
        "mapping": document["mapping"],
    }
    yield from (f"{name:<9} {value}" for name, value in rows.items() if value)
    yield from (f"{'note':<9} {note}" for note in document["notes"])
    yield f"\nPOST {request['url']}"
    yield from (f"{name}: {value}" for name, value in request["headers"].items())
    yield "\n" + json.dumps(request["body"], ensure_ascii=False, indent=2)


def _describe_number(document: Mapping[str, Any]) -> str:
    """How many calls the model is asked for in one answer, and how many are delivered."""
    if document["single"]:
        return "one call in an answer"
    return "several calls in one answer" if document["parallel"] else "one call is asked for, all are delivered"


def _capabilities(profile: Mapping[str, Any]) -> str:
    told = {key: profile[key] for key in CAPABILITIES if profile[key] not in ("", None, ())}
    return "; ".join(
        f"{key} {', '.join(value) if isinstance(value, tuple) else str(value).lower()}" for key, value in told.items()
    )

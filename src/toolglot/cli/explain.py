"""``toolglot explain``: how the gateway would handle a request, and why. Contacts the upstream only with ``--ask``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from toolglot.cli.common_options import add_gateway_options, load_settings
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.input_files import read_input
from toolglot.config import Settings
from toolglot.config.keys import MASK, mask_address
from toolglot.core.errors import StoreError, UsageError
from toolglot.core.installation import name_install_command

if TYPE_CHECKING:
    from toolglot.gateway.exchange import Exchange
    from toolglot.gateway.routing import Capabilities, CapabilitiesUnknown

EXAMPLES = """\
examples:
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1         without contacting the server
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1 --ask   ask the server for its capabilities
  toolglot explain request.json --config toolglot.toml --json               one JSON document
  toolglot explain --learned                                                what mode auto has learned so far
"""
NOT_ASKED = "the server was not asked what it can do; --ask asks it"
CHAT_ID = "NEW_CHAT"
NEW_CHAT = "the upstream keeps chats: this begins a new one; a later turn sends only what follows its last answer"
SECRET_HEADERS = ("Authorization", "x-api-key", "x-goog-api-key", "api-key")
CAPABILITIES = ("native", "parallel", "dialect", "reasoning", "structured", "strict", "quirks")


def add(add_parser: AddParser) -> None:
    explain = add_parser(
        description="Show the route of a request: upstream, tier (native, text or relay), dialect, the profile that"
        " decided, and the request that the upstream would receive.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    explain.add_argument(
        "request", nargs="?", default="-", metavar="FILE", help="the request, as JSON (default: stdin)"
    )
    explain.add_argument("--wire", default="openai_chat", help="the wire of the request (default: openai_chat)")
    explain.add_argument("--ask", action="store_true", help="ask the upstream for its capabilities")
    explain.add_argument("--learned", action="store_true", help="show what was learned about native tools, and exit")
    explain.add_argument("--json", action="store_true", help="print one JSON document")
    add_gateway_options(explain)
    explain.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        from toolglot.server.upstream.discovery import load_capabilities
    except ImportError as error:
        raise UsageError(f"explain needs the server extra: {name_install_command('server')} ({error})") from None
    from time import time

    settings = _add_embedded_upstream(load_settings(arguments, needs_secrets=arguments.ask))
    capabilities = load_capabilities(settings, time)
    _add_stored_failures(settings, capabilities)
    if arguments.learned:
        document: Any = [asdict(entry) for entry in capabilities.failures.recall_all(time())]
        rows = [f"{one['address']}  {one['model']}  {one['kind']}: {one['evidence']}" for one in document]
        lines = iter(rows or ["nothing was learned"])
    else:
        body = read_input(arguments.request)
        document = describe_exchange(*_build_exchange(body, arguments, settings, capabilities), capabilities.now())
        lines = format_lines(document)
    print(json.dumps(document, ensure_ascii=False, indent=2) if arguments.json else "\n".join(lines))
    return OK


def _add_stored_failures(settings: Settings, capabilities: Capabilities) -> None:
    """Add what the store knows to what a file knows."""
    import asyncio

    from toolglot.gateway.storage import list_failures

    try:
        stored = asyncio.run(list_failures(settings, os.environ))
    except StoreError as error:
        print(f"note: learned failures cannot be read: {error.message}", file=sys.stderr)
        return
    known = capabilities.failures.recall_all(capabilities.now())
    capabilities.failures.replace_all([*known, *stored])


def _add_embedded_upstream(settings: Settings) -> Settings:
    """Like the gateway, use the embedded model if it is named, or if there is no other upstream."""
    from toolglot.cli.embedded import NOT_RUNNING, add_embedded, choose_embedded, wants_embedded

    if not wants_embedded(settings):
        return settings
    return add_embedded(settings, choose_embedded(settings), NOT_RUNNING)


def _build_exchange(
    body: bytes, arguments: argparse.Namespace, settings: Settings, capabilities: Capabilities
) -> tuple[Exchange, list[str]]:
    """Build the exchange without sending it, and notes on how its route was found."""
    from toolglot.gateway.context import GatewayContext, IncomingRequest, Source
    from toolglot.gateway.exchange import Exchange, prepare
    from toolglot.gateway.routing import CapabilitiesUnknown
    from toolglot.gateway.telemetry.log import Telemetry
    from toolglot.wires import client_wires

    if arguments.wire not in client_wires():
        raise UsageError(f"there is no wire {arguments.wire!r}; wires are {', '.join(client_wires())}")
    wire, source = client_wires()[arguments.wire], Source(capabilities.now, lambda: "0")
    path = {"model": arguments.model or ""}

    notes: list[str] = []
    for _ in range(2):
        request = IncomingRequest(wire, body, Telemetry().begin("explain", wire.name), path)
        exchange = prepare(request, GatewayContext(settings, source, capabilities))
        if isinstance(exchange, Exchange):
            return exchange, notes
        if not isinstance(exchange, CapabilitiesUnknown):
            break
        notes = _ask(exchange, capabilities) if arguments.ask else _assume_nothing(exchange, capabilities)
    raise UsageError("the capabilities of the upstream are unknown after discovery")


def _assume_nothing(unsure: CapabilitiesUnknown, capabilities: Capabilities) -> list[str]:
    from toolglot.cli.embedded import NOT_RUNNING, SERVER_FACTS

    embedded = unsure.upstream.base_url == NOT_RUNNING
    capabilities.set_facts(unsure.upstream, unsure.model, SERVER_FACTS if embedded else {}, 60)
    return [NOT_ASKED]


def _ask(unsure: CapabilitiesUnknown, capabilities: Capabilities) -> list[str]:
    import asyncio

    from toolglot.server.upstream.discovery import Discovery, default_headers
    from toolglot.server.upstream.probe import fresh_pool

    async def ask() -> None:
        async with fresh_pool() as transport:
            await Discovery(transport, capabilities).discover(
                unsure.upstream, unsure.model, default_headers(unsure.upstream)
            )

    asyncio.run(ask())
    return ["the server was asked what it can do"]


def describe_exchange(exchange: Exchange, notes: list[str], now: float) -> dict[str, Any]:
    """The route and the upstream request as a JSON document, with secrets masked."""
    from toolglot.gateway.decisions import explain_arms, explain_route, suggest_editing
    from toolglot.gateway.telemetry.log import redact
    from toolglot.server.upstream.discovery import default_headers

    route, upstream = exchange.route, exchange.route.upstream
    secret = {*SECRET_HEADERS, *upstream.own_headers}
    headers = {name: MASK if name in secret else value for name, value in default_headers(upstream).items()}
    address, body = exchange.address, exchange.upstream_body
    if exchange.chat_turn is not None:
        address, body = _begin_chat(exchange, now)
        notes = [*notes, NEW_CHAT]
    body = _redact_all(json.loads(body), lambda text: redact(text, upstream.secrets))
    return {
        "model": route.model.name,
        "upstream": {
            "name": upstream.name,
            "address": mask_address(upstream.base_url),
            "wire": upstream.wire,
            "model": route.model.model,
        },
        "mode": route.mode,
        "tier": route.tool_mode.value,
        "why": explain_arms(exchange.recorder.arms) or explain_route(route, now),
        "arms": exchange.recorder.arms,
        "dialect": route.dialect if exchange.prompted is not None else "",
        "parallel": route.parallel,
        "single": route.single,
        "profile": route.rule
        and {"rule": route.rule.explain()} | {key: getattr(route.rule, key) for key in CAPABILITIES},
        "client": exchange.xml_session and exchange.xml_session.describe(),
        "mapping": exchange.mapping and exchange.mapping.describe(),
        "learned": route.failure and asdict(route.failure),
        "notes": [*notes, *dict.fromkeys([*exchange.recorder.notes, *filter(None, [suggest_editing(exchange)])])],
        "request": {"url": mask_address(address), "headers": headers, "body": body},
    }


def _begin_chat(exchange: Exchange, now: float) -> tuple[str, bytes]:
    """The address and the body of the first message of a new chat of a stateful upstream."""
    from toolglot.wires.protocol import ChatPosition

    turn, chat = exchange.chat_turn, exchange.upstream_wire.chat
    assert turn is not None and chat is not None
    body = exchange.upstream_wire.encode_request(turn.conversation, stream=True, wants_usage=True)
    position = ChatPosition(chat_id=CHAT_ID, parent="", fresh_id=lambda: "0", now=now)
    return exchange.route.upstream.endpoint(chat.locate(CHAT_ID), ""), chat.place(body, position)


def _redact_all(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every string in a JSON value."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [_redact_all(item, redact) for item in value]
    return {key: _redact_all(item, redact) for key, item in value.items()} if isinstance(value, dict) else value


def format_lines(document: Mapping[str, Any]) -> Iterator[str]:
    upstream, profile, request = document["upstream"], document["profile"], document["request"]
    rows = {
        "model": f"{document['model'] or '-'} -> {upstream['model'] or '-'}",
        "upstream": f"{upstream['name']}, {upstream['address']} ({upstream['wire']})",
        "tier": f"{document['tier']} (mode {document['mode']})",
        "why": document["why"],
        "dialect": document["dialect"],
        "parallel": _describe_parallel(document),
        "profile": profile and (profile["rule"] + "; " if document["learned"] else "") + _format_capabilities(profile),
        "client": document["client"],
        "mapping": document["mapping"],
    }
    yield from (f"{name:<9} {value}" for name, value in rows.items() if value)
    yield from (f"{'note':<9} {note}" for note in document["notes"])
    yield f"\nPOST {request['url']}"
    yield from (f"{name}: {value}" for name, value in request["headers"].items())
    yield "\n" + json.dumps(request["body"], ensure_ascii=False, indent=2)


def _describe_parallel(document: Mapping[str, Any]) -> str:
    """How many calls per answer the model is asked for, and how many are delivered."""
    if document["single"]:
        return "one call in an answer"
    return "several calls in one answer" if document["parallel"] else "one call is asked for, all are delivered"


def _format_capabilities(profile: Mapping[str, Any]) -> str:
    known = {key: profile[key] for key in CAPABILITIES if profile[key] not in ("", None, ())}
    return "; ".join(
        f"{key} {', '.join(value) if isinstance(value, tuple) else str(value).lower()}" for key, value in known.items()
    )

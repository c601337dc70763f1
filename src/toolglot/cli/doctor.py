"""``toolglot doctor``: check everything that a request depends on, and say how to correct what is wrong.

Strategy. Every check yields findings and never raises; a check that depends on another one is left out if that failed.
The upstream is asked as the gateway would ask it, so that the findings are those of real requests.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

from msgspec.structs import asdict

from toolglot.cli.backups import BackedUpFile
from toolglot.cli.common_options import add_gateway_options, find_settings_file, load_settings
from toolglot.cli.exit_codes import FINDINGS, OK, USAGE_ERROR, AddParser
from toolglot.cli.gateway_contact import GatewayContact, find_address, find_key, name_models
from toolglot.clients.agents import AGENTS
from toolglot.clients.gateway_key import KEY_VARIABLE
from toolglot.config import ModelSettings, Settings, Upstream
from toolglot.config.settings import ANY
from toolglot.config.upstream_errors import KEY_STATUSES
from toolglot.core.errors import StoreError, ToolglotError, UsageError
from toolglot.core.installation import name_install_command
from toolglot.server.upstream.findings import FINE, PROBLEM, WARNING, Finding

EXAMPLES = """\
examples:
  toolglot doctor                                          the settings that 'toolglot serve' would use here, and the
                                                           gateway that runs at their address
  toolglot doctor --base-url http://127.0.0.1:8080/v1      a server, before the gateway is started
  toolglot doctor --no-call                                without a request to the model
  toolglot doctor --json

exit codes:
  0  everything is well
  1  there are warnings
  2  there are problems: requests will fail
"""


def add(add_parser: AddParser) -> None:
    doctor = add_parser(
        description="Check what requests depend on: settings, upstream, its key, model, tool support, streaming,"
        " context size, store, port, and the configuration of clients. Each finding is one line; what is wrong"
        " comes with the command that corrects it. The model is asked for one call.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_argument("--json", action="store_true", help="print one JSON document")
    doctor.add_argument("--no-call", action="store_true", help="send no request to the model")
    add_gateway_options(doctor)
    doctor.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    import asyncio

    try:
        import toolglot.server.upstream.probe  # noqa: F401
    except ImportError as error:
        raise UsageError(f"doctor needs the server extra: {name_install_command('server')} ({error})") from None
    findings = asyncio.run(_collect(arguments))
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}, ensure_ascii=False, indent=2))
    severities = {finding.severity for finding in findings}
    return USAGE_ERROR if PROBLEM in severities else FINDINGS if WARNING in severities else OK


async def _collect(arguments: argparse.Namespace) -> list[Finding]:
    findings = []
    async for finding in examine(arguments):
        findings.append(finding)
        if not arguments.json:
            print(format_finding(finding), flush=True)
    return findings


def format_finding(finding: Finding) -> str:
    return f"{finding.severity:<8} {finding.check:<9} {finding}"


async def examine(arguments: argparse.Namespace) -> AsyncIterator[Finding]:
    """All findings, in the order of the path of a request."""
    import asyncio

    try:
        (settings, unknown), key = _load(arguments), find_key(None)
    except UsageError as error:
        yield Finding("settings", PROBLEM, error.message, "correct the setting, then: toolglot config show")
        return
    path = find_settings_file(arguments)
    yield Finding("settings", FINE, str(path) if path else "no file; options and environment only")
    for note in settings.notes:
        yield Finding("settings", WARNING, note, "toolglot config show")
    address = find_address(None, settings)
    contact = GatewayContact(address, key, "toolglot-doctor")
    asked = not arguments.base_url and settings.server.port and await asyncio.to_thread(is_gateway, contact)
    upstreams = () if unknown else settings.upstreams
    if not upstreams or settings.embedded.model:
        yield describe_missing(settings, unknown, address if asked else "")
    for upstream in upstreams:
        async for finding in examine_upstream(settings, upstream, calls=not arguments.no_call):
            yield finding
    yield await check_store(settings)
    yield await asyncio.to_thread(check_port, settings, address)
    if asked:
        for finding in await asyncio.to_thread(check_gateway, contact, arguments.model, not arguments.no_call):
            yield finding
    for finding in check_clients(address):
        yield finding


def _load(arguments: argparse.Namespace) -> tuple[Settings, str]:
    """The settings, and which secret of an upstream is unknown here: a gateway that runs has it."""
    try:
        return load_settings(arguments), ""
    except UsageError as error:
        settings = load_settings(arguments, needs_secrets=False)
        if arguments.base_url or not is_gateway(GatewayContact(find_address(None, settings))):
            raise
        return settings, error.message


# The upstream


def describe_missing(settings: Settings, unknown: str, gateway: str) -> Finding:
    """Why no upstream is examined; ``gateway`` is the address of one that runs."""
    if unknown:
        return Finding("upstream", FINE, f"not checked from here: {unknown}. The gateway at {gateway} has its secrets")
    if settings.embedded.model:
        return check_embedded(settings)
    if gateway:
        return Finding("upstream", FINE, f"none in the settings here; the gateway at {gateway} has its own")
    text = "none is configured: the gateway starts the embedded model, which is far too small for agents"
    return Finding("upstream", WARNING, text, "toolglot serve --base-url http://127.0.0.1:8080/v1")


async def examine_upstream(settings: Settings, upstream: Upstream, calls: bool) -> AsyncIterator[Finding]:
    """The findings about one upstream and one of its models."""
    from toolglot.server.upstream.checks import Examined, check_context, check_upstream
    from toolglot.server.upstream.probe import fresh_pool

    examined = Examined(upstream)
    async with fresh_pool() as pool:
        async for finding in check_upstream(settings, examined, pool):
            yield finding
        if examined.model:
            async for finding in examine_model(settings, upstream, examined.model, calls):
                yield finding
            yield await check_context(pool, examined)


async def examine_model(settings: Settings, upstream: Upstream, model: str, calls: bool) -> AsyncIterator[Finding]:
    """How tools reach a model and why, and whether it makes a call in a streamed answer."""
    from time import monotonic, time

    from toolglot.gateway.decisions import explain_route
    from toolglot.server.upstream.checks import describe_refused_key
    from toolglot.server.upstream.discovery import load_capabilities
    from toolglot.server.upstream.probe import NO, YES, Probe, Test

    chosen = next((one for one in settings.models if (one.model or one.name) == model), None)
    resolved = settings.model_for(chosen.name if chosen else model)[0]
    only = ModelSettings(name=ANY, model=model, dialect=resolved.dialect, mode=resolved.mode, upstream=upstream.name)
    capabilities = load_capabilities(settings, time)
    alone = replace(settings, upstreams=(upstream,), models=(only,), recovery=replace(settings.recovery, retries=0))
    probe = Probe(alone, capabilities, monotonic)
    test = Test("streamed call", "", stream=True, dialect=resolved.dialect)
    try:
        await probe.find_rule()
        route = probe.prepare(test).route
    except ToolglotError as error:
        yield Finding("tools", PROBLEM, f"{model}: {probe.clean(error.message)}", "toolglot config show")
        return
    dialect = f" in the dialect {route.dialect}" if route.tool_mode.value == "text" else ""
    yield Finding(
        "tools", FINE, f"{model}: {route.tool_mode.value}{dialect}; {explain_route(route, capabilities.now())}"
    )
    if not calls:
        return
    found = await probe.run(test)
    if found.status in KEY_STATUSES:
        yield describe_refused_key(upstream, found.detail)
        return
    severity = {YES: FINE, NO: WARNING}.get(found.result, PROBLEM)
    remedy = "" if severity == FINE else f"toolglot probe --model {model}, or another --mode or --dialect"
    yield Finding("call", severity, f"{model}, streamed, {found.seconds:.1f} s: {found.detail}", remedy)


# The gateway's own surroundings


async def check_store(settings: Settings) -> Finding:
    """Whether the store can be opened and written."""
    from toolglot.gateway.capabilities.learned import find_folder
    from toolglot.gateway.storage import make_store

    url, remedy = settings.store.url, "set store.url (TOOLGLOT_STORE_URL) or --state-dir"
    try:
        store = make_store(settings, os.environ)
        if store is None:
            return Finding("store", FINE, "none: nothing is recorded")
        try:
            await store.open()
        finally:
            await store.close()
    except (StoreError, UsageError, OSError) as error:
        return Finding("store", PROBLEM, f"{url} cannot be used: {getattr(error, 'message', error)}", remedy)
    folder = find_folder(settings.server.state_dir, os.environ) or Path()
    file = folder / Path(url.sqlite_path).expanduser() if url.sqlite_path else None
    if file and not os.access(file, os.W_OK):
        return Finding("store", PROBLEM, f"{file} cannot be written", remedy)
    return Finding("store", FINE, str(file or url))


def check_embedded(settings: Settings) -> Finding:
    """Whether the embedded model that the settings name can run, and what it is good for."""
    from toolglot.cli.embedded import choose_embedded, find_weights
    from toolglot.server.upstream.embedded import check_runtime

    try:
        choice = choose_embedded(settings)
        check_runtime()
    except UsageError as error:
        return Finding("upstream", PROBLEM, error.message, "toolglot serve --help")
    text = f"embedded model {choice.description}"
    if find_weights(choice, settings) is None:
        return Finding(
            "upstream", WARNING, f"{text}. It is not downloaded yet", f"toolglot serve --embedded {choice.name}"
        )
    return Finding("upstream", FINE, text)


def check_port(settings: Settings, address: str) -> Finding:
    """Whether the port is free, or used by a gateway already."""
    host, port = settings.server.host, settings.server.port
    try:
        if port and GatewayContact(address).is_running():
            return Finding("port", FINE, f"a gateway is running at {address}")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except (OSError, UsageError) as error:
        reason = error.strerror if isinstance(error, OSError) else "another program uses it"
        return Finding("port", PROBLEM, f"{host}:{port} cannot be used: {reason}", f"toolglot serve --port {port + 1}")
    return Finding("port", FINE, f"{port or 'any'} is free; start the gateway with 'toolglot serve'")


def is_gateway(contact: GatewayContact) -> bool:
    """Whether a gateway runs at the address, and no other program."""
    try:
        return contact.is_running()
    except UsageError:
        return False


def check_gateway(contact: GatewayContact, model: str | None, calls: bool) -> list[Finding]:
    """What a gateway that runs serves, and whether a call is made through it."""
    try:
        listed = contact.list_models()
    except UsageError as error:
        remedy = f"set {KEY_VARIABLE} to a client key ('toolglot key' makes one)"
        return [Finding("gateway", WARNING, error.message.partition(": ")[0], remedy)]
    if not listed:
        text = f"{contact.address} lists no models, as if its upstream were down; its log says what it found"
        return [Finding("gateway", PROBLEM, text, "toolglot doctor --base-url ADDRESS_OF_ITS_UPSTREAM")]
    served = Finding("gateway", FINE, f"{contact.address}: {name_models(listed)}")
    if not calls:
        return [served]
    test = contact.test_call("openai_chat", model or listed[0])
    severity = PROBLEM if test.problem else FINE if test.call else WARNING
    remedy = "" if severity != WARNING else "another model, or another --mode or --dialect of the gateway"
    return [served, Finding("gateway", severity, test.describe(), remedy)]


def check_clients(address: str) -> Iterator[Finding]:
    """Which clients are configured for the gateway at this address, or for another one."""
    configured = False
    for agent in AGENTS:
        for file in agent.files[:1]:
            path = file.locate(os.environ, Path.home())
            try:
                text = path.read_text("utf-8", "replace") if path.is_file() else ""
                ours = BackedUpFile(path, file.format).note_path.exists()
            except OSError:
                continue
            if address in text:
                configured = True
                yield Finding("client", FINE, f"{agent.title} uses this gateway ({path})")
            elif ours:
                configured = True
                yield Finding(
                    "client",
                    WARNING,
                    f"{agent.title} was set up for a gateway at another address ({path})",
                    f"toolglot setup {agent.name}",
                )
    if not configured:
        names = ", ".join(agent.name for agent in AGENTS[:5])
        yield Finding("client", FINE, f"none is configured; 'toolglot setup CLIENT' does it ({names}, ...)")

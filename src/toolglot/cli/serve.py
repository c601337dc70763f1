"""``toolglot serve``: run the gateway."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolglot.cli.common_options import add_gateway_options, load_settings, watch_settings_file
from toolglot.cli.config import mask_address
from toolglot.cli.exit_codes import OK, USAGE_ERROR, Commands
from toolglot.cli.workers import supervise
from toolglot.config import LiveReload, ModelSettings, Settings, Upstream, check_binding, is_loopback
from toolglot.core.errors import ClientError, StoreError, UsageError
from toolglot.gateway.telemetry.log import log_to

if TYPE_CHECKING:
    from toolglot.gateway.mounting import Mount

EXAMPLES = """\
examples:
  toolglot serve                                         use the embedded model: no key, no network
  toolglot serve --base-url http://127.0.0.1:8080/v1     use any OpenAI-compatible server
  OPENAI_BASE_URL=... OPENAI_API_KEY=... toolglot serve  the same from the environment
  toolglot serve --config toolglot.toml                  several upstreams and models ('toolglot config show')
  toolglot serve --config config.yaml                    an unmodified LiteLLM file
"""

EMBEDDED_DIALECT = "hermes"
RELOAD_INTERVAL = 0.5
"""Seconds between checks of the settings file for changes."""
CONNECT_TIMEOUT = 5.0
SMALL_MODEL_NOTE = (
    "this model is small and slow: good to try single calls, far too small for an agent (it reads 8,192 tokens; Claude"
    " Code, Codex and OpenCode send 8,000 to 30,000 before you say a word). For an agent start the gateway in front of"
    " a larger model: toolglot serve --base-url http://127.0.0.1:8080/v1"
)
EXAMPLE_TOOL = (
    '{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city",'
    '"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}'
)


def add(commands: Commands) -> None:
    serve = commands.add_parser(
        "serve",
        help="run the gateway",
        description="Run the gateway: an OpenAI-compatible server that gives tool calling to models that only write"
        " text. With nothing configured it starts a small embedded model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_gateway_options(serve)
    serve.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    settings = _choose_port(load_settings(arguments))
    check_binding(settings, keys_needed=_has_stored_keys(settings))
    live_reload = watch_settings_file(arguments, settings)
    with _with_upstream(settings) as active:
        if active.server.workers > 1:
            log_to(level=active.server.log_level)
            _import_server().warm_up(active)  # before the fork, so that it is done once for all workers
            return supervise(active.server.workers, partial(_run_worker, active, live_reload))
        _run(active, lambda address: _print_welcome(active, address), live_reload)
    return OK


def _has_stored_keys(settings: Settings) -> bool:
    """Whether the store has client keys, if that decides about the address. Raises: UsageError if it cannot be read."""
    import asyncio

    from toolglot.gateway.storage import make_store

    server = settings.server
    if server.keys or settings.console.keys or server.require_key or is_loopback(server.host):
        return False
    store = make_store(settings, os.environ)
    if store is None:
        return False

    async def count() -> int:
        try:
            await store.open()
            return len(await store.list_keys())
        finally:
            await store.close()

    try:
        return asyncio.run(count()) > 0
    except StoreError as error:
        raise UsageError(
            f"{server.host or 'every address'} can be reached from other machines, and whether there are client keys"
            f" in the store {settings.store.url!r} is unknown: {error.message}. Set server.require_key, or server.keys."
        ) from None


def _run_worker(settings: Settings, live_reload: LiveReload | None, announces: bool) -> int:
    """Serve as one of several processes; only the first one prints messages."""
    try:
        _run(settings, lambda address: _print_welcome(settings, address) if announces else None, live_reload)
    except ClientError as error:
        if announces:
            print(f"toolglot: {error.message}", file=sys.stderr)
        return USAGE_ERROR
    return OK


@contextmanager
def _with_upstream(settings: Settings) -> Iterator[Settings]:
    """The settings with an upstream: if none is configured, start the embedded model."""
    if settings.upstreams:
        yield settings
        return
    from toolglot.server.upstream.embedded import start

    print("No upstream is configured: starting the embedded model ...", file=sys.stderr, flush=True)
    with start() as local:
        upstream = Upstream(name="embedded", base_url=local.base_url, coached=True)
        yield settings.answered_by(upstream, ModelSettings(model=local.model, dialect=EMBEDDED_DIALECT, mode="text"))


def _choose_port(settings: Settings) -> Settings:
    """Replace port 0 by a free port if several processes share it."""
    server = settings.server
    if server.workers == 1 or server.port:
        return settings
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.create_server((server.host, 0), family=family, reuse_port=True) as free:
        return replace(settings, server=replace(server, port=free.getsockname()[1]))


def _run(settings: Settings, ready: Callable[[str], None], live_reload: LiveReload | None) -> None:
    import asyncio

    serve = _import_server().serve
    try:
        import uvloop

        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
    except ImportError:
        loop_factory = None

    async def serve_with_reload() -> None:
        reloading = asyncio.create_task(_watch(live_reload)) if live_reload is not None else None
        try:
            await serve(settings, ready, _choose_mount(settings))
        finally:
            if reloading is not None:
                reloading.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serve_with_reload())


def _choose_mount(settings: Settings) -> Mount | None:
    """The console, if the settings want it."""
    if not settings.console.enabled:
        return None
    from toolglot.console.app import open_console

    return open_console


def _import_server() -> ModuleType:
    try:
        from toolglot.server import lifecycle as serving
    except ImportError as error:
        raise UsageError(f"the gateway needs the server extra: pip install 'toolglot[server]' ({error})") from None
    return serving


async def _watch(live_reload: LiveReload) -> None:
    """Reload the settings file when it changes. Each process does so independently."""
    import asyncio

    while True:
        await asyncio.sleep(RELOAD_INTERVAL)
        live_reload.check()


def _print_welcome(settings: Settings, address: str) -> None:
    """Print the address and example requests to paste."""
    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    key = "$TOOLGLOT_KEY" if settings.server.keys or settings.server.require_key else "none"
    upstream = settings.upstreams[-1]
    if upstream.coached:
        print(f"note: {SMALL_MODEL_NOTE}", file=sys.stderr)
    console = f"\nWatch sessions in a browser: {address}/console\n" if settings.console.enabled else ""
    print(
        f"""toolglot is listening. Point any OpenAI client at

    {address}/v1        (upstream: {upstream.name}, {mask_address(upstream.base_url)})
{console}
Try it:

    curl -s {address}/v1/chat/completions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '
      {{"model": "any", "messages": [{{"role": "user", "content": "What is the weather in Paris?"}}],
       "tools": [{EXAMPLE_TOOL}]}}'

    from openai import OpenAI
    client = OpenAI(base_url="{address}/v1", api_key="{key}")
    answer = client.chat.completions.create(
        model="any", messages=[{{"role": "user", "content": "What is the weather in Paris?"}}],
        tools=[{EXAMPLE_TOOL}])
    print(answer.choices[0].message.tool_calls)

Stop with Ctrl-C.""",
        flush=True,
    )
    threading.Thread(target=_warn_unreachable, args=(settings,), daemon=True).start()


def find_unreachable(settings: Settings) -> Iterator[str]:
    """For each upstream that refuses connections: the problem and a remedy."""
    for upstream in settings.upstreams:
        parts = urlsplit(upstream.base_url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            socket.create_connection((parts.hostname or "", port), timeout=CONNECT_TIMEOUT).close()
        except (OSError, UnicodeError) as error:
            problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
            yield (
                f"upstream {upstream.name!r} at {mask_address(upstream.base_url)} does not answer ({problem}): requests"
                " will fail until it runs. Start it, or give another address (--base-url, OPENAI_BASE_URL, base_url)"
            )


def _warn_unreachable(settings: Settings) -> None:
    for problem in find_unreachable(settings):
        print(f"warning: {problem}.", file=sys.stderr, flush=True)

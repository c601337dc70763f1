"""``toolglot serve``: run the gateway."""

from __future__ import annotations

import argparse
import gc
import os
import shlex
import shutil
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING

from toolglot.cli.common_options import add_gateway_options, load_settings, watch_settings_file
from toolglot.cli.exit_codes import OK, USAGE_ERROR, AddParser
from toolglot.cli.workers import supervise
from toolglot.config import LiveReload, Settings, check_binding, is_loopback
from toolglot.config.keys import mask_address
from toolglot.config.references import Secrets
from toolglot.core.errors import ClientError, StoreError, UsageError
from toolglot.core.installation import name_install_command
from toolglot.server.upstream.findings import Finding

if TYPE_CHECKING:
    from toolglot.gateway.mounting import Mount

EXAMPLES = """\
examples:
  toolglot serve                                         run a small model on this machine: no key, no configuration
  toolglot serve --embedded qwen2.5-coder-1.5b           run a larger one; downloaded once (1.1 GB)
  toolglot serve --embedded FILE.gguf                    run any model in GGUF format
  toolglot serve --base-url http://127.0.0.1:8080/v1     use any OpenAI-compatible server
  OPENAI_BASE_URL=... OPENAI_API_KEY=... toolglot serve  the same from the environment
  toolglot serve --config toolglot.toml                  several upstreams and models ('toolglot config show')
  toolglot serve --config config.yaml                    an unmodified LiteLLM file

exit codes:
  0    stopped with Ctrl-C or SIGTERM, after open answers have ended
  2    usage error: an invalid setting, or an address that cannot be used
"""

RELOAD_INTERVAL = 0.5
"""Seconds between checks of the settings file for changes."""
PROGRAM = "toolglot"
USUAL_ADDRESS = "http://127.0.0.1:8484"
REPEATED = ("config", "embedded", "base_url", "model", "dialect", "profiles", "state_dir", "mode")
SMALL_MODEL_NOTE = (
    "this model is small and slow: good to try single calls, far too small for an agent (it reads 8,192 tokens; Claude"
    " Code, Codex and OpenCode send 8,000 to 30,000 before you say a word). For an agent start the gateway with a"
    " larger model: toolglot serve --base-url http://127.0.0.1:8080/v1, or toolglot serve --embedded qwen2.5-coder-1.5b"
    " (1.1 GB, for tasks of two or three steps)"
)
EXAMPLE_TOOL = (
    '{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city",'
    '"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}'
)


def add(add_parser: AddParser) -> None:
    serve = add_parser(
        description="Run the gateway: an OpenAI-compatible server that gives tool calling to models that only write"
        " text. With nothing configured it starts a small embedded model.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_gateway_options(serve)
    serve.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    secrets: Secrets = {}
    settings = _choose_port(load_settings(arguments, secrets))
    check_binding(settings, keys_needed=_has_stored_keys(settings))
    live_reload, options = watch_settings_file(arguments, settings, secrets), repeat_options(arguments)
    with _with_upstream(settings) as active:
        if active.server.workers > 1:
            from toolglot.gateway.telemetry.log import log_to

            log_to(level=active.server.log_level)
            # before the fork, so that it is done once for all workers
            _import_server().warm_up(active)
            with TemporaryDirectory(prefix="toolglot-metrics-") as folder:
                run_worker = partial(_run_worker, active, live_reload, options, Path(folder))
                return supervise(active.server.workers, run_worker)
        _run(active, lambda address: _print_welcome(active, address, options), live_reload, _print_finding)
    return OK


def serve_settings(settings: Settings, ready: Callable[[Settings, str], None]) -> None:
    """Serve until SIGTERM for another command, which prints the messages. ``ready`` gets the settings with their
    upstream, and the address. What the checks of upstreams find goes to standard error."""
    with _with_upstream(settings) as active:
        _run(active, partial(ready, active), None, _print_finding)


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


def _run_worker(
    settings: Settings,
    live_reload: LiveReload | None,
    options: str,
    metrics_folder: Path,
    slot: int,
    announces: bool,
) -> int:
    """Serve as one of several processes; only the first one prints messages."""
    ready = partial(_print_welcome, settings, options=options) if announces else _print_nothing
    try:
        report = _print_finding if announces else _print_nothing
        _run(settings, ready, live_reload, report, (metrics_folder, slot))
    except ClientError as error:
        if announces:
            print(f"toolglot: {error.message}", file=sys.stderr)
        return USAGE_ERROR
    return OK


@contextmanager
def _with_upstream(settings: Settings) -> Iterator[Settings]:
    """The settings with an upstream: run the embedded model if it is named, or if there is no other upstream."""
    from toolglot.cli.embedded import run_embedded, wants_embedded

    if not wants_embedded(settings):
        yield settings
        return
    with run_embedded(settings) as active:
        yield active


def _choose_port(settings: Settings) -> Settings:
    """Replace port 0 by a free port if several processes share it."""
    server = settings.server
    if server.workers == 1 or server.port:
        return settings
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    with socket.create_server((server.host, 0), family=family, reuse_port=True) as free:
        return replace(settings, server=replace(server, port=free.getsockname()[1]))


def _run(
    settings: Settings,
    ready: Callable[[str], None],
    live_reload: LiveReload | None,
    report: Callable[[Finding], None],
    slot: tuple[Path, int] | None = None,
) -> None:
    import asyncio

    gc.disable()  # until the gateway listens (``tune_memory``): little of what is made before becomes garbage
    serve = _import_server().serve
    try:
        import uvloop

        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = uvloop.new_event_loop
    except ImportError:
        loop_factory = None

    async def serve_with_reload() -> None:
        reloading = asyncio.create_task(_watch(live_reload)) if live_reload is not None else None
        try:
            await serve(settings, ready, report, _choose_mount(settings), slot)
        finally:
            if reloading is not None:
                reloading.cancel()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(serve_with_reload())


def _name_program() -> str:
    """How this program is started: its name if that is found in PATH, else its path."""
    found, path = shutil.which(PROGRAM), sys.argv[0]
    is_command = Path(path).name == PROGRAM
    return path if is_command and found is None else PROGRAM


def _name_console(settings: Settings, address: str) -> str:
    """The line about the console, if there is one."""
    return f"See what it does: {address}/console\n\n" if settings.console.enabled else ""


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
        raise UsageError(f"the gateway needs the server extra: {name_install_command('server')} ({error})") from None
    return serving


async def _watch(live_reload: LiveReload) -> None:
    """Reload the settings file when it changes. Each process does so independently."""
    import asyncio

    while True:
        await asyncio.sleep(RELOAD_INTERVAL)
        live_reload.check()


def _print_welcome(settings: Settings, address: str, options: str = "") -> None:
    """Print the address and lines to paste: for agents, and a request. ``options`` choose the same upstream again."""
    for note in settings.notes:
        print(f"note: {note}", file=sys.stderr)
    key = "$TOOLGLOT_KEY" if settings.server.keys or settings.server.require_key else "none"
    upstream = settings.upstreams[-1]
    if upstream.coached:
        print(f"note: {SMALL_MODEL_NOTE}", file=sys.stderr)
    where = "" if address == USUAL_ADDRESS else f" --url {address}"
    program = _name_program()
    print(
        f"""toolglot is listening at {address} (upstream: {upstream.name}, {mask_address(upstream.base_url)})

For an agent (claude, codex, opencode, gemini, qwen, cline, ...), in another terminal:

    {program} setup claude{where}      # write its configuration, make a test call; --undo takes it back
    {program} run claude{options}      # or start it with a gateway of its own, and change no file

{_name_console(settings, address)}For any OpenAI client the base URL is {address}/v1. Try it:

    curl -s {address}/v1/chat/completions -H "Authorization: Bearer {key}" -H 'Content-Type: application/json' -d '
      {{"model": "any", "messages": [{{"role": "user", "content": "What is the weather in Paris?"}}],
       "tools": [{EXAMPLE_TOOL}]}}'

Stop with Ctrl-C.""",
        flush=True,
    )


def _print_nothing(_: object) -> None:
    pass


def _print_finding(finding: Finding) -> None:
    print(f"warning: {finding}", file=sys.stderr, flush=True)


def repeat_options(arguments: argparse.Namespace, names: Sequence[str] = REPEATED) -> str:
    """The given options of these names, for another command line; by default those that choose upstream and model,
    without the key."""
    given = ((name, getattr(arguments, name, None)) for name in names)
    words = [word for name, value in given if value for word in (f"--{name.replace('_', '-')}", value)]
    return "".join(f" {shlex.quote(mask_address(word) if '://' in word else word)}" for word in words)

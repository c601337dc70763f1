"""The life of the server: start, listen, and an end that lets open answers finish."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import suppress

from aiohttp import web

from toolglot.config import Settings
from toolglot.errors import UsageError
from toolglot.server import Gateway
from toolglot.telemetry import Telemetry, log_to

BACKLOG = 4096
COLLECTED_AT = 20_000


async def serve(settings: Settings, ready: Callable[[str], None], stopping: Callable[[], None]) -> None:
    """Serve until a signal says stop; ``ready`` is told the address, ``stopping`` that no more is taken in."""
    log_to()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: there Ctrl-C raises instead
            loop.add_signal_handler(number, stop.set)
    runner = make_runner(settings)
    await runner.setup()
    settle_memory()
    try:
        ready(await listen(runner, settings))
        await stop.wait()
        stopping()
    finally:
        await runner.cleanup()


def settle_memory() -> None:
    """What was made at the start stays: the collector need not look at it again, and need not come so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AT, 20, 50)


def make_runner(settings: Settings) -> web.AppRunner:
    secrets = [secret for upstream in settings.upstreams for secret in upstream.secrets]
    telemetry = Telemetry(log_bodies=settings.server.log_bodies, known_secrets=secrets)
    return web.AppRunner(
        Gateway(settings, telemetry).application(),
        access_log=None,
        handle_signals=False,
        handler_cancellation=True,
        shutdown_timeout=settings.server.drain_seconds,
        max_line_size=settings.limits.header_bytes,
        max_field_size=settings.limits.header_bytes,
    )


async def listen(runner: web.AppRunner, settings: Settings) -> str:
    """Open the port; its address."""
    server = settings.server
    shared = server.workers > 1 or None
    site = web.TCPSite(runner, server.host, server.port, backlog=BACKLOG, reuse_port=shared)
    try:
        await site.start()
    except OSError as error:
        raise UsageError(f"cannot listen on {server.host}:{server.port}: {error.strerror or error}") from None
    host, port = runner.addresses[0][:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"

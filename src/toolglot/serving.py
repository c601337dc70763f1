"""The life of the server: start, listen, and an end that lets open answers finish."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from toolglot.config import DEFAULT_DIALECT, Settings
from toolglot.conversation import Conversation, Message, Text, Tool
from toolglot.listener import Listener
from toolglot.reading import Reader
from toolglot.schema import compile_tools
from toolglot.server import Gateway
from toolglot.speaking import speak
from toolglot.telemetry import Telemetry, log_to

COLLECTED_AT = 20_000


async def serve(settings: Settings, ready: Callable[[str], None]) -> None:
    """Serve until a signal says stop; ``ready`` is told the address."""
    log_to(level=settings.server.log_level)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: there Ctrl-C raises instead
            loop.add_signal_handler(number, stop.set)
    async with listening(settings) as address:
        settle_memory()
        ready(address)
        await asyncio.to_thread(warm_up)
        await stop.wait()


@asynccontextmanager
async def listening(settings: Settings) -> AsyncIterator[str]:
    """A gateway that serves as long as the context lasts; its address."""
    secrets = [secret for upstream in settings.upstreams for secret in upstream.secrets]
    telemetry = Telemetry(log_bodies=settings.server.log_bodies, known_secrets=secrets)
    gateway, server = Gateway(settings, telemetry), settings.server
    listener = Listener(gateway, settings.limits.body_bytes, settings.limits.header_bytes)
    try:
        yield await listener.open(server.host, server.port, shared=server.workers > 1)
    finally:
        gateway.draining = True
        await listener.close(server.drain_seconds)
        await gateway.close()


def warm_up() -> None:
    """Everything that the first request would have to wait for is made before it comes."""
    tool = Tool("warm_up", "", {"type": "object", "properties": {"text": {"type": "string"}}})
    ask = Conversation("", (Message("user", (Text("Hello"),)),), (tool,))
    Reader(compile_tools((tool,), ()), parallel=False).feed("Hello\n")
    speak(ask, DEFAULT_DIALECT)


def settle_memory() -> None:
    """What was made at the start stays: the collector need not look at it again, and need not come so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AT, 20, 50)

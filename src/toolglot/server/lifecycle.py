"""Server lifecycle: start, serve, graceful shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolglot.config import DEFAULT_DIALECT, Settings, check_binding
from toolglot.config.settings import OTLP
from toolglot.core import offload
from toolglot.core.conversation import Conversation, Message, Text, Tool, ToolCall, ToolResult
from toolglot.core.errors import UsageError
from toolglot.core.installation import name_install_command
from toolglot.core.options import Options
from toolglot.core.provenance import find_quotations, list_quotable
from toolglot.core.schema.toolset import compile_tools
from toolglot.core.schema.validation import find_argument_defects
from toolglot.gateway.mounting import Mount
from toolglot.gateway.recovery.narrated_stops import announces_action
from toolglot.gateway.storage import make_store
from toolglot.gateway.telemetry.log import Telemetry, gather_lines, log_to
from toolglot.gateway.telemetry.record_writer import RecordWriter
from toolglot.gateway.telemetry.worker_metrics import WorkerMetrics
from toolglot.prompting.conversation import render_as_text
from toolglot.reading.plugins import list_call_marks
from toolglot.reading.reader import Reader, dialect_index
from toolglot.server.app import Gateway
from toolglot.server.listener import Listener
from toolglot.server.upstream.checks import KnownProblems
from toolglot.server.upstream.findings import Finding

if TYPE_CHECKING:  # the SDK is optional
    from toolglot.gateway.telemetry.otel import Tracer

LOG = logging.getLogger("toolglot.server")
WorkerSlot = tuple[Path, int]
"""The folder in which workers share their metrics, and the number of this worker."""
GC_THRESHOLD = 20_000
MALLOC_OPTIONS = {-3: 4 << 20, -1: 16 << 20}
"""glibc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD. By default free() returns buffers of 128 KB or more to the system, and
every request of that size pays for the page faults of new memory."""


async def serve(
    settings: Settings,
    ready: Callable[[str], None],
    report: Callable[[Finding], None],
    mount: Mount | None = None,
    slot: WorkerSlot | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; ``ready`` is called with the address, then ``report`` with each problem of an
    upstream that is found. ``mount`` is as for ``listening``; ``slot`` is that of a worker process."""
    log_to(level=settings.server.log_level)
    offload.shorten_switch_interval()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # Windows: there Ctrl-C raises instead
            loop.add_signal_handler(number, stop.set)
    warm_up(settings)
    problems = KnownProblems()
    with gather_lines(loop.call_later):
        async with listening(settings, mount, slot, problems) as address:
            tune_memory()
            ready(address)
            checks = asyncio.create_task(check_upstreams(settings, problems, report))
            await stop.wait()
            checks.cancel()


async def check_upstreams(settings: Settings, problems: KnownProblems, report: Callable[[Finding], None]) -> None:
    """The checks after the start; what fails in them never matters to the server."""
    if settings.server.start_checks:
        try:
            await problems.check(settings, report)
        except Exception:
            LOG.exception("the checks at the start failed")


@asynccontextmanager
async def listening(
    settings: Settings,
    mount: Mount | None = None,
    slot: WorkerSlot | None = None,
    problems: KnownProblems | None = None,
) -> AsyncIterator[str]:
    """Serve within the context, in the running event loop.

    Parameters: ``settings`` as ``toolglot.config.load`` returns them; port 0 takes a free port. ``mount`` makes a part
    with its own paths, such as the console; ``slot`` is that of a worker process; ``problems`` explain errors of
    upstreams. Yields: the address, without ``/v1``. Raises: UsageError if the port cannot be opened, or is open to
    others without client keys; StoreError. When the context ends, open streams are finished first
    (``server.drain_seconds``).
    """
    server = settings.server
    async with open_gateway(settings, mount, slot, problems) as gateway:
        listener = Listener(gateway, settings.limits.body_bytes, settings.limits.header_bytes)
        try:
            check_binding(settings, keys_needed=gateway.access.keys.required)
            yield await listener.open(server.host, server.port, shared=server.workers > 1)
        finally:
            gateway.draining = True
            await listener.close(server.drain_seconds)


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    mount: Mount | None = None,
    slot: WorkerSlot | None = None,
    problems: KnownProblems | None = None,
) -> AsyncIterator[Gateway]:
    """The gateway without a port: opens the store and, at the end, closes it and the connections to upstreams."""
    secrets = [secret for upstream in settings.upstreams for secret in upstream.secrets]
    telemetry = Telemetry(log_bodies=settings.server.log_bodies, known_secrets=secrets)
    if slot is not None:
        telemetry.workers = WorkerMetrics(*slot, telemetry.metrics)
    if settings.server.traces == OTLP:
        telemetry.tracer = make_tracer()
    dialect_index().run_aside = offload.run_aside
    store = make_store(settings, os.environ)
    if store is not None:
        telemetry.writer = RecordWriter(store, telemetry.metrics, settings.store, secrets)
    elif not settings.store.url.is_none:
        LOG.info("server.state_dir is 'none', so there is no store: records and sessions are not kept")
    gateway = Gateway(settings, telemetry, mount=mount, problems=problems)
    try:
        await gateway.start()
        yield gateway
    finally:
        await gateway.close()


def make_tracer() -> Tracer:
    """Raises: UsageError without the packages of OpenTelemetry."""
    try:
        from toolglot.gateway.telemetry.otel import Tracer
    except ImportError as error:
        raise UsageError(
            f"server.traces = 'otlp' needs the otel extra: {name_install_command('server,otel')} ({error})"
        ) from None
    return Tracer()


def warm_up(settings: Settings) -> None:
    """Fill the caches that the first requests would wait for. Does nothing if a parent process has done it."""
    for dialect in list_dialects(settings):
        warm_dialect(dialect)
    announces_action("Let me see.")  # English; other languages are loaded for the first answer in them


def list_dialects(settings: Settings) -> list[str]:
    """The dialects that the configured models use."""
    named = [settings.model_for(model.name)[0].dialect for model in settings.models]
    return list(dict.fromkeys([*named, DEFAULT_DIALECT]))


def warm_dialect(dialect: str) -> None:
    """Do once what each request in this dialect does: describe a tool, write an earlier call, read and check a call."""
    schemas: tuple[dict[str, Any], ...] = (
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}},
    )
    values = ("Hello\n", 1, True, ["a"])
    keys = ("path", "limit", "force", "items")  # their first letters are those of marks that are compiled on first use
    tool = Tool("warm_up", "", {"type": "object", "properties": dict(zip(keys, schemas, strict=True))})
    call = ToolCall("1", tool.name, json.dumps(dict(zip(keys, values, strict=True))))
    messages = (
        Message("user", (Text("Hello <b> [1]: {}\n"),)),
        Message("assistant", (call,)),
        Message("tool", (ToolResult("1", tool.name, (Text("Hello <b> {}\n"),)),)),
    )
    conversation = Conversation("", messages, (tool,))
    find_quotations(list_quotable(messages), (tool.name,), marks=list_call_marks())
    written = render_as_text(conversation, dialect).conversation.messages[-2].text
    reader = Reader(compile_tools((tool,), ()), options=Options(parallel=False))
    for piece in ("Hello:\n", *written):  # with a text before it, whose phrases are looked for
        reader.feed(piece)
    reader.close()
    find_argument_defects(tool, call.arguments)


def tune_memory() -> None:
    """Tune memory for serving: exclude start-up objects from garbage collection, collect less often, and keep freed
    memory for the next request. It collects nothing, which would take as long as some requests: what the start leaves
    behind is little."""
    with suppress(AttributeError, OSError, TypeError):  # only glibc has mallopt
        set_option = ctypes.CDLL(None).mallopt
        for option, size in MALLOC_OPTIONS.items():
            set_option(option, size)
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    gc.enable()

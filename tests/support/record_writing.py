"""A ``RecordWriter`` with a real store, and records for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from toolglot.config import StoreSettings
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.record_writer import RecordWriter
from toolglot.gateway.telemetry.recorder import RequestRecorder
from toolglot.store import open_store
from toolglot.store.interface import RecordQuery, RecordRow, Store

SECRET = "hunter2-hunter2"
KEY = 'a client\'s "own" key'


def make_store(folder: Path, url: str = "sqlite:toolglot.db") -> Store:
    store = open_store(url, state_folder=folder, now=time.time)
    assert store is not None
    return store


@asynccontextmanager
async def writing(folder: Path, **settings: object) -> AsyncIterator[Telemetry]:
    telemetry = Telemetry()
    chosen = StoreSettings(**settings)  # type: ignore[arg-type]
    writer = telemetry.writer = RecordWriter(make_store(folder), telemetry.metrics, chosen, (SECRET,))
    await writer.start()
    try:
        yield telemetry
    finally:
        await writer.close(5)


def finish(telemetry: Telemetry, name: str = "r", status: int = 200, **fields: object) -> RequestRecorder:
    recorder = telemetry.begin(name, "openai_chat", key=KEY)
    for field, value in fields.items():
        setattr(recorder, field, value)
    telemetry.finish(recorder, status)
    return recorder


async def stored(telemetry: Telemetry, count: int = 1000) -> list[RecordRow]:
    assert telemetry.writer is not None
    await telemetry.writer.flush(5)
    return await telemetry.writer.store.list_records(None, RecordQuery(limit=count))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


def dropped(telemetry: Telemetry, reason: str) -> int:
    return telemetry.metrics.records_dropped[(reason,)].total

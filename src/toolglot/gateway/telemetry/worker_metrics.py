"""Metrics of several worker processes as one: whichever worker is scraped shows the sums over all of them.

*Strategy.* Each worker has a slot with a file in a folder of the supervisor. It writes its metrics there twice a
second, all of them at once, so that the counters in a file always add up. A worker that is scraped writes its file and
adds those of the other slots: what a scrape has shown is in the files. A worker that replaces a dead one takes over its
slot and goes on from the counters in its file. So counters never decrease, whichever worker is scraped; what a killed
worker has counted since its last write is lost.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct

from toolglot.gateway.telemetry.metrics import Count, Histogram, Metrics

WRITE_SECONDS: Final = 0.5


class CounterState(Struct, frozen=True, array_like=True):
    """One counter: its label values, its total (the sum of a histogram), buckets of a histogram, and its start time."""

    labels: tuple[str, ...]
    total: float
    buckets: tuple[int, ...]
    since: float


Snapshot = dict[str, list[CounterState]]
"""The counters of all metrics, by the names of the metrics."""

_decoder = msgspec.msgpack.Decoder(Snapshot)


def take_snapshot(metrics: Metrics) -> Snapshot:
    """The current values of all metrics."""
    return {
        family.name: [
            CounterState(labels, counted.sum, tuple(counted.buckets), since)
            if isinstance(counted, Histogram)
            else CounterState(labels, counted.total, (), since)
            for labels, (counted, since) in family.children.items()
        ]
        for family in metrics.families
    }


def add_snapshot(metrics: Metrics, snapshot: Snapshot, *, gauges: bool) -> None:
    """Add the values of a snapshot to the metrics. Counters of another version are ignored."""
    for family in metrics.families:
        if family.kind == "gauge" and not gauges:
            continue
        for state in snapshot.get(family.name, ()):
            if len(state.labels) == len(family.labels):
                _add_state(family.find(state.labels, state.since), state)


def _add_state(counted: Count | Histogram, state: CounterState) -> None:
    if isinstance(counted, Count):
        counted.total += int(state.total)
    elif len(state.buckets) == len(counted.buckets):
        counted.sum += state.total
        counted.buckets[:] = map(sum, zip(counted.buckets, state.buckets, strict=True))


class WorkerMetrics:
    """The metrics of one worker, and the files of all slots in ``folder``."""

    def __init__(self, folder: Path, slot: int, metrics: Metrics) -> None:
        self.folder = folder
        self.metrics = metrics
        self.path = folder / str(slot)
        self._numbers = count(1)
        self._lock = Lock()
        self._written = b""
        self._written_number = 0
        self._task: asyncio.Task[None] | None = None
        for snapshot in _read([self.path]):
            add_snapshot(metrics, snapshot, gauges=False)

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Write the last values; streams and queues are empty now."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._write()

    async def collect(self) -> Metrics:
        """The metrics of all workers: those of this one, and what the others wrote last."""
        total = Metrics()
        add_snapshot(total, await self._write(), gauges=True)
        for snapshot in await asyncio.to_thread(self._read_others):
            add_snapshot(total, snapshot, gauges=True)
        return total

    def _read_others(self) -> list[Snapshot]:
        try:
            paths = [path for path in self.folder.iterdir() if path != self.path and path.name.isdecimal()]
        except OSError:
            return []
        return list(_read(paths))

    async def _run(self) -> None:
        while True:
            await self._write()
            await asyncio.sleep(WRITE_SECONDS)

    async def _write(self) -> Snapshot:
        """Write the current values. Returns them."""
        snapshot = take_snapshot(self.metrics)
        await asyncio.to_thread(self._replace, next(self._numbers), msgspec.msgpack.encode(snapshot))
        return snapshot

    def _replace(self, number: int, encoded: bytes) -> None:
        """Write the file, unless later values are in it: a task that was cancelled leaves its thread at work."""
        with self._lock:
            if number > self._written_number and (encoded == self._written or _replace(self.path, encoded)):
                self._written, self._written_number = encoded, number


def _read(paths: Iterable[Path]) -> Iterable[Snapshot]:
    """The snapshots in these files; those that cannot be read are left out."""
    for path in paths:
        try:
            yield _decoder.decode(path.read_bytes())
        except (OSError, msgspec.DecodeError):
            continue


def _replace(path: Path, encoded: bytes) -> bool:
    """Write a file so that readers see all of it or its former content. Returns False if that is not possible."""
    written = path.with_suffix(".new")
    try:
        written.write_bytes(encoded)
        os.replace(written, path)
    except OSError:
        return False
    return True

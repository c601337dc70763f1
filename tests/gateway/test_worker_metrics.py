"""Metrics of several workers: sums, replaced workers, damaged files."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from toolglot.gateway.telemetry import worker_metrics
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.metrics import Metrics
from toolglot.gateway.telemetry.prometheus import render
from toolglot.gateway.telemetry.worker_metrics import WorkerMetrics


def count_requests(metrics: Metrics, times: int, model_time: float = 0.2) -> None:
    telemetry = Telemetry()
    telemetry.metrics = metrics
    for _ in range(times):
        recorder = telemetry.begin("r", "openai_chat")
        recorder.mode, recorder.first_chunk = "text", model_time
        telemetry.finish(recorder, 200)


def read_totals(metrics: Metrics) -> dict[str, float]:
    families = text_string_to_metric_families(render(metrics).decode())
    totals: dict[str, float] = {}
    for sample in (sample for family in families for sample in family.samples):
        if not sample.name.endswith("_created") and "le" not in sample.labels:
            totals[sample.name] = totals.get(sample.name, 0) + sample.value
    return totals


def start(folder: Path, slot: int) -> WorkerMetrics:
    return WorkerMetrics(folder, slot, Metrics())


async def write_and_collect(*workers: WorkerMetrics) -> list[dict[str, float]]:
    """Let all workers write, then what each of them shows."""
    for worker in workers:
        worker.start()
        await worker.close()
    return [read_totals(await worker.collect()) for worker in workers]


def test_every_worker_shows_the_sums_of_all(tmp_path: Path) -> None:
    workers = [start(tmp_path, slot) for slot in range(3)]
    for slot, worker in enumerate(workers, 1):
        count_requests(worker.metrics, slot)
        worker.metrics.streams.total = slot
    shown = asyncio.run(write_and_collect(*workers))
    assert shown[1:] == [pytest.approx(shown[0])] * 2
    assert shown[0]["toolglot_requests_total"] == shown[0]["toolglot_outcomes_total"] == 6
    assert shown[0]["toolglot_first_chunk_seconds_count"] == 6
    assert abs(shown[0]["toolglot_first_chunk_seconds_sum"] - 1.2) < 1e-9
    assert shown[0]["toolglot_streams_in_flight"] == 6


def test_a_replaced_worker_goes_on_from_the_counters_of_its_slot(tmp_path: Path) -> None:
    first = start(tmp_path, 0)
    count_requests(first.metrics, 5)
    first.metrics.streams.total = 2
    asyncio.run(write_and_collect(first))
    second = start(tmp_path, 0)  # the first one was killed
    count_requests(second.metrics, 1)
    (shown,) = asyncio.run(write_and_collect(second))
    assert shown["toolglot_requests_total"] == 6
    assert shown["toolglot_first_chunk_seconds_count"] == 6
    assert shown["toolglot_streams_in_flight"] == 0


def test_what_was_shown_is_never_shown_as_less(tmp_path: Path) -> None:
    """By another worker that is scraped next, and by one that replaces a worker that was killed after a scrape."""
    first, other = start(tmp_path, 0), start(tmp_path, 1)

    async def scrape() -> list[float]:
        shown = []
        for worker, times in ((first, 5), (other, 3), (first, 2)):
            count_requests(worker.metrics, times)
            shown.append(read_totals(await worker.collect())["toolglot_requests_total"])
        for slot in (0, 1):  # nothing but the scrapes has written the files
            shown.append(read_totals(await start(tmp_path, slot).collect())["toolglot_requests_total"])
        return shown

    assert asyncio.run(scrape()) == [5, 8, 10, 10, 10]


def test_a_late_write_does_not_replace_later_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = start(tmp_path, 0)
    count_requests(worker.metrics, 4)
    began, released = threading.Event(), threading.Event()

    def replace(path: Path, encoded: bytes) -> bool:
        if not began.is_set():
            began.set()
            released.wait(10)
        path.write_bytes(encoded)
        return True

    async def write() -> None:
        late = asyncio.create_task(worker.collect())
        await asyncio.to_thread(began.wait, 10)
        late.cancel()  # its thread is still at work
        count_requests(worker.metrics, 1)
        closing = asyncio.create_task(worker.close())
        await asyncio.sleep(0.1)
        released.set()
        await closing

    monkeypatch.setattr(worker_metrics, "_replace", replace)
    asyncio.run(write())
    assert read_totals(start(tmp_path, 0).metrics)["toolglot_requests_total"] == 5


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    worker = start(tmp_path, 0)
    count_requests(worker.metrics, 2)
    (tmp_path / "1").write_bytes(b"not a snapshot")
    (tmp_path / "2.new").write_bytes(b"unfinished")
    (shown,) = asyncio.run(write_and_collect(worker))
    assert shown["toolglot_requests_total"] == 2
    assert start(tmp_path, 1).metrics.requests.children == {}


def test_a_folder_that_is_gone_costs_only_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    worker = start(folder, 0)
    count_requests(worker.metrics, 2)
    folder.rmdir()

    async def scrape() -> dict[str, float]:
        worker.start()
        await worker.close()
        return read_totals(await worker.collect())

    assert asyncio.run(scrape())["toolglot_requests_total"] == 2

"""The API of the view KPIs.

GET /kpis?seconds=&model=&dialect=     rates, outcomes, faults and latencies over the last seconds, by time; of one
                                       model and dialect if they are given ("-" stands for none)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from toolglot.console import work
from toolglot.console.app import ConsoleContext
from toolglot.console.parameters import encode_json, read_number, read_query
from toolglot.console.query_cache import QueryCache
from toolglot.gateway.mounting import HttpRequest, Response, Route
from toolglot.gateway.telemetry.kpis import Kpis
from toolglot.gateway.telemetry.record_writer import call_store
from toolglot.gateway.telemetry.report import TARGET
from toolglot.store.interface import RecordQuery, RecordRow, Store

HOUR: Final = 3600
YEAR: Final = 366 * 24 * HOUR
PAGE: Final = 1000
MAX_RECORDS: Final = 50_000
"""The newest records that are counted; more would keep the page waiting."""
KNOWN_SECONDS: Final = 2.0
"""Seconds for which all pages get the same measures."""
NONE: Final = "-"
"""Stands for a model or dialect without a name."""
SHOWN_MISSES: Final = 20
MISS_LENGTH: Final = 600
MODEL_TEXT: Final = "model"


class KpisView:
    """Measures of the transformations, of all clients."""

    def __init__(self, context: ConsoleContext) -> None:
        self.context = context
        self.known: QueryCache[bytes] = QueryCache(KNOWN_SECONDS)

    def routes(self) -> Iterable[Route]:
        yield "GET", "/kpis", self.show_kpis

    async def show_kpis(self, request: HttpRequest) -> Response:
        given = read_query(request.query, ("seconds", "model", "dialect"))
        seconds = read_number(given, "seconds", 24 * HOUR, 1, YEAR)
        chosen = read_choice(given, "model"), read_choice(given, "dialect")
        return Response(await self.known.find((seconds, *chosen), partial(self.measure, seconds, *chosen)))

    async def measure(self, seconds: int, model: str | None = None, dialect: str | None = None) -> bytes:
        """The measures as JSON. Raises: UnknownPathError, StoreError."""
        store = await self.context.open_store()
        now = self.context.gateway.source.now()
        kpis, complete = Kpis(now - seconds, now, model, dialect), False
        before, counted = "", 0
        while counted < MAX_RECORDS and not complete:
            rows = await call_store(store.list_records(None, RecordQuery(limit=PAGE, before=before)))
            recent = [row for row in rows if row.time >= kpis.begin]
            await work.run(add_rows, kpis, recent)
            counted += len(recent)
            complete = len(recent) < PAGE
            before = rows[-1].id if rows else ""
        found = {**kpis.describe(), "target": TARGET, "complete": complete}
        found["near_misses"] = [await show_miss(store, miss) for miss in kpis.near_misses[:SHOWN_MISSES]]
        found["near_miss_count"] = len(kpis.near_misses)
        return await work.run(encode_json, found)


def read_choice(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    return "" if value == NONE else value


def add_rows(kpis: Kpis, rows: Iterable[RecordRow]) -> None:
    for row in rows:
        kpis.add(row.data, row.id)


async def show_miss(store: Store, miss: dict[str, str]) -> dict[str, str]:
    """A near miss with the end of the model's text, if that was recorded, and its session."""
    row = await call_store(store.get_record(None, miss["record"]))
    if row is None:
        return miss
    text = row.bodies.get(MODEL_TEXT, b"").decode("utf-8", "replace")
    return {**miss, "session": row.session, "text": text[-MISS_LENGTH:]}

"""What a gateway shows to Prometheus."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class Scrape:
    """Totals of all metrics over their labels, and the requests by outcome."""

    totals: Mapping[str, float]
    outcomes: Counter[str]

    @property
    def requests(self) -> int:
        return int(self.totals.get("toolglot_requests_total", 0))

    @property
    def queued(self) -> int:
        """Records that wait to be stored."""
        return int(self.totals["toolglot_records_queued"])


async def scrape(port: int) -> Scrape:
    """The metrics of a gateway, as one of its workers shows them; every request must have an outcome."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        head, _, text = (await reader.read()).decode().partition("\r\n\r\n")
    finally:
        writer.close()
    if not head:
        raise ConnectionError("the worker was killed")
    assert " 200 " in head.split("\r\n")[0]
    totals: dict[str, float] = {}
    outcomes: Counter[str] = Counter()
    for sample in (sample for family in text_string_to_metric_families(text) for sample in family.samples):
        totals[sample.name] = totals.get(sample.name, 0) + sample.value
        if sample.name == "toolglot_outcomes_total":
            outcomes[sample.labels["outcome"]] += int(sample.value)
    found = Scrape(totals, +outcomes)
    assert found.requests == found.outcomes.total() == totals.get("toolglot_request_seconds_count", 0)
    return found

"""What happened during ``toolglot run``: counted from the log of its gateway, with the sessions of its store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from toolglot.cli.store_options import opened
from toolglot.config import Settings
from toolglot.core.errors import StoreError, UsageError
from toolglot.store.interface import FAILED, REFUSED, RecordQuery

PAGE: Final = 200
SHOWN: Final = 3
NO_TEXTS: Final = "  (figures only; with TOOLGLOT_STORE_BODIES=all it has the texts, too)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The figures of one run. ``turns`` are requests, ``retries`` further requests to an upstream for the same turn.
    ``sessions`` are the ids of the store, the largest first; ``html`` is the file of that one, if it was written."""

    client: str
    exit_code: int
    seconds: float
    model: str
    turns: int = 0
    failed: int = 0
    calls: int = 0
    repairs: int = 0
    retries: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    last_error: str = ""
    sessions: tuple[str, ...] = ()
    html: str = ""
    log: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def format_lines(self, title: str, options: str, bodies: str) -> Iterator[str]:
        """The lines for a person. ``options`` are those that find the same store, ``bodies`` is which texts it has."""
        yield f"toolglot: {title} ended with code {self.exit_code} after {_format_time(self.seconds)}"
        figures = [
            _count(self.turns, "turn"),
            _count(self.calls, "call"),
            _count(self.repairs, "repair"),
            "1 retry" if self.retries == 1 else f"{self.retries:,} retries",
            f"{self.input_tokens:,} tokens in, {self.output_tokens:,} out",
        ]
        yield "  " + ", ".join(figures)
        if not self.turns:
            yield "  The agent sent no request to the gateway: it ended before, or asked another address."
        if self.failed:
            error = f" (the last one: {self.last_error})" if self.last_error else ""
            yield f"  failed:  {_count(self.failed, 'turn')}{error}"
        for session in self.sessions[:SHOWN]:
            yield f"  record:  toolglot sessions show {session}{options}"
        if len(self.sessions) > SHOWN:
            yield f"           and {len(self.sessions) - SHOWN} more: toolglot sessions list{options}"
        if self.html:
            yield f"  page:    {self.html}{NO_TEXTS if bodies == 'off' else ''}"
        elif self.sessions:
            yield f"  as page: toolglot sessions export {self.sessions[0]} --html{options}"
        yield f"  log:     {self.log}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _format_time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def read_records(log: Path) -> list[dict[str, Any]]:
    """The records of requests in a log; other lines are left out."""
    records = []
    for line in log.read_text("utf-8", "replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and "request_id" in record and "outcome" in record:
            records.append(record)
    return records


def count_records(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of records, as fields of a ``RunSummary``."""
    failed = [record for record in records if record["outcome"] in (FAILED, REFUSED)]
    usages = [record.get("usage") or {} for record in records]
    tokens = {name: sum(usage.get(name) or 0 for usage in usages) for name in TOKENS}
    return tokens | {
        "turns": len(records),
        "failed": len(failed),
        "calls": sum(record["calls"] for record in records),
        "repairs": sum(len(record["repairs"]) for record in records),
        "retries": sum(max(0, len(record["attempts"]) - 1) for record in records),
        "last_error": failed[-1]["error"] if failed else "",
    }


TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")


async def find_sessions(settings: Settings, requests: set[str], since: float) -> tuple[str, ...]:
    """The sessions of these requests, the one with most of them first; none without a store."""
    found: Counter[str] = Counter()
    before = ""
    try:
        async with opened(settings) as store:
            while True:
                rows = await store.list_records(None, RecordQuery(limit=PAGE, before=before))
                found.update(row.session for row in rows if row.request_id in requests and row.session)
                if len(rows) < PAGE or rows[-1].time < since:
                    break
                before = rows[-1].id
    except (StoreError, UsageError, OSError):
        pass
    return tuple(session for session, _ in found.most_common())

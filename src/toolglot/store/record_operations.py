"""The operations on records, as generators of queries (``store.sql``), and what records add to their sessions."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from toolglot.store.interface import RecordQuery, RecordRow, TurnCounts
from toolglot.store.sql import Engine, Query, Row, Steps, Value, insert, make, read_columns, select_latest

RECORD: Final = tuple(name for name in RecordRow.__struct_fields__ if name not in ("bodies", "client", "counts"))
COUNTS: Final = TurnCounts.__struct_fields__
ADD_TURNS: Final = f"""
    UPDATE sessions SET turns = turns + $1,
    {", ".join(f"{name} = {name} + ${number}" for number, name in enumerate(COUNTS, 7))},
    client = CASE WHEN used <= $2 AND $5 <> '' THEN $5 ELSE client END,
    outcome = CASE WHEN used <= $2 OR outcome = '' THEN $6 ELSE outcome END,
    used = CASE WHEN used < $2 THEN $2 ELSE used END
    WHERE id = $3 AND owner = $4
"""
SELECT_BETWEEN: Final = "SELECT id FROM records WHERE id >= $1 AND id <= $2"
"""Ids are times: of a batch that is written for the first time there are none, but those of other processes."""


class PackedRecord(NamedTuple):
    """A record with compressed bodies."""

    row: RecordRow
    bodies: Mapping[str, bytes]

    @property
    def columns(self) -> Sequence[Value]:
        """The row, with its size."""
        bodies = sum(map(len, self.bodies.values())) if self.bodies else 0
        return (*read_columns(self.row, RECORD), len(self.row.data) + bodies)


def pack(records: Iterable[RecordRow]) -> list[PackedRecord]:
    """Compress bodies, fast rather than small. A record that occurs twice is left out. Sorted by id."""
    by_id = {row.id: row for row in records}
    return [
        PackedRecord(row, {kind: zlib.compress(body, 1) for kind, body in row.bodies.items()} if row.bodies else {})
        for _, row in sorted(by_id.items())
    ]


def unpack(bodies: Iterable[Row]) -> dict[str, bytes]:
    return {kind: zlib.decompress(body) for kind, body in bodies}


def add_records(engine: Engine, records: Sequence[PackedRecord]) -> Steps[None]:
    for totals in sum_turns((yield from insert_records(engine, records))):
        yield Query(ADD_TURNS, totals)


def insert_records(engine: Engine, records: Sequence[PackedRecord]) -> Steps[list[RecordRow]]:
    """Insert records and their bodies. Returns the records that are new."""
    if not records:
        return []
    columns = (*RECORD, "size")
    if engine.writes_alone:
        known = yield Query(SELECT_BETWEEN, (records[0].row.id, records[-1].row.id))
        exist = {row[0] for row in known}
        new = [record for record in records if record.row.id not in exist]
        yield from insert("records", columns, [record.columns for record in new])
    else:
        ending = "ON CONFLICT DO NOTHING RETURNING id"
        added = yield from insert("records", columns, [record.columns for record in records], ending)
        ids = {row[0] for row in added}
        new = [record for record in records if record.row.id in ids]
    bodies = [(row.id, kind, body) for row, packed in new for kind, body in packed.items()]
    yield from insert("bodies", ("record", "kind", "data"), bodies)
    return [record.row for record in new]


def sum_turns(records: Iterable[RecordRow]) -> list[tuple[Any, ...]]:
    """What records add to their sessions, as the values of ``ADD_TURNS``, in the order of the sessions."""
    turns: dict[tuple[str, bytes], list[RecordRow]] = {}
    for row in records:
        if row.session and row.counts is not None:
            turns.setdefault((row.session, row.owner), []).append(row)
    return [_sum_turns_of(session, owner, turns[session, owner]) for session, owner in sorted(turns)]


def _sum_turns_of(session: str, owner: bytes, rows: Sequence[RecordRow]) -> tuple[Any, ...]:
    latest = max(rows, key=attrgetter("time")) if len(rows) > 1 else rows[0]
    counts = [read_columns(row.counts, COUNTS) for row in rows]
    sums = counts[0] if len(counts) == 1 else map(sum, zip(*counts, strict=True))
    return (len(rows), latest.time, session, owner, latest.client, latest.outcome, *sums)


def list_records(owner: bytes | None, query: RecordQuery) -> Steps[list[RecordRow]]:
    filters = {
        "owner =": owner,
        "id <": query.before or None,
        "id >": query.after or None,
        "model =": query.model or None,
        "session =": query.session or None,
        "outcome =": query.outcome or None,
    }
    rows = yield select_latest("records", RECORD, filters, query.limit)
    return [make(RecordRow, RECORD, row) for row in rows]


def get_record(owner: bytes | None, record_id: str) -> Steps[tuple[RecordRow, Sequence[Row]] | None]:
    """The record, and its bodies as they are stored."""
    chosen, values = ("", (record_id,)) if owner is None else ("AND owner = $2", (record_id, owner))
    sql = f"""
        SELECT {", ".join(RECORD)} FROM records WHERE (id = $1 OR request_id = $1) {chosen}
        ORDER BY id = $1 DESC, id DESC LIMIT 1
    """
    rows = yield Query(sql, values)
    if not rows:
        return None
    record = make(RecordRow, RECORD, rows[0])
    return record, (yield Query("SELECT kind, data FROM bodies WHERE record = $1", (record.id,)))

"""Answers as models really write them, damage included (``data/wild.jsonl``), forms of calls that no dialect teaches
(``data/forms.jsonl``), and what two small models wrote.

Each row has the reading of a careful person. Its conventions:

- ``content`` is compared with whitespace collapsed; arguments are exact; ``accept`` lists other right readings.
- Verdict ``text``: no call, and the text is the raw text byte for byte. A think block may be split off. A call that was cut
  may stand among the rejected calls instead of in the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from support.rows import in_one_test
from support.samples import DATA, chunkings, load_tools, read_events, squeeze

import toolglot
from toolglot.core.events import Reason

KNOWN_MISSES: frozenset[str] = frozenset()
"""Rows that are read wrongly today. A row that is read rightly must be taken off."""


def load_rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


ROWS = [*load_rows("wild.jsonl"), *load_rows("forms.jsonl")]
LOCAL = load_rows("local-models.jsonl")
each_row = in_one_test("row", ROWS, ids=[row["id"] for row in ROWS])


def read_row(row: dict[str, Any]) -> toolglot.Reading:
    return toolglot.read(row["raw"], tools=row["tools"], truncated=row["finish"] == "length", unknown_tools="text")


def calls_of(reading: toolglot.Reading) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": json.loads(call.arguments)} for call in reading.calls]


def agrees(reading: toolglot.Reading, right: dict[str, Any]) -> bool:
    """True if the reading is this right reading, whitespace around text aside."""
    return (
        calls_of(reading) == right["calls"]
        and ("note" in right or squeeze(reading.text) == squeeze(right["content"]))
        and ("reasoning" not in right or squeeze(reading.reasoning) == squeeze(right["reasoning"]))
    )


def is_untouched(reading: toolglot.Reading, raw: str) -> bool:
    """True if nothing was called and the text is the raw text, calls that were cut aside."""
    if reading.calls:
        return False
    cut = sorted(r.span for r in reading.rejected if r.reason is Reason.TRUNCATED and r.span)
    if not cut:
        return reading.text == raw
    return squeeze(reading.text) == squeeze(" ".join(_outside(raw, cut)))


def _outside(raw: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    position = 0
    for start, end in spans:
        yield raw[position:start]
        position = end
    yield raw[position:]


def is_right(reading: toolglot.Reading, row: dict[str, Any]) -> bool:
    if any(agrees(reading, right) for right in row.get("accept", ())):
        return True
    if row["verdict"] == "call":
        return agrees(reading, row["expected"])
    return is_untouched(reading, row["raw"]) or ("reasoning" in row["expected"] and agrees(reading, row["expected"]))


@each_row
def test_wild_row(row: dict[str, Any]) -> None:
    reading = read_row(row)
    if row["id"] in KNOWN_MISSES:
        assert not is_right(reading, row), "read rightly now: take it off KNOWN_MISSES"
        return
    assert is_right(reading, row), "\n".join(
        [
            f"{row['family']}: {row['defect']} ({row['verdict']}: {row['why']})",
            f"raw:      {row['raw']!r}",
            f"expected: {row['expected']}",
            f"read:     {calls_of(reading)} text {reading.text!r} reasoning {reading.reasoning!r}",
            f"rejected: {[(str(r.reason), r.raw) for r in reading.rejected]}",
        ]
    )


@in_one_test("row", [r for r in ROWS if r["verdict"] == "text"], ids=lambda row: row["id"])
def test_no_call_is_invented(row: dict[str, Any]) -> None:
    calls = calls_of(read_row(row))
    assert calls == [] or calls in [right["calls"] for right in row.get("accept", ())]


def test_at_least_95_percent_are_read_rightly() -> None:
    assert KNOWN_MISSES <= {row["id"] for row in ROWS}
    assert len(KNOWN_MISSES) <= 0.05 * len(ROWS)


@each_row
def test_any_chunking_of_a_wild_row_gives_the_same_events(row: dict[str, Any]) -> None:
    options = {"tools": row["tools"], "truncated": row["finish"] == "length", "unknown_tools": "text"}
    whole = read_events([row["raw"]], **options)
    for name, chunks in chunkings(row["raw"], row["id"]):
        assert read_events(chunks, **options) == whole, name


@in_one_test("row", LOCAL, ids=[f"{row['mode']}-{number}" for number, row in enumerate(LOCAL)])
def test_what_small_models_wrote_is_never_lost(row: dict[str, Any]) -> None:
    tools = load_tools("errands")
    reading = toolglot.read(row["raw"], tools=tools)
    events = read_events([row["raw"]], tools=tools)
    for name, chunks in chunkings(row["raw"], row["mode"], rounds=1):
        assert read_events(chunks, tools=tools) == events, name
    if row["raw"].strip():
        assert reading.text.strip() or reading.reasoning.strip() or reading.calls or reading.rejected
    if not any(mark in row["raw"] for mark in "<{[`"):
        assert reading.text == row["raw"]
        assert not reading.calls


MARKED = [row for row in LOCAL if row["valid"] and "hermes" in row["mode"] and row["raw"].startswith("<tool_call>")]


@in_one_test("row", MARKED, ids=[f"{row['mode']}-{number}" for number, row in enumerate(MARKED)])
def test_valid_calls_of_small_models_are_read(row: dict[str, Any]) -> None:
    reading = toolglot.read(row["raw"], tools=load_tools("errands"))
    assert reading.calls
    assert [reading.calls[0].name, json.loads(reading.calls[0].arguments)] == row["parsed"]

"""Outputs of many models read by toolglot: the rows of the package ``canitoolcall``, whole and in pieces.

A row is what a model wrote, the tools it was offered and the calls a client should be given. Calls are compared by name
and by parsed arguments, types included, in their order. Every row is read as it stands, with no hint of its dialect.
"""

from __future__ import annotations

import importlib
import json
import random
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import toolglot
from toolglot.reading.reader import collect
from toolglot.reading.scoring import ComparedCall, judge_calls

OPENERS = ("<think>", "<|open|>think<|sep|>")
LONGEST_CUT = 12
BROKEN = "cut or broken"
"""The group of outputs of which nothing may be delivered, of whichever family."""


@dataclass(frozen=True)
class Output:
    """One row. ``calls`` is None where the output is cut or broken: then nothing may be delivered."""

    name: str
    family: str
    text: str
    tools: list[dict[str, Any]]
    calls: list[ComparedCall] | None
    is_cut: bool
    opener: str
    record: dict[str, Any]


def make_output(record: dict[str, Any], prompts: Mapping[str, str]) -> Output:
    """A row from a record of the package; ``prompts`` are the ends of the prompts of its family, by model."""
    expected = record.get("expected")
    prompt = record.get("generation_prompt")
    if prompt is None:
        prompt = prompts.get(record["models"][0], "")
    return Output(
        record["id"],
        record["family"],
        record["raw_output"],
        list(record["tools"]),
        None if expected is None else [(each["name"], each["arguments"]) for each in expected["tool_calls"]],
        "truncated" in record["tags"],
        next((opener for opener in OPENERS if prompt.rstrip().endswith(opener)), ""),
        record,
    )


def load_outputs(folder: Path) -> list[Output]:
    """Every row below a folder of ``FAMILY/family.json`` and ``FAMILY/*.jsonl``, in the order of their files."""
    rows = []
    for file in sorted(folder.glob("*/*.jsonl")):
        family = json.loads(file.with_name("family.json").read_text("utf-8"))
        prompts = {each["repo"]: each.get("default_generation_prompt") or "" for each in family["reference_models"]}
        lines = filter(str.strip, file.read_text("utf-8").splitlines())
        rows.extend(make_output(json.loads(line), prompts) for line in lines)
    return rows


# -- ways to cut -------------------------------------------------------------------------------------------------------


def cut_randomly(text: str, seed: str) -> Iterator[str]:
    """Pieces of 1 to 12 characters, the same for the same seed."""
    chance, at = random.Random(seed), 0
    while at < len(text):
        end = at + chance.randint(1, LONGEST_CUT)
        yield text[at:end]
        at = end


def ways_to_cut(text: str, name: str, rounds: int) -> dict[str, Iterable[str]]:
    """The text in pieces, by the name of the way: whole, by character, and in random pieces."""
    ways: dict[str, Iterable[str]] = {"whole": [text], "one character at a time": text}
    ways |= {f"random cuts {number}": cut_randomly(text, f"{name} {number}") for number in range(1, rounds + 1)}
    return ways


def read_pieces(pieces: Iterable[str], output: Output) -> toolglot.Reading:
    """What toolglot reads, with automatic detection."""
    reader = toolglot.Reader(tools=output.tools)
    events = [event for piece in pieces for event in reader.feed(piece)]
    return collect([*events, *reader.close(output.is_cut)])


def count_outputs(outputs: Sequence[Output], rounds: int) -> tuple[dict[str, dict[str, Counter[str]]], list[str]]:
    """Verdicts by way of cutting and family, and one line about each row that is not right."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    faults: dict[str, list[str]] = {}
    for output in outputs:
        family = output.family if output.calls is not None else BROKEN
        for way, pieces in ways_to_cut(output.text, output.name, rounds).items():
            calls = [(call.name, json.loads(call.arguments)) for call in read_pieces(pieces, output).calls]
            verdict = judge_calls(output.calls or (), calls)
            counts.setdefault(way, {}).setdefault(family, Counter())[verdict] += 1
            if verdict != "right":
                faults.setdefault(f"{output.name}: {verdict}", []).append(way)
    return counts, [f"{fault} ({', '.join(ways)})" for fault, ways in faults.items()]


# -- the package's own verdict -----------------------------------------------------------------------------------------


def engine_table(wheel: Path) -> list[list[str]]:
    """The rows of the table of engines in the description of the package: engine, version, supported, pass, soft, fail."""
    with zipfile.ZipFile(wheel) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(member).decode().splitlines()
    start = next((at for at, line in enumerate(lines) if re.match(r"\| *Engine *\| *Version", line)), len(lines))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip(" `") for cell in line.strip("|").split("|")][:6])
    return rows


def check_outputs(package: Path, outputs: Sequence[Output], rounds: int) -> tuple[Counter[str], list[str]]:
    """What the checks of the package itself say: text, reasoning, calls and schema, equal however the text is cut.

    Where the prompt of a model ends in the mark that opens its reasoning, the mark is put before the output, as a server
    that knows its template would. Returns how often each status was given, and one line about each row that failed.
    """
    sys.path.append(str(package))
    checks, fixtures, results = (
        importlib.import_module(f"canitoolcall.{name}") for name in ("checks", "fixtures", "results")
    )
    families: dict[str, Any] = {}
    statuses: Counter[str] = Counter()
    faults = []
    for output in outputs:
        if output.family not in families:
            described = package / "canitoolcall/_data/fixtures" / output.family / "family.json"
            families[output.family] = fixtures.Family.from_dict(json.loads(described.read_text("utf-8")))
        readings = {
            way: as_result(results, read_pieces(pieces, output))
            for way, pieces in ways_to_cut(output.opener + output.text, output.name, rounds).items()
        }
        seen = results.Observation(nonstream=readings.pop("whole"), streams=readings)
        checked = checks.run_checks(fixtures.Fixture.from_dict(output.record), families[output.family], seen)
        statuses[checks.case_status(checked).value] += 1
        failed = [row for row in checked if row.status is results.Status.FAIL]
        faults += [f"{output.name}: {row.check}: {row.detail}" for row in failed[:1]]
    return statuses, faults


def as_result(results: Any, reading: toolglot.Reading) -> Any:
    """A reading in the form that the package checks."""
    calls = tuple(results.ParsedToolCall(call.name, call.arguments) for call in reading.calls)
    return results.ParseResult(reading.text or None, reading.reasoning or None, calls)

"""The library alone: reads a log of model answers and prints the calls in them.

    pip install toolglot
    python examples/read_log.py                                # examples/answers.jsonl
    python examples/read_log.py LOG.jsonl TOOLS.json

A line of the log is a chat completion, a chunk of one, or an object with "text". Chunks with the same "id" are one
answer. Exits with 1 if a call could not be read.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import toolglot

FOLDER = Path(__file__).resolve().parent


def read_answers(path: Path) -> Iterator[tuple[str, str, bool]]:
    """The answers of a log: name, text, and whether the model was cut off."""
    texts: dict[str, str] = {}
    cut: set[str] = set()
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        entry: dict[str, Any] = json.loads(line)
        name = str(entry.get("id") or f"line {number}")
        texts.setdefault(name, str(entry.get("text") or ""))
        for choice in entry.get("choices") or ():
            message = choice.get("message") or choice.get("delta") or {}
            texts[name] += message.get("content") or ""
            if choice.get("finish_reason") == "length":
                cut.add(name)
    return ((name, text, name in cut) for name, text in texts.items())


def main(arguments: list[str]) -> int:
    log = Path(arguments[0]) if arguments else FOLDER / "answers.jsonl"
    tools = json.loads(Path(arguments[1] if len(arguments) > 1 else FOLDER / "tools.json").read_text("utf-8"))
    calls = rejected = 0
    for name, text, truncated in read_answers(log):
        reading = toolglot.read(text, tools, truncated=truncated)
        for call in reading.calls:
            repairs = f", repaired: {', '.join(call.repairs)}" if call.repairs else ""
            print(f"{name}: {call.name} {call.arguments} ({call.dialect}{repairs})")
        for one in reading.rejected:
            problems = "; ".join(map(str, one.defects))
            print(f"{name}: no call ({one.reason}{': ' if problems else ''}{problems}): {one.raw!r:.60}")
        if not reading.calls and not reading.rejected:
            print(f"{name}: text only")
        calls, rejected = calls + len(reading.calls), rejected + len(reading.rejected)
    print(f"{calls} calls, {rejected} rejected")
    return 1 if rejected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

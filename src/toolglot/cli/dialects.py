"""``toolglot dialects``: list the dialects."""

from __future__ import annotations

import argparse
import json

import toolglot
from toolglot.cli.exit_codes import OK, AddParser

EXAMPLES = """\
examples:
  toolglot dialects                 name, family, file and the start of a sample
  toolglot dialects --json          with full samples
"""


def add(add_parser: AddParser) -> None:
    dialects = add_parser(
        description="List all dialects: name, family, source file and the start of a sample.",
        epilog=EXAMPLES,
    )
    dialects.add_argument("--json", action="store_true", help="print one JSON document, with full samples")
    dialects.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    entries = [
        {"name": dialect.name, "family": dialect.family, "file": dialect.file, "sample": dialect.sample}
        for dialect in toolglot.list_dialects()
    ]
    if arguments.json:
        print(json.dumps(entries, ensure_ascii=False, indent=2))
        return OK
    titles = {key: key for key in ("name", "family", "file", "sample")}
    rows = [titles, *(entry | {"sample": _first_line(entry["sample"])} for entry in entries)]
    widths = {key: max(len(row[key]) for row in rows) for key in ("name", "family", "file")}
    for row in rows:
        cells = [row[key].ljust(width) for key, width in widths.items()]
        print("  ".join([*cells, row["sample"]]).rstrip())
    return OK


def _first_line(sample: str) -> str:
    line = next((line for line in sample.splitlines() if line.strip()), "").strip()
    return line if len(line) <= 60 else line[:59] + "…"

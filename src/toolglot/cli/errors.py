"""``toolglot errors``: explain the errors that clients are shown."""

from __future__ import annotations

import argparse
import difflib
import json
import textwrap

from toolglot.cli.exit_codes import OK, AddParser
from toolglot.core.error_guide import ErrorEntry, find_status, load_guide, show_example
from toolglot.core.errors import UsageError

WIDTH = 100


def add(add_parser: AddParser) -> None:
    errors = add_parser(
        description="Explain an error by its code, which ends the message: its cause, who acts next, and what to do."
        " Without a code, list all errors.",
        epilog="examples:\n  toolglot errors upstream_key_refused\n  toolglot errors --json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    errors.add_argument("code", nargs="?", metavar="CODE", help="the code, such as upstream_unreachable")
    errors.add_argument("--json", action="store_true", help="print one JSON document")
    errors.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    entries = [find(arguments.code)] if arguments.code else list(load_guide().values())
    if arguments.json:
        described = [describe(entry) for entry in entries]
        print(json.dumps(described[0] if arguments.code else described, ensure_ascii=False, indent=2))
    elif arguments.code:
        print(format_entry(entries[0]))
    else:
        width = max(len(entry.code) for entry in entries)
        for entry in entries:
            print(f"{entry.code.ljust(width)}  {find_status(entry)}  {str(entry.actor).ljust(8)}  {entry.step}")
    return OK


def find(code: str) -> ErrorEntry:
    """The entry of a code. Raises: UsageError if there is none."""
    known = load_guide()
    if code not in known:
        near = [one for one in known if code in one] or difflib.get_close_matches(code, known, 1)
        hint = "'toolglot errors' lists them; upstreams have codes of their own"
        if near:
            hint = f"did you mean {' or '.join(near[:5])}?"
        raise UsageError(f"there is no error {code[:100]!r}; {hint}")
    return known[code]


def describe(entry: ErrorEntry) -> dict[str, object]:
    return {
        "code": entry.code,
        "status": find_status(entry),
        "source": str(entry.source),
        "actor": str(entry.actor),
        "cause": entry.cause,
        "step": entry.step,
        "example": show_example(entry),
    }


def format_entry(entry: ErrorEntry) -> str:
    rows = [("cause", entry.cause), (f"next ({entry.actor})", entry.step), ("example", show_example(entry))]
    lines = [f"{entry.code} (HTTP status {find_status(entry)})"]
    for title, text in rows:
        lines += ["", f"{title}:", textwrap.indent(textwrap.fill(text, WIDTH - 2), "  ")]
    return "\n".join(lines)

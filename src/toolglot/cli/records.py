"""``toolglot records``: list, show and export the records of requests."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, TextIO

from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.store_options import add_store_options, format_table, limit, run_with_store
from toolglot.cli.terminal import ProgressLine
from toolglot.core.errors import UsageError
from toolglot.gateway.storage import describe_record
from toolglot.gateway.telemetry.finetune import Skipped, make_example
from toolglot.store.interface import OUTCOMES, RecordQuery, RecordRow, Store

EXAMPLES = """\
examples:
  toolglot records list --outcome failed --limit 10                       the latest failures
  toolglot records show rec_0123                                          one record, with its bodies
  toolglot records export --format jsonl --output records.jsonl           all records
  toolglot records export --format openai-finetune --output train.jsonl   examples for fine-tuning
"""
JSONL: Final = "jsonl"
FINETUNE: Final = "openai-finetune"
PAGE: Final = 200
HEADS: Final = ("id", "time", "outcome", "status", "wire", "model", "seconds", "calls", "stable", "finish", "error")
ALL: Final = 1 << 62


def add(add_parser: AddParser) -> None:
    records = add_parser(
        description="Query the records that the gateway keeps of its requests, of all clients.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = records.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list records, newest first", description="List records, newest first.")
    listing.add_argument("--limit", type=limit, default=20, metavar="N", help="how many (default: 20)")
    listing.add_argument("--json", action="store_true", help="print one line of JSON for each record")
    _add_filters(listing)
    add_store_options(listing)
    listing.set_defaults(run=run_list)
    show = actions.add_parser(
        "show", help="show one record", description="Show one record as JSON, with its bodies if they were stored."
    )
    show.add_argument("id", metavar="ID", help="the id of the record or of the request")
    show.add_argument("--json", action="store_true", help="print JSON, as it does anyway")
    add_store_options(show)
    show.set_defaults(run=run_show)
    export = actions.add_parser(
        "export",
        help="write records to a file",
        description="Write records, newest first, one line of JSON each: as they are, with their bodies (jsonl), or as"
        ' examples for fine-tuning (openai-finetune), which needs store.bodies = "all" while requests are answered.',
    )
    export.add_argument("--format", choices=(JSONL, FINETUNE), default=JSONL, help="default: jsonl")
    export.add_argument("--output", metavar="FILE", help="default: standard output")
    export.add_argument("--limit", type=limit, default=ALL, metavar="N", help="how many records (default: all)")
    _add_filters(export)
    add_store_options(export)
    export.set_defaults(run=run_export)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    filters = parser.add_argument_group("filters")
    filters.add_argument("--before", default="", metavar="ID", help="only records before this one")
    filters.add_argument(
        "--model", dest="requested_model", default="", metavar="NAME", help="only requests for this model"
    )
    filters.add_argument("--session", default="", metavar="ID", help="only requests of this session")
    filters.add_argument("--outcome", default="", choices=OUTCOMES, help="only requests that ended like this")


def run_list(arguments: argparse.Namespace) -> int:
    rows = run_with_store(arguments, partial(_take_all, arguments=arguments), must_exist=True)
    if arguments.json:
        for row in rows:
            print(json.dumps(describe_record(row), ensure_ascii=False))
    elif rows:
        print(format_table(HEADS, [_format_row(describe_record(row)) for row in rows]))
    else:
        print("no records")
    return OK


def run_show(arguments: argparse.Namespace) -> int:
    row = run_with_store(arguments, lambda store: store.get_record(None, arguments.id), must_exist=True)
    if row is None:
        raise UsageError(f"there is no record {arguments.id!r}")
    print(json.dumps(describe_record(row), ensure_ascii=False, indent=2))
    return OK


def run_export(arguments: argparse.Namespace) -> int:
    try:
        output = open(arguments.output, "w", encoding="utf-8") if arguments.output else nullcontext(sys.stdout)  # noqa: SIM115
        with output as stream:
            written, skipped = run_with_store(
                arguments, partial(_export, arguments=arguments, stream=stream), must_exist=True
            )
    except OSError as error:
        if not arguments.output:
            raise
        raise UsageError(f"cannot write {arguments.output}: {error.strerror}") from None
    print(f"{written} records written", file=sys.stderr)
    for reason, number in skipped.items():
        print(f"{number} records skipped: {reason}", file=sys.stderr)
    if skipped[Skipped.NO_BODIES]:
        print('hint: set bodies = "all" under [store] to keep the bodies of further requests', file=sys.stderr)
    return OK


async def _export(store: Store, arguments: argparse.Namespace, stream: TextIO) -> tuple[int, Counter[str]]:
    written, skipped = 0, Counter[str]()
    with ProgressLine("exporting", unit="records", shown=bool(arguments.output)) as progress:
        async for listed in _list(store, arguments):
            progress.advance(1)
            row = await store.get_record(None, listed.id)
            if row is None:  # deleted meanwhile
                continue
            document = make_example(row) if arguments.format == FINETUNE else describe_record(row)
            if isinstance(document, Skipped):
                skipped[document] += 1
                continue
            stream.write(json.dumps(document, ensure_ascii=False) + "\n")
            written += 1
    return written, skipped


async def _take_all(store: Store, arguments: argparse.Namespace) -> list[RecordRow]:
    return [row async for row in _list(store, arguments)]


async def _list(store: Store, arguments: argparse.Namespace) -> AsyncIterator[RecordRow]:
    """The records that the filters select, read in pages."""
    left, before = arguments.limit, arguments.before
    while left:
        page = await store.list_records(
            None,
            RecordQuery(
                limit=min(left, PAGE),
                before=before,
                model=arguments.requested_model,
                session=arguments.session,
                outcome=arguments.outcome,
            ),
        )
        for row in page:
            yield row
        if len(page) < min(left, PAGE):
            return
        left, before = left - len(page), page[-1].id


def _format_row(record: dict[str, Any]) -> tuple[str, ...]:
    shown = record | {"time": record["time"][:19], "seconds": f"{record['duration']:.2f}", "stable": ""}
    if record.get("prompt_bytes") and record.get("stable_bytes") is not None:
        shown["stable"] = f"{100 * record['stable_bytes'] // record['prompt_bytes']}%"
    return tuple(str(shown[head] if shown[head] != "" else "-") for head in HEADS)

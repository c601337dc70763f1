"""``toolglot sessions``: list, show, export and delete the sessions of clients."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from toolglot.cli.common_options import load_settings
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.run_page import export_page
from toolglot.cli.store_options import add_store_options, format_table, limit, run_with_store
from toolglot.core.errors import UsageError
from toolglot.gateway.storage import describe_record, describe_session
from toolglot.store.interface import RecordQuery, SessionRow, Store

EXAMPLES = """\
examples:
  toolglot sessions list                  the latest sessions
  toolglot sessions show ses_0123         one session and its latest records
  toolglot sessions export ses_0123 --html          write it to ses_0123.html, which opens in any browser, offline
  toolglot sessions export ses_0123 --html - | ...  to standard output
  toolglot sessions delete ses_0123       delete it with its records
"""
HEADS: Final = ("id", "created", "used", "turns", "client", "model", "upstream", "client_session")
RECORDS_SHOWN: Final = 50


def add(add_parser: AddParser) -> None:
    sessions = add_parser(
        description="Query the sessions that the gateway recognises, of all clients.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = sessions.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list sessions, newest first", description="List sessions, newest first.")
    listing.add_argument("--limit", type=limit, default=20, metavar="N", help="how many (default: 20)")
    listing.add_argument("--before", default="", metavar="ID", help="only sessions before this one")
    listing.add_argument("--json", action="store_true", help="print one line of JSON for each session")
    add_store_options(listing)
    listing.set_defaults(run=run_list)
    show = actions.add_parser("show", help="show one session", description="Show a session and its latest records.")
    show.add_argument("id", metavar="ID", help="the id of the session")
    show.add_argument("--json", action="store_true", help="print JSON, as it does anyway")
    add_store_options(show)
    show.set_defaults(run=run_show)
    export = actions.add_parser(
        "export",
        help="write one session to a file",
        description="Write a session with all its turns to one HTML file, for a bug report. Keys are redacted; texts"
        " are in it only if they were recorded (store.bodies).",
    )
    export.add_argument("id", metavar="ID", help="the id of the session")
    export.add_argument(
        "--html", nargs="?", const="", required=True, metavar="FILE", help="HTML; to ID.html, FILE, or '-' for output"
    )
    add_store_options(export)
    export.set_defaults(run=run_export)
    delete = actions.add_parser(
        "delete",
        help="delete a session",
        description="Delete a session with its records. The gateway deletes chats at a stateful upstream only if it is"
        " asked itself: DELETE /v1/sessions/ID.",
    )
    delete.add_argument("id", metavar="ID", help="the id of the session")
    delete.add_argument("--json", action="store_true", help="print one JSON document")
    add_store_options(delete)
    delete.set_defaults(run=run_delete)


def run_list(arguments: argparse.Namespace) -> int:
    rows = run_with_store(
        arguments, lambda store: store.list_sessions(None, arguments.limit, arguments.before), must_exist=True
    )
    if arguments.json:
        for row in rows:
            print(json.dumps(describe_session(row), ensure_ascii=False))
    elif rows:
        print(format_table(HEADS, [_format_row(row) for row in rows]))
    else:
        print("no sessions")
    return OK


def run_show(arguments: argparse.Namespace) -> int:
    async def find(store: Store) -> dict[str, Any]:
        row = await store.get_session(None, arguments.id)
        if row is None:
            raise UsageError(f"there is no session {arguments.id!r}")
        records = await store.list_records(None, RecordQuery(limit=RECORDS_SHOWN, session=row.id))
        return {**describe_session(row), "records": [describe_record(record) for record in records]}

    print(json.dumps(run_with_store(arguments, find, must_exist=True), ensure_ascii=False, indent=2))
    return OK


def run_export(arguments: argparse.Namespace) -> int:
    settings = load_settings(arguments, needs_secrets=False)
    file = Path(arguments.html or f"{arguments.id}.html")

    async def export(store: Store) -> int:
        pieces = await export_page(store, arguments.id, settings)
        if arguments.html == "-":
            return await write(sys.stdout.buffer, pieces)
        try:
            with file.open("wb") as opened:
                return await write(opened, pieces)
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from None

    async def write(opened: BinaryIO, pieces: AsyncIterator[bytes]) -> int:
        return sum([opened.write(piece) async for piece in pieces])

    size = run_with_store(arguments, export, must_exist=True)
    if arguments.html != "-":
        print(f"{file}: {size:,} bytes")
    return OK


def run_delete(arguments: argparse.Namespace) -> int:
    chats = run_with_store(arguments, lambda store: store.delete_session(None, arguments.id), must_exist=True)
    if chats is None:
        raise UsageError(f"there is no session {arguments.id!r}")
    if arguments.json:
        left = [{"chat": chat.id, "account": chat.account} for chat in chats]
        print(json.dumps({"deleted": arguments.id, "chats_left_at_upstream": left}, ensure_ascii=False, indent=2))
        return OK
    print(f"deleted {arguments.id}")
    for chat in chats:
        print(f"chat {chat.id} of {chat.account} is not deleted at the upstream")
    return OK


def _format_row(row: SessionRow) -> tuple[str, ...]:
    times = {
        name: f"{datetime.fromtimestamp(getattr(row, name), UTC):%Y-%m-%dT%H:%M:%S}" for name in ("created", "used")
    }
    shown = describe_session(row) | times
    return tuple(str(shown[head] if shown[head] != "" else "-") for head in HEADS)

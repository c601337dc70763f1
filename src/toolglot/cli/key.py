"""``toolglot key``: generate a client key; create, list and revoke those of the store."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from toolglot.cli.exit_codes import OK, AddParser
from toolglot.cli.store_options import add_store_options, format_table, run_with_store
from toolglot.config import KeyHash, make_key
from toolglot.core.errors import UsageError

if TYPE_CHECKING:
    from toolglot.store.interface import Store

UNITS: Final = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
MAX_NAME: Final = 100
EXAMPLES: Final = """\
examples:
  toolglot key                                     print a key and its hash, for TOOLGLOT_CLIENT_KEYS or server.keys
  toolglot key create --name alice --expires 30d   put a key into the store; all gateways with this store accept it
  toolglot key --admin                             a key that also opens the console, for TOOLGLOT_ADMIN_KEYS
  toolglot key create --name root --admin          the same in the store
  toolglot key list
  toolglot key revoke alice                        gateways refuse it within a second

A gateway whose only keys are in the store should have server.require_key = true: then it refuses all requests while
it cannot read them.
"""


def add(add_parser: AddParser) -> None:
    key = add_parser(
        description="Generate a random client key. Give the key to the client and the hash to the gateway"
        " (TOOLGLOT_CLIENT_KEYS, or keys under [server] in the file); the gateway needs only the hash.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    key.add_argument("--json", action="store_true", help="print one JSON document")
    key.add_argument("--admin", action="store_true", help="a key that also opens the console: for console.keys")
    key.set_defaults(run=run)
    actions = key.add_subparsers(title="keys in the store", metavar="ACTION")
    create = actions.add_parser("create", help="create a key; only its hash is stored")
    create.add_argument("--name", required=True, help="name of the key, which is unique")
    create.add_argument("--expires", metavar="TIME", default="", help="such as 12h, 30d or 8w (default: never)")
    create.add_argument("--admin", action="store_true", dest="is_admin", help="the key also opens the console")
    create.set_defaults(run=run_create)
    listing = actions.add_parser("list", help="list the keys")
    listing.set_defaults(run=run_list)
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("name", metavar="NAME", help="name of the key")
    revoke.set_defaults(run=run_revoke)
    for parser in (create, listing, revoke):
        # without a default: the option of the command itself counts too
        parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print one JSON document")
        add_store_options(parser)


def run(arguments: argparse.Namespace) -> int:
    key = make_key(secrets.token_bytes)
    facts = {"key": key, "hash": str(KeyHash.of(key))}
    if arguments.admin:
        facts["use"] = "give the hash to the gateway as TOOLGLOT_ADMIN_KEYS, or keys under [console] in the file"
    _print(facts, arguments)
    return OK


def _print(facts: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Print facts as JSON, or one per line."""
    if arguments.json:
        print(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    width = max(map(len, facts)) + 1
    for name, value in facts.items():
        print(f"{name + ':':<{width}} {value}")


def run_create(arguments: argparse.Namespace) -> int:
    from toolglot.store.interface import ADMIN, KeyRow

    name, now = arguments.name.strip(), time.time()
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise UsageError(f"the name of a key is printable text of at most {MAX_NAME} characters")
    expires = now + read_duration(arguments.expires) if arguments.expires else 0.0
    key, scope = make_key(secrets.token_bytes), ADMIN if arguments.is_admin or arguments.admin else ""

    async def create(store: Store) -> None:
        if any(row.name == name for row in await store.list_keys()):
            raise UsageError(f"there is a key named {name!r} already: revoke it, or choose another name")
        await store.save_key(KeyRow(name=name, hash=str(KeyHash.of(key)), created=now, expires=expires, scope=scope))

    run_with_store(arguments, create)
    facts = {"key": key, "name": name, "expires": format_time(expires)}
    _print(facts | ({"scope": scope} if scope else {}), arguments)
    return OK


def run_list(arguments: argparse.Namespace) -> int:
    async def list_keys(store: Store) -> list[list[str]]:
        rows = sorted(await store.list_keys(), key=lambda row: row.created)
        return [[row.name, format_time(row.created), format_expiry(row.expires), row.scope or "client"] for row in rows]

    heads = ("name", "created", "expires", "scope")
    rows = run_with_store(arguments, list_keys)
    if arguments.json:
        print(json.dumps([dict(zip(heads, row, strict=True)) for row in rows], ensure_ascii=False, indent=2))
    else:
        print(format_table(heads, rows))
    return OK


def run_revoke(arguments: argparse.Namespace) -> int:
    if not run_with_store(arguments, lambda store: store.delete_key(arguments.name)):
        raise UsageError(f"there is no key named {arguments.name!r}; 'toolglot key list' shows all")
    print(json.dumps({"revoked": arguments.name}) if arguments.json else f"revoked {arguments.name}")
    return OK


def read_duration(text: str) -> float:
    """Seconds of a duration such as 30d. Raises: UsageError."""
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip().lower())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"{text!r} is not a duration: write a number and m, h, d or w, such as 30d")
    return int(found[1]) * UNITS[found[2]]


def format_time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else "never"


def format_expiry(expires: float) -> str:
    return f"expired {format_time(expires)}" if expires and expires <= time.time() else format_time(expires)

"""``toolglot key``: generate a client key."""

from __future__ import annotations

import argparse
import secrets

from toolglot.cli.exit_codes import OK, Commands
from toolglot.config import KeyHash, make_key


def add(commands: Commands) -> None:
    key = commands.add_parser(
        "key",
        help="generate a client key",
        description="Generate a random client key. Give the key to the client and the hash to the gateway"
        " (TOOLGLOT_CLIENT_KEYS, or keys under [server] in the file); the gateway needs only the hash.",
    )
    key.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    key = make_key(secrets.token_bytes)
    print(f"key:  {key}")
    print(f"hash: {KeyHash.of(key)}")
    return OK

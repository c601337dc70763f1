"""What the commands that read the store share: they open it themselves, whether or not the gateway runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from toolglot.cli.common_options import load_settings
from toolglot.config import Settings
from toolglot.core.errors import StoreError, UsageError
from toolglot.gateway.capabilities.learned import find_folder
from toolglot.gateway.storage import make_store
from toolglot.store.interface import Store

T = TypeVar("T")


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the store is. They have no defaults, as those of the gateway."""
    store = parser.add_argument_group("store")
    store.add_argument("--config", metavar="FILE", help="settings file: toolglot.toml or a LiteLLM config.yaml")
    store.add_argument("--state-dir", metavar="DIR", help="directory of the store, if its URL names a relative file")
    store.add_argument(
        "--store-url",
        metavar="URL",
        help="sqlite:FILE or postgresql://...; visible in the process list, unlike TOOLGLOT_STORE_URL",
    )


def run_with_store(
    arguments: argparse.Namespace, work: Callable[[Store], Awaitable[T]], *, must_exist: bool = False
) -> T:
    """Open the store of the settings and do some work with it. ``must_exist``: a new one is of no use.

    Raises: UsageError if that is impossible.
    """
    import asyncio

    settings = load_settings(arguments, needs_secrets=False)
    if must_exist:
        _require_file(settings)

    async def run() -> T:
        async with opened(settings) as store:
            return await work(store)

    try:
        return asyncio.run(run())
    except StoreError as error:
        raise UsageError(f"the store {settings.store.url!r} cannot be used: {error.message}") from None


def _require_file(settings: Settings) -> None:
    """Raise UsageError if the store is a file that does not exist; opening it would make it."""
    file, folder = settings.store.url.sqlite_path, find_folder(settings.server.state_dir, os.environ)
    if not file or (folder is None and not Path(file).expanduser().is_absolute()):
        return
    path = (folder or Path()) / Path(file).expanduser()
    if not path.exists():
        raise UsageError(f"there is no store at {path}: 'toolglot serve' makes it, or give another --state-dir")


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    store = make_store(settings, os.environ)
    if store is None:
        raise UsageError("there is no store: set store.url (TOOLGLOT_STORE_URL), and server.state_dir if it is 'none'")
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns with their heads; the last one is not padded."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in (heads, *rows))
    return "\n".join(line.rstrip() for line in lines)


def limit(text: str) -> int:
    """The type of ``--limit``."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(text)

"""Files and standard input that commands read. What cannot be read is a UsageError that says what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from toolglot.core.errors import UsageError

STANDARD_INPUT = "-"


def read_input(name: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises: UsageError."""
    try:
        return standard_input().read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def read_lines(name: str) -> Iterator[bytes]:
    """The lines of a file, or of standard input for ``-``. Raises: UsageError."""
    try:
        if name == STANDARD_INPUT:
            yield from standard_input()
            return
        with open(name, "rb") as file:
            yield from file
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from None


def standard_input() -> BinaryIO:
    """Standard input as bytes. Raises: UsageError if it is closed. Tells a person at a terminal what is awaited."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: name a file, or pipe the text in")
    if sys.stdin.isatty():
        print("reading standard input; end it with Ctrl-D", file=sys.stderr)
    return sys.stdin.buffer

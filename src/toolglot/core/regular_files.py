"""Reads and replaces files that other programs and users may have put in the way: links, pipes, devices."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO, Final

NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags with which opening a pipe or a device does not wait."""
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
PRIVATE: Final = 0o600
IRREGULAR: Final = "it is not a regular file"
TOO_LARGE: Final = "it is larger than {} bytes"
MAX_LINKS: Final = 40
"""Links in one path, as Linux counts them."""


@contextmanager
def open_regular(path: Path, *, follow: bool = True) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """Open a regular file for reading, and tell its state. ``follow``: the last part of the path may be a link.

    Raises: OSError; also if it is a folder, a pipe, a socket or a device, which is not waited for.
    """
    number = os.open(path, os.O_RDONLY | NO_WAIT | (0 if follow else NO_LINK))
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, IRREGULAR, str(path))
        with os.fdopen(number, "rb", closefd=False) as file:
            yield file, found
    finally:
        os.close(number)


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """The content of a regular file of at most ``limit`` bytes. Raises: OSError."""
    with open_regular(path, follow=follow) as (file, _):
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, TOO_LARGE.format(limit), str(path))
    return data


def find_links(path: Path, start: Path) -> Iterator[Path]:
    """Every link that is followed on the way from a folder, which has no links in its own path, to a path below it.
    Raises: OSError if there are too many."""
    waiting, here, found = [*reversed(path.parts)], start, 0
    while waiting:
        part = waiting.pop()
        here = here.parent if part == os.pardir else here / part
        if part == os.pardir or not here.is_symlink():
            continue
        if (found := found + 1) > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(here))
        yield here
        waiting += reversed(here.readlink().parts)
        here = here.parent


def replace_file(path: Path, data: bytes, like: os.stat_result | None = None) -> None:
    """Replace a file at once, or make it. What a link at this path points to stays as it is: the link is replaced.

    Parameters: ``like`` is the state of a file whose permissions, owner and group the new one gets, as far as that is
    allowed; by default only this user may read it. Raises: OSError; the file is then unchanged.
    """
    fresh = path.with_name(f".{path.name[:200]}.{token_hex(8)}.toolglot-new")
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_WAIT, PRIVATE), "wb") as file:
            file.write(data)
            file.flush()
            if like is not None:
                _copy_state(file.fileno(), like)
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException as error:
        with suppress(OSError):
            fresh.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)
        raise


def _copy_state(number: int, like: os.stat_result) -> None:
    if os.name != "posix":
        return
    mode = stat.S_IMODE(like.st_mode) & 0o777
    if os.geteuid() == 0:
        os.fchown(number, like.st_uid, like.st_gid)
    elif os.fstat(number).st_gid != like.st_gid:
        try:
            os.fchown(number, -1, like.st_gid)
        except OSError:  # it is not a group of this user, and what it may do is not for another group
            mode &= ~stat.S_IRWXG
    os.fchmod(number, mode)

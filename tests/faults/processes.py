"""Commands of toolglot as processes. Their log goes to a file, because a full pipe would block them."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("TOOL", "OPENAI"))}


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int
    log: Path


@contextmanager
def running(log: Path, *command: str, **environ: str) -> Iterator[Running]:
    """A command that serves. It is killed at the end if it still runs."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=CLEAN | environ
        )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                yield Running(process, int(found[1]), log)
                break
        else:
            raise AssertionError(log.read_text())
    finally:
        process.kill()
        process.communicate()


def allow_connections(count: int) -> None:
    """Raise the limit of open files, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def find_workers(supervisor: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii").split()]

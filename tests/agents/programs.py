"""Programs that tests start: each has a log and a timeout, and is ended by its process id."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
START_SECONDS = 30.0
GRACE_SECONDS = 5.0
SHOWN = 6000


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has come to its end."""

    code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        return f"exit code {self.code}\n--- stdout\n{self.stdout[-SHOWN:]}\n--- stderr\n{self.stderr[-SHOWN:]}"


class Server:
    """A program that prints its address when it listens, and continues."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.process = process
        self.log = log
        self.address = self._await_address()

    def _await_address(self) -> str:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if found := ADDRESS.search(self.log.read_text("utf-8", "replace")):
                return found[0]
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError(f"{self.name} does not listen: {self}")

    def __str__(self) -> str:
        code = self.process.poll()
        state = "running" if code is None else f"ended with {code}"
        return f"--- {self.name} ({state})\n{self.log.read_text('utf-8', 'replace')[-SHOWN:]}"


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], seconds: float) -> Ended:
    """Run a program to its end. One that takes too long is killed, and its code is that of the signal."""
    process = subprocess.Popen(
        list(map(str, command)),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\nkilled after {seconds} seconds".encode()
    return Ended(process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


@contextmanager
def serving(
    name: str, command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], log: Path
) -> Iterator[Server]:
    """Run a server as long as the context lasts."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield Server(name, process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        process.wait(GRACE_SECONDS)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a program and what it started: its session is its own, so the group has the id of the program."""
    if process.poll() is None:
        os.killpg(process.pid, number)

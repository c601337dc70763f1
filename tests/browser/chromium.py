"""A real headless browser. It reaches only loopback, and has its own profile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser.sites import NAME

PROGRAM = "chromium"
SECONDS = 120.0
# The browser's own guards before loopback are off, for other browsers have none. Its sandbox is, for only our own pages
# are shown and it does not start in a container.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-popup-blocking",
    "--disable-features=LocalNetworkAccessChecks",
    f"--host-resolver-rules=MAP {NAME} 127.0.0.1,MAP *.{NAME} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE localhost,EXCLUDE 127.0.0.1",
)


def find_browser() -> str:
    found = shutil.which(PROGRAM)
    if not found:
        pytest.fail(f"{PROGRAM} is not installed: these tests need a real browser ('apt-get install {PROGRAM}')")
    return found


@contextmanager
def browsing(folder: Path, address: str, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A browser that shows an address; it is killed at the end, with what it started."""
    command = [find_browser(), *OPTIONS, f"--user-data-dir={folder / 'profile'}", *options, address]
    with (folder / "browser.log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def read_address(folder: Path, address: str) -> str:
    """The page that a user sees who enters an address."""
    with browsing(folder, address, "--dump-dom") as process:
        return process.communicate(timeout=SECONDS)[0]

"""A gateway in a process of its own, for a command that needs one while it runs.

Strategy. This file is both sides: ``started`` is the parent, ``python -m toolglot.cli.gateway_process`` the child. Two
pipes connect them. The child reads its orders from standard input, one line of JSON, and answers with one line: its
address, or what is wrong. It logs to standard error, which is a file. When it reads end-of-file, because the parent
closed the pipe or ended in whatever way, it finishes its records and exits. It has a session of its own, so that the
signals of the terminal do not reach it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from toolglot.cli.common_options import load_settings
from toolglot.cli.serve import serve_settings
from toolglot.config import Settings
from toolglot.config.settings import ANY, ModelSettings
from toolglot.core.errors import ToolglotError, UsageError

DRAIN_SECONDS: Final = 2.0
"""Time that open streams have when the client has ended already."""
STOP_TIMEOUT: Final = 15.0


@dataclass(frozen=True, slots=True)
class StartedGateway:
    """A gateway that listens: its address without ``/v1``, and the model that it was started for."""

    address: str
    model: str
    process: subprocess.Popen[bytes]

    def is_running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """Let it finish its records, and wait until it has ended."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextmanager
def started(arguments: Mapping[str, Any], model: str, log: Path) -> Iterator[StartedGateway]:
    """Start a gateway on a free port; it is stopped at the end.

    Parameters: ``arguments`` are the options that its settings are loaded with, ``model`` is the one that it answers
    for names that the settings do not have, ``log`` is the file of its log. Raises: UsageError if it does not start.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "toolglot.cli.gateway_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            start_new_session=True,
        )
    gateway = StartedGateway("", model, process)
    assert process.stdin is not None and process.stdout is not None
    try:
        with suppress(BrokenPipeError):  # it ended already; its answer is missing, too
            process.stdin.write(json.dumps({"arguments": dict(arguments), "model": model}).encode() + b"\n")
            process.stdin.flush()
        line = process.stdout.readline()
        status = json.loads(line) if line.endswith(b"\n") else {"problem": f"it ended early; its log is {log}"}
        if "problem" in status:
            raise UsageError(f"the gateway did not start: {status['problem']}")
        yield replace(gateway, address=status["address"], model=status["model"])
    finally:
        gateway.stop()
        process.stdout.close()


def direct_others(settings: Settings, name: str) -> Settings:
    """Requests for names that the settings do not define go to the model of this name, because agents ask for other
    models on the side. Raises: UnknownModelError."""
    named = tuple(model for model in settings.models if model.name != ANY)
    other = next((model for model in settings.models if model.name == ANY), None)
    if other is not None:
        if any(model.match(name) is not None for model in named):
            return settings
        settings = replace(settings, models=(*named, replace(other, model="")))
    chosen, _ = settings.model_for(name)
    return replace(settings, models=(*named, replace(chosen, name=ANY)))


def make_private(settings: Settings) -> Settings:
    """The settings of a gateway for one client on this machine; it logs every request."""
    server = settings.server
    level = server.log_level if server.log_level == "debug" else "info"
    drain = min(server.drain_seconds, DRAIN_SECONDS)
    private = replace(server, host="127.0.0.1", port=0, workers=1, drain_seconds=drain, log_level=level)
    return replace(settings, server=private)


def main() -> None:
    """The child process: serve until standard input ends."""
    orders = json.loads(sys.stdin.buffer.readline())
    parent = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # only the answer may go to the parent
    threading.Thread(target=_stop_with_parent, daemon=True).start()

    def answer(**fields: str) -> None:
        with suppress(BrokenPipeError):
            print(json.dumps(fields), file=parent, flush=True)

    def ready(settings: Settings, address: str) -> None:
        answer(address=address, model=orders["model"] or _first_model(settings.models))

    try:
        settings = make_private(load_settings(argparse.Namespace(**orders["arguments"])))
        if orders["model"]:
            settings = direct_others(settings, orders["model"])
        serve_settings(settings, ready)
    except ToolglotError as error:
        answer(problem=error.message)


def _first_model(models: tuple[ModelSettings, ...]) -> str:
    return next((model.model for model in models if model.model), "")


def _stop_with_parent() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()

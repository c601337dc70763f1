"""Runs a program in the foreground of the terminal, as a shell does.

The program shares terminal, standard streams and process group with this command. Ctrl-C reaches both, and only the
program acts on it; Ctrl-Z stops both. Signals for this command alone are passed on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

from toolglot.core.errors import UsageError

FROM_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT) if sys.platform != "win32" else (signal.SIGINT,)
"""The terminal sends these to the program, too."""
PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else (signal.SIGTERM,)
SIGNALLED: Final = 128
"""Shells add this to the number of the signal that ended a program."""


def run_foreground(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end. Returns: its exit code; 128 and the number of the signal if one ended it.

    Raises: UsageError if it cannot be started.
    """
    with _kept_terminal(), _kept_signals() as running:
        try:
            process = subprocess.Popen(list(command), env=dict(environment))
        except OSError as error:
            raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from None
        running.append(process)
        code = _wait(process)
    return SIGNALLED - code if code < 0 else code


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until the program ends. If it stops itself, this command stops, too, so that the shell gets the terminal."""
    if sys.platform == "win32":
        return process.wait()
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        os.kill(os.getpid(), signal.SIGSTOP)
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


@contextmanager
def _kept_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Handle signals for the program that is put into the list."""
    running: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        for process in running:
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    # a handler that does nothing, because the program would inherit that a signal is ignored
    wanted = {number: lambda *_: None for number in FROM_TERMINAL} | dict.fromkeys(PASSED_ON, pass_on)
    handled = {number: handler for number, handler in wanted.items() if signal.getsignal(number) != signal.SIG_IGN}
    handlers = {number: signal.signal(number, handler) for number, handler in handled.items()}
    try:
        yield running
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _kept_terminal() -> Iterator[None]:
    """Restore the modes of the terminal afterwards: a program that is killed leaves them as they are."""
    if sys.platform == "win32" or not sys.stdin or not os.isatty(0):
        yield
        return
    import termios

    modes = termios.tcgetattr(0)
    try:
        yield
    finally:
        with suppress(termios.error, OSError):
            if os.tcgetpgrp(0) == os.getpgrp():  # else this would stop a command in the background
                termios.tcsetattr(0, termios.TCSADRAIN, modes)

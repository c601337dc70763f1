"""Runs a program in the foreground of the terminal, as a shell does.

The program shares terminal, standard streams and process group with this command. Ctrl-C reaches both, and only the
program acts on it; Ctrl-Z stops both. Signals for this command alone are passed on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, TypeAlias

from toolglot.core.errors import UsageError

FROM_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT) if sys.platform != "win32" else (signal.SIGINT,)
"""The terminal sends these to the program, too."""
PASSED_ON: Final = (signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else (signal.SIGTERM,)
Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None
SIGNALLED: Final = 128
"""Shells add this to the number of the signal that ended a program."""


class Foreground:
    """Runs a program. From its start to the end of the ``with`` block this command is not interrupted."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._handlers: dict[signal.Signals, Handler] = {}
        self._early: list[int] = []

    def __enter__(self) -> Foreground:
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run a program to its end. Returns: its exit code; 128 and the number of the signal if one ended it.

        Raises: UsageError if it cannot be started.
        """
        self._handle_signals()
        with _kept_terminal():
            try:
                self._process = subprocess.Popen(list(command), env=dict(environment))
            except OSError as error:
                raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from None
            for number in self._early:
                self._pass_on(number, None)
            code = _wait(self._process)
        return SIGNALLED - code if code < 0 else code

    def _handle_signals(self) -> None:
        """Handlers that do nothing, because the program would inherit that a signal is ignored; others pass it on."""
        wanted = dict.fromkeys(FROM_TERMINAL, _do_nothing) | dict.fromkeys(PASSED_ON, self._pass_on)
        for number, handler in wanted.items():
            if signal.getsignal(number) != signal.SIG_IGN:
                self._handlers[number] = signal.signal(number, handler)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        if self._process is None:
            self._early.append(number)  # it is being started, and may run already
        elif self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)


def _do_nothing(number: int, _: FrameType | None) -> None:
    pass


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

"""Interrupts work that does not end, so that one answer cannot stop the whole process.

Strategy. Each thread that converts requests and answers has a ``Section``: a number that is odd while work is under
way and changes with every piece of work, so a piece costs two additions and no look at the clock. A second thread
compares the numbers now and then. If one stays odd and the same for too long, ``Interruption`` is raised in that
thread, between two instructions of Python. No ``except Exception`` catches it; it leaves the section as ``StuckError``.
What is one call of the language, such as one search of a regular expression, cannot be interrupted; so the patterns
must be linear.

The error must not arrive after the work has ended. Therefore the watching thread announces it (``interrupted``) before
it looks at the number once more, and a thread that ends its work withdraws an announced error. The number is changed
by the first instructions after the work, between which no error can arrive.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from toolglot.core.errors import StuckError

TICK_SECONDS: Final = 0.4
LOOP_TICKS: Final = 3
"""Ticks that a piece of work on the event loop may take: 1.2 to 1.6 seconds."""
THREAD_TICKS: Final = 150
"""Ticks that a piece of work in a thread of its own may take: a minute."""

LOG = logging.getLogger("toolglot.watchdog")
Params = ParamSpec("Params")
Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Interruption(BaseException):
    """Ends work that does not end by itself."""


class Section:
    """The work of one thread."""

    __slots__ = ("interrupted", "lock", "number", "seen", "thread", "ticks", "ticks_left")

    def __init__(self, ticks: int) -> None:
        self.thread = threading.get_ident()
        self.number = 0
        self.interrupted = False
        self.lock = threading.Lock()
        self.ticks = self.ticks_left = ticks
        self.seen = 0

    def run(self, work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
        """Call ``work``. Raises ``StuckError`` if it does not end. Work within other work is part of that."""
        if self.number & 1:
            return work(*args, **named)
        self.number += 1
        try:
            try:
                return work(*args, **named)
            finally:
                self.number += 1
                if self.interrupted:
                    self.withdraw()
        except Interruption:
            raise StuckError from None

    def guard(self, work: Callable[[Argument], Result]) -> Callable[[Argument], Result]:
        """The same function as a piece of work of its own (hot path)."""

        def guarded(argument: Argument) -> Result:
            self.number += 1
            try:
                try:
                    return work(argument)
                finally:
                    self.number += 1
                    if self.interrupted:
                        self.withdraw()
            except Interruption:
                raise StuckError from None

        return guarded

    def check(self) -> None:
        """Interrupt the work if it is the same as at the last checks. Called by the watching thread."""
        if self.number != self.seen or not self.number & 1:
            self.seen, self.ticks_left = self.number, self.ticks
            return
        self.ticks_left -= 1
        if self.ticks_left > 0:
            return
        self.ticks_left = self.ticks
        stack = traceback.format_stack(sys._current_frames().get(self.thread))
        if self.interrupt(self.seen):
            LOG.error("work did not end and is interrupted:\n%s", "".join(stack))

    def interrupt(self, number: int) -> bool:
        """Raise ``Interruption`` in the work of this number; False if it has ended. Called by other threads."""
        with self.lock:
            self.interrupted = True
            if self.number != number:
                self.interrupted = False
                return False
            _raise_in(self.thread, Interruption)
            return True

    def withdraw(self) -> None:
        """Withdraw an announced error, because the work has ended."""
        with self.lock:
            _raise_in(self.thread, None)
            self.interrupted = False


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise the error in another thread at its next instruction; None withdraws one that is not raised yet."""
    value = ctypes.py_object(error) if error is not None else ctypes.c_void_p(None)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), value)


class Watchdog:
    """The sections of all threads, and the thread that checks them."""

    def __init__(self) -> None:
        self.sections: dict[int, Section] = {}
        self.lock = threading.Lock()
        self.watcher: threading.Thread | None = None

    def watch(self, ticks: int = LOOP_TICKS) -> Section:
        """The section of this thread, which is checked from now on. Its work may take so many ticks."""
        section = self.sections.get(threading.get_ident())
        return section if section is not None else self.add_section(ticks)

    def add_section(self, ticks: int) -> Section:
        threading.current_thread()  # lists this thread in `threading`, also one that Python did not start
        section = self.sections[threading.get_ident()] = Section(ticks)
        with self.lock:
            if self.watcher is None:
                self.watcher = threading.Thread(target=self.check_sections, name="toolglot-watchdog", daemon=True)
                self.watcher.start()
        return section

    def check_sections(self) -> None:
        while True:
            time.sleep(TICK_SECONDS)
            alive = {thread.ident for thread in threading.enumerate()}
            for thread, section in list(self.sections.items()):
                if thread in alive:
                    section.check()
                else:
                    self.sections.pop(thread, None)

    def forget_threads(self) -> None:
        """Start anew in a forked process: it has only the thread that forked."""
        self.sections.clear()
        self.lock = threading.Lock()
        self.watcher = None


_watchdog = Watchdog()
watch = _watchdog.watch
os.register_at_fork(after_in_child=_watchdog.forget_threads)

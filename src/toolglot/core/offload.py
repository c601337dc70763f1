"""Runs work on large requests and answers in threads, so that the event loop is not blocked.

The duration of the work depends on the size of its input, so size decides. The work is pure Python and holds the GIL;
the event loop gets it back after ``SWITCH_SECONDS``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Generic, ParamSpec, TypeVar

from toolglot.core import watchdog

LARGE_REQUEST: Final = 1 << 13
LARGE_ANSWER: Final = 1 << 16
SWITCH_SECONDS: Final = 0.0002
"""Seconds that a chunk of a stream waits for the GIL while a thread works. So short a time costs the thread less than a
hundredth of its work."""
THREADS: Final = 2
"""More threads would only compete for the GIL; with one, a single request could block all other large ones."""

Params = ParamSpec("Params")
Result = TypeVar("Result")
_EXECUTOR: Final = ThreadPoolExecutor(THREADS, thread_name_prefix="toolglot-work")


async def run(large: bool, work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
    """Call ``work``, in a thread if it is ``large``. Cancelling the caller interrupts the work.

    Raises ``StuckError`` if the work does not end.
    """
    if not large:
        return watchdog.watch().run(work, *args, **named)
    task = _ThreadTask(partial(work, *args, **named))
    try:
        return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, task)
    except asyncio.CancelledError:
        task.interrupt()
        raise


class _ThreadTask(Generic[Result]):
    """Work that a thread does, and that another one can interrupt."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self.work = work
        self.section: watchdog.Section | None = None
        self.number = 0

    def __call__(self) -> Result:
        section = watchdog.watch(watchdog.THREAD_TICKS)
        self.number, self.section = section.number + 1, section
        return section.run(self.work)

    def interrupt(self) -> None:
        """Interrupt the work, if it has begun and has not ended."""
        if self.section is not None:
            self.section.interrupt(self.number)


def run_aside(work: Callable[[], object]) -> None:
    """Call ``work`` in a thread and wait for nothing."""
    _EXECUTOR.submit(work)


def shorten_switch_interval() -> None:
    """Shorten Python's thread switch interval, so that the event loop gets the GIL back sooner."""
    sys.setswitchinterval(SWITCH_SECONDS)

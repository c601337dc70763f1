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
from typing import Final, ParamSpec, TypeVar

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
    """Call ``work``, in a thread if it is ``large``. Cancelling the caller does not interrupt work that has begun.

    Raises ``StuckError`` if the work does not end.
    """
    if not large:
        return watchdog.watch().run(work, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, partial(_run_in_thread, work, *args, **named))


def _run_in_thread(work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
    return watchdog.watch(watchdog.THREAD_TICKS).run(work, *args, **named)


def run_aside(work: Callable[[], object]) -> None:
    """Call ``work`` in a thread and wait for nothing."""
    _EXECUTOR.submit(work)


def shorten_switch_interval() -> None:
    """Shorten Python's thread switch interval, so that the event loop gets the GIL back sooner."""
    sys.setswitchinterval(SWITCH_SECONDS)

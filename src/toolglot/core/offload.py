"""Work on large requests and answers, done in threads so that the event loop goes on meanwhile.

What takes long is bounded by the size of what is worked on, so size decides. The work itself is pure Python and holds
the interpreter; the loop gets it back after ``SWITCH_SECONDS``.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

LARGE_REQUEST: Final = 1 << 13
LARGE_ANSWER: Final = 1 << 16
SWITCH_SECONDS: Final = 0.001
THREADS: Final = 2
"""More would only compete for the interpreter; with one, a single request could hold up all other large ones."""

Given = ParamSpec("Given")
Result = TypeVar("Result")
_EXECUTOR: Final = ThreadPoolExecutor(THREADS, thread_name_prefix="toolglot-work")


async def run(large: bool, work: Callable[Given, Result], *args: Given.args, **named: Given.kwargs) -> Result:
    """Do some work, in a thread if it is large. Work that has begun is not interrupted when the caller is cancelled."""
    if not large:
        return work(*args, **named)
    return await asyncio.get_running_loop().run_in_executor(_EXECUTOR, partial(work, *args, **named))


def switch_often() -> None:
    """Let the event loop interrupt the threads sooner than Python does by itself."""
    sys.setswitchinterval(SWITCH_SECONDS)

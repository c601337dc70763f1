"""The thread for work of the console that takes long: counting, reading again, exporting.

It has a thread of its own, one for all requests, so that the console never takes the threads of clients' requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from toolglot.core.errors import OverloadError

MAX_WAITING: Final = 16
RETRY_SECONDS: Final = 2

Params = ParamSpec("Params")
Result = TypeVar("Result")
_EXECUTOR: Final = ThreadPoolExecutor(1, thread_name_prefix="toolglot-console")
_WAITING: Final[set[asyncio.Future[Any]]] = set()


async def run(work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
    """Call ``work`` in the thread. Raises: OverloadError if too many wait for it already."""
    if len(_WAITING) >= MAX_WAITING:
        raise OverloadError("The console has too much to do; try again in a moment.", RETRY_SECONDS)
    return await queue(work, *args, **named)


async def queue(work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
    """Call ``work`` in the thread, however many wait for it: for the parts of a response that has begun."""
    waiting = asyncio.get_running_loop().run_in_executor(_EXECUTOR, partial(work, *args, **named))
    _WAITING.add(waiting)
    waiting.add_done_callback(_WAITING.discard)
    return await waiting

"""Runs work on large requests and answers in threads, so that the event loop is not blocked.

The duration of the work depends on the size of its input, so size decides. The work is pure Python and holds the GIL;
the event loop gets it back after ``SWITCH_SECONDS``. Work that takes longer than ``PATIENCE`` no longer counts among
the ``THREADS`` that work at once: work that hangs does not hold up that of others.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from toolglot.core import watchdog

LARGE_REQUEST: Final = 1 << 13
LARGE_ANSWER: Final = 1 << 16
SWITCH_SECONDS: Final = 0.0002
"""Seconds that a chunk of a stream waits for the GIL while a thread works. So short a time costs the thread less than a
hundredth of its work."""
THREADS: Final = 2
"""More threads would only compete for the GIL; with one, a single request could block all other large ones."""
PATIENCE: Final = 0.5
"""Seconds after which further work begins beside work that has not ended."""
MAX_THREADS: Final = 32

Params = ParamSpec("Params")
Result = TypeVar("Result")


class DaemonThreads(Executor):
    """Threads for which the end of the process does not wait. One is started if all others are busy."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = Lock()
        self._busy = self._started = 0

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            self._busy += 1
            if self._busy > self._started < self._most:
                self._started += 1
                Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        self._waiting.put(partial(self._run, future, partial(work, *args, **named)))
        return future

    def _serve(self) -> None:
        while True:
            self._waiting.get()()

    def _run(self, future: Future[Any], work: Callable[[], Any]) -> None:
        try:
            if future.set_running_or_notify_cancel():
                future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
            del future, work  # the error refers to this frame
        finally:
            with self._lock:
                self._busy -= 1


_EXECUTOR: Final = DaemonThreads("toolglot-work", MAX_THREADS)
_slots: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()
"""How much work may begin, for each event loop."""


async def run(large: bool, work: Callable[Params, Result], *args: Params.args, **named: Params.kwargs) -> Result:
    """Call ``work``, in a thread if it is ``large``. Cancelling the caller interrupts the work.

    Raises ``StuckError`` if the work does not end.
    """
    if not large:
        return watchdog.watch().run(work, *args, **named)
    task, loop = _ThreadTask(partial(work, *args, **named)), asyncio.get_running_loop()
    slots = _slots.setdefault(loop, asyncio.Semaphore(THREADS))
    await slots.acquire()
    slot = _Slot(slots)
    patience = loop.call_later(PATIENCE, slot.leave)
    try:
        return await loop.run_in_executor(_EXECUTOR, task)
    except asyncio.CancelledError:
        task.interrupt()
        raise
    finally:
        patience.cancel()
        slot.leave()


class _Slot:
    """A place among the work that goes on at once. It is left once: after some time, or when the work has ended."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self.slots: asyncio.Semaphore | None = slots

    def leave(self) -> None:
        slots, self.slots = self.slots, None
        if slots is not None:
            slots.release()


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

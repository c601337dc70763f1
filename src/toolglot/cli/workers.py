"""Worker processes that share a port, and the supervisor that keeps them running.

The supervisor serves nothing itself. It forks the workers, starts a new one for each that dies, and on SIGTERM or
SIGINT stops all of them and waits until they have finished their open answers.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from toolglot.cli.exit_codes import OK, USAGE_ERROR

LOG = logging.getLogger("toolglot.workers")
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
PARENT_DEATH_SIGNAL: Final = 1
"""The option of Linux's prctl."""
STABLE_SECONDS: Final = 5.0
"""A worker that exits sooner is replaced with a delay, so that a permanent fault does not cause a busy loop."""
RESTART_DELAY: Final = 1.0

RunWorker = Callable[[int, bool], int]
"""Serves in a worker process, given its slot and whether it announces the address. Returns the exit code."""


def supervise(count: int, run_worker: RunWorker) -> int:
    """Run ``count`` workers until a signal stops them.

    Returns: the exit code of the command. A worker that refuses its settings stops the others with the same code.
    """
    supervisor = _Supervisor(run_worker)
    handlers = {number: signal.signal(number, supervisor.stop) for number in STOP_SIGNALS}
    try:
        return supervisor.run(count)
    finally:
        supervisor.stop()
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Supervisor:
    def __init__(self, run_worker: RunWorker) -> None:
        self.run_worker = run_worker
        self.started: dict[int, tuple[int, float]] = {}
        """Slots and start times of the running workers, by process id. A new worker gets the slot of the dead one."""
        self.stopping = False

    def run(self, count: int) -> int:
        first = self.start(0, announces=True)
        for slot in range(1, count):
            self.start(slot)
        code = OK
        while self.started:
            worker, status = os.wait()
            if worker not in self.started:
                continue
            slot, began = self.started.pop(worker)
            ended = os.waitstatus_to_exitcode(status)
            if self.stopping:
                code = code or (OK if ended in (OK, -signal.SIGTERM) else 1)
            elif ended == USAGE_ERROR:
                # only the first worker prints the reason, so it must get that far
                code = ended
                if worker == first:
                    self.stop()
                else:
                    LOG.error("worker %d could not start", worker)
            else:
                self.replace(worker, slot, ended, time.monotonic() - began)
        return code

    def start(self, slot: int, *, announces: bool = False) -> int:
        """Fork a worker and return its process id. Signals are blocked until it is registered, so none is missed."""
        supervisor = os.getpid()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        worker = os.fork()
        if worker:
            self.started[worker] = slot, time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            return worker
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        _exit_with(supervisor)
        code = 1
        try:
            code = self.run_worker(slot, announces)
        except KeyboardInterrupt:
            code = OK
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def replace(self, worker: int, slot: int, ended: int, lifetime: float) -> None:
        why = f"was killed by signal {-ended}" if ended < 0 else f"exited with code {ended}"
        if lifetime < STABLE_SECONDS:
            time.sleep(RESTART_DELAY)
        if not self.stopping:
            LOG.error("worker %d %s; started worker %d in its place", worker, why, self.start(slot))

    def stop(self, *_: object) -> None:
        """Ask all workers to finish. Also the handler of the signals that stop the command."""
        self.stopping = True
        for worker in self.started:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGTERM)


def _exit_with(supervisor: int) -> None:
    """Stop this worker if the supervisor is killed, so that no orphan serves the port. Linux only."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != supervisor:  # the supervisor was killed before prctl took effect
        os._exit(OK)

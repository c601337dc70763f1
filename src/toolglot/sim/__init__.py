"""A simulated model behind an OpenAI-compatible server, for tests, benches and demos; honest about being one.

    async with running(make_app(Options(dialect="hermes", chunk=3))) as address: ...

The server needs the extra ``toolglot[server]``; everything else here does not, and the names below are loaded when
they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolglot.sim.answer import Answer, Calling
    from toolglot.sim.faults import FAULTS
    from toolglot.sim.options import Options
    from toolglot.sim.script import Scripted, load_script
    from toolglot.sim.server import RECORD, make_app, running
    from toolglot.sim.simulation import Record, Seen, Simulation

__all__ = [
    "FAULTS",
    "RECORD",
    "Answer",
    "Calling",
    "Options",
    "Record",
    "Scripted",
    "Seen",
    "Simulation",
    "load_script",
    "make_app",
    "running",
]

_ROOMS = {
    "answer": ("Answer", "Calling"),
    "faults": ("FAULTS",),
    "options": ("Options",),
    "script": ("Scripted", "load_script"),
    "server": ("RECORD", "make_app", "running"),
    "simulation": ("Record", "Seen", "Simulation"),
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"toolglot.sim.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

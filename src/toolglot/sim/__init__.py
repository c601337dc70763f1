"""A simulated model behind an OpenAI-compatible server, for tests, benchmarks and demos. Every response says so.

    async with running(make_app(SimOptions(dialect="hermes", chunk=3))) as address: ...

Only the server needs the extra ``toolglot[server]``, so each name below is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolglot.sim.answer import Answer, SimCall
    from toolglot.sim.faults import FAULTS
    from toolglot.sim.options import SimOptions
    from toolglot.sim.script import ScriptedAnswer, load_script
    from toolglot.sim.server import REQUEST_LOG, make_app, running
    from toolglot.sim.simulation import RecordedRequest, RequestLog, Simulation

__all__ = [
    "FAULTS",
    "REQUEST_LOG",
    "Answer",
    "RecordedRequest",
    "RequestLog",
    "ScriptedAnswer",
    "SimCall",
    "SimOptions",
    "Simulation",
    "load_script",
    "make_app",
    "running",
]

_MODULES = {
    "answer": ("Answer", "SimCall"),
    "faults": ("FAULTS",),
    "options": ("SimOptions",),
    "script": ("ScriptedAnswer", "load_script"),
    "server": ("REQUEST_LOG", "make_app", "running"),
    "simulation": ("RecordedRequest", "RequestLog", "Simulation"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"toolglot.sim.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

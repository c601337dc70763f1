"""A simulated Qwen web chat: strict about requests, and able to show what the model would have seen.

    simulation = ChatSimulation(ChatSimOptions(semantics="whole_chat"))
    async with running(make_app(simulation)) as address: ...
    simulation.seen[-1].messages  # (role, text) pairs, as the model saw them
    simulation.violations  # broken rules of the protocol; [] if the client is correct

It follows the description of the protocol and shares no code with the wire. Only the server needs the extra
``toolglot[server]``, so each name below is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolglot.sim.qwen_web.chats import Chat, SeenMessage
    from toolglot.sim.qwen_web.faults import FAULTS
    from toolglot.sim.qwen_web.model import echo
    from toolglot.sim.qwen_web.options import ChatSimOptions
    from toolglot.sim.qwen_web.server import SIMULATION, make_app
    from toolglot.sim.qwen_web.simulation import ChatSimulation, SeenContext
    from toolglot.sim.server import running

__all__ = [
    "FAULTS",
    "SIMULATION",
    "Chat",
    "ChatSimOptions",
    "ChatSimulation",
    "SeenContext",
    "SeenMessage",
    "echo",
    "make_app",
    "running",
]

_MODULES = {
    "qwen_web.chats": ("Chat", "SeenMessage"),
    "qwen_web.faults": ("FAULTS",),
    "qwen_web.model": ("echo",),
    "qwen_web.options": ("ChatSimOptions",),
    "qwen_web.server": ("SIMULATION", "make_app"),
    "qwen_web.simulation": ("ChatSimulation", "SeenContext"),
    "server": ("running",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"toolglot.sim.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Options of the simulated web chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias
from uuid import uuid4

from toolglot.core.errors import UsageError
from toolglot.sim.answer import Answer
from toolglot.sim.options import MINIMUMS, SimOptions
from toolglot.sim.qwen_web.chats import SEMANTICS, SeenMessage
from toolglot.sim.qwen_web.errors import RISK_PAGES
from toolglot.sim.qwen_web.faults import FAULTS

Brain: TypeAlias = Callable[[Sequence[SeenMessage]], Answer | str | Awaitable[Answer | str]]
"""Makes the answer from the messages that the model sees."""

MODEL_LISTS = ("both", "flat", "nested")
DEFAULT_TOKEN = "sim-token"
CHOICES = {"semantics": SEMANTICS, "model_list": MODEL_LISTS, "risk_page": RISK_PAGES}


def new_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class ChatSimOptions(SimOptions):
    """How the simulated web chat behaves, besides the options of every simulator.

    ``brain`` makes the answers; without it the script and the rules do. ``token`` is the only valid one. The model sees
    the messages from the root of the tree to the new one (``semantics="path"``) or all of the chat (``whole_chat``).
    ``lock`` is how many seconds a chat stays locked after an aborted stream. After ``expire_after`` requests the token
    has expired, after ``waf_after`` requests every answer is the ``risk_page``, and a chat that has had
    ``delete_after`` completions is deleted; 0 is never. ``model_list`` selects the addresses that list the models.

    Raises: ``UsageError`` as ``SimOptions`` does, and for an unknown choice.
    """

    brain: Brain | None = None
    token: str = DEFAULT_TOKEN
    semantics: str = "path"
    lock: float = 3
    expire_after: int = 0
    waf_after: int = 0
    delete_after: int = 0
    risk_page: str = "waf_html"
    model_list: str = "both"
    models: tuple[str, ...] = ("qwen3.7-plus", "qwen3-coder-plus", "sim")
    new_id: Callable[[], str] = new_id
    known_faults: ClassVar[Mapping[str, str]] = FAULTS
    minimums: ClassVar[Mapping[str, float]] = MINIMUMS | {
        "lock": 0,
        "expire_after": 0,
        "waf_after": 0,
        "delete_after": 0,
    }

    def __post_init__(self) -> None:
        SimOptions.__post_init__(self)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}")
        if not self.token:
            raise UsageError("token must not be empty")

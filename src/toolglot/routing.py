"""The choice made for one request: who answers, and in which way tools are spoken of on the way there.

relay    nothing in it concerns tools, or tool calling is off: bytes pass untouched
native   the upstream knows tools itself; calls that leak into its text are read nevertheless
text     the upstream only writes text: tools are taught, calls are read
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from toolglot.config import MODES, Model, Settings, Upstream
from toolglot.conversation import Call, Conversation, Result
from toolglot.errors import RequestError
from toolglot.reading import vocabulary


class Manner(StrEnum):
    RELAY = "relay"
    NATIVE = "native"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes. ``parallel``: whether several calls may be made in one answer."""

    upstream: Upstream
    model: Model
    manner: Manner
    mode: str
    dialect: str
    parallel: bool


def choose(conversation: Conversation, settings: Settings, mode: str = "") -> Route:
    """The route of a request; ``mode`` is what the request itself asks for, if it does."""
    if mode and mode not in MODES:
        raise RequestError(f"The mode {mode!r} is not one of {', '.join(MODES)}.", "x-toolglot-mode")
    model, upstream = settings.model_for(conversation.model)
    tools = settings.tool_calling
    mode = mode or model.mode
    if not tools.enabled:
        mode = "off"
    manner = _manner(conversation, mode, bool(tools.auto_detect and tools.supported_tools))
    if manner is not Manner.RELAY and len(conversation.tools) > tools.max_tools:
        raise RequestError(
            f"{len(conversation.tools)} tools are offered; this gateway takes at most {tools.max_tools}.", "tools"
        )
    return Route(upstream, model, manner, mode, model.dialect, _parallel(conversation, settings, model))


def _manner(conversation: Conversation, mode: str, detecting: bool) -> Manner:
    if mode == "off" or not (detecting or concerns_tools(conversation)):
        return Manner.RELAY
    return Manner.NATIVE if mode == "native" else Manner.TEXT


def concerns_tools(conversation: Conversation) -> bool:
    """Whether a conversation offers tools, or has used some."""
    if conversation.tools:
        return True
    return any(isinstance(part, Call | Result) for message in conversation.messages for part in message.parts)


def _parallel(conversation: Conversation, settings: Settings, model: Model) -> bool:
    """What is taught is what is delivered: many calls if asked for, or if the model's own dialect is spoken."""
    for told in (conversation.limits.parallel_calls, settings.reading.parallel_calls):
        if told is not None:
            return told
    return _own_dialect(model.model) == model.dialect


@lru_cache(maxsize=256)
def _own_dialect(model: str) -> str | None:
    """Asked for every request, of a handful of models; the patterns of all dialects are tried for each."""
    return vocabulary().resolve_hint(model)

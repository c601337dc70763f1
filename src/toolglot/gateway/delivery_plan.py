"""How a response is delivered, and what every delivery does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from toolglot.core.conversation import ToolChoice
from toolglot.core.errors import UpstreamPlace
from toolglot.core.events import CallRejected, Event, Failed
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.wires.protocol import SUCCESS_REASONS

ANY_CALL: Final = ToolChoice()


class DeliveryPlan(Struct, frozen=True, kw_only=True):
    """How a response is delivered.

    ``names`` maps the upstream's tool names to the client's. ``break_character`` was put into marks of the prompt and
    is removed again. ``choice`` and ``single`` limit the calls that the client takes: upstreams may ignore them.
    ``streamed``: parts of a call are sent before it is complete. ``secrets`` are redacted in failures, and ``place`` is
    named there. ``native``: the upstream supports tools. ``on_failure`` is called when the upstream fails, with whether
    anything was sent. ``successes`` are finish reasons that need an answer. ``max_argument_bytes`` limits the arguments
    of one call (0: no limit). ``only_last``: a call in the text counts only if no text follows. ``reports_rejected``:
    rejected calls are passed on, because the receiver decides what becomes of them. ``marks_rejected``: they are passed
    on before the text that they become, because the model may be asked again. ``explain`` describes rejected calls to
    the client. ``rejects_leaks``: calls in the text of an upstream that supports tools are not made.
    """

    names: Mapping[str, str] = {}
    break_character: str = ""
    choice: ToolChoice = ANY_CALL
    single: bool = False
    streamed: bool = True
    secrets: tuple[str, ...] = ()
    place: UpstreamPlace | None = None
    native: bool = False
    on_failure: Callable[[Failed, bool], None] | None = None
    successes: tuple[str, ...] = SUCCESS_REASONS
    max_argument_bytes: int = 0
    only_last: bool = False
    reports_rejected: bool = False
    marks_rejected: bool = False
    explain: Callable[[list[CallRejected]], str] | None = None
    rejects_leaks: bool = False


DEFAULT_PLAN: Final = DeliveryPlan()


class EventDelivery(Protocol):
    """Turns the events of an upstream into those of the client. ``over``: the rest of the response is ignored."""

    recorder: RequestRecorder

    @property
    def plan(self) -> DeliveryPlan: ...

    @property
    def over(self) -> bool: ...

    def deliver(self, events: Sequence[Event]) -> list[Event]: ...

    def set_observer(self, observer: Callable[[Iterable[Event]], None]) -> None: ...

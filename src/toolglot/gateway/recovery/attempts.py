"""The attempts of one exchange: what was wrong with an answer, and whether and how the model is asked again.

Strategy. Only a detected defect leads to another request, and only within the limits of the settings. Each request goes
one step further than the one before: feedback says what was wrong; only the tool that the model meant is offered;
another dialect is used. The last request goes to the fallback model, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from toolglot.config import RecoverySettings
from toolglot.config.rollout import DRY_RUN, ON, RECOVERY, Arm
from toolglot.core.conversation import Conversation, ToolCall
from toolglot.core.events import CallRejected, Defect, Event, Failed, Finished, Reason, Usage
from toolglot.gateway.delivery_plan import DeliveryPlan, EventDelivery
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.prompting.feedback import list_unlisted
from toolglot.reading.reader import Reader

RECENT_SECONDS: Final = 3600.0
"""How long a model's calls are held after a defective one."""
MAX_RECENT: Final = 1000

DEFECTIVE: Final = frozenset(
    {
        Reason.MALFORMED,
        Reason.UNKNOWN_TOOL,
        Reason.MISSING_ARGUMENT,
        Reason.DUPLICATE_ARGUMENT,
        Reason.INVALID_VALUE,
        Reason.TRUNCATED,
        Reason.FORBIDDEN,
        Reason.LEAKED,
        Reason.COPIED_EXAMPLE,
    }
)
"""Reasons for which the model can write a better call. Quotations, further calls and results that it made up are left
out on purpose, and so are calls that the settings do not admit."""


COPIED: Final = Defect(
    reason=Reason.COPIED_EXAMPLE, where="arguments", found="words of the feedback", expected="values of the task"
)
"""The defect of a corrected call with the example's values."""


class DefectKind(StrEnum):
    """What was wrong with an answer; the names are used in records and metrics."""

    REJECTED = "rejected_call"
    INVALID = "invalid_arguments"
    UNKNOWN = "unknown_tool"
    NEAR_MISS = "near_miss"
    EMPTY = "empty_answer"
    NARRATED = "narrated_stop"
    CUT = "cut_answer"
    UNPARSED = "unparsed_call"
    """The server could not parse what its model wrote."""


WORDS_ONLY: Final = (DefectKind.NARRATED, DefectKind.NEAR_MISS)
"""Answers that stand as they are unless the next attempt makes a call."""
CALL_DEFECTS: Final = (DefectKind.REJECTED, DefectKind.INVALID, DefectKind.UNKNOWN)


REFUSED: Final = ("malformed_call", "refused_call", "truncated_call", "forbidden_call")
FAILURES: Final = {"empty_answer": DefectKind.EMPTY, **dict.fromkeys(REFUSED, DefectKind.REJECTED)}
"""Failures of an answer that another attempt may avoid, by their codes."""
ENDS: Final = (Finished, Failed)
FINAL_REASONS: Final = ("length", "content_filter")
"""Finish reasons of answers that the model would not end differently."""


class AnswerDefect(Struct, frozen=True, kw_only=True):
    """A defective answer. ``text`` is the model's own; ``rejected`` are its defective calls, and ``calls`` those of
    them that were native. ``accepted``: it also made calls that the client has. ``interrupted``: good calls
    behind the defective one were not sent."""

    kind: DefectKind
    text: str = ""
    rejected: tuple[CallRejected, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    accepted: bool = False
    interrupted: bool = False

    @property
    def tool(self) -> str:
        """The tool of the first defective call, or an empty text."""
        return next((event.tool for event in self.rejected if event.tool), "")

    @property
    def needs_no_call(self) -> bool:
        """Whether perhaps no call is due: a value is not listed, and the listed ones may not be what the user wants."""
        return any(list_unlisted(event.defects) for event in self.rejected)


class Step(StrEnum):
    """How the model is asked again."""

    FEEDBACK = "feedback"
    ONE_TOOL = "one_tool"
    DIALECT = "dialect"
    FALLBACK = "fallback_model"


STEPS: Final = (Step.FEEDBACK, Step.ONE_TOOL, Step.DIALECT)


class RecentDefects:
    """The models that have recently made a defective call, so that their next calls are checked before they are
    sent."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.until: dict[tuple[str, str], float] = {}

    def note(self, address: str, model: str) -> None:
        self.until.pop((address, model), None)
        self.until[address, model] = self.now() + RECENT_SECONDS
        if len(self.until) > MAX_RECENT:
            del self.until[next(iter(self.until))]

    def has(self, address: str, model: str) -> bool:
        until = self.until.get((address, model))
        return until is not None and self.now() < until


class RecoverableDelivery(EventDelivery, Protocol):
    """A delivery that goes on with the next attempt. ``settle`` ends it with the first one."""

    def begin_attempt(self, reader: Reader | None, plan: DeliveryPlan) -> bool: ...

    def settle(self) -> list[Event]: ...


class Recovery(Struct, eq=False):
    """The attempts of one exchange. ``conversation`` is what the client asked, ``body`` its own bytes
    where their wire is the upstream's and tools are native. ``on_defect`` is called when a call is defective.
    ``read_failure`` reads the calls in the error of a server that could not parse its model's answer; None if an error
    means something else. ``defect`` is set while another request has to be sent because of it. ``delivery`` continues
    the same answer over all attempts; ``delivered`` is what they have delivered so far of an answer that is sent whole.
    ``closed``: the upstream failed, and the model is not asked again, because it did nothing wrong."""

    conversation: Conversation
    body: bytes
    settings: RecoverySettings
    recorder: RequestRecorder
    arm: Arm
    on_defect: Callable[[], None]
    read_failure: Callable[[Failed], list[Event] | None]
    attempts: int = 1
    closed: bool = False
    defect: AnswerDefect | None = None
    delivery: RecoverableDelivery | None = None
    delivered: list[Event] = []
    usage: Usage | None = None

    @property
    def behind_result(self) -> bool:
        """Whether the conversation ends with the result of a tool."""
        messages = self.conversation.messages
        return bool(messages) and messages[-1].role == "tool"

    def take(self, defect: AnswerDefect) -> bool:
        """Whether the model is asked again because of this defect. Counts it in any case."""
        recorder, settings = self.recorder, self.settings
        if self.closed:
            return False
        if self.arm is DRY_RUN:
            recorder.notes.append(f"recovery would ask again: {defect.kind}")
            recorder.count(RECOVERY, defect.kind)
        if self.arm is not ON or settings.feedback_only or self.attempts > settings.retries:
            return False
        if recorder.clock() - recorder.began > settings.seconds:
            recorder.notes.append("the model is not asked again: too much time has passed (recovery.seconds)")
            return False
        if settings.tokens and self.usage is not None and self.usage.total_tokens > settings.tokens:
            recorder.notes.append("the model is not asked again: too many tokens were used (recovery.tokens)")
            return False
        self.defect = defect
        return True

    def begin_attempt(self) -> tuple[AnswerDefect, Step]:
        """The next attempt begins. Returns the defect and the step with which the model is asked again."""
        defect, self.defect = self.defect, None
        assert defect is not None
        step = self._choose_step(defect)
        self.attempts += 1
        self.recorder.notes.append(f"asked again ({step}): {defect.kind} {defect.tool}".rstrip())
        return defect, step

    def _choose_step(self, defect: AnswerDefect) -> Step:
        if self.settings.fallback_model and self.attempts >= self.settings.retries:
            return Step.FALLBACK
        if defect.kind not in CALL_DEFECTS:
            return Step.FEEDBACK
        return STEPS[min(self.attempts, len(STEPS)) - 1]

    def end(self, succeeded: bool) -> None:
        """The last attempt has ended."""
        if self.attempts > 1:
            self.recorder.count(RECOVERY, "success" if succeeded else "failed")


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """The sum of the tokens of two attempts. Objects of different wires, as upstreams report them, cannot be added."""
    if one is None or other is None:
        return one or other
    common = one.reported.keys() & other.reported.keys()
    same_wire = any(_is_count(one.reported[name]) for name in common)
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        total_tokens=one.total_tokens + other.total_tokens,
        reported=_add_counts(one.reported, other.reported) if same_wire else {},
    )


def _add_counts(one: object, other: object) -> dict[str, object]:
    """Two usage objects as upstreams report them, with their numbers added; anything else is the later one's."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return dict(other) if isinstance(other, dict) else {}
    added: dict[str, object] = {**one, **other}
    for name in one.keys() & other.keys():
        before, after = one[name], other[name]
        if isinstance(before, dict):
            added[name] = _add_counts(before, after)
        elif _is_count(before) and _is_count(after):
            added[name] = before + after
    return added


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def choose_reason(reported: str, has_calls: bool) -> str:
    """The finish reason of an answer, for the calls that were sent."""
    if reported in FINAL_REASONS:
        return reported
    if has_calls:
        return "tool_calls"
    return "stop" if reported == "tool_calls" else reported

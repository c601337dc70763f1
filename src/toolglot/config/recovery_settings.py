"""The section ``[recovery]``: when and how often a model is asked again because its call was defective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolglot.config.value_types import BOOL, SECONDS, TEXT, choice, integer, setting

DELIVER: Final = "deliver"
AS_TEXT: Final = "text"
HOLD_AUTO: Final = "auto"
HOLD_ALWAYS: Final = "always"
HOLD_NEVER: Final = "never"


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """Asking the model again because its call was defective."""

    retries: int = setting(integer(0, 5), "further requests to the upstream for one answer; 0: recovery is off", 1)
    seconds: float = setting(SECONDS, "time since the client's request after which the model is not asked again", 120.0)
    tokens: int = setting(
        integer(0, 1_000_000_000),
        "tokens that the attempts of one request may have used, as the upstream reports them, before the model is asked"
        " again; 0: no limit",
        200_000,
    )
    narrated_stop: bool = setting(
        BOOL, "ask again if an answer ends by announcing an action and does not take it, as in `Let me check:`", True
    )
    loop_guard: int = setting(
        integer(0, 1000),
        "equal calls with equal results in a row after which the model gets a note that it repeats itself; 0: off",
        3,
    )
    invalid: str = setting(
        choice(DELIVER, AS_TEXT),
        "a call that still violates the schema of its tool after the last attempt: `deliver` it, so that the client"
        " reports it to the model, or send it as `text`",
        DELIVER,
    )
    fallback_model: str = setting(TEXT, "model, by the name that clients request, that is asked last; empty: none", "")
    hold_calls: str = setting(
        choice(HOLD_AUTO, HOLD_ALWAYS, HOLD_NEVER),
        "send a streamed call only when it is complete and checked; `auto`: for a model that has recently made a"
        " defective call, or whose profile says so",
        HOLD_AUTO,
    )
    feedback_only: bool = setting(
        BOOL, "do not ask again: tell the client what is wrong with the call and how to write it", False
    )
    continue_cut: bool = setting(
        BOOL, "ask the model to go on with an answer that its token limit cut in the middle of a call", False
    )
    edit_hints: bool = setting(
        BOOL,
        "if an edit fails because its text was not found, add the nearest lines of the file, as they were read in this"
        " conversation, to the tool result",
        False,
    )

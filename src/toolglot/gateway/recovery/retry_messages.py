"""The messages with which a model is asked again: its own answer, and what was wrong with it.

The feedback travels in the channel that the model expects: as the result of a native call, else as a user message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from toolglot.core.conversation import Message, Part, Text, Tool, ToolCall, ToolResult
from toolglot.core.made_up_values import find_made_up
from toolglot.gateway.recovery.attempts import AnswerDefect, DefectKind
from toolglot.prompting.feedback import write_feedback

REQUESTS: Final[Mapping[DefectKind, str]] = {
    DefectKind.NARRATED: (
        "You announced an action, but your answer contains no tool call. Make the call now, without further words. If"
        " nothing is left to do, say so."
    ),
    DefectKind.EMPTY: (
        "Your last answer was empty. Go on: make the next tool call, or if nothing is left to do, say so in words."
    ),
    DefectKind.CUT: (
        "Your answer was cut off. Go on exactly where it stops, with the next character. Repeat nothing and add no"
        " other words."
    ),
    DefectKind.UNPARSED: (
        "Your tool call could not be read, and nothing was executed. Make the call again, exactly in the form that you"
        " were given, without further words."
    ),
    DefectKind.NEAR_MISS: (
        "Your answer contains something that looks like a tool call, but it cannot be read as one, and nothing was"
        " executed. Write the call again, exactly in the form that you were given, without further words."
    ),
}
"""The feedback if there is no particular call to correct."""
AS_GIVEN, NATIVELY = "exactly in the form that you were given", "through the tool-calling interface"
NOT_EXECUTED: Final = "This call was not executed, because an earlier one was wrong. Make it again afterwards."
INTERRUPTED: Final = "The calls behind it were not executed either: write them again too, behind the corrected one."
ACCEPTED: Final = "The calls before it were accepted: do not repeat them."


MIN_COPIED: Final = 23
"""Characters of a clause of the feedback that do not occur in arguments by chance."""
CLAUSES: Final = tuple(
    clause
    for text in (*REQUESTS.values(), NOT_EXECUTED, INTERRUPTED, ACCEPTED)
    for clause in map(str.strip, re.split(r"[.:,]", text.lower()))
    if len(clause) >= MIN_COPIED
)


def copies_feedback(arguments: str) -> bool:
    """Whether the arguments of a call hold words or made-up values of the feedback, which the model copied instead of
    writing a value of its own."""
    lowered = arguments.lower()
    return find_made_up(arguments) is not None or any(clause in lowered for clause in CLAUSES)


def make_retry_messages(
    defect: AnswerDefect, tools: tuple[Tool, ...], dialect: str | None, break_character: str = ""
) -> tuple[Message, ...]:
    """The messages that follow the conversation. ``dialect`` is None for a model with native tools;
    ``break_character`` is the one in quoted marks of the prompt."""
    named = [call for call in defect.rejected if call.tool or call.defects]
    feedback = REQUESTS.get(defect.kind, "")
    if named or not feedback:
        feedback = write_feedback(named or defect.rejected, tools, dialect, break_character=break_character)
    elif dialect is None:
        feedback = feedback.replace(AS_GIVEN, NATIVELY)
    hints = [hint for hint, given in ((INTERRUPTED, defect.interrupted), (ACCEPTED, defect.accepted)) if given]
    feedback = " ".join([*hints, feedback])
    text = defect.text if defect.kind is DefectKind.CUT else defect.text.strip()
    parts: list[Part] = [Text(text)] if text else []
    if dialect is None and defect.calls:
        return Message("assistant", (*parts, *defect.calls)), *_make_results(defect.calls, feedback)
    answer = [Message("assistant", tuple(parts))] if parts else []
    return *answer, Message("user", (Text(feedback),))


def _make_results(calls: tuple[ToolCall, ...], feedback: str) -> tuple[Message, ...]:
    """The results of native calls that were not executed: the first one explains what is wrong."""
    results = (
        ToolResult(call.id, call.name, (Text(feedback if at == 0 else NOT_EXECUTED),), error=True)
        for at, call in enumerate(calls)
    )
    return tuple(Message("tool", (result,)) for result in results)


def append_messages(messages: tuple[Message, ...], more: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with more behind them. A user message joins the one before it, because many chat templates require
    alternating roles."""
    if not messages or not more or not messages[-1].role == more[0].role == "user":
        return *messages, *more
    *parts, last = messages[-1].parts or (Text(""),)
    text = more[0].text
    joined = (Text(f"{last.text}\n\n{text}"),) if isinstance(last, Text) else (last, Text(text))
    return *messages[:-1], Message("user", (*parts, *joined)), *more[1:]

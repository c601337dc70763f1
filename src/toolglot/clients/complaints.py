"""What XML clients say when a call did not work: free proof of what became of an answer.

    [ERROR] You did not use a tool in your previous response! ...

``find_complaints`` looks at the newest message of the client only: what stands before it was told earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolglot.conversation import Conversation, Text

INTERRUPTED: Final = (
    "[Response interrupted by a tool use result. Only one tool may be used at a time and should be placed at the end of"
    " the message.]"
)
"""What clients add to the answer they broke off."""
REMINDER: Final = "# Reminder: Instructions for Tool Use"
NOT_EXECUTED: Final = re.compile(r"\s*Tool \[(?P<name>[A-Za-z_]\w*)[^\]]{0,500}\] was not executed because")
_LOOKED_AT: Final = 2000
"""How much of a part is looked at: what a tool gave back may quote anything."""


class Kind(StrEnum):
    """What went wrong, for the client."""

    NO_TOOL = "no_tool"
    MISSING_PARAMETER = "missing_parameter"
    NOT_EXECUTED = "not_executed"
    UNKNOWN_TOOL = "unknown_tool"
    FAILED = "failed"
    DENIED = "denied"
    REPEATED = "repeated"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Complaint:
    """``tool`` is the one it is about, if it says so; ``detail`` the parameter that is missing, or such."""

    kind: Kind
    tool: str = ""
    detail: str = ""


_HEADED: Final = r"\s*(?:\[(?P<tool>[A-Za-z_]\w*)(?=[\s\]])(?:(?!\] Result:).){0,1000}\] Result:\s*)?"
_SIGNS: Final = tuple(
    (kind, re.compile(_HEADED + sign, re.S))
    for kind, sign in (
        (Kind.NO_TOOL, r"\[ERROR\] You did not use a tool"),
        (
            Kind.MISSING_PARAMETER,
            r"(?:The tool execution failed with the following error:\s*<error>\s*)?(?:Error: )?"
            r"Missing value for required parameter '(?P<detail>[^'\n]{1,100})'",
        ),
        (Kind.NOT_EXECUTED, r"Tool \[(?P<detail>[A-Za-z_]\w*)[^\]]{0,500}\] was not executed because"),
        (
            Kind.UNKNOWN_TOOL,
            r"(?:The tool execution failed with the following error:\s*<error>\s*)?"
            r"Unknown tool \"(?P<detail>[^\"\n]{1,100})\"",
        ),
        (Kind.REPEATED, r"Tool call repetition limit reached"),
        (Kind.DENIED, r"The user denied this operation"),
        (Kind.FAILED, r"The tool execution failed with the following error:"),
    )
)
"""How a part begins, behind the heading of a result if it has one. The first that fits is meant."""
_OPENING: Final = re.compile(_HEADED + r"\Z", re.S)
OURS: Final = frozenset((Kind.NO_TOOL, Kind.MISSING_PARAMETER, Kind.NOT_EXECUTED, Kind.UNKNOWN_TOOL))
"""Complaints about the form of a call. The others are about what it did."""


def find_complaints(conversation: Conversation) -> tuple[Complaint, ...]:
    """What the newest message complains of, and whether the answer before it was broken off."""
    if not conversation.messages or conversation.messages[-1].role != "user":
        return ()
    return tuple(_find(conversation))


def _find(conversation: Conversation) -> Iterator[Complaint]:
    if len(conversation.messages) > 1 and INTERRUPTED in conversation.messages[-2].text:
        yield Complaint(Kind.INTERRUPTED)
    tool = ""
    for part in conversation.messages[-1].parts:
        if not isinstance(part, Text):
            continue
        start = part.text[:_LOOKED_AT]
        complaint = judge(start)
        if complaint:
            yield (
                complaint
                if complaint.tool or complaint.kind is Kind.NO_TOOL
                else Complaint(complaint.kind, tool, complaint.detail)
            )
        opening = _OPENING.match(start.rstrip())
        tool = opening["tool"] if opening and opening["tool"] else ""


def judge(text: str) -> Complaint | None:
    """What a text that a client sent complains of."""
    for kind, sign in _SIGNS:
        found = sign.match(text)
        if found:
            told = found.groupdict()
            detail = told.get("detail") or ""
            tool = detail if kind is Kind.NOT_EXECUTED else told["tool"] or ""
            return Complaint(kind, tool, "" if kind is Kind.NOT_EXECUTED else detail)
    return None


def is_error(text: str) -> bool:
    """Whether the body of a result tells an error, or that the user said no."""
    return judge(text[:_LOOKED_AT]) is not None


def strip_reminder(text: str) -> str:
    """The text without the lesson about XML that clients add to their complaints."""
    at = text.find(REMINDER)
    if at < 0:
        return text
    following = text.find("\n# ", at)
    return (text[:at] + text[following + 1 :] if following >= 0 else text[:at]).rstrip()

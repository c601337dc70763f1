"""Recognise the fixed sentences with which clients report a missing or failed call to the model.

    find_complaints(conversation.messages)       # ["no_tool"]

Clients that read calls out of text answer with such a sentence when they find no call, or one that they cannot run.
That is free ground truth about the previous answer. ``find_complaints`` looks only at what follows the last answer, and
only at the start of a message part, behind the heading of a tool result, or inside its error: a file or a user that
quotes such a sentence is no complaint. The history parser of XML clients uses the same patterns (``is_error``,
``strip_reminder``) for earlier turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.core.conversation import Message, Text, ToolResult

NO_TOOL, MISSING_PARAMETER, UNKNOWN_TOOL = "no_tool", "missing_parameter", "unknown_tool"
NOT_EXECUTED, REPEATED, DENIED, EMPTY_ANSWER = "not_executed", "repeated", "denied", "empty_answer"

COMPLAINT_PATTERNS: Final = {
    NO_TOOL: r"\[ERROR\] You did not use a tool\b",
    MISSING_PARAMETER: r"Missing value for required parameter\b",
    UNKNOWN_TOOL: r"Unknown tool\b",
    NOT_EXECUTED: r"Tool \[[^\]\n]*\] was not executed because\b",
    REPEATED: r"Tool call repetition limit reached for\b",
    DENIED: r"The user denied this operation\b",
}
"""How each kind of complaint begins, as a regular expression."""

CALL_COMPLAINTS: Final = frozenset({MISSING_PARAMETER, UNKNOWN_TOOL, NOT_EXECUTED})
"""Complaints about a call that was delivered; not that there was none, nor that the user denied it."""

EMPTY_ANSWER_TEXT: Final = "Failure: I did not provide a response."
"""What a client records as the answer if there was none."""

INTERRUPTED: Final = (
    "[Response interrupted by a tool use result. Only one tool may be used at a time and should be placed at the end of"
    " the message.]"
)
"""What clients append to an answer that they cut off after its first call."""
REMINDER: Final = "# Reminder: Instructions for Tool Use"
NOT_EXECUTED_HEADING: Final = re.compile(r"\s*Tool \[(?P<name>[A-Za-z_]\w*)[^\]]{0,500}\] was not executed because")

_HEADING = r"\[[a-z_]+(?: (?:for|to|in|with)\b(?:(?!\] Result:)[\s\S]){0,4000})?\] Result:\s*"
_EXECUTION_FAILED = "The tool execution failed with the following error:"
_FRAME = rf"(?:{_EXECUTION_FAILED}\s*)?(?:<error>\s*)?(?:Error:\s*)?"
_JSON_FRAME = r'\{"status":\s*"error",[^{}]{0,500}?":\s*"'
_COMPLAINT = re.compile(
    rf"\s*(?:{_HEADING})?(?:{_FRAME}|{_JSON_FRAME})(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in COMPLAINT_PATTERNS.items())
    + ")"
)
_ERROR = re.compile(rf"\s*(?:{_EXECUTION_FAILED}|{'|'.join(COMPLAINT_PATTERNS.values())})")
_ERROR_MARK = "[ERROR]"


def find_complaints(messages: Sequence[Message]) -> list[str]:
    """The kinds of complaints in the messages behind the last answer, in order, each kind once."""
    last = len(messages) - 1
    while last >= 0 and messages[last].role != "assistant":
        last -= 1
    if last < 0:
        return []
    found = [EMPTY_ANSWER] if messages[last].text.strip() == EMPTY_ANSWER_TEXT else []
    for text in _texts(messages[last + 1 :]):
        complaint = _COMPLAINT.match(text)
        if complaint and complaint.lastgroup:
            found.append(complaint.lastgroup)
    return list(dict.fromkeys(found))


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for part in message.parts if message.role in ("user", "tool") else ():
            if isinstance(part, Text):
                yield part.text
            elif isinstance(part, ToolResult):
                yield from (piece.text for piece in part.content if isinstance(piece, Text))


def is_error(text: str) -> bool:
    """Whether the body of a tool result reports an error or a denial. Only its beginning counts: a tool may return any
    text."""
    return _ERROR.match(text) is not None


def strip_reminder(text: str) -> str:
    """Remove the XML instructions that clients append to a complaint. Other texts may quote them and stay unchanged."""
    at = text.find(REMINDER)
    if at < 0 or not (text.lstrip().startswith(_ERROR_MARK) or is_error(text)):
        return text
    following = text.find("\n# ", at)
    return (text[:at] + text[following + 1 :] if following >= 0 else text[:at]).rstrip()

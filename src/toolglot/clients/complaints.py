"""What clients complain of in their next request: free ground truth of how an answer was received.

    complaints(conversation.messages)       # ["no_tool"]

Clients that read calls out of text tell the model in fixed words when they found none, or one that they could not run.
Only what came after the last answer counts, and only where such words begin a part of a message, stand behind the
heading of a result, or inside the error of one: a file or a user that quotes them complains of nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.core.conversation import Message, Text, ToolResult

NO_TOOL, MISSING_PARAMETER, UNKNOWN_TOOL = "no_tool", "missing_parameter", "unknown_tool"
NOT_EXECUTED, REPEATED, DENIED, EMPTY_ANSWER = "not_executed", "repeated", "denied", "empty_answer"

KINDS: Final = {
    NO_TOOL: r"\[ERROR\] You did not use a tool\b",
    MISSING_PARAMETER: r"Missing value for required parameter\b",
    UNKNOWN_TOOL: r"Unknown tool\b",
    NOT_EXECUTED: r"Tool \[[^\]\n]*\] was not executed because\b",
    REPEATED: r"Tool call repetition limit reached for\b",
    DENIED: r"The user denied this operation\b",
}
"""The words, by what is complained of."""

OF_CALLS: Final = frozenset({MISSING_PARAMETER, UNKNOWN_TOOL, NOT_EXECUTED})
"""Complaints of a call that was delivered, other than that there was none or that the user did not want it."""

FAILURE: Final = "Failure: I did not provide a response."
"""What a client puts down as the answer if there was none."""

_HEADING = r"\[[a-z_]+(?: (?:for|to|in|with)\b(?:(?!\] Result:)[\s\S]){0,4000})?\] Result:\s*"
_FRAME = r"(?:The tool execution failed with the following error:\s*)?(?:<error>\s*)?(?:Error:\s*)?"
_JSON_FRAME = r'\{"status":\s*"error",[^{}]{0,500}?":\s*"'
_COMPLAINT = re.compile(
    rf"\s*(?:{_HEADING})?(?:{_FRAME}|{_JSON_FRAME})(?:"
    + "|".join(f"(?P<{kind}>{words})" for kind, words in KINDS.items())
    + ")"
)


def complaints(messages: Sequence[Message]) -> list[str]:
    """What is complained of in the messages behind the last answer, in order and each kind once."""
    last = len(messages) - 1
    while last >= 0 and messages[last].role != "assistant":
        last -= 1
    if last < 0:
        return []
    found = [EMPTY_ANSWER] if messages[last].text.strip() == FAILURE else []
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

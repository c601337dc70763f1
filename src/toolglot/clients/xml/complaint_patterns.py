"""What XML clients say of calls that did not work, where it is part of a history.

What they complain of in their newest message is told to the record by ``toolglot.clients.complaints``.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.clients.complaints import KINDS

INTERRUPTED: Final = (
    "[Response interrupted by a tool use result. Only one tool may be used at a time and should be placed at the end of"
    " the message.]"
)
"""What clients add to the answer they broke off."""
REMINDER: Final = "# Reminder: Instructions for Tool Use"
NOT_EXECUTED: Final = re.compile(r"\s*Tool \[(?P<name>[A-Za-z_]\w*)[^\]]{0,500}\] was not executed because")
_COMPLAINS: Final = "[ERROR]"
_ERROR: Final = re.compile(rf"\s*(?:The tool execution failed with the following error:|{'|'.join(KINDS.values())})")


def is_error(text: str) -> bool:
    """Whether the body of a result tells an error, or that the user said no. A tool may give back anything, so only how
    it begins counts."""
    return _ERROR.match(text) is not None


def strip_reminder(text: str) -> str:
    """A complaint without the lesson about XML that clients add to it. Anything else may quote one, and stays."""
    at = text.find(REMINDER)
    if at < 0 or not (text.lstrip().startswith(_COMPLAINS) or is_error(text)):
        return text
    following = text.find("\n# ", at)
    return (text[:at] + text[following + 1 :] if following >= 0 else text[:at]).rstrip()

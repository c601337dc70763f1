"""Tells a model that its last calls failed, if their results say so: small models take an error for success.

Only models whose profile has the quirk ``needs_guidance`` get a note. A result counts as failed if the client says so,
or if it begins like an error; many clients send errors as ordinary results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from toolglot.clients.edit_failures import read_edit
from toolglot.core.conversation import Message, ToolCall, ToolResult
from toolglot.gateway.recovery.annotations import Annotation, list_steps, read_arguments, text_of

BEGINNING: Final = 200
"""How many characters of a result can begin with an error."""
ERROR: Final = re.compile(
    r"\W{0,8}(?:<\w{1,20}>\s*)?(?:\w{0,24}(?:error|exception)|error while \w+|failed|failure|traceback)\b(?!\w)",
    re.IGNORECASE,
)
FAILED: Final = (
    "This call failed, and nothing was done. Do not report success, and do not repeat the call as it was. Make a call"
    " that can work, or if there is none, say what went wrong."
)
FAILED_EDIT: Final = (
    "This call failed, and nothing was changed. Do not report success. Read the file now, then make the call again with"
    " text that is really in it."
)


def find_failures(messages: Sequence[Message]) -> Iterator[Annotation]:
    """The notes on failed calls in a healed history."""
    for step in list_steps(messages):
        for call in step.calls if step is not None else ():
            result = step.results.get(call.id) if step is not None else None
            if step is None or result is None or not has_failed(result):
                continue
            at, part = step.places[call.id]
            note = f"a note says that {call.name} failed"
            yield Annotation(at=at, part=part, text=write_note(call), note=note)


def has_failed(result: ToolResult) -> bool:
    """Whether a result reports that its call failed."""
    return result.error or ERROR.match(text_of(result)[:BEGINNING]) is not None


def write_note(call: ToolCall) -> str:
    return FAILED if read_edit(read_arguments(call)) is None else FAILED_EDIT

"""toolglot: tool calls between any agent client and any language model.

reading = toolglot.read(text, tools=openai_tools)
reading.text, reading.reasoning, reading.calls, reading.rejected

reader = toolglot.Reader(tools=openai_tools)
for chunk in stream:
    for event in reader.feed(chunk): ...
for event in reader.close(): ...
"""

from __future__ import annotations

from toolglot.dialect import Dialect
from toolglot.dialects import all_dialects
from toolglot.errors import ClientError, ToolglotError, ToolSchemaError, UsageError
from toolglot.events import (
    CallArguments,
    CallEnded,
    CallRejected,
    CallStarted,
    Defect,
    Event,
    Reason,
    ReasoningDelta,
    TextDelta,
)
from toolglot.options import Options
from toolglot.reading import Call, Reader, Reading, RejectedCall, read

__version__ = "0.1.0"


def dialects() -> list[Dialect]:
    """The records of every dialect that is read, for listing."""
    return list(all_dialects())


__all__ = [
    "Call",
    "CallArguments",
    "CallEnded",
    "CallRejected",
    "CallStarted",
    "ClientError",
    "Defect",
    "Dialect",
    "Event",
    "Options",
    "Reader",
    "Reading",
    "Reason",
    "ReasoningDelta",
    "RejectedCall",
    "TextDelta",
    "ToolSchemaError",
    "ToolglotError",
    "UsageError",
    "dialects",
    "read",
]

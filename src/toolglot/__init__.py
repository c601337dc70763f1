"""toolglot: tool calls between any agent client and any language model.

reading = toolglot.read(text, tools=openai_tools)
reading.text, reading.reasoning, reading.calls, reading.rejected

reader = toolglot.Reader(tools=openai_tools)
for chunk in stream:
    for event in reader.feed(chunk): ...
for event in reader.close(): ...

toolglot.write("read", {"path": "a.py"}, dialect="qwen3_coder", tools=openai_tools)   # a call as text
toolglot.teach(openai_tools, dialect="qwen3_coder")                                   # the prompt for such calls
toolglot.feedback(reading.rejected, openai_tools, dialect="qwen3_coder")              # what to tell the model
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolglot.core.errors import ClientError, ToolglotError, ToolSchemaError, UsageError
    from toolglot.core.events import (
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
    from toolglot.core.options import Options
    from toolglot.dialects.spec import Dialect
    from toolglot.prompting.conversation import PromptedConversation as Speech
    from toolglot.prompting.library import feedback, list_dialects, speak, teach, write
    from toolglot.reading.reader import ParsedCall as Call
    from toolglot.reading.reader import Reader, Reading, RejectedCall, read

    __version__: str
    """The version of the installed package."""
else:
    _PLACES = {
        "toolglot.core.errors": ("ClientError", "ToolSchemaError", "ToolglotError", "UsageError"),
        "toolglot.core.events": (
            *("CallArguments", "CallEnded", "CallRejected", "CallStarted", "Defect", "Event", "Reason"),
            *("ReasoningDelta", "TextDelta"),
        ),
        "toolglot.core.options": ("Options",),
        "toolglot.dialects.spec": ("Dialect",),
        "toolglot.prompting.library": ("Speech", "feedback", "list_dialects", "speak", "teach", "write"),
        "toolglot.reading.reader": ("Call", "Reader", "Reading", "RejectedCall", "read"),
    }
    """The modules of the public names. They are imported when a name is first used: a command or a program that only
    names toolglot need not wait for the parser."""
    _RENAMED = {"Call": "ParsedCall"}

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name == "__version__":
            found = _find_version()
        else:
            place = next((module for module, names in _PLACES.items() if name in names), None)
            if place is None:
                raise AttributeError(f"module 'toolglot' has no attribute {name!r}")
            from importlib import import_module

            found = getattr(import_module(place), _RENAMED.get(name, name))
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


def _find_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("toolglot")
    except PackageNotFoundError:  # source that is not installed
        return "0+unknown"


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
    "Speech",
    "TextDelta",
    "ToolSchemaError",
    "ToolglotError",
    "UsageError",
    "feedback",
    "list_dialects",
    "read",
    "speak",
    "teach",
    "write",
]

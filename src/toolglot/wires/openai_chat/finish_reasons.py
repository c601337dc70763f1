"""Finish reasons of Chat Completions servers that use words of other protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FINISHES: Final = frozenset(("stop", "length", "tool_calls", "content_filter"))
"""The finish reasons of this wire."""

CUT: Final = frozenset(("length", "content_filter"))
"""Those of an answer that did not end by itself."""

FAILED: Final = "error"
"""The reason of routers whose upstream failed in the middle of its answer."""

_OTHERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("max_tokens", "max_output_tokens", "max_length", "model_length", "token_limit"), "length"),
    **dict.fromkeys(("model_context_window_exceeded", "context_length_exceeded", "incomplete"), "length"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal"), "content_filter"),
    **dict.fromkeys(("content_filtered", "sensitive"), "content_filter"),
    **dict.fromkeys(("tool_use", "tool_call", "function_call"), "tool_calls"),
}


def unify_finish(reason: str) -> str:
    """Return the finish reason in a word of this wire. Unknown ones, such as ``eos``, mean that the answer is whole."""
    word = reason.lower()
    return word if word in FINISHES else _OTHERS.get(word, "stop")

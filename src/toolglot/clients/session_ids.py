"""The ids by which clients name their own sessions.

They narrow the search for a conversation and label it; they are never trusted alone, because agents use one id for
several conversations (sub-agents, summaries, titles).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

SESSION_HEADERS: Final = (
    "x-session-id",
    "x-claude-code-session-id",
    "x-opencode-session",
    "session-id",
    "session_id",
    "conversation_id",
)
"""Any client; Claude Code; OpenCode; Codex."""
_HEADERS: Final = frozenset(SESSION_HEADERS)
SESSION_FIELDS: Final = ("prompt_cache_key", "session_id")
"""Fields of a request body."""
USER_SESSION: Final = re.compile(r"session_?(?:id)?[\"':_ ]+([0-9A-Za-z-]{8,64})")
"""Claude Code puts the id of its session into ``metadata.user_id``."""
MAX_LENGTH: Final = 100


def find_session_id(headers: Mapping[str, str] | None, fields: Mapping[str, Any]) -> str:
    """The id that the client sent, in a header or in a field of the body; empty if there is none."""
    candidates: list[object] = []
    if headers and not _HEADERS.isdisjoint(headers):
        candidates += [headers.get(name) for name in SESSION_HEADERS]
    if fields:
        candidates += [fields.get(name) for name in SESSION_FIELDS]
        if isinstance(metadata := fields.get("metadata"), Mapping):
            named = USER_SESSION.search(str(metadata.get("user_id") or ""))
            candidates += [metadata.get("session_id"), named and named[1]]
    for found in candidates:
        if isinstance(found, str) and found.isprintable() and 0 < len(found) <= MAX_LENGTH:
            return found
    return ""

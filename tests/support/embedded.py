"""The embedded model for tests that need a real one; they are skipped where it is not installed."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from toolglot.core.errors import UsageError
from toolglot.server.upstream.embedded import find_weights


def reason_to_skip() -> str:
    try:
        find_weights()
    except UsageError as absent:
        return absent.message.splitlines()[0]
    return ""


needs_model = pytest.mark.skipif(bool(reason_to_skip()), reason=reason_to_skip() or "the embedded model is there")


def ask(base_url: str, messages: list[dict[str, Any]], **settings: Any) -> str:
    """The answer of the model at this address, always the same."""
    asked = {"messages": messages, "temperature": 0, "max_tokens": 64} | settings
    request = urllib.request.Request(
        f"{base_url}/chat/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])

"""A relay before a model that counts requests, and remembers the answers.

The model is deterministic at temperature 0, so an equal request need not be sent twice: it is answered from memory, and
counted like any other. So a run can stop at any time and go on later, and ways to the model that begin with the same request
cost its time only once. The memory is a file with one JSON object in each line.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from pathlib import Path
from typing import Any

from asking import Relay

IGNORED = frozenset({"model", "cache_prompt", "stream_options", "user", "metadata"})
"""Members of a request that do not change the answer."""
DEFAULTS = {"stream": False, "tool_choice": "auto"}


class Memory:
    """Answers of one model by request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.answers: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                answer = json.loads(line)
                self.answers[answer["key"]] = answer

    def find(self, key: str) -> dict[str, Any] | None:
        return self.answers.get(key)

    def keep(self, answer: dict[str, Any]) -> None:
        with self.lock, self.path.open("a", encoding="utf-8") as file:
            self.answers[answer["key"]] = answer
            file.write(json.dumps(answer) + "\n")


def make_key(path: str, body: bytes) -> str:
    """What makes two requests the same."""
    asked = json.loads(body, parse_int=float)
    kept = {
        name: value
        for name, value in asked.items()
        if name not in IGNORED and value is not None and DEFAULTS.get(name) != value
    }
    return hashlib.sha256(json.dumps([path, kept], sort_keys=True).encode()).hexdigest()


class RememberingRelay(Relay):
    """``seconds`` is the model's time for all answers, also those from memory; ``asked`` counts the requests."""

    def __init__(self, upstream: str, memory: Memory) -> None:
        super().__init__(upstream)
        self.memory = memory
        self.seconds = 0.0

    def answer(
        self, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """The model's answer, or the one that it gave before."""
        if body is None or not path.endswith("/completions"):
            return super().answer(path, body, headers)
        key = make_key(path, body)
        known = self.memory.find(key)
        if known is None:
            began = time.monotonic()
            status, received, content = super().answer(path, body, headers)
            kind = next((value for name, value in received if name.lower() == "content-type"), "application/json")
            known = {
                "key": key,
                "status": status,
                "type": kind,
                "content": content.decode(),
                "seconds": round(time.monotonic() - began, 2),
            }
            if status < 500:
                self.memory.keep(known)
        self.seconds += known["seconds"]
        return known["status"], [("content-type", known["type"])], known["content"].encode()

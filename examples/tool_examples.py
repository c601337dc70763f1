"""Sends every request of opencode_tool_examples.json to a gateway and compares the answer with the expected one.

    toolglot sim --script examples/scenarios.toml
    toolglot serve --base-url http://127.0.0.1:8099/v1
    python examples/tool_examples.py

Needs nothing but Python. Each request is sent whole and streamed; ids of calls are new in every answer, so they are not
compared. TOOLGLOT_URL names another gateway than http://127.0.0.1:8484.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

ADDRESS = os.environ.get("TOOLGLOT_URL", "http://127.0.0.1:8484")
EXAMPLES = Path(__file__).with_name("opencode_tool_examples.json")
OPENER = build_opener(ProxyHandler({}))


def ask(request: dict[str, Any]) -> bytes:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    sent = Request(f"{ADDRESS}/v1/chat/completions", json.dumps(request).encode(), headers)
    with OPENER.open(sent, timeout=60) as response:
        body: bytes = response.read()
    return body


def answer_whole(request: dict[str, Any]) -> tuple[Any, ...]:
    return outline(json.loads(ask({**request, "stream": False})))


def answer_streamed(request: dict[str, Any]) -> tuple[Any, ...]:
    """Join the pieces of a stream: text and arguments arrive in fragments, the name of a call comes once."""
    text, finish = "", None
    calls: dict[int, list[str]] = {}
    for line in ask({**request, "stream": True}).decode().split("\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            finish = choice["finish_reason"] or finish
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], ["", ""])
                call[0] += piece["function"].get("name") or ""
                call[1] += piece["function"].get("arguments") or ""
    return text or None, [(name, json.loads(arguments)) for name, arguments in calls.values()], finish


def outline(answer: dict[str, Any]) -> tuple[Any, ...]:
    """What counts of an answer: text, calls, finish reason."""
    choice = answer["choices"][0]
    functions = [call["function"] for call in choice["message"].get("tool_calls") or ()]
    calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
    return choice["message"]["content"], calls, choice["finish_reason"]


def main() -> int:
    failures = 0
    for example in json.loads(EXAMPLES.read_text("utf-8"))["examples"]:
        expected = outline(example["expectedResponse"])
        for way, answer in (("whole", answer_whole), ("streamed", answer_streamed)):
            got = answer(example["request"])
            failures += got != expected
            print(f"{'ok  ' if got == expected else 'FAIL'} {example['name']} ({way})")
            if got != expected:
                print(f"     expected {expected}\n     got      {got}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""A model asked the questions of BFCL, bare and behind toolglot, and how many requests that took.

Between the gateway and the model stands a relay that counts what the model is asked: a gateway that asks again when it
does not like an answer shows as extra requests.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import packages
from bfcl import Call, Question, judge

from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS

PATIENCE = 600
LONGEST_ANSWER = 256
DROPPED_HEADERS = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


@dataclass
class Score:
    """The verdicts over one way to the model."""

    verdicts: Counter[str] = field(default_factory=Counter)
    by_category: dict[str, Counter[str]] = field(default_factory=dict)
    extra_requests: int = 0
    seconds: list[float] = field(default_factory=list)

    def add(self, category: str, verdict: str, seconds: float) -> None:
        """Count one answer."""
        self.verdicts[verdict] += 1
        self.by_category.setdefault(category, Counter())[verdict] += 1
        self.seconds.append(seconds)

    @property
    def median_seconds(self) -> float:
        return median(self.seconds) if self.seconds else 0.0


class Relay(ThreadingHTTPServer):
    """Passes requests on to the model and counts those that ask it for an answer."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.upstream = upstream
        self.asked = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(
        self, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """What the model answers: status, headers and content."""
        key = {"Authorization": f"Bearer {packages.KEY}"}  # of the model, whatever key a gateway sends
        request = urllib.request.Request(self.upstream + path, body, headers | key)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, answer.headers.items(), answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers.items(), refused.read()


class _Passing(BaseHTTPRequestHandler):
    server: Relay

    def do_GET(self) -> None:
        self._pass_on(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked += self.path.endswith("/completions")
        self._pass_on(body)

    def _pass_on(self, body: bytes | None) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in DROPPED_HEADERS}
        status, received, content = self.server.answer(self.path, body, headers)
        self.send_response_only(status)
        for name, value in received:
            if name.lower() not in DROPPED_HEADERS:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""


def toml_table(name: str, values: dict[str, Any]) -> str:
    """One entry of an array of tables; strings and truth values are written in TOML as in JSON."""
    return "\n".join([f"[[{name}]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), "", ""])


@contextmanager
def gateway(base_url: str, model: str, mode: str, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """``toolglot serve`` before a model; the mode ``embedded`` is what it does for the model that it brings itself.
    ``settings`` are variables of its environment."""
    upstream: dict[str, Any] = {"name": "model", "base_url": base_url, "api_key": packages.KEY}
    served: dict[str, Any] = {"name": "*", "upstream": "model", "model": model, "mode": mode}
    if mode == "embedded":
        upstream["coached"] = True
        served |= {"mode": "text", "dialect": KNOWN_MODELS[DEFAULT_MODEL].dialect}
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "toolglot.toml"
        config.write_text(toml_table("upstream", upstream) + toml_table("model", served))
        command = [
            sys.executable,
            "-m",
            "toolglot",
            "serve",
            "--port",
            "0",
            "--config",
            str(config),
            "--state-dir",
            "none",
        ]
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "TOOLGLOT_"))}
        clean |= settings
        log = (Path(folder) / "log").open("w")
        with (
            log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=clean, cwd=folder) as process,
        ):
            assert process.stdout is not None
            found = next(filter(None, (re.search(r"listening at (http://\S+)", line) for line in process.stdout)), None)
            try:
                if found is None:
                    raise RuntimeError(f"the gateway did not start: {Path(log.name).read_text()[-600:]}")
                yield f"{found[1]}/v1"
            finally:
                process.terminate()


def ask(base_url: str, model: str, question: Question) -> dict[str, Any]:
    """The message that answers a question, or ``{"error": text}``."""
    asked = {
        "model": model,
        "messages": question.messages,
        "tools": question.tools,
        "temperature": 0,
        "max_tokens": LONGEST_ANSWER,
    }
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    request = urllib.request.Request(f"{base_url}/chat/completions", json.dumps(asked).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return dict(json.load(answer)["choices"][0]["message"])
    except urllib.error.HTTPError as refused:
        return {"error": f"{refused.code} {refused.read()[:300]!r}"}


def read_calls(message: dict[str, Any]) -> list[Call]:
    """The calls of a message; arguments that are not JSON are None."""
    calls = []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        try:
            calls.append((function["name"], json.loads(function["arguments"])))
        except ValueError:
            calls.append((function["name"], None))
    return calls


def ask_all(base_url: str, model: str, questions: Sequence[Question], relay: Relay, show: bool) -> Score:
    """Every question once, one after the other. An answer that is an error counts as failed."""
    score, before = Score(), relay.asked
    for question in questions:
        began = time.monotonic()
        message = ask(base_url, model, question)
        seconds = time.monotonic() - began
        calls = read_calls(message)
        verdict = "failed" if "error" in message else judge(question, calls)
        score.add(question.category, verdict, seconds)
        if show:
            received = calls or message.get("error") or message.get("content")
            print(f"{question.name} {verdict} {seconds:.1f} s: {received!r}", file=sys.stderr, flush=True)
    score.extra_requests = relay.asked - before - len(questions)
    return score

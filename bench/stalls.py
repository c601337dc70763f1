"""How late other clients are answered while the gateway works on the largest valid requests.

A gateway in front of an upstream on loopback is asked ``GET /health`` and a tiny chat request every 50 ms, in turn. Beside
that it is given one large request after the other, each twice: as one that it has never seen, and again as the next turn of
an agent would send it. *Late* is the longest that a heartbeat waited for its answer. Progress goes to standard error, a table
in Markdown to standard output.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from gateways import free_port

DIALECTS = ("hermes", "qwen3_coder", "roo_xml", "pythonic", "native")
BEAT_SECONDS = 0.05
PATIENCE = 120.0
TINY = json.dumps({"model": "native", "messages": [{"role": "user", "content": "Hello"}]}).encode()
PROSE = "The quick brown fox jumps over the lazy dog, and nobody minds; then all of them go home.\n"
HTML = '<div class="row"><a href="/x?a=1&amp;b=2">link</a> <span>text</span></div>\n'
QUOTE = '"'
CALL = '<tool_call>\n{"name": "tool_0", "arguments": {"property_0": "x"}}\n</tool_call>\n'

# -- the requests ------------------------------------------------------------------------------------------------------


def declare(name: str, properties: int, description: str = "What it is for.") -> dict[str, Any]:
    """A tool with so many properties."""
    kinds = (
        {"type": "string"},
        {"type": "integer"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "boolean"},
    )
    declared = {f"property_{at}": {**kinds[at % 4], "description": "A property."} for at in range(properties)}
    parameters = {"type": "object", "properties": declared, "required": [key for key in declared][:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def ask(*earlier: dict[str, Any], tools: list[dict[str, Any]] | None = None, text: str = "Go on.") -> dict[str, Any]:
    """A request: tools, earlier messages, and the last message of the user."""
    messages = [{"role": "system", "content": "You help."}, *earlier, {"role": "user", "content": text}]
    return {"messages": messages, "tools": tools or [declare("tool_0", 4)], "stream": True}


def call_with(argument: str, result: str = "done", number: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    """An earlier call with that argument, and its result."""
    made = {"name": "tool_0", "arguments": json.dumps({"property_0": argument})}
    call = {"id": f"call_{number}", "type": "function", "function": made}
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    )


def fill(text: str, size: int) -> str:
    return (text * (size // len(text) + 1))[:size]


def nest(depth: int) -> dict[str, Any]:
    """A schema that is nested so deep."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def take_turns(size: int, tools: int, messages: int) -> dict[str, Any]:
    """An agent's turn: a system prompt, tools, and calls with their results, of so many bytes in all."""
    piece = size // (messages + 2)
    question = fill(PROSE, piece)
    turns = [turn for at in range(messages // 2) for turn in call_with(fill(PROSE, piece), fill(HTML, piece), at)]
    return ask(*turns, tools=[declare(f"tool_{at}", 6, fill(PROSE, 400)) for at in range(tools)], text=question)


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "a small request, to compare with": ask,
    "an agent's turn: 400 KB, 30 tools, 60 messages": lambda: take_turns(400_000, 30, 60),
    "128 tools x 200 properties": lambda: ask(tools=[declare(f"tool_{at}", 200) for at in range(128)]),
    "4,000 properties in one tool": lambda: ask(tools=[declare("tool_0", 4000)]),
    "50,000 properties in one tool": lambda: ask(tools=[declare("tool_0", 50_000)]),
    "128 tools with names of 64 characters": lambda: ask(
        tools=[declare(fill(f"tool_{at}_", 64), 4) for at in range(128)]
    ),
    "10 MB of prose in an earlier call": lambda: ask(*call_with(fill(PROSE, 10_000_000))),
    "5 MB of quotes in an earlier call (20 MB of JSON)": lambda: ask(*call_with(fill(QUOTE, 5_000_000))),
    "200 KB of HTML in an earlier call": lambda: ask(*call_with(fill(HTML, 200_000))),
    "200 KB of </a> in an earlier call": lambda: ask(*call_with(fill("</a>", 200_000))),
    "200 KB of </parameter> in an earlier call": lambda: ask(*call_with(fill("</parameter>\n", 200_000))),
    "200 KB of <a> in an earlier call": lambda: ask(*call_with(fill("<a>", 200_000))),
    "5 MB of calls in a result": lambda: ask(*call_with("x", fill(CALL, 5_000_000))),
    "5 MB of HTML in a result": lambda: ask(*call_with("x", fill(HTML, 5_000_000))),
    "10 MB of prose from the user": lambda: ask(text=fill(PROSE, 10_000_000)),
    "10 MB of < from the user": lambda: ask(text=fill("<", 10_000_000)),
    "10 MB of blanks from the user": lambda: ask(text=fill(" ", 10_000_000) + "."),
    "30 MB of prose from the user": lambda: ask(text=fill(PROSE, 30_000_000)),
    "descriptions of 5 MB": lambda: ask(tools=[declare(f"tool_{at}", 2, fill(PROSE, 500_000)) for at in range(10)]),
    "a schema nested 150 deep": lambda: ask(
        tools=[declare("tool_0", 1) | {"function": {"name": "tool_0", "parameters": nest(150)}}]
    ),
    "an argument nested 5,000 deep": lambda: ask(*call_with("[" * 5_000 + "]" * 5_000)),
    "9,000 messages": lambda: ask(*(turn for at in range(4_400) for turn in call_with("x" * 50, "y" * 50, at))),
}


# -- the upstream ------------------------------------------------------------------------------------------------------


class _Answering(BaseHTTPRequestHandler):
    """Answers every request in a few words, after it has read all of it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if b'"stream":true' in body[:200] + body[-200:] or b'"stream": true' in body[:200] + body[-200:]:
            words = ["Let", " me", " see.", ""]
            events = [{"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in words]
            events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            encoded = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events) + b"data: [DONE]\n\n"
            kind = "text/event-stream"
        else:
            message = {"role": "assistant", "content": "Hello."}
            encoded = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
            kind = "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None:
        pass


def answer_all(parent: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answering)
    parent.send(server.server_port)
    server.serve_forever()


@contextmanager
def upstream() -> Iterator[int]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=answer_all, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


# -- the gateway -------------------------------------------------------------------------------------------------------


@contextmanager
def gateway(upstream_port: int) -> Iterator[tuple[int, float]]:
    """A gateway in a process of its own: its port, and how long it took to start."""
    port = free_port()
    config = f'[[upstream]]\nname = "up"\nbase_url = "http://127.0.0.1:{upstream_port}/v1"\n'
    for dialect in DIALECTS:
        taught = 'mode = "native"' if dialect == "native" else f'mode = "text"\ndialect = "{dialect}"'
        config += f'[[model]]\nname = "{dialect}"\nupstream = "up"\n{taught}\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolglot.toml"
        path.write_text(config, encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "toolglot",
            "serve",
            "--port",
            str(port),
            "--config",
            str(path),
            "--state-dir",
            "none",
        ]
        begun = time.perf_counter()
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)
        try:
            while not answers(port):
                if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                    raise RuntimeError((Path(folder) / "log").read_text())
                time.sleep(0.005)
            yield port, time.perf_counter() - begun
        finally:
            process.terminate()
            process.wait()


def answers(port: int) -> bool:
    try:
        return get_health(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE))
    except OSError:
        return False


def get_health(connection: http.client.HTTPConnection) -> bool:
    connection.request("GET", "/health")
    return connection.getresponse().read() != b""


def chat(connection: http.client.HTTPConnection, body: bytes) -> int:
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    response.read()
    return response.status


@dataclass
class Heart:
    """Asks the gateway small things every 50 ms, and keeps how long each took."""

    port: int
    late: list[tuple[float, float]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def beat(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        due = time.perf_counter()
        ways: tuple[Callable[[], object], ...] = (lambda: get_health(connection), lambda: chat(connection, TINY))
        at = 0
        while not self.stopped.wait(max(0.0, due - time.perf_counter())):
            begun = time.perf_counter()
            ways[at % 2]()
            self.late.append((begun, time.perf_counter() - begun))
            at += 1
            due = max(due + BEAT_SECONDS, time.perf_counter())

    @contextmanager
    def beating(self) -> Iterator[Heart]:
        thread = threading.Thread(target=self.beat)
        thread.start()
        try:
            yield self
        finally:
            self.stopped.set()
            thread.join()

    def worst(self, since: float) -> float:
        return max((took for begun, took in list(self.late) if begun + took >= since), default=0.0)


@dataclass(frozen=True)
class Row:
    """What one large request did: how long it took, and how late others were."""

    first: float
    again: float
    late: float
    late_again: float
    status: int


def measure(port: int, body: bytes) -> Row:
    with Heart(port).beating() as heart:
        time.sleep(3 * BEAT_SECONDS)
        taken: list[tuple[float, float]] = []
        status = 0
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            begun = time.perf_counter()
            status = chat(connection, body)
            took = time.perf_counter() - begun
            time.sleep(2 * BEAT_SECONDS)
            taken.append((took, heart.worst(begun)))
            connection.close()
    return Row(taken[0][0], taken[1][0], taken[0][1], taken[1][1], status)


def time_directly(port: int, body: bytes, times: int = 9) -> list[float]:
    """How long a request takes, on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        chat(connection, body)
        taken.append(time.perf_counter() - begun)
    return taken


# -- the tables --------------------------------------------------------------------------------------------------------


def print_turns(upstream_port: int, dialects: list[str]) -> None:
    """What an agent's turn costs: the first of a process, and later ones, over the direct way."""
    turn = CASES["an agent's turn: 400 KB, 30 tools, 60 messages"]()
    print("| dialect | start, s | first turn of a process, ms added | later turns, ms added |\n|---|---:|---:|---:|")
    direct = median(time_directly(upstream_port, json.dumps({**turn, "model": "x"}).encode()))
    for dialect in dialects:
        body = json.dumps({**turn, "model": dialect}).encode()
        rows = []
        for _ in range(3):
            with gateway(upstream_port) as (port, start):
                time.sleep(0.5)
                first, *later = time_directly(port, body, 12)
                rows.append((start, 1e3 * (first - direct), 1e3 * (median(later) - direct)))
        start, first, late = (median(column) for column in zip(*rows, strict=True))
        print(f"| {dialect} | {start:.2f} | {first:.0f} | {late:.1f} |", flush=True)
    print()


def print_stalls(upstream_port: int, dialects: list[str], wanted: str) -> None:
    print("| request | dialect | first, s | again, s | heartbeat late, ms | again, ms |\n|---|---|---:|---:|---:|---:|")
    for name, make in CASES.items():
        if wanted not in name:
            continue
        asked = make()
        for dialect in dialects:
            with gateway(upstream_port) as (port, _):
                time.sleep(0.5)
                row = measure(port, json.dumps({**asked, "model": dialect}).encode())
            label = name if row.status == 200 else f"{name} (status {row.status})"
            times = f"{row.first:.2f} | {row.again:.2f} | {1e3 * row.late:.0f} | {1e3 * row.late_again:.0f}"
            print(f"| {label} | {dialect} | {times} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialects", nargs="*", default=list(DIALECTS), choices=DIALECTS)
    parser.add_argument("--only", default="", help="a part of the names of the requests")
    parser.add_argument("--table", choices=("turns", "stalls", "both"), default="both")
    arguments = parser.parse_args()
    with upstream() as port:
        if arguments.table != "stalls":
            print_turns(port, arguments.dialects)
        if arguments.table != "turns":
            print_stalls(port, arguments.dialects, arguments.only)


if __name__ == "__main__":
    main()

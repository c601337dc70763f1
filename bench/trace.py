"""One streamed chat request in text mode through the gateway, traced: calls, modules, switches and bounces.

The gateway serves on loopback in this thread. A scripted upstream and the client run in another thread, which is not
traced. The first requests fill the caches; the last one is traced with ``sys.setprofile``, own code only. A *switch* is a
call into another module than the call before it, an *A-B-A bounce* two switches that lead back to the same module, each
counted in one bounce at most. Comprehensions and lambdas count to the function around them.

The counts are the same in every run: upstream and client take a step only after the gateway has dealt with the one
before, so each chunk is one read, and connections are closed in one order. The listener does not look for idle
connections meanwhile, and the traced request is in the same second as one before it, which has written its time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from socket import create_connection
from threading import Event, Thread
from time import time
from types import FrameType
from typing import Any

import toolglot
from toolglot.config import load
from toolglot.server import listener
from toolglot.server.lifecycle import listening

SOURCE = str(Path(toolglot.__file__).parent) + "/"
CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "notes.txt"}}\n</tool_call>'
TOOL = {
    "type": "function",
    "function": {
        "name": "read",
        "description": "Reads a file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
BODY = json.dumps(
    {"model": "m", "stream": True, "messages": [{"role": "user", "content": "Read notes.txt"}], "tools": [TOOL]}
).encode()
WARM_UPS = 20
ROUNDS = 8
"""Rounds of the event loop after which the gateway has dealt with all that it was sent."""


@dataclass
class Trace:
    """What was called, in order."""

    modules: list[str] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)

    def observe(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            module = code.co_filename[len(SOURCE) : -3]
            self.modules.append(module)
            self.functions[f"{module}.{code.co_qualname}"] += 1

    def path(self) -> list[str]:
        """The modules in order, each run of calls once."""
        return [module for module, _ in groupby(self.modules)]

    def bounces(self) -> Counter[str]:
        """Modules that were left for another one and entered again right after it."""
        path, found, at = self.path(), Counter[str](), 0
        while at + 2 < len(path):
            bounced = path[at] == path[at + 2]
            if bounced:
                found[" - ".join(path[at : at + 3])] += 1
            at += 2 if bounced else 1
        return found


class Upstream(BaseHTTPRequestHandler):
    """Streams one call as text, in pieces that arrive one by one."""

    protocol_version = "HTTP/1.1"
    pieces: tuple[str, ...] = ()
    loop: asyncio.AbstractEventLoop
    done = Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        settle(self.loop)
        deltas: list[tuple[dict[str, str], str | None]] = [({"content": piece}, None) for piece in self.pieces]
        for delta, finish in [*deltas, ({}, "stop")]:
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            self.wfile.write(f"data: {json.dumps(chunk | {'choices': choices})}\n\n".encode())
            self.wfile.flush()
            settle(self.loop)
        self.wfile.write(b"data: [DONE]\n\n")
        settle(self.loop)
        self.close_connection = True

    def finish(self) -> None:
        super().finish()
        self.connection.close()
        settle(self.loop)
        self.done.set()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def settle(loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the gateway has dealt with what was sent to it: what is in a socket is read in the next round of its
    event loop, and what that schedules runs in the rounds after it."""
    settled = Event()

    def count_down(left: int) -> None:
        if left:
            loop.call_soon(count_down, left - 1)
        else:
            settled.set()

    loop.call_soon_threadsafe(count_down, ROUNDS)
    settled.wait(30)


def ask(address: str) -> bytes:
    """One request in one write; the client does not keep its connection."""
    host, port = address.removeprefix("http://").rsplit(":", 1)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    answer = b""
    with create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(f"{head}Content-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        while not answer.endswith(b"\r\n0\r\n\r\n"):
            received = connection.recv(1 << 16)
            if not received:
                raise RuntimeError(f"the answer was cut: {answer[-500:]!r}")
            answer += received
        Upstream.done.wait(30)
        Upstream.done.clear()
    settle(Upstream.loop)
    if b'"tool_calls"' not in answer:
        raise RuntimeError(f"no call was made: {answer[:500]!r}")
    return answer


async def trace_request(chunks: int) -> Trace:
    size = -(-len(CALL) // chunks)
    Upstream.pieces = tuple(CALL[start : start + size] for start in range(0, len(CALL), size))
    Upstream.loop = asyncio.get_running_loop()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    Thread(target=server.serve_forever, daemon=True).start()
    base_url = f"http://127.0.0.1:{server.server_port}/v1"
    vars(listener)["SWEEP_SECONDS"] = 3600
    options = {"base_url": base_url, "mode": "text", "dialect": "hermes", "port": 0, "state_dir": "none"}
    trace = Trace()
    try:
        async with listening(load(options, {})) as address:
            for _ in range(WARM_UPS):
                await asyncio.to_thread(ask, address)
            second = 0
            while second != int(time()):
                second, trace = int(time()), Trace()
                await asyncio.to_thread(ask, address)
                sys.setprofile(trace.observe)
                try:
                    await asyncio.to_thread(ask, address)
                finally:
                    sys.setprofile(None)
    finally:
        server.shutdown()
    return trace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--chunks", type=int, default=5, help="pieces in which the upstream sends the call (default: 5)"
    )
    parser.add_argument("--list", action="store_true", help="list modules, functions and bounces too")
    given = parser.parse_args()
    trace = asyncio.run(trace_request(given.chunks))
    modules = Counter(trace.modules)
    print("| calls | modules | module switches | A-B-A bounces |\n|---:|---:|---:|---:|")
    print(f"| {len(trace.modules)} | {len(modules)} | {len(trace.path()) - 1} | {trace.bounces().total()} |")
    if given.list:
        for title, counted in (("modules", modules), ("functions", trace.functions), ("bounces", trace.bounces())):
            print(f"\n{title}\n" + "\n".join(f"{count:6} {name}" for name, count in counted.most_common()))


if __name__ == "__main__":
    main()

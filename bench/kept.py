"""Turns on kept connections, direct and through the gateway, side by side.

A server that writes a reply in small pieces and does not set TCP_NODELAY sends the second piece when the first one was
acknowledged. On a connection that was used before, Linux delays that by up to 40 ms. The gateway acknowledges at once
(``TCP_QUICKACK``); an ordinary client does not, so on such a server the direct way is the slow one. The upstreams:

    http.server  Python's own, HTTP/1.1: the head and the body, or each event, in a write of its own
    llama.cpp    the embedded model as ``toolglot serve`` starts it, temperature 0, the prompt in its cache

The ways, which take turns one by one or in bursts, in another order every round:

    direct               Python's ``http.client`` on one connection, opened again when the server closed it
    direct, once more    the same on another connection: how far apart two equal ways are is the noise
    direct, quick ACK    the same with a client that acknowledges at once
    toolglot             ``http.client`` to ``toolglot serve``, with the settings it has for the embedded model
    toolglot, no quick ACK

The direct ways send what the gateway sends for the same question, so that the model has the same work.

    python bench/kept.py [--turns N] [--only http.server llama.cpp]
"""

from __future__ import annotations

import argparse
import json
import platform
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse, RemoteDisconnected
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from math import isnan, nan
from pathlib import Path
from statistics import median, quantiles
from threading import Thread
from time import perf_counter
from typing import Any, Final
from urllib.parse import urlsplit

from gateways import Gateway, free_port, launch
from local import TOOLS
from packages import run_model

from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS

TURNS = 80
BURSTS = {"http.server": (5, 1), "llama.cpp": (1,)}
"""Turns in a row before another way takes over. How long Linux waits with an acknowledgement depends on that."""
WARM_UP = 10
EVENTS = 8
TOKENS = 4
PATIENCE = 60.0
QUICK_ACK: Final[int | None] = getattr(socket, "TCP_QUICKACK", None)

CONFIG = """\
[[upstream]]
name = "model"
base_url = "{base_url}"
api_key = "none"
coached = true

[[model]]
name = "*"
upstream = "model"
mode = "text"
dialect = "{dialect}"
"""

WITHOUT_QUICK_ACK = """\
import sys, toolglot.server.upstream.connection
toolglot.server.upstream.connection.QUICK_ACK = None
from toolglot.cli.main import main
sys.exit(main())
"""

DIRECT, ONCE_MORE, QUICK = "direct", "direct, once more", "direct, quick ACK"
GATEWAY, GATEWAY_SLOW_ACK = "toolglot", "toolglot, no quick ACK"
WAYS = (DIRECT, ONCE_MORE, QUICK, GATEWAY, GATEWAY_SLOW_ACK)
SERVES = {GATEWAY: ("-m", "toolglot"), GATEWAY_SLOW_ACK: ("-c", WITHOUT_QUICK_ACK)}


# -- the upstream in Python --------------------------------------------------------------------------------------------


class Answering(BaseHTTPRequestHandler):
    """Answers every question with a few words. A GET tells what was asked last."""

    protocol_version = "HTTP/1.1"
    asked = b""

    def do_POST(self) -> None:
        Answering.asked = self.rfile.read(int(self.headers["content-length"]))
        if not json.loads(Answering.asked).get("stream"):
            message = {"role": "assistant", "content": "Hello! How can I help you today?"}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            self._tell(json.dumps(_body("chat.completion", choice)).encode())
            return
        self._begin("text/event-stream", "Transfer-Encoding", "chunked")
        for number in range(EVENTS):
            choice = {"index": 0, "finish_reason": None, "delta": {"content": f" word{number}"}}
            self._write_event(json.dumps(_body("chat.completion.chunk", choice)))
        choice = {"index": 0, "finish_reason": "stop", "delta": {}}
        self._write_event(json.dumps(_body("chat.completion.chunk", choice)))
        self._write_event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        self._tell(Answering.asked)

    def _tell(self, body: bytes) -> None:
        self._begin("application/json", "Content-Length", str(len(body)))
        self.wfile.write(body)

    def _begin(self, kind: str, name: str, value: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header(name, value)
        self.end_headers()

    def _write_event(self, data: str) -> None:
        event = f"data: {data}\n\n"
        self.wfile.write(f"{len(event):x}\r\n{event}\r\n".encode())

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged."""


def _body(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "bench", "object": kind, "created": 1, "model": "bench", "choices": [choice]}


def serve_upstream() -> None:
    """The child: serve until the parent is gone."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()


@contextmanager
def python_upstream() -> Iterator[int]:
    command = [sys.executable, __file__, "--upstream"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        yield int(process.stdout.readline())
        process.stdin.close()


# -- the clients -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """Milliseconds from the request to the end of the answer, and those of them that the model did not take."""

    whole: float
    beyond: float | None


Figure = Callable[[Sequence[Turn]], float]


class Client:
    """One connection, kept for as long as the server keeps it."""

    def __init__(self, port: int, quick_ack: bool = False) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._quick_ack = quick_ack

    def ask(self, body: bytes) -> Turn:
        began = perf_counter()
        response = self._send(body)
        answer = response.read()
        whole = (perf_counter() - began) * 1e3
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {answer[:300]!r}")
        model = model_time(answer)
        return Turn(whole, None if model is None else whole - model)

    def _send(self, body: bytes) -> HTTPResponse:
        """Ask; where a kept connection turns out to be closed, on a new one."""
        kept = self._connection.sock
        if kept is not None and select.select([kept], [], [], 0)[0]:
            self._connection.close()
        try:
            return self._try(body)
        except (RemoteDisconnected, ConnectionError):
            self._connection.close()
            return self._try(body)

    def _try(self, body: bytes) -> HTTPResponse:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
        self._connection.request("POST", "/v1/chat/completions", body, headers)
        if self._quick_ack and QUICK_ACK is not None:
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)
        return self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()


def model_time(answer: bytes) -> float | None:
    """Milliseconds that llama.cpp says the model took, where the answer still has that."""
    for line in reversed(answer.splitlines()):
        if b'"timings"' in line:
            timings = json.loads(line.removeprefix(b"data: "))["timings"]
            return float(timings["prompt_ms"] + timings["predicted_ms"])
    return None


# -- what is measured --------------------------------------------------------------------------------------------------


@dataclass
class Lane:
    """One kind of turn with one upstream, and the turns of every way."""

    upstream: str
    burst: int
    streamed: bool
    tools: bool
    turns: dict[str, list[Turn]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        pace = f"bursts of {self.burst}" if self.burst > 1 else "one by one"
        answer = "streamed" if self.streamed else "whole"
        return f"{self.upstream}, {pace}, {answer}, {'tools' if self.tools else 'no tools'}"

    @property
    def question(self) -> bytes:
        asked: dict[str, Any] = {
            "model": "bench",
            "messages": [{"role": "user", "content": "Hello!"}],
            "temperature": 0,
            "max_tokens": TOKENS,
            "cache_prompt": True,
            "stream": self.streamed,
        }
        return json.dumps(asked | ({"tools": TOOLS} if self.tools else {})).encode()


def launch_gateway(way: str, upstream: str, port: int, folder: Path) -> Gateway:
    """A gateway with the settings that ``toolglot serve`` has for the embedded model."""
    config = folder / f"{upstream}.toml"
    config.write_text(
        CONFIG.format(base_url=f"http://127.0.0.1:{port}/v1", dialect=KNOWN_MODELS[DEFAULT_MODEL].dialect)
    )
    own = free_port()
    command = [sys.executable, *SERVES[way], "serve", "--port", str(own), "--config", str(config)]
    return launch(f"{way} {upstream}", command, own, folder, {"TOOLGLOT_STATE_DIR": "none"}, spread=True)


def sent_by(gateway: Gateway, recorder: int, question: bytes) -> bytes:
    """What the gateway sends for a question."""
    Client(gateway.port).ask(question)
    connection = HTTPConnection("127.0.0.1", recorder, timeout=PATIENCE)
    connection.request("GET", "/")
    return connection.getresponse().read()


def measure(lane: Lane, turns: int, upstream: int, gateways: dict[str, Gateway], sent: bytes) -> None:
    clients = {DIRECT: Client(upstream), ONCE_MORE: Client(upstream), QUICK: Client(upstream, quick_ack=True)}
    clients |= {way: Client(gateway.port) for way, gateway in gateways.items()}
    lane.turns = {way: [] for way in clients}
    bodies = {way: lane.question if way in gateways else sent for way in clients}
    for way, client in clients.items():
        for _ in range(WARM_UP):
            client.ask(bodies[way])
    for number in range(turns // lane.burst):
        ways = list(clients)
        first = number % len(ways)
        for way in ways[first:] + ways[:first]:
            lane.turns[way] += [clients[way].ask(bodies[way]) for _ in range(lane.burst)]
    for client in clients.values():
        client.close()


# -- what is printed ---------------------------------------------------------------------------------------------------


def show(lanes: Sequence[Lane], count: int) -> None:
    print(f"Python {platform.python_version()}, {count} interleaved turns of each way; milliseconds.\n")
    print_table("turn, median / p90", lanes, turn_at(50), turn_at(90))
    timed = [lane for lane in lanes if lane.upstream == "llama.cpp"]
    if timed:
        print_table("turn, p10 / beyond the model, median", timed, turn_at(10), beyond_the_model)


def print_table(title: str, lanes: Sequence[Lane], main: Figure, other: Figure) -> None:
    """Two figures of every way, and how the first one relates to that of the direct way."""
    print(f"| {title} | {' | '.join(WAYS)} | toolglot, times direct | once more, times direct |")
    print(f"|---{'|---:' * (len(WAYS) + 2)}|")
    for lane in lanes:
        cells = [f"{spell(main(lane.turns[way]))} / {spell(other(lane.turns[way]))}" for way in WAYS]
        cells += [spell(main(lane.turns[way]) / main(lane.turns[DIRECT])) for way in (GATEWAY, ONCE_MORE)]
        print(f"| {lane.name} | {' | '.join(cells)} |")
    print(flush=True)


def spell(figure: float) -> str:
    return "-" if isnan(figure) else f"{figure:.2f}"


def turn_at(percent: int) -> Figure:
    """The percentile of the turns. The tenth is the one that other work on the machine moves least."""
    return lambda turns: quantiles([turn.whole for turn in turns], n=100)[percent - 1]


def beyond_the_model(turns: Sequence[Turn]) -> float:
    received = [turn.beyond for turn in turns if turn.beyond is not None]
    return median(received) if received else nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--only", nargs="+", choices=BURSTS, default=list(BURSTS))
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        serve_upstream()
        return
    lanes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = {"http.server": stack.enter_context(python_upstream())}
        if "llama.cpp" in options.only:
            ports["llama.cpp"] = urlsplit(stack.enter_context(run_model()).base_url).port or 0
        gateways: dict[str, dict[str, Gateway]] = {name: {} for name in ports}
        for name, port in ports.items():
            for way in SERVES:
                gateway = gateways[name][way] = launch_gateway(way, name, port, folder)
                stack.callback(gateway.stop)
        recorder = gateways["http.server"][GATEWAY]
        for name in options.only:
            for burst, tools, streamed in product(BURSTS[name], (False, True), (False, True)):
                lane = Lane(name, burst, streamed, tools)
                print(f"bench: {lane.name} ...", file=sys.stderr, flush=True)
                sent = sent_by(recorder, ports["http.server"], lane.question)
                measure(lane, options.turns, ports[name], gateways[name], sent)
                lanes.append(lane)
    show(lanes, options.turns)


if __name__ == "__main__":
    main()

"""What an upstream that sends too much costs the gateway and its other clients.

A gateway in front of a hostile upstream on loopback is asked for answers of many megabytes: as one event, as a whole JSON
body, as many events, and the same compressed. Beside that another process asks ``GET /health`` and a small streamed chat
every 20 ms, in turn. *Memory* is by how much the peak of the resident memory exceeds what the gateway had before; *late*
is the longest that one of the small requests waited. Each row has a gateway of its own. ``--against FOLDER`` measures
another checkout in the same run. Progress goes to standard error, a table in Markdown to standard output.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from gateways import free_port

ROOT = Path(__file__).resolve().parent.parent
MB = 1 << 20
PIECE = 1 << 16
PATIENCE = 180.0
BEAT_SECONDS = 0.02
MODES = ("relay", "native", "text")
WORDS = b"The quick brown fox jumps over the lazy dog. "
DELTA = b'{"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}'
LAST = b'data: {"id":"a","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
WHOLE = b'{"id":"a","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%b"},"finish_reason":"stop"}]}'
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}  # fmt: skip

# -- the upstream ------------------------------------------------------------------------------------------------------


def wrap(outer: bytes, size: int) -> Iterator[bytes]:
    """A frame around so many bytes of text."""
    before, _, after = outer.partition(b"%b")
    yield before
    text = WORDS * (PIECE // len(WORDS))
    for _ in range(max(0, size) // len(text)):
        yield text
    yield after


def make_events(size: int) -> Iterator[bytes]:
    event = b"data: " + DELTA.replace(b"%b", WORDS) + b"\n\n"
    for _ in range(size // (len(event) * 256)):
        yield event * 256
    yield LAST


def make_one_event(size: int) -> Iterator[bytes]:
    yield b"data: " + DELTA.replace(b"%b", b"Hello.") + b"\n\n"
    yield from wrap(b"data: " + DELTA + b"\n\n", size)
    yield LAST


def compress(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


SSE, JSON = b"text/event-stream", b"application/json"
FORMS: dict[str, tuple[bytes, Callable[[int], Iterator[bytes]]]] = {
    "one event": (SSE, make_one_event),
    "events": (SSE, make_events),
    "whole": (JSON, lambda size: wrap(WHOLE, size)),
    "gzip event": (SSE, lambda size: compress(make_one_event(size))),
    "gzip events": (SSE, lambda size: compress(make_events(size))),
    "gzip whole": (JSON, lambda size: compress(wrap(WHOLE, size))),
    "error 500": (JSON, lambda size: wrap(b'{"error":{"message":"%b"}}', size)),
}


def answer(client: socket.socket) -> None:
    """Answer one request as its model says, and close the connection."""
    with client, suppress(OSError):
        received = b""
        while b"\r\n\r\n" not in received:
            received += client.recv(PIECE)
        head, _, body = received.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        while len(body) < length:
            body += client.recv(PIECE)
        form, _, size = json.loads(body)["model"].partition(":") if body else ("", "", "0")
        kind, make = FORMS.get(form, FORMS["events"])
        status = b"500 No" if form.startswith("error") else b"200 OK"
        encoding = b"content-encoding: gzip\r\n" if form.startswith("gzip") else b""
        client.sendall(b"HTTP/1.1 " + status + b"\r\ncontent-type: " + kind + b"\r\n" + encoding + b"\r\n")
        for piece in make(int(float(size or 0) * MB)):
            client.sendall(piece)


def answer_all(parent: Connection) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        parent.send(server.getsockname()[1])
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


@contextmanager
def child(target: Callable[..., None], *args: object) -> Iterator[Connection]:
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=target, args=(theirs, *args), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.terminate()
        process.join()


# -- the gateway -------------------------------------------------------------------------------------------------------


@contextmanager
def gateway(folder: Path, upstream_port: int) -> Iterator[tuple[int, int]]:
    """A gateway of a checkout in a process of its own: its port and its process."""
    port = free_port()
    config = (
        f'[server]\nstart_checks = false\n[[upstream]]\nname = "up"\nbase_url = "http://127.0.0.1:{upstream_port}/v1"\n'
    )
    for mode in MODES:
        how = 'mode = "text"\ndialect = "hermes"' if mode == "text" else 'mode = "native"'
        config += f'[[model]]\nname = "{mode}/*"\nmodel = "*"\nupstream = "up"\n{how}\n'
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "toolglot.toml"
        path.write_text(config, encoding="utf-8")
        options = ["--port", str(port), "--config", str(path), "--state-dir", "none"]
        with (Path(temporary) / "log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "toolglot", "serve", *options],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(folder / "src")},
            )
        try:
            begun = time.perf_counter()
            while not get_health(port):
                if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                    raise RuntimeError((Path(temporary) / "log").read_text())
                time.sleep(0.05)
            yield port, process.pid
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def get_health(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def ask(model: str, stream: bool) -> bytes:
    tools = [] if model.startswith("relay") else [TOOL]
    message = {"role": "user", "content": "Hello"}
    return json.dumps({"model": model, "messages": [message], "stream": stream, "tools": tools}).encode()


def beat(parent: Connection, port: int) -> None:
    """Ask small things every 20 ms until told to stop; send the longest that one took."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    small, json_type = ask("relay/events:0", stream=True), {"content-type": "application/json"}
    worst, at = 0.0, 0
    parent.send("beating")
    due = time.perf_counter()
    while not parent.poll(max(0.0, due - time.perf_counter())):
        begun = time.perf_counter()
        if at % 2:
            connection.request("POST", "/v1/chat/completions", small, json_type)
        else:
            connection.request("GET", "/health")
        connection.getresponse().read()
        if at > 10:  # the first ones open connections and caches
            worst = max(worst, time.perf_counter() - begun)
        at += 1
        due = max(due + BEAT_SECONDS, time.perf_counter())
    parent.send(worst)


def memory(pid: int, field: str) -> int:
    """A field of the process's memory, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(field + ":"))


# -- the table ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What one answer did: how it ended, how long it took, what memory it took, and how late others were."""

    outcome: str
    seconds: float
    memory: int
    late: float

    def __str__(self) -> str:
        return f"{self.outcome} | {self.seconds:.1f} | {self.memory / MB:.0f} | {1e3 * self.late:.0f}"


def fetch(port: int, model: str, stream: bool) -> str:
    """Ask for an answer. Returns how it ended."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    end, status = b"", 0
    try:
        connection.request("POST", "/v1/chat/completions", ask(model, stream), {"content-type": "application/json"})
        response = connection.getresponse()
        status = response.status
        while piece := response.read(PIECE):
            end = (end + piece)[-3000:]
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
    for code in ("event_too_large", "answer_too_large", "compression_too_high"):
        if code.encode() in end:
            return f"{status} {code}"
    complete = b"[DONE]" in end if stream else end.endswith(b"}")
    return f"{status} {'whole' if complete and status == 200 else 'broken'}"


def measure(folder: Path, upstream_port: int, model: str) -> Row:
    stream = "whole" not in model
    with gateway(folder, upstream_port) as (port, pid), child(beat, port) as heart:
        heart.recv()
        time.sleep(1.5)
        before = memory(pid, "VmRSS")
        Path(f"/proc/{pid}/clear_refs").write_text("5")  # forgets the peak
        begun = time.perf_counter()
        outcome = fetch(port, model, stream)
        took = time.perf_counter() - begun
        peak = memory(pid, "VmHWM")
        heart.send("stop")
        return Row(outcome, took, peak - before, heart.recv())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the folder of another checkout")
    parser.add_argument("--forms", nargs="*", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES)
    parser.add_argument("--sizes", nargs="*", type=float, default=[0.1, 15, 60, 150, 400], help="in MB")
    arguments = parser.parse_args()
    folders = {"": ROOT} | ({" against": arguments.against} if arguments.against else {})
    print(
        "| answer | MB | mode | checkout | outcome | s | memory, MB | late, ms |\n|---|---:|---|---|---|---:|---:|---:|"
    )
    with child(answer_all) as upstream:
        port = upstream.recv()
        for form in arguments.forms:
            for size in arguments.sizes:
                for mode in arguments.modes:
                    for name, folder in folders.items():
                        row = measure(folder.resolve(), port, f"{mode}/{form}:{size:g}")
                        print(f"| {form} | {size:g} | {mode} | {name.strip() or 'this'} | {row} |", flush=True)


if __name__ == "__main__":
    main()

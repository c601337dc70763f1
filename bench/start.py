"""What waits for a fresh process: a command, the start of the gateway, its first answers; and what delays a chunk later.

    python bench/start.py [--against FOLDER] [--rounds N] [--store MB] [--only commands start answers chunks]

Checkouts are measured in turns. CPU time is that of the process under test, interpreter included; the least of all
rounds is printed, since other work on the machine only ever adds to it.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import resource
import socket
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
from typing import Any

from gateways import free_port
from stalls import ask, declare, get_health, take_turns

HERE = Path(__file__).resolve().parents[1]
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import toolglot": ["-c", "import toolglot"],
    "import toolglot, one call read": [
        "-c",
        'import toolglot; toolglot.read(\'<tool_call>{"name": "a", "arguments": {}}</tool_call>\')',
    ],
    "toolglot --version": ["-m", "toolglot", "--version"],
    "toolglot --help": ["-m", "toolglot", "--help"],
    "toolglot serve --help": ["-m", "toolglot", "serve", "--help"],
    "toolglot config show": ["-m", "toolglot", "config", "show"],
    "toolglot completion bash": ["-m", "toolglot", "completion", "bash"],
}
MODES = {"text": 'mode = "text"\ndialect = "hermes"', "native": 'mode = "native"'}
PATIENCE = 120.0
BEAT_SECONDS = 0.01
CHUNKS, CHUNK_SECONDS = 1500, 0.004
CALL = '<tool_call>\n{"name": "tool_0", "arguments": {"property_0": "src/main.py"}}\n</tool_call>'
WORDS = "I look at the file now, because the test that failed reads it:\n\n"
ANNOUNCE, PROSE = "Read the file.", "Write prose."
"""What the user says for an answer that stops before its call, and for many chunks."""


# -- the upstream ------------------------------------------------------------------------------------------------------


class _Model(BaseHTTPRequestHandler):
    """Answers with words and a call, in the way that the request asks for. For prose it sends many chunks, each with the
    time at which it was sent."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        request = json.loads(body)
        self.send_response(200)
        if not request.get("stream"):
            self._end("application/json", json.dumps(self._answer(request)).encode())
            return
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for delta in self._list_deltas(request):
            self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._write(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self) -> None:
        self.send_response(200)
        self._end("application/json", b'{"object": "list", "data": [{"id": "x", "object": "model"}]}')

    def _end(self, kind: str, body: bytes) -> None:
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        text = request["messages"][-1]["content"]
        message: dict[str, Any] = {"role": "assistant", "content": WORDS}
        if ANNOUNCE not in text:
            message |= {"tool_calls": [_native_call(request)]} if request.get("tools") else {"content": WORDS + CALL}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}

    def _list_deltas(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if PROSE in request["messages"][-1]["content"]:
            due = time.perf_counter()
            for _ in range(CHUNKS):
                due += CHUNK_SECONDS
                time.sleep(max(0.0, due - time.perf_counter()))
                yield {"content": f"at {time.monotonic():.6f} "}
            return
        message = self._answer(request)["choices"][0]["message"]
        text = message["content"]
        yield from ({"content": text[at : at + 4]} for at in range(0, len(text), 4))
        if "tool_calls" in message:
            yield {"tool_calls": [{"index": 0, **message["tool_calls"][0]}]}

    def _send(self, event: dict[str, Any]) -> None:
        self._write(b"data: %b\n\n" % json.dumps(event).encode())

    def _write(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, *_: object) -> None:
        pass


def _native_call(request: dict[str, Any]) -> dict[str, Any]:
    function = {"name": request["tools"][0]["function"]["name"], "arguments": '{"property_0": "src/main.py"}'}
    return {"id": "call_1", "type": "function", "function": function}


def answer_all(parent: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
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


def make_environment(checkout: Path) -> dict[str, str]:
    """The environment of a process that runs a checkout, with compiled modules in a folder of the checkout's own."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    paths = [str(checkout / "src"), *filter(None, [environment.get("PYTHONPATH", "")])]
    cache = Path(tempfile.gettempdir()) / f"toolglot-bench-{os.getuid()}" / str(checkout).strip("/").replace("/", "-")
    return {**environment, "PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(cache)}


@dataclass
class Started:
    """A gateway that listens, and what it had spent when its port opened."""

    port: int
    pid: int
    cpu: float
    seconds: float

    def count_cpu(self, every: bool = False) -> float:
        """CPU seconds of the thread of the event loop so far; of all threads if ``every``."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir() if every else [Path(f"/proc/{self.pid}/task/{self.pid}")]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


@contextmanager
def gateway(checkout: Path, upstream_port: int, state: str = "") -> Iterator[Started]:
    """Start ``toolglot serve`` of a checkout. ``state`` is its state folder; a new one if it is empty."""
    port = free_port()
    config = f'[[upstream]]\nname = "up"\nbase_url = "http://127.0.0.1:{upstream_port}/v1"\n'
    config += "".join(f'[[model]]\nname = "{mode}"\nupstream = "up"\n{lines}\n' for mode, lines in MODES.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolglot.toml"
        path.write_text(config, encoding="utf-8")
        options = ["--port", str(port), "--config", str(path), "--state-dir", state or str(Path(folder) / "state")]
        begun = time.perf_counter()
        with (Path(folder) / "log").open("wb") as log:
            command = [sys.executable, "-m", "toolglot", "serve", *options]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=make_environment(checkout))
        started = Started(port, process.pid, 0.0, 0.0)
        try:
            while not listens(port):
                if process.poll() is not None or time.perf_counter() - begun > PATIENCE:
                    raise RuntimeError((Path(folder) / "log").read_text())
                time.sleep(0.002)
            started.cpu, started.seconds = started.count_cpu(every=True), time.perf_counter() - begun
            yield started
        finally:
            process.terminate()
            process.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def fill_store(folder: Path, megabytes: int) -> None:
    """A store of that size, in records as a gateway writes them: half of them with bodies, sixty days back, so that the
    older half is due for deletion."""
    sys.path.insert(0, str(HERE / "src"))
    from toolglot.store.interface import ChainNode, RecordRow, SessionRow
    from toolglot.store.sqlite import SqliteStore

    path, size, now = folder / "toolglot.db", 40_000, time.time()
    count = megabytes * 1_000_000 // (size // 2 + 3_000)

    def make_record(number: int) -> RecordRow:
        when = now - 60 * 86_400 * (1 - number / count)
        data = json.dumps({"request_id": f"req_{number}", "note": "x" * 1_500}).encode()
        return RecordRow(
            id=f"rec_{int(when * 1e6):014x}{number:016x}",
            request_id=f"req_{number}",
            owner=b"",
            session=f"ses_{number // 20}",
            time=when,
            wire="openai_chat",
            model="text",
            upstream="up",
            status=200,
            outcome="ok",
            data=data,
            bodies={"request": os.urandom(size)} if number % 2 else {},
        )

    async def fill() -> None:
        store = SqliteStore(path, time.time)
        await store.open()
        for at in range(0, count, 500):
            records = [make_record(number) for number in range(at, min(at + 500, count))]
            times = {record.session: record.time for record in records}
            sessions = [
                SessionRow(
                    id=name, owner=b"", created=when, used=when, turns=0, model="text", upstream="up", client_session=""
                )
                for name, when in times.items()
            ]
            nodes = [
                ChainNode(key=os.urandom(20), session=name, chat="", message="", context=b"c" * 20, answer=b"a" * 20)
                for name in times
                for _ in range(20)
            ]
            await store.add_sessions(sessions, nodes)
            await store.add_records(records)
        await store.close()

    asyncio.run(fill())


# -- the figures -------------------------------------------------------------------------------------------------------

Rows = dict[str, dict[str, list[float]]]


@dataclass
class Table:
    """Figures of checkouts, by row and checkout."""

    unit: str
    rows: Rows = field(default_factory=dict)

    def add(self, row: str, checkout: str, value: float) -> None:
        self.rows.setdefault(row, {}).setdefault(checkout, []).append(value)

    def print(self, checkouts: list[str], choose: Callable[[list[float]], float] = min) -> None:
        print(f"| {self.unit} | {' | '.join(checkouts)} |\n|---|{'---:|' * len(checkouts)}")
        for row, values in self.rows.items():
            print(f"| {row} | {' | '.join(f'{choose(values[name]):.1f}' for name in checkouts)} |")
        print(flush=True)


def measure_commands(table: Table, name: str, checkout: Path) -> None:
    for row, arguments in COMMANDS.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = make_environment(checkout)
        done = subprocess.run([sys.executable, *arguments], capture_output=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr.decode()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        table.add(row, name, 1e3 * spent)


def measure_start(table: Table, name: str, checkout: Path, upstream_port: int, filled: Path | None) -> None:
    with gateway(checkout, upstream_port) as started:
        table.add("start to listening, empty store: CPU", name, 1e3 * started.cpu)
        table.add("start to listening, empty store: wall clock", name, 1e3 * started.seconds)
    if filled is None:
        return
    with tempfile.TemporaryDirectory(dir=filled.parent) as folder:
        copy = Path(folder) / "toolglot.db"
        subprocess.run(["cp", "--reflink=auto", str(filled / "toolglot.db"), str(copy)], check=True)
        with gateway(checkout, upstream_port, folder) as started:
            table.add("start to listening, large store: CPU", name, 1e3 * started.cpu)
            table.add("start to listening, large store: wall clock", name, 1e3 * started.seconds)


def list_requests() -> dict[str, dict[str, Any]]:
    """A small request, one whose answer announces a call that never comes, and one of a coding agent's size."""
    small = ask(tools=[declare("tool_0", 2)])
    announced = ask(tools=[declare("tool_0", 2)], text=ANNOUNCE)
    return {"small": small, "call announced": announced, "agent": take_turns(90_000, 27, 4)}


@dataclass
class Heart:
    """Asks a gateway whether it is well, again and again, and keeps the longest time that an answer took."""

    port: int
    worst: float = 0.0
    stopped: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def beating(self) -> Iterator[Heart]:
        thread = threading.Thread(target=self.beat)
        thread.start()
        try:
            yield self
        finally:
            self.stopped.set()
            thread.join()

    def beat(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        while not self.stopped.wait(BEAT_SECONDS):
            begun = time.perf_counter()
            get_health(connection)
            self.worst = max(self.worst, time.perf_counter() - begun)


def measure_answers(table: Table, name: str, checkout: Path, upstream_port: int) -> None:
    """The first answer right after the port opens over the tenth, of which the gateway's event loop spent so much."""
    for kind, request in list_requests().items():
        for mode in MODES:
            for streamed in (False, True):
                body = json.dumps({**request, "model": mode, "stream": streamed}).encode()
                label = f"{kind}, {mode}, {'streamed' if streamed else 'whole'}"
                with gateway(checkout, upstream_port) as started, Heart(started.port).beating() as heart:
                    taken, spent = [], []
                    for _ in range(10):
                        before, begun = started.count_cpu(), time.perf_counter()
                        post(started.port, body)
                        taken.append(time.perf_counter() - begun)
                        spent.append(started.count_cpu() - before)
                table.add(f"{label}: first over tenth", name, 1e3 * (taken[0] - min(taken[5:])))
                table.add(f"{label}: of it on the event loop (CPU)", name, 1e3 * (spent[0] - min(spent[5:])))
                table.add(f"{label}: longest wait of others", name, 1e3 * heart.worst)


def post(port: int, body: bytes) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    assert response.status == 200, answer
    connection.close()
    return answer


def read_prose(port: int) -> list[float]:
    """Seconds from the moment at which the upstream sent a chunk to its arrival here, for each chunk of a stream."""
    request = {**ask(tools=[declare("tool_0", 2)], text=PROSE), "model": "text", "stream": True}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("POST", "/v1/chat/completions", json.dumps(request), {"content-type": "application/json"})
    response = connection.getresponse()
    late = []
    for line in response:
        now = time.monotonic()
        _, found, rest = line.partition(b'"content":"at ' if b'"content":"at ' in line else b'"content": "at ')
        if found:
            late.append(now - float(rest.split(b" ", 1)[0]))
    return late


def work_beside(port: int, stopped: threading.Event) -> None:
    """Agents' turns, one after the other with a pause, in both modes."""
    turns = [json.dumps({**take_turns(200_000, 27, 20), "model": mode, "stream": True}).encode() for mode in MODES]
    at = 0
    while not stopped.wait(0.05):
        post(port, turns[at % len(turns)])
        at += 1


def find_percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def measure_chunks(table: Table, name: str, checkout: Path, upstream_port: int) -> None:
    """The time that the gateway adds to a chunk of prose, alone and beside the work of other clients."""
    with gateway(checkout, upstream_port) as started:
        time.sleep(3)
        direct = read_prose(upstream_port)
        alone = read_prose(started.port)
        stopped = threading.Event()
        beside = threading.Thread(target=work_beside, args=(started.port, stopped))
        beside.start()
        busy = read_prose(started.port)
        stopped.set()
        beside.join()
    for label, part in (("median", 0.5), ("p99", 0.99)):
        for row, late in (("no gateway", direct), ("alone", alone), ("beside other work", busy)):
            table.add(f"chunk of prose, {row}: {label}", name, 1e3 * find_percentile(late, part))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="FOLDER", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", type=int, default=1000, help="megabytes of the large store; 0: none")
    parts = ("commands", "start", "answers", "chunks")
    parser.add_argument("--only", nargs="*", choices=parts, default=list(parts))
    arguments = parser.parse_args()
    checkouts = {"now": HERE} if arguments.against is None else {"before": arguments.against.resolve(), "now": HERE}
    tables = {part: Table("CPU, ms" if part == "commands" else "ms") for part in parts}
    with tempfile.TemporaryDirectory() as folder, upstream() as port:
        filled = Path(folder) / "filled" if arguments.store and "start" in arguments.only else None
        if filled is not None:
            filled.mkdir()
            fill_store(filled, arguments.store)
        for _ in range(arguments.rounds):
            for name, checkout in checkouts.items():
                if "commands" in arguments.only:
                    measure_commands(tables["commands"], name, checkout)
                if "start" in arguments.only:
                    measure_start(tables["start"], name, checkout, port, filled)
                if "answers" in arguments.only:
                    measure_answers(tables["answers"], name, checkout, port)
                if "chunks" in arguments.only:
                    measure_chunks(tables["chunks"], name, checkout, port)
    for part in arguments.only:
        tables[part].print(list(checkouts))


if __name__ == "__main__":
    main()

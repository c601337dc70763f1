"""What records and the console cost: gateways that differ only in their store and console, in one run, in turns.

Each gateway answers the same loads: whole answers as fast as they go (CPU time of a request), and paced streams beside refused
requests, of which each ends with a record (latency of chunks). Figures are CPU time of the gateway's process, threads
included; a PostgreSQL server is another process and not counted. Compare the ratios to the gateway without a store and console,
which are medians over the rounds. Needs gcc, as ``bench/gateway.py`` does.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import sleep

from gateway import LONG, SHORT, Bench, Lane
from gateways import start_toolglot
from loads import Load

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

NO_STORE = "none"
SQLITE, BODIES, POSTGRES = "sqlite", "sqlite, all bodies", "postgresql"
WATCHED, WATCHED_BODIES = "sqlite, open console", "sqlite, all bodies, open console"
MIDDLE = 100
SHAPES = {
    "relay, 8 events": ("text", False, SHORT, 600),
    "relay, 100 events": ("text", False, MIDDLE, 300),
    "relay, 400 events": ("text", False, LONG, 150),
    "call as text, 100 events": ("hermes", True, MIDDLE, 200),
}
"""What the model answers, whether tools are offered, events of an answer, answers of a round."""
PACED = "relay, 400 events, paced"
PACED_STREAMS, PACED_RATE = 40, 5000
"""Streams at once, and the events of all of them in a second: each event is a network read and a write."""
RECORD_SECONDS = 1.2
"""Seconds within which records are written."""
BESIDE_SECONDS = 0.02
"""Seconds between the requests beside paced streams."""


def lane_of(store: str, kind: str, tools: bool) -> Lane:
    return Lane(f"{store}, {kind}", store, kind, tools, tools)


@contextmanager
def requests_beside(port: int) -> Iterator[None]:
    """Requests that are refused, one after the other, while something else is measured: each ends with a record."""
    ended = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not ended.wait(BESIDE_SECONDS):
            connection.request("POST", "/v1/chat/completions", b"{", {"content-type": "application/json"})
            connection.getresponse().read()
        connection.close()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def opened_console(port: int) -> Iterator[None]:
    """A page of the console that shows the list of sessions: it reads live updates, and the list after each."""
    ended = threading.Event()

    def read() -> None:
        live, other = (http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(2))
        live.request("GET", "/console/api/live")
        response = live.getresponse()
        while not ended.is_set() and (line := response.readline()):
            if line.startswith(b"event: sessions"):
                other.request("GET", "/console/api/sessions?limit=100")
                other.getresponse().read()
        live.close()
        other.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()


def pace_whole(bench: Bench, lane: Lane) -> None:
    """Paced streams from their requests to their records: the CPU time of each."""
    gateway = bench.gateways[lane.gateway]
    before = gateway.cpu_seconds()
    with bench.streams(PACED, lane, PACED_STREAMS, LONG, 1_000_000 // PACED_RATE):
        bench.load.say("go")
        bench.read_result(PACED, lane)
    sleep(RECORD_SECONDS)
    bench.note(PACED, lane, request=(gateway.cpu_seconds() - before) / PACED_STREAMS * 1e6)


def measure(bench: Bench, rounds: int, seconds: float) -> None:
    stores = list(bench.gateways)
    for store in stores:
        for name, (kind, tools, events, _) in SHAPES.items():
            bench.answers(f"warm {name}", lane_of(store, kind, tools), 30, 4, events)
    for number in range(rounds):
        turn = stores[number % len(stores) :] + stores[: number % len(stores)]
        for name, (kind, tools, events, answers) in SHAPES.items():
            for store in turn:
                bench.answers(name, lane_of(store, kind, tools), answers, 4, events)
        for store in turn:
            pace_whole(bench, lane_of(store, "text", False))
        for store in turn:
            with requests_beside(bench.gateways[store].port):
                bench.pace("paced", lane_of(store, "text", False), 20, 1000, seconds)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


def show(bench: Bench) -> None:
    stores = list(bench.gateways)
    print(
        "| CPU time of a request | "
        + " | ".join(f"{store}, us | ratio (rounds)" for store in stores[1:])
        + " | none, us |"
    )
    print("|---|" + "---:|---:|" * (len(stores) - 1) + "---:|")
    for name, kind, tools in (
        *((name, kind, tools) for name, (kind, tools, _, _) in SHAPES.items()),
        (PACED, "text", False),
    ):
        base = bench.figures[name, lane_of(NO_STORE, kind, tools).name, "request"]
        cells = []
        for store in stores[1:]:
            figures = bench.figures[name, lane_of(store, kind, tools).name, "request"]
            each = [one / other for one, other in zip(figures, base, strict=True)]
            cells.append(f"{median(figures):.0f} | {median(each):.3f} ({min(each):.2f} to {max(each):.2f})")
        print(f"| {name} | {' | '.join(cells)} | {median(base):.0f} |")
    print("\n| latency of a chunk, us | " + " | ".join(stores) + " |\n|---|" + "---:|" * len(stores))
    for metric in ("latency_p50", "latency_p99"):
        values = (median(bench.figures["paced", lane_of(store, "text", False).name, metric]) for store in stores)
        print(f"| {metric[8:]} | " + " | ".join(f"{value:.0f}" for value in values) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the paced streams")
    parser.add_argument("--without-postgres", action="store_true")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        load = Load(folder)
        stack.callback(load.stop)
        bodies = {"bodies": "all"}
        stores = {NO_STORE: {"url": "none"}, SQLITE: {}, WATCHED: {}, BODIES: bodies, WATCHED_BODIES: bodies}
        if not arguments.without_postgres:
            from support.postgres import PostgresServer

            server = PostgresServer({"fsync": "on", "full_page_writes": "on"})
            stack.callback(server.remove)
            server.start()
            stores[POSTGRES] = {"url": stack.enter_context(server.lend_database())}
        gateways = []
        for name, settings in stores.items():
            state = folder / name
            state.mkdir()
            path = state / "toolglot.toml"
            console = f"[console]\nenabled = {'false' if name == NO_STORE else 'true'}\n"
            path.write_text(console + "[store]\n" + "".join(f'{key} = "{value}"\n' for key, value in settings.items()))
            options = ("--mode", "text", "--dialect", "hermes", "--state-dir", str(state), "--config", str(path))
            gateway = start_toolglot(name, load.port, state, options)
            gateways.append(gateway)
            stop: Callable[[], None] = gateway.stop
            stack.callback(stop)
            if name in (WATCHED, WATCHED_BODIES):
                stack.enter_context(opened_console(gateway.port))
        bench = Bench(load, gateways)
        measure(bench, arguments.rounds, arguments.seconds)
        show(bench)


if __name__ == "__main__":
    main()

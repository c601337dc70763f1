"""What telemetry, records and the console cost: gateways that differ only in these settings, in one run, in turns.

One gateway has all of it off: no store, no console, no line in the log for a request. It is there twice: what the second
costs more than the first is the noise of the machine. The loads are paced streams, from the request to the record: so
many events a second, each a network read and a write, however fast the gateway is; and answers as fast as they go.

Rounds are short, all gateways answer in each, in changing order. A figure is the median of the ratios to the gateway
that has everything off in the same round, with quartiles and the interval that holds the true median with 95 %. CPU time is
that of the gateway's process, threads included; a PostgreSQL server is another process and not counted. Last comes
the latency of chunks, beside refused requests of which each ends with a record. Needs gcc, as ``bench/gateway.py`` does.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import median, quantiles
from time import sleep

from gateway import LONG, SHORT, Bench, Lane
from gateways import start_toolglot
from loads import Load

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

OFF, AGAIN = "off", "off, again"
SQLITE, BODIES, POSTGRES = "sqlite", "sqlite, all bodies", "postgresql"
BEFORE = "sqlite, before"
WATCHED, WATCHED_BODIES = "sqlite, open console", "sqlite, all bodies, open console"
NOTHING: Mapping[str, str] = {"url": "none"}
ALL_BODIES: Mapping[str, str] = {"bodies": "all"}
STORES: Mapping[str, Mapping[str, str]] = {
    OFF: NOTHING,
    AGAIN: NOTHING,
    SQLITE: {},
    BEFORE: {},
    WATCHED: {},
    BODIES: ALL_BODIES,
    WATCHED_BODIES: ALL_BODIES,
    POSTGRES: {},
}
MIDDLE = 100


@dataclass(frozen=True)
class Shape:
    """A load: what the model answers, whether tools are offered, events of an answer, answers of a round; with a
    ``rate`` the answers are streams at once, with so many events a second in all."""

    kind: str
    tools: bool
    events: int
    answers: int
    rate: int = 0


SHAPES: Mapping[str, Shape] = {
    "relayed stream, 400 events": Shape("text", False, LONG, 10, 5000),
    "call as text, stream of 100 events": Shape("hermes", True, MIDDLE, 40, 5000),
    "relayed, 400 events, as fast as they go": Shape("text", False, LONG, 60),
    "call as text, 400 events, as fast as they go": Shape("hermes", True, LONG, 60),
    "relayed, 8 events, short": Shape("text", False, SHORT, 300),
}
RECORD_SECONDS = 0.7
"""Seconds within which records are written."""
BESIDE_SECONDS = 0.02
"""Seconds between the requests beside paced streams."""
LATENCY_ROUNDS = 5
CONFIDENCE = 0.95


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


def measure_shape(bench: Bench, name: str, shape: Shape, lane: Lane) -> None:
    """Answers from their requests to their records: the CPU time of each."""
    gateway = bench.gateways[lane.gateway]
    before = gateway.cpu_seconds()
    if shape.rate:
        with bench.streams(name, lane, shape.answers, shape.events, 1_000_000 // shape.rate):
            bench.load.say("go")
            bench.read_result(name, lane)
    else:
        index, script = bench.load.script(lane.kind, shape.events, lane.translated)
        request = bench.load.request(gateway.port, lane.tools)
        bench.load.say(f"load {gateway.port} {request} {index} {shape.answers} 4 {' '.join(map(str, script.letters))}")
        bench.read_result(name, lane)
    sleep(RECORD_SECONDS)
    bench.note(name, lane, answer=(gateway.cpu_seconds() - before) / shape.answers * 1e6)


def measure(bench: Bench, rounds: int, latency_seconds: float) -> None:
    stores = list(bench.gateways)
    for store in stores:
        for name, shape in SHAPES.items():
            bench.answers(f"warm {name}", lane_of(store, shape.kind, shape.tools), 200, 4, shape.events)
    for number in range(rounds):
        turn = stores[number % len(stores) :] + stores[: number % len(stores)]
        for name, shape in SHAPES.items():
            for store in turn if number % 2 else reversed(turn):
                measure_shape(bench, name, shape, lane_of(store, shape.kind, shape.tools))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    for number in range(LATENCY_ROUNDS if latency_seconds else 0):
        for store in stores[number % len(stores) :] + stores[: number % len(stores)]:
            with requests_beside(bench.gateways[store].port):
                bench.pace("paced", lane_of(store, "text", False), 20, 1000, latency_seconds)


def find_interval(values: Sequence[float]) -> tuple[float, float]:
    """Two of the values between which the true median is, with ``CONFIDENCE``."""
    ordered, count = sorted(values), len(values)
    outside, at = 0.0, 0
    while at < count // 2 and outside + comb(count, at) / 2**count <= (1 - CONFIDENCE) / 2:
        outside += comb(count, at) / 2**count
        at += 1
    at = max(0, at - 1)
    return ordered[at], ordered[count - 1 - at]


def show(bench: Bench) -> None:
    stores = list(bench.gateways)
    print("| CPU time of an answer | gateway | off, us | more, us | ratio | median, 95 % | quartiles |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, shape in SHAPES.items():
        base = bench.figures[name, lane_of(OFF, shape.kind, shape.tools).name, "answer"]
        for store in stores[1:]:
            figures = bench.figures[name, lane_of(store, shape.kind, shape.tools).name, "answer"]
            each = [one / other for one, other in zip(figures, base, strict=True)]
            more = median(one - other for one, other in zip(figures, base, strict=True))
            low, high = find_interval(each)
            first, _, third = quantiles(each, n=4) if len(each) > 1 else (each[0],) * 3
            print(
                f"| {name} | {store} | {median(base):,.0f} | {more:+,.0f} | {median(each):.3f} | {low:.3f} to {high:.3f}"
                f" | {first:.3f} to {third:.3f} |"
            )
    if ("paced", lane_of(OFF, "text", False).name, "latency_p50") not in bench.figures:
        return
    print("\n| latency of a chunk, us | " + " | ".join(stores) + " |\n|---|" + "---:|" * len(stores))
    for metric in ("latency_p50", "latency_p99"):
        values = (median(bench.figures["paced", lane_of(store, "text", False).name, metric]) for store in stores)
        print(f"| {metric[8:]} | " + " | ".join(f"{value:.0f}" for value in values) + " |")


def write_settings(name: str, store: Mapping[str, str]) -> str:
    """The settings of a gateway, as TOML."""
    is_off = name in (OFF, AGAIN)
    lines = ["[console]", f"enabled = {'false' if is_off else 'true'}"]
    lines += ["[server]", 'log_level = "error"'] if is_off else []
    return "\n".join([*lines, "[store]", *(f'{key} = "{value}"' for key, value in store.items())]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=2.0, help="length of the streams for latency; 0: none")
    names = [name for name in STORES if name not in (OFF, AGAIN, BEFORE)]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="only these gateways")
    parser.add_argument("--checkout", type=Path, metavar="FOLDER", help="measure another checkout")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="SQLite from another checkout, in the same run")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        load = Load(folder)
        stack.callback(load.stop)
        gateways = []
        for name, settings in STORES.items():
            if (name in names and name not in arguments.only) or (name == BEFORE and arguments.against is None):
                continue
            if name == POSTGRES:
                from support.postgres import PostgresServer

                server = PostgresServer({"fsync": "on", "full_page_writes": "on"})
                stack.callback(server.remove)
                server.start()
                settings = {"url": stack.enter_context(server.lend_database())}
            state = folder / name
            state.mkdir()
            path = state / "toolglot.toml"
            path.write_text(write_settings(name, settings))
            options = ("--mode", "text", "--dialect", "hermes", "--state-dir", str(state), "--config", str(path))
            checkout = arguments.against if name == BEFORE else arguments.checkout
            gateway = start_toolglot(name, load.port, state, options, checkout=checkout)
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

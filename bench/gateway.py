"""What the gateway costs, next to no gateway, nginx and LiteLLM's proxy in the same run.

The upstream and the clients are one small C program (``load.c``); every gateway is a process of its own, and CPU is that of
the gateway's processes. Rounds are interleaved over all gateways and medians taken. The loads:

    paced       100 slow streams, 5,000 events a second in all: one network read for each event
    slow        the same with 25 streams and 250 events a second, which LiteLLM can follow
    flood       answers of about 400 events as fast as they go
    short       answers of 8 events, one after the other over one connection: time to the first chunk, CPU per request
    busy        the same from 16 clients at once: requests per second
    workers     the same from 64 clients, before one process and before two
    hold        1,000 open streams: memory
    disconnect  clients go away: how long until the upstream sees it

Machine noise is large: trust the ratios, not the microseconds.

    python bench/gateway.py [--quick] [--rounds N] [--roaming] [--only nginx litellm toolglot]
"""

from __future__ import annotations

import argparse
import platform
import resource
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import sleep

import loads
import report
from gateways import BEFORE, Gateway, start_all
from loads import SHORT, Load

BUILD = Path(__file__).resolve().parent.parent / "build"
ROUNDS = 5
LONG = 400
SECONDS = 2.0


@dataclass(frozen=True)
class Lane:
    """One way through one gateway: what the model answers, and whether the answer is turned into a call."""

    name: str
    gateway: str
    kind: str = "text"
    tools: bool = False
    translated: bool = False

    @property
    def slow(self) -> bool:
        return self.gateway == "litellm"


LANES = (
    Lane("direct", "direct"),
    Lane("nginx", "nginx"),
    Lane("LiteLLM", "litellm"),
    Lane("relay", "toolglot-hermes"),
    Lane("plain", "toolglot-hermes", tools=True),
    Lane("hermes", "toolglot-hermes", "hermes", True, True),
    Lane("qwen3_coder", "toolglot-qwen3_coder", "qwen3_coder", True, True),
    Lane("native", "toolglot-native", "native", True, True),
)
TWICE = Lane("hermes, 2 workers", "toolglot-workers", "hermes", True, True)
"""Two processes on one port: measured only against the lane with one."""
COMPARED = ("direct", "nginx", "LiteLLM", "relay", "hermes")
"""The lanes of the load that LiteLLM can follow."""
HELD = ("nginx", "LiteLLM", "hermes", "qwen3_coder", "native")
"""One lane for each gateway: memory that one lane has left free would be used again by the next."""
LEFT = ("nginx", "LiteLLM", "relay", "hermes", "native")
LANES_BEFORE = tuple(
    replace(lane, name=f"{lane.name}, before", gateway=BEFORE + lane.gateway) for lane in LANES if "-" in lane.gateway
)
"""The same lanes through another checkout."""
CHANGES = (("paced", "event"), ("flood", "event"), ("flood", "request"), ("short", "request"), ("busy", "request"))
"""Loads and figures, each CPU time, that are compared with another checkout."""


class Bench:
    """All gateways, running, and what was measured of them: figures by load, lane and metric."""

    def __init__(self, load: Load, gateways: Iterable[Gateway]) -> None:
        self.load = load
        self.gateways = {gateway.name: gateway for gateway in gateways}
        self.lanes = [lane for lane in (*LANES, *LANES_BEFORE) if lane.gateway in self.gateways]
        self.figures: dict[tuple[str, str, str], list[float]] = {}

    def note(self, load: str, lane: Lane, **figures: float) -> None:
        for metric, value in figures.items():
            self.figures.setdefault((load, lane.name, metric), []).append(value)

    def read_result(self, load: str, lane: Lane, patience: float = 60.0) -> dict[str, float]:
        result = self.load.read_result(patience)
        if not result:
            raise SystemExit(f"bench: {lane.name} did not finish the load {load!r}")
        if result["failed"]:
            print(f"**{lane.name}, {load}: {result['failed']} of {result['answers']} answers failed**", flush=True)
        return result

    # -- loads ---------------------------------------------------------------------------------------------------------

    def answers(self, load: str, lane: Lane, answers: int, concurrency: int, events: int) -> None:
        """So many whole answers, as fast as they go."""
        gateway = self.gateways[lane.gateway]
        index, script = self.load.script(lane.kind, events, lane.translated)
        request = self.load.request(gateway.port, lane.tools)
        before = gateway.cpu_seconds()
        text, arguments = script.letters
        self.load.say(f"load {gateway.port} {request} {index} {answers} {concurrency} {text} {arguments}")
        result = self.read_result(load, lane)
        cpu = gateway.cpu_seconds() - before
        self.note(
            load,
            lane,
            request=cpu / answers * 1e6,
            event=cpu / result["events"] * 1e6,
            rate=answers / result["seconds"],
            ttfb_p50=result["ttfb_p50"],
            ttfb_p99=result["ttfb_p99"],
        )

    @contextmanager
    def streams(self, load: str, lane: Lane, streams: int, events: int, gap: int = 0) -> Iterator[int]:
        """Open streams that wait; how many events each has left. They end when the caller is done with them."""
        gateway = self.gateways[lane.gateway]
        index, script = self.load.script(lane.kind, events, lane.translated)
        request = self.load.request(gateway.port, lane.tools)
        text, arguments = script.letters
        self.load.say(
            f"gated {gateway.port} {request} {index} {streams} {script.lead} {script.tail} {gap} {text} {arguments}"
        )
        self.read_result(load, lane)
        sleep(0.1)
        yield len(script.events) - script.lead - script.tail
        self.load.say("end")
        self.read_result(load, lane)

    def pace(self, load: str, lane: Lane, streams: int, rate: int, seconds: float) -> None:
        gateway = self.gateways[lane.gateway]
        with self.streams(load, lane, streams, int(rate * seconds / streams), 1_000_000 // rate) as each:
            before = gateway.cpu_seconds()
            self.load.say("go")
            result = self.read_result(load, lane)
            cpu = gateway.cpu_seconds() - before
        self.note(
            load,
            lane,
            event=cpu / (each * streams) * 1e6,
            latency_p50=result["latency_p50"],
            latency_p99=result["latency_p99"],
        )

    def hold(self, lane: Lane, streams: int) -> None:
        gateway = self.gateways[lane.gateway]
        before = gateway.resident_bytes()
        with self.streams("hold", lane, streams, LONG):
            held = gateway.resident_bytes()
        self.note("hold", lane, total=held / 1e6, stream=(held - before) / streams / 1e3, streams=streams)

    def disconnect(self, lane: Lane, streams: int) -> None:
        """Clients close streams that are idle, where it is hardest to notice."""
        gateway = self.gateways[lane.gateway]
        index, script = self.load.script(lane.kind, LONG, lane.translated)
        request = self.load.request(gateway.port, lane.tools)
        self.load.say(f"gated {gateway.port} {request} {index} {streams} {script.lead} {script.tail} 0 0 0")
        self.read_result("disconnect", lane)
        self.load.say("leave")
        sleep(2.0 if lane.slow else 1.2)
        self.load.say("left")
        result = self.load.read_result()
        self.note(
            "disconnect",
            lane,
            p50=result["latency_p50"] / 1e3,
            most=result["latency_max"] / 1e3,
            unseen=streams - result["noticed"],
        )

    # -- rounds --------------------------------------------------------------------------------------------------------

    def look_at_memory(self) -> None:
        """First of all, while nothing has grown yet; a few requests before, so that what is made once is made."""
        for gateway in self.gateways.values():
            gateway.idle_bytes = gateway.resident_bytes()
        for lane in self.lanes:
            self.answers("warm", lane, 4 if lane.slow else 50, 2, SHORT)
            self.answers("warm", lane, 2 if lane.slow else 8, 2, LONG)
        for lane in self.lanes:
            if lane.name in HELD:
                self.hold(lane, 50 if lane.slow else 1000)

    def run_round(self, seconds: float) -> None:
        for lane in self.lanes:
            if not lane.slow:
                self.pace("paced", lane, 100, 5000, seconds)
        for lane in self.lanes:
            if lane.name in COMPARED:
                self.pace("slow", lane, 25, 250, seconds)
        for lane in self.lanes:
            self.answers("flood", lane, 4 if lane.slow else 120, 4, LONG)
        for lane in self.lanes:
            self.answers("short", lane, 15 if lane.slow else 400, 1, SHORT)
        for lane in self.lanes:
            self.answers("busy", lane, 24 if lane.slow else 800, 16, SHORT)
        for lane in (*self.lanes, TWICE):
            if lane.gateway in self.gateways and lane.name in ("hermes", TWICE.name):
                self.answers("workers", lane, 1600, 64, SHORT)
        for lane in self.lanes:
            if lane.name in LEFT:
                self.disconnect(lane, 4 if lane.slow else 20)

    def show_changes(self) -> None:
        """CPU time per event or request over that of the other checkout: the median of the rounds' ratios."""
        print("\n| lane | " + " | ".join(f"{load}, {metric}" for load, metric in CHANGES) + " |")
        print("|---|" + "---:|" * len(CHANGES))
        for lane in self.lanes:
            if not any(other.name == f"{lane.name}, before" for other in self.lanes):
                continue
            ratios = []
            for load, metric in CHANGES:
                now = self.figures[load, lane.name, metric]
                before = self.figures[load, f"{lane.name}, before", metric]
                each = [one / other for one, other in zip(now, before, strict=True)]
                ratios.append(f"{median(each):.2f} ({min(each):.2f} to {max(each):.2f})")
            print(f"| {lane.name} | {' | '.join(ratios)} |")

    def result(self) -> report.Result:
        return report.Result(
            {key: median(values) for key, values in self.figures.items()},
            {key: (max(values) - min(values)) / (median(values) or 1) for key, values in self.figures.items()},
            [lane.name for lane in self.lanes],
            {lane.name: self.gateways[lane.gateway] for lane in self.lanes},
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, help=f"rounds to take the median of (default {ROUNDS}, quick 1)")
    names = ("nginx", "litellm", "toolglot")
    parser.add_argument("--roaming", action="store_true", help="let the scheduler choose the cores")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help="only these gateways")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="compare with another checkout, in the same run")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    if options.roaming:
        loads.CORES.clear()
    gateways: list[Gateway] = []
    with tempfile.TemporaryDirectory(prefix="toolglot-bench-") as name:
        load = Load(Path(name))
        try:
            for gateway in start_all(load.port, Path(name), BUILD, options.only, options.against):
                gateways.append(gateway)
            bench = Bench(load, gateways)
            bench.look_at_memory()
            for number in range(rounds):
                print(f"bench: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
                bench.run_round(SECONDS)
            cores = (
                "the scheduler chose the cores" if options.roaming else "the load had a core and each gateway another"
            )
            print(f"Python {platform.python_version()}, {rounds} interleaved round(s), medians; {cores}.\n")
            report.show(bench.result())
            if options.against:
                bench.show_changes()
        finally:
            for gateway in gateways:
                gateway.stop()
            load.stop()


if __name__ == "__main__":
    main()

"""Instructions of a streamed answer with telemetry, records and the console on, over everything off.

CPU time of a few percent cannot be told from the noise of a shared machine; instructions can. Each gateway runs under
valgrind's callgrind, which counts those of all threads in user space. What the kernel does is not counted. An answer is
counted from its request to its record. The upstream sends an event when a client has the one before, so each event is one
network read and one write of the gateway, however slow valgrind makes it. What an idle gateway executes in the same
time is subtracted.

Needs valgrind. Takes about five minutes.

    python bench/instructions.py [--streams 8] [--events 400] [--checkout FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from gateways import Gateway, free_port, launch
from loads import write_request, write_script
from store import NOTHING, OFF, SQLITE, write_settings

LANES = {
    "relayed": ("text", False),
    "prose, tools described": ("text", True),
    "call as text": ("hermes", True),
}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
STREAM_ID = re.compile(rb"stream-id=(\d+)")
LAST = b"\r\n0\r\n\r\n"
PATIENCE = 0.5
"""Seconds after which the next event is sent although the client got nothing: the gateway may hold a few characters."""
RECORD_SECONDS = 3.0
"""Seconds within which records are written."""
IDLE_SECONDS = 10.0
UPSTREAM = """
[[upstream]]
name = "bench"
base_url = "http://127.0.0.1:{port}/v1"
connect_timeout = 600
"""
TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


class LockStep:
    """An upstream and its clients, which let it send one event after the other."""

    def __init__(self) -> None:
        self.events: tuple[bytes, ...] = ()
        self.received: dict[bytes, asyncio.Event] = {}
        self.turn = asyncio.Lock()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.read(1 << 16)
        while (stream := STREAM_ID.search(request)) is None and request.startswith(b"POST") and not reader.at_eof():
            request += await reader.read(1 << 16)
        if stream is None:  # the gateway looks what its upstream is
            writer.close()
            return
        received = self.received[stream[1]]
        writer.write(HEAD)
        for event in self.events:
            async with self.turn:  # one event of all streams, so that each wakes the gateway up
                received.clear()
                writer.write(event)
                with suppress(TimeoutError):
                    await asyncio.wait_for(received.wait(), PATIENCE)
        writer.close()

    async def ask(self, port: int, number: int, tools: bool) -> None:
        stream = b"%08d" % number
        received = self.received[stream] = asyncio.Event()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(write_request(port, tools=tools).replace(b"stream-id=00000000", b"stream-id=" + stream))
        answer = b""
        while not answer.endswith(LAST):
            data = await reader.read(1 << 16)
            if not data:
                raise SystemExit(f"bench: the answer was cut: {answer[-300:]!r}")
            answer = (answer + data)[-1000:]
            received.set()
        writer.close()


class Counted:
    """A gateway under callgrind."""

    def __init__(self, name: str, upstream: int, folder: Path, settings: str, checkout: Path | None) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        config = self.folder / "toolglot.toml"
        config.write_text(settings + UPSTREAM.format(port=upstream))
        self.port, out = free_port(), self.folder / "counts"
        serve = (sys.executable, "-m", "toolglot", "serve")
        options = ("--port", str(self.port), "--mode", "text", "--dialect", "hermes", "--state-dir", str(self.folder))
        count = ("valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}")
        environment = {"PYTHONPATH": str(checkout.resolve() / "src")} if checkout else {}
        command = [*count, *serve, *options, "--config", str(config)]
        self.gateway: Gateway = launch(name, command, self.port, self.folder, environment, spread=True)
        assert self.gateway.process is not None
        self.pid = str(self.gateway.process.pid)
        self.dumps = 0
        self.control("--instr=on")

    def control(self, option: str) -> None:
        subprocess.run(["callgrind_control", option, self.pid], check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        self.control("--zero")

    def read(self) -> int:
        """Instructions since ``start``."""
        self.dumps += 1
        self.control("--dump")
        path = self.folder / f"counts.{self.dumps}"
        while not path.exists() or not (found := TOTALS.search(path.read_text())):
            sleep(0.1)
        return int(found[1])


async def count_idle(counted: Counted) -> float:
    """Instructions in a second without requests, when what is compiled after the start is compiled."""
    least = float("inf")
    while True:
        began = monotonic()
        counted.start()
        await asyncio.sleep(IDLE_SECONDS)
        now = counted.read() / (monotonic() - began)
        if now > 0.8 * least:
            return min(now, least)
        least = now


async def answer_all(steps: LockStep, counted: Counted, title: str, streams: int, events: int) -> None:
    """Answers at once, and the time for their records."""
    kind, tools = LANES[title]
    steps.events = write_script(kind, events, translated=True).events
    await asyncio.gather(*(steps.ask(counted.port, number, tools) for number in range(streams)))
    await asyncio.sleep(RECORD_SECONDS)


async def measure(options: argparse.Namespace, folder: Path) -> None:
    steps = LockStep()
    server = await asyncio.start_server(steps.answer, "127.0.0.1", 0)
    upstream = server.sockets[0].getsockname()[1]
    gateways: list[Counted] = []
    try:
        for name, store in ((OFF, NOTHING), (SQLITE, {})):
            settings = write_settings(name, store)
            gateways.append(await asyncio.to_thread(Counted, name, upstream, folder, settings, options.checkout))
        for one in gateways:
            for title in LANES:
                await answer_all(steps, one, title, options.streams, options.events)
        idle = {one: await count_idle(one) for one in gateways}
        print(f"{options.streams} answers of {options.events} events at once\n")
        print("| instructions of an answer | off | on | more | on over off |\n|---|---:|---:|---:|---:|")
        for title in LANES:
            figures = []
            for one in gateways:
                began = monotonic()
                one.start()
                await answer_all(steps, one, title, options.streams, options.events)
                figures.append((one.read() - idle[one] * (monotonic() - began)) / options.streams)
            off, on = figures
            print(f"| {title} | {off:,.0f} | {on:,.0f} | {on - off:,.0f} | {on / off:.3f} |", flush=True)
        print("| idle gateway, a second | " + " | ".join(f"{idle[one]:,.0f}" for one in gateways) + " | | |")
    finally:
        for one in gateways:
            one.gateway.stop()
        server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=8, help="answers at once, whose records are one batch")
    parser.add_argument("--events", type=int, default=400)
    parser.add_argument("--checkout", type=Path, metavar="FOLDER", help="measure another checkout")
    options = parser.parse_args()
    if shutil.which("callgrind_control") is None:
        raise SystemExit("bench: valgrind is not installed (apt-get install valgrind)")
    with tempfile.TemporaryDirectory(prefix="toolglot-bench-") as name:
        asyncio.run(measure(options, Path(name)))


if __name__ == "__main__":
    main()

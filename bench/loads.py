"""What the gateways are asked and what the upstream answers, and the program that does both (``load.c``).

A script is one answer: its server-sent events, and beside each the count of letters at which a client has it (see ``load.c``).
The same answer has two such columns: one for gateways that pass the text on, one for those that turn it into a call.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reader import ARGUMENTS, CALLS, CODE, INTRO, PROSE, TOOLS, fill

CHUNK = 4
TEXT, ARGS, SKIPPED = 0, 1, 255
SHORT = 8
PATIENCE = 60.0
PLAIN = CODE.replace("\\", "")  # letters behind a backslash are not counted, and escaping differs between dialects


@dataclass(frozen=True)
class Script:
    """One answer. ``lead`` events come before the steady part of it, ``tail`` events after."""

    events: tuple[bytes, ...]
    seen: tuple[tuple[int, int], ...]
    letters: tuple[int, int]
    lead: int
    tail: int

    def pack(self) -> bytes:
        parts = [struct.pack("=I", len(self.events))]
        for event, (channel, reached) in zip(self.events, self.seen, strict=True):
            parts += [struct.pack("=III", len(event), channel, reached), event]
        return b"".join(parts)


def letters(text: str) -> list[int]:
    """How many letters and digits stand before each position, not counting those behind a backslash."""
    counts, skip = [0], False
    for character in text:
        counts.append(counts[-1] + (character.isalnum() and not skip))
        skip = character == "\\" and not skip
    return counts


def frame(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    received = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return frame(json.dumps(received, separators=(",", ":")))


def cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def assemble(
    pieces: Iterable[tuple[bytes, tuple[int, int]]], total: tuple[int, int], lead: int, tail: int, finish: str
) -> Script:
    """An answer of these events, between the one that opens it and the two that end it."""
    nothing = (SKIPPED, 0)
    rows = [
        (event({"role": "assistant", "content": ""}), nothing),
        *_drop_silent(pieces),
        (event({}, finish), nothing),
        (frame("[DONE]"), nothing),
    ]
    return Script(tuple(row[0] for row in rows), tuple(row[1] for row in rows), total, lead + 1, tail + 2)


def _drop_silent(pieces: Iterable[tuple[bytes, tuple[int, int]]]) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """No client can tell when an event without any letter has come."""
    before = (SKIPPED, 0)
    for data, seen in pieces:
        yield data, (SKIPPED, 0) if seen == before or not seen[1] else seen
        before = before if seen[0] == SKIPPED else seen


def write_text(size: int, chunk: int = CHUNK) -> Script:
    """Prose of about ``size`` characters."""
    text = fill(PROSE, size)
    counts = letters(text)
    ends = [min(at + chunk, size) for at in range(0, size, chunk)]
    pieces = [
        (event({"content": piece}), (TEXT, counts[end])) for piece, end in zip(cut(text, chunk), ends, strict=True)
    ]
    return assemble(pieces, (counts[-1], 0), 4, 1, "stop")


def write_call(dialect: str, size: int, chunk: int = CHUNK, *, translated: bool) -> Script:
    """A sentence and a call that writes a file of ``size`` characters, in a dialect."""
    before, after, encode = CALLS[dialect]
    content = encode(fill(PLAIN, size).strip("\n"))
    start = len(INTRO + before)
    text = INTRO + before + content + after
    counts, received = letters(text), letters(ARGUMENTS[0])[-1]
    inside = letters(content)

    def seen(end: int) -> tuple[int, int]:
        if not translated or end <= len(INTRO):
            return TEXT, counts[end]
        if start < end <= start + len(content):
            return ARGS, received + inside[end - start]
        return SKIPPED, 0

    ends = [min(at + chunk, len(text)) for at in range(0, len(text), chunk)]
    pieces = [(event({"content": piece}), seen(end)) for piece, end in zip(cut(text, chunk), ends, strict=True)]
    total = (letters(INTRO)[-1], received + inside[-1]) if translated else (counts[-1], 0)
    return assemble(pieces, total, start // chunk + 4, len(after) // chunk + 4, "stop")


def write_native(size: int, chunk: int = CHUNK) -> Script:
    """The same call, made by an upstream that knows tools itself."""
    text = ARGUMENTS[0] + json.dumps(fill(PLAIN, size))[1:-1] + ARGUMENTS[1]
    counts = letters(text)
    function = {"name": "write_file", "arguments": ""}
    opening = event({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
    pieces = [(opening, (SKIPPED, 0))]
    for at, piece in enumerate(cut(text, chunk)):
        delta = {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        pieces.append((event(delta), (ARGS, counts[min((at + 1) * chunk, len(text))])))
    return assemble(pieces, (0, counts[-1]), 16, 4, "tool_calls")


def write_script(kind: str, events: int, *, translated: bool) -> Script:
    """An answer of a kind with at least so many events; the shortest is a whole answer in eight."""
    short = events <= SHORT
    size = 40 if short else events * CHUNK
    if kind == "text":
        return write_text(size, 8 if short else CHUNK)
    if kind == "native":
        return write_native(size, 24 if short else CHUNK)
    return write_call(kind, size, 55 if short else CHUNK, translated=translated)


def write_request(port: int, *, tools: bool) -> bytes:
    body: dict[str, Any] = {
        "model": "bench",
        "stream": True,
        "messages": [
            {"role": "system", "content": "You are a careful programmer."},
            {"role": "user", "content": "Please write the report module. stream-id=00000000"},
        ],
    }
    if tools:
        body["tools"] = TOOLS
    encoded = json.dumps(body).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer none\r\nContent-Length: {len(encoded)}\r\n\r\n"
    )
    return head.encode() + encoded


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
"""Where processes may be kept; empty if they may not."""


def stay_on_core(number: int) -> None:
    """Keep this process on one core. The load has the first and a gateway the second: to wake a process up costs half as
    much on the same core as on another, and otherwise the scheduler would decide which of the two is measured."""
    if CORES:
        os.sched_setaffinity(0, {CORES[number % len(CORES)]})


class Load:
    """The running program: an upstream that waits for requests, and clients that make them."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise SystemExit("bench: a C compiler (gcc) is needed for the load generator and was not found")
        self.folder = folder
        program, source = folder / "load", Path(__file__).with_name("load.c")
        subprocess.run([compiler, "-O2", "-o", program, source], check=True)
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, preexec_fn=partial(stay_on_core, 0)
        )
        self.scripts: dict[tuple[str, int, bool], tuple[int, Script]] = {}
        self.port: int = self.read_result()["port"]

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")

    def read_result(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next thing it tells; nothing if it takes too long."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], patience)
        if not ready:
            return {}
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: the load generator ended")
        payload: dict[str, Any] = json.loads(line)
        return payload

    def script(self, kind: str, events: int, translated: bool) -> tuple[int, Script]:
        key = (kind, events, translated)
        if key not in self.scripts:
            index, script = len(self.scripts), write_script(kind, events, translated=translated)
            path = self.folder / f"script{index}"
            path.write_bytes(script.pack())
            self.say(f"script {index} {path}")
            self.scripts[key] = index, script
        return self.scripts[key]

    def request(self, port: int, tools: bool) -> Path:
        path = self.folder / f"request-{port}-{tools}"
        if not path.exists():
            path.write_bytes(write_request(port, tools=tools))
        return path

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

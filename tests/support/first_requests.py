"""Starts a gateway in a fresh process and sends it its first requests; prints what the event loop's thread compiles and
imports once the port is open, a line each."""

from __future__ import annotations

import asyncio
import json
import re._compiler as compiler  # type: ignore[import-not-found]
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from toolglot.config import make_settings
from toolglot.config.settings import ModelSettings
from toolglot.server.lifecycle import listening, tune_memory, warm_up

CALL = '<tool_call>\n{"name": "tool_0", "arguments": {"path": "a.py"}}\n</tool_call>'
NATIVE = {"id": "c1", "type": "function", "function": {"name": "tool_0", "arguments": '{"path": "a.py"}'}}
WORDS = "I read the file now:\n\n"
REPEATED = 10
"""How often each request is sent: after some answers with the same tools, marks are compiled for these."""


def make_tools(count: int) -> list[dict[str, Any]]:
    kinds = ({"type": "string"}, {"type": "integer"}, {"type": "array", "items": {"type": "string"}})
    names = ("path", "limit", "items")
    schema = {"type": "object", "properties": dict(zip(names, kinds, strict=True)), "required": ["path"]}
    return [
        {"type": "function", "function": {"name": f"tool_{at}", "description": "What for. " * 30, "parameters": schema}}
        for at in range(count)
    ]


def list_requests() -> Iterator[dict[str, Any]]:
    for model in ("text", "native"):
        for streamed in (False, True):
            for tools in (1, 27):
                messages = [{"role": "user", "content": "Read a.py."}]
                yield {"model": model, "stream": streamed, "messages": messages, "tools": make_tools(tools)}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The upstream: words and a call, native if the request has tools."""
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # the gateway has closed the connection
            return
        size = next((int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        request = json.loads(await reader.readexactly(size) or b"{}")
        message: dict[str, Any] = {"role": "assistant", "content": WORDS if "tools" in request else WORDS + CALL}
        if "tools" in request:
            message["tool_calls"] = [NATIVE]
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": message}
        body = json.dumps({"choices": [choice]}).encode()
        if request.get("stream"):
            calls = [{"tool_calls": [{"index": 0, **NATIVE}]}] if "tools" in request else []
            deltas = [*({"content": char} for char in message["content"]), *calls]
            ends = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
            events = [{"choices": [one]} for one in (*ends, {"index": 0, "delta": {}, "finish_reason": "stop"})]
            body = b"".join(b"data: %b\n\n" % json.dumps(one).encode() for one in events) + b"data: [DONE]\n\n"
        kind = b"text/event-stream" if request.get("stream") else b"application/json"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(body), body))


async def ask(port: int, request: dict[str, Any]) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps(request).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    reply = await reader.read()
    writer.close()
    return reply


def watch() -> list[str]:
    """A list to which everything is added that this thread compiles from now on."""
    seen: list[str] = []
    compile_pattern = compiler.compile

    def note(pattern: Any, flags: int = 0) -> Any:
        if threading.current_thread() is threading.main_thread():
            seen.append(f"compiled {pattern!r:.80}")
        return compile_pattern(pattern, flags)

    compiler.compile = note
    return seen


async def main() -> None:
    upstream = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{upstream.sockets[0].getsockname()[1]}/v1"
    with tempfile.TemporaryDirectory() as folder:
        settings = make_settings(base_url=address, port=0, state_dir=folder, start_checks=False)
        models = (
            ModelSettings(name="text", mode="text", dialect="hermes"),
            ModelSettings(name="native", mode="native"),
        )
        settings = replace(settings, models=models)
        warm_up(settings)
        async with listening(settings) as own:
            tune_memory()
            (await asyncio.open_connection("127.0.0.1", int(own.rpartition(":")[2])))[1].close()  # as clients do
            seen, loaded = watch(), set(sys.modules)
            for request in list_requests():
                for _ in range(REPEATED):
                    reply = await ask(int(own.rpartition(":")[2]), request)
                    assert b'"tool_calls"' in reply, reply
            print(*seen, *(f"imported {name}" for name in sorted(set(sys.modules) - loaded)), sep="\n")
    upstream.close()


if __name__ == "__main__":
    asyncio.run(main())

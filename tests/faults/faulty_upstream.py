"""An upstream on a raw socket that sends the bytes of a fault. The model name of the request is the cell."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress

from faults.network_faults import End, Step

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
IN_PATH = re.compile(rb"/models/([^:/ ]+)[:% ]")
DRIP_SECONDS = 0.05
PATIENCE = 60.0
TASK_NAME = "faulty upstream"

Script = Callable[[str], Sequence[Step]]
"""The steps for a model."""


@asynccontextmanager
async def faulty_upstream(script: Script) -> AsyncIterator[int]:
    """Serve on a free port while the context lasts; the port."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name(TASK_NAME)
        tasks.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.CancelledError):
                while await _serve(reader, writer, script):
                    pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, limit=1 << 22)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, script: Script) -> bool:
    head = await reader.readuntil(b"\r\n\r\n")
    found = LENGTH.search(head)
    body = await reader.readexactly(int(found[1])) if found else b""
    in_path = IN_PATH.search(head.partition(b"\r\n")[0])
    model = in_path[1].decode() if in_path else json.loads(body)["model"]
    for step in script(model):
        if isinstance(step, float):
            await asyncio.sleep(step)
        elif isinstance(step, bytes):
            writer.write(step)
            await writer.drain()
            await asyncio.sleep(0)
        else:
            await _end(step, reader, writer)
            return False
    return True


async def _end(end: End, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    match end:
        case End.RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        case End.HALF:
            writer.write_eof()
            await asyncio.wait_for(reader.read(), PATIENCE)
        case End.HANG:
            await asyncio.wait_for(reader.read(), PATIENCE)
        case End.DRIP:
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(DRIP_SECONDS)
        case End.FLOOD:
            while True:
                writer.write(b"X-Header: " + b"x" * 1000 + b"\r\n")
                await writer.drain()
        case End.WORDS_BETWEEN:
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 20)
                await writer.drain()

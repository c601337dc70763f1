"""A gateway as a process that reports memory, descriptors and tasks for each line on its standard input."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import uvloop
from faults.cells import settle

from toolglot.core import provenance
from toolglot.gateway import routing
from toolglot.gateway.telemetry.log import log_to
from toolglot.prompting import call_writer, mark_escaping
from toolglot.server.lifecycle import listening, tune_memory

KEPT_BYTES = 1 << 20
"""Answers for clients that refer to them, and texts with call markup, are kept up to a size: here to one that is reached
at once, so that what is never let go shows."""

KNOWN_TEXTS = 1 << 8
"""The same for texts that are only known again."""

CALL_CHARACTERS = 1 << 17
"""The same for written calls."""


def count() -> dict[str, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory": pages * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "tasks": len(asyncio.all_tasks()),
    }


async def main(port: int, closed: int, nowhere: TextIO) -> None:
    log_to(nowhere)
    loop = asyncio.get_running_loop()
    asked = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(asked), sys.stdin)
    settings = settle(port, closed)
    provenance._NORMAL_FORMS.max_characters = KEPT_BYTES
    call_writer._CALL_CACHE.max_characters = CALL_CHARACTERS
    for module, name in ((provenance, "MAX_UNMARKED"), (mark_escaping, "_MOST_TEXTS")):
        setattr(module, name, KNOWN_TEXTS)
    vars(routing)["MEMORY_BYTES"] = KEPT_BYTES  # for what is kept of conversations
    settings = replace(settings, limits=replace(settings.limits, kept_bytes=KEPT_BYTES))
    async with listening(settings) as address:
        tune_memory()
        print(address, flush=True)
        while await asked.readline():
            print(json.dumps(count()), flush=True)


with open(os.devnull, "w") as nowhere:
    # as in `toolglot serve`: asyncio's own loop reads into a new buffer of 256 KB each time, which leaves holes in the heap
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), nowhere))

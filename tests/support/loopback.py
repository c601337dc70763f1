"""The simulated model and a gateway on loopback ports, for tests that block: they run in another thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from toolglot.config import load
from toolglot.server.lifecycle import listening
from toolglot.sim.options import SimOptions
from toolglot.sim.script import parse_script
from toolglot.sim.server import REQUEST_LOG, make_app, running
from toolglot.sim.simulation import RecordedRequest, RequestLog

Some = TypeVar("Some")
PATIENCE = 10.0

DIALECTS = ("hermes", "qwen3_coder", "roo_xml", "fenced_tool_flat", "glm45")
"""What the model writes in the tests with real clients; ``fenced_tool_flat`` is the one with JSON in a tool_code fence."""

NATIVE = "native"

MANIFEST = '{\n  "name": "shop",\n  "dependencies": {"express": "^4.18.0", "axios": "^1.4.0"}\n}\n'
QUESTION = "What's in the package.json file?"

NOTES = (
    "# Dependencies\n\n"
    "* express \"^4.18.0\" & axios '^1.4.0'\n"
    "\t<b>tabs</b>, \\backslashes\\, %s {braces} [brackets] </done>\n"
    "* naïve café ☕ 日本語 &lt;not decoded&gt; ${HOME} `code`\n"
    '  {"json": [1, 2.50, null, "\\n"]}\n\n'
)
"""A text that is easily damaged on its way: quotes, escapes, tags, entities, and a blank line at the end."""

FAREWELL = "Both dependencies are written down."


def ask_for_notes(task: str) -> str:
    """The question that ``script_notes`` has answers for."""
    return f"Note the dependencies of package.json in notes.txt. This is task {task}."


def script_notes(tasks: Sequence[str]) -> dict[str, Any]:
    """Answers for each task: package.json is read, notes.txt is written, a text ends it."""
    calls = (
        ("read", {"filePath": "package.json"}),
        ("write", {"filePath": "notes.txt", "content": NOTES}),
    )
    return {"answer": [answer for task in tasks for answer in script_task(task, calls, FAREWELL)]}


def script_task(task: str, calls: Sequence[tuple[str, dict[str, str]]], end: str) -> list[dict[str, Any]]:
    """An answer for every call and a text that ends the task, each given once."""
    once = {"when": rf"This is task {task}\.", "tools": True, "times": 1}
    answers = [
        once | {"text": f"Now I {name}.", "calls": [{"name": name, "arguments": arguments}]}
        for name, arguments in calls
    ]
    return [*answers, once | {"text": end}]


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Some]) -> Some:
        future: Future[Some] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(PATIENCE)

    @contextmanager
    def entered(self, context: AbstractAsyncContextManager[Some]) -> Iterator[Some]:
        """An asynchronous context, entered and left on the loop."""
        value = self.run(_enter(context))
        try:
            yield value
        finally:
            self.run(_leave(context))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


async def _enter(context: AbstractAsyncContextManager[Some]) -> Some:
    return await context.__aenter__()


async def _leave(context: AbstractAsyncContextManager[Any]) -> None:
    await context.__aexit__(None, None, None)


@contextmanager
def running_loop() -> Iterator[Loop]:
    loop = Loop()
    try:
        yield loop
    finally:
        loop.stop()


class Sim:
    """A simulated model that listens, and what it was asked."""

    def __init__(self, address: str, record: RequestLog) -> None:
        self.address = address
        self.base_url = f"{address}/v1"
        self._record = record

    @property
    def total(self) -> int:
        return self._record.total

    def since(self, total: int) -> list[RecordedRequest]:
        """The requests that came after that many."""
        return list(self._record.requests)[total - self._record.total :] if self._record.total > total else []


@contextmanager
def running_sim(loop: Loop, script: dict[str, Any] | None = None, **options: Any) -> Iterator[Sim]:
    app = make_app(SimOptions(script=parse_script(script) if script else (), **options))
    with loop.entered(running(app)) as address:
        yield Sim(address, app[REQUEST_LOG])


@contextmanager
def running_gateway(loop: Loop, sim: Sim, path: Path | None = None, **arguments: Any) -> Iterator[str]:
    """A gateway before the simulated model; its base URL. Settings are given as on the command line, or in a file."""
    given = {"port": 0, "state_dir": "none", "recovery_retries": 0, **arguments} | (
        {} if path else {"base_url": sim.base_url}
    )
    with loop.entered(listening(load(given, {}, path))) as address:
        yield f"{address}/v1"

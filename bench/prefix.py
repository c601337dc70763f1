"""How much of a prompt an upstream can take from its cache: a session of Claude Code with 20 turns through the gateway.

    python bench/prefix.py                 the session, then a short one with the embedded model
    python bench/prefix.py --replay        without the client: requests of the same shape
    python bench/prefix.py --turns 40      a longer session

The gateway describes the tools as text (hermes) to an upstream that only records and answers from a script. The common
prefix of two consecutive requests is given as a share of the shorter one, with ``[prompt] stable`` on and off. The
client is real if `make test-clients` has installed it. The pinned version sends the changing part of its attribution
line (``cch=``) to its vendor only, earlier ones to every address; the bench adds it, as they do.

The embedded model reports how many tokens of a prompt it has processed and how many it took from its cache.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from agents.agents import CLAUDE
from agents.conftest import bare_environment
from packages import KEY, SMALL, run_model

from toolglot.config import Secret, Settings, Upstream, load
from toolglot.core.errors import UsageError
from toolglot.gateway.sessions.conversation_state import count_common
from toolglot.server.lifecycle import listening
from toolglot.sim import running

MAX_BODY = 1 << 28
DONE = "All done."
ATTRIBUTION = "x-anthropic-billing-header: cc_version=2.1.177.01c; cc_entrypoint=cli; cch={};"


class Tap:
    """Forwards requests, which ``edit`` may change, and keeps them with the answers."""

    def __init__(self, target: str, edit: Callable[[Any], Any] = lambda body: body) -> None:
        self.target = target
        self.edit = edit
        self.answers: list[bytes] = []
        self.app = web.Application(client_max_size=MAX_BODY)
        self.app.router.add_route("*", "/{path:.*}", self.forward)

    async def forward(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        data = json.dumps(self.edit(json.loads(data))).encode() if data else data
        headers = {
            name: text for name, text in request.headers.items() if name.lower() not in ("host", "content-length")
        }
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, self.target + request.path_qs, data=data, headers=headers) as answer,
        ):
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            received = []
            async for chunk in answer.content.iter_any():
                received.append(chunk)
                await response.write(chunk)
            self.answers.append(b"".join(received))
            return response


class Recording:
    """An upstream of the chat wire that keeps all requests. Its model calls tools until it has answered so often."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.bodies: list[bytes] = []
        self.app = web.Application(client_max_size=MAX_BODY)
        self.app.router.add_post("/v1/chat/completions", self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.bodies.append(body)
        number = len(self.bodies)
        text = DONE if number % self.answers == 0 else write_call(number)
        response = web.StreamResponse()
        response.content_type = "text/event-stream"
        await response.prepare(request)
        for choice in (
            {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None},
            {"index": 0, "delta": {}, "finish_reason": "stop"},
        ):
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


def write_call(number: int) -> str:
    """Commands, files written, and files read again."""
    path = f"notes-{number // 3}.txt"
    calls = (
        ("Bash", {"command": f"seq 1 {number * 20}", "description": "Count"}),
        ("Write", {"file_path": f"notes-{number // 3 + 1}.txt", "content": "A line of notes.\n" * 40}),
        ("Read", {"file_path": path}),
    )
    name, arguments = calls[number % 3]
    return f"Step {number}.\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class Attribution:
    """Adds the part of the attribution line that changes with every request."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, body: Any) -> Any:
        self.requests += 1
        nonce = sha256(str(self.requests).encode()).hexdigest()[:5]
        first = body["system"][0]
        if first["text"].startswith("x-anthropic-billing-header:") and "cch=" not in first["text"]:
            first["text"] += f" cch={nonce};"
        return body


# -- the session -------------------------------------------------------------------------------------------------------


async def run_claude(address: str, parts: int) -> None:
    """The real client: one task, then further ones in the same session."""
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        home.mkdir()
        project.mkdir()
        variables = {name: value.format(address=address, model="m") for name, value in CLAUDE.variables.items()}
        for part in range(parts):
            again = ["--continue"] if part else []
            process = await asyncio.create_subprocess_exec(
                CLAUDE.program,
                *CLAUDE.arguments,
                *again,
                f"Do part {part + 1} of the task.",
                cwd=project,
                env={**bare_environment(home), **variables},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await asyncio.wait_for(process.communicate(), 180)
            if process.returncode:
                raise SystemExit(output[-2000:].decode("utf-8", "replace"))


async def replay(address: str, parts: int) -> None:
    """Requests of the same shape: blocks of a system prompt, reminders, a growing history."""
    tool = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    names = ("Bash", "Write", "Read")
    request: dict[str, Any] = {
        "model": "m",
        "messages": [],
        "system": [
            {"type": "text", "text": ATTRIBUTION.partition(" cch")[0]},
            {"type": "text", "text": "You are an agent working with the user. Follow the rules.\n" * 400},
        ],
        "tools": [{"name": name, "description": "A tool. " * 200, "input_schema": tool} for name in names],
        "max_tokens": 1000,
    }
    messages = request["messages"]
    async with aiohttp.ClientSession() as session:
        for part in range(parts):
            reminder = {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"}
            messages.append({"role": "user", "content": [reminder, {"type": "text", "text": f"Do part {part}."}]})
            while True:
                async with session.post(f"{address}/v1/messages", json=request) as response:
                    answer = await response.json()
                messages.append({"role": "assistant", "content": answer["content"]})
                calls = [block for block in answer["content"] if block["type"] == "tool_use"]
                results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "1\n" * 300} for call in calls]
                if not results:
                    break
                messages.append({"role": "user", "content": results})


def make_settings(address: str, stable: bool, **changes: Any) -> Settings:
    given = {"port": 0, "state_dir": "none", "base_url": f"{address}/v1", "prompt_stable": str(stable), **changes}
    return load(given, {})


async def record_session(turns: int, stable: bool, real: bool) -> list[bytes]:
    """The requests that reach the upstream."""
    parts = 2
    upstream = Recording(turns // parts)
    async with running(upstream.app) as address:
        settings = make_settings(address, stable, mode="text", dialect="hermes")
        async with listening(settings) as own, running(Tap(own, Attribution()).app) as tapped:
            await (run_claude if real else replay)(tapped, parts)
    return upstream.bodies


def describe_session(name: str, bodies: list[bytes]) -> str:
    shares = [100 * count_common(one, other) / min(len(one), len(other)) for one, other in pairwise(bodies)]
    figures = f"{min(shares):.1f} % | {statistics.median(shares):.1f} %"
    return f"| {name} | {len(bodies)} | {len(bodies[0]) >> 10} to {len(bodies[-1]) >> 10} KiB | {figures} |"


# -- the embedded model ------------------------------------------------------------------------------------------------

GUIDE = "You help with files and with the weather. Answer in one short sentence."
STEPS = (
    ("What is the weather in Oslo?", "get_weather", {"city": "Oslo"}, "12 degrees, light rain", "It rains a little."),
    ("And in Lisbon?", "get_weather", {"city": "Lisbon"}, "24 degrees, sunny", "It is sunny in Lisbon."),
    ("Read the file notes.txt.", "read_file", {"path": "notes.txt"}, "buy milk", "It says: buy milk."),
)


def make_tool(name: str, description: str, key: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]}
    return {"name": name, "description": description, "input_schema": schema}


def make_requests() -> Iterator[dict[str, Any]]:
    """A fixed conversation; each request has another attribution line."""
    tools = [
        make_tool("get_weather", "Get the weather in a city.", "city"),
        make_tool("read_file", "Read a file.", "path"),
    ]
    messages: list[dict[str, Any]] = []
    for number, (question, name, arguments, result, answer) in enumerate(STEPS):
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
        shown = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
        for asked, answered in ((question, [call]), ([shown], answer)):
            messages.append({"role": "user", "content": asked})
            nonce = sha256(str(len(messages)).encode()).hexdigest()[:5]
            system = f"{ATTRIBUTION.format(nonce)}\n{GUIDE}"
            yield {"model": SMALL, "max_tokens": 20, "system": system, "messages": messages, "tools": tools}
            messages.append({"role": "assistant", "content": answered})


async def ask_embedded(stable: bool) -> tuple[int, int, int]:
    """A short session with the model inside the gateway. Returns requests, tokens processed and tokens from the cache."""
    with run_model() as local:
        tap = Tap(local.base_url.removesuffix("/v1"))
        async with running(tap.app) as address:
            upstream = Upstream(name="default", base_url=f"{address}/v1", api_key=Secret(KEY), coached=True)
            settings = make_settings(address, stable).answered_by(upstream)
            async with listening(settings) as own, aiohttp.ClientSession() as session:
                for body in make_requests():
                    async with session.post(f"{own}/v1/messages", json=body) as response:
                        await response.read()
    timings = [json.loads(answer)["timings"] for answer in tap.answers if b'"timings"' in answer]
    return len(timings), sum(one["prompt_n"] for one in timings), sum(one.get("cache_n", 0) for one in timings)


async def run(options: argparse.Namespace) -> None:
    real = not options.replay and CLAUDE.program.exists()
    client = "Claude Code" if real else "replayed"
    print(f"| {client}, tools as text | requests | size | common prefix, least | median |")
    print("|---|---:|---:|---:|---:|")
    for stable in (True, False):
        bodies = await record_session(options.turns, stable, real)
        print(describe_session("stable" if stable else "off", bodies), flush=True)
    print("\n| embedded SmolLM2-135M | requests | tokens processed | tokens from the cache |\n|---|---:|---:|---:|")
    for stable in (True, False):
        try:
            requests, processed, cached = await ask_embedded(stable)
        except UsageError as absent:
            print(absent.message.splitlines()[0])
            break
        print(f"| {'stable' if stable else 'off'} | {requests} | {processed:,} | {cached:,} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replay", action="store_true", help="do not start the client")
    parser.add_argument("--turns", type=int, default=20, help="requests of the session")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

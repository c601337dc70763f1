"""Real processes that share a store: two gateways with PostgreSQL, and the workers of one with either engine."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.replicas import TOOL, Client, write_profile
from support.stores import Place
from support.thinking_upstream import ANSWER, Thinker

from toolglot.config import KeyHash
from toolglot.sim import running
from toolglot.store.interface import KeyRow

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("TOOL", "OPENAI"))}
KEYS = ("sk-one-is-long-enough", "sk-other-is-long-enough")


@contextmanager
def serving(folder: Path, name: str, *options: str, **environ: str) -> Iterator[str]:
    """The address of ``toolglot serve`` in a process of its own."""
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--mode", "native", *options]
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=CLEAN | environ, cwd=folder
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                yield found[0]
                break
        else:
            raise AssertionError((folder / f"{name}.log").read_text())
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def environ_of(place: Place) -> dict[str, str]:
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    return {"TOOLGLOT_STORE_URL": url, "TOOLGLOT_STATE_DIR": str(place.folder / "state")}


async def ask_mode(address: str, key: str) -> str:
    """How a request with tools is passed on: depends on the rollout of the transformation ``reading``."""
    tool = {"type": "function", "function": {"name": TOOL.name, "parameters": dict(TOOL.parameters)}}
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
    headers = {"authorization": f"Bearer {key}", "x-toolglot-mode": "text"}
    async with aiohttp.ClientSession() as session:
        async with session.post(address + "/v1/chat/completions", json=body, headers=headers) as response:
            return response.headers.get("x-toolglot-mode", str(response.status))


async def refer(address: str, number: int, previous: str | None, key: str) -> str:
    body = {"model": "m", "input": f"Question {number}", "previous_response_id": previous}
    headers = {"authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession() as session:
        async with session.post(address + "/v1/responses", json=body, headers=headers) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return str(answer["id"])


async def become(what: Any, expected: object) -> None:
    """Wait until an awaitable call gives what is expected."""
    async with asyncio.timeout(30):
        while await what() != expected:
            await asyncio.sleep(0.05)


async def test_two_gateways_work_as_one(place: Place) -> None:
    thinker = Thinker()
    folder = place.folder
    config = folder / "one.toml"
    config.write_text('[rollout]\nreading = "full"\n')
    profile = write_profile(folder)
    async with running(thinker.make_app()) as upstream, place.opened() as store:
        for name, key in zip(("anna", "berta"), KEYS, strict=True):
            await store.save_key(KeyRow(name=name, hash=str(KeyHash.of(key)), created=1.0))
        options = ("--base-url", upstream + "/v1", "--profiles", profile)
        environ = environ_of(place)
        with ExitStack() as stack:
            start = stack.enter_context
            one = await asyncio.to_thread(start, serving(folder, "one", *options, "--config", str(config), **environ))
            # as on another host: it writes what others may need at once
            more = environ | ({"TOOLGLOT_WORKERS": "2"} if place.is_sqlite else {})
            other = await asyncio.to_thread(start, serving(folder, "other", *options, **more))
            anna, berta = KEYS
            assert await ask_mode(one, anna) == await ask_mode(other, anna) == "text"
            config.write_text('[rollout]\nreading = "off"\n')
            for address in (one, other):
                await become(lambda address=address: ask_mode(address, anna), "relay")
            if not place.is_sqlite:
                await check_conversations(one, other, anna)
            await store.delete_key("anna")
            for address in (one, other):
                await become(lambda address=address: ask_mode(address, anna), "401")
                assert await ask_mode(address, berta) == "relay"
    assert thinker.refused == 0


async def check_conversations(one: str, other: str, key: str) -> None:
    previous = None
    for number in range(6):
        previous = await refer((one, other)[number % 2], number, previous, key)
    client = Client("openai_chat", stream=True, key=key)
    for question in ("What is in both?", "And now?"):
        client.say(question)
        for address in (one, other, one):
            status, events = await client.ask(address)
            assert status == 200, events
        assert client.answer_text == ANSWER


async def test_workers_share_what_is_kept(place: Place) -> None:
    thinker = Thinker()
    async with running(thinker.make_app()) as upstream:
        options = ("--base-url", upstream + "/v1", "--profiles", write_profile(place.folder))
        with ExitStack() as stack:
            serving_workers = serving(place.folder, "workers", *options, **environ_of(place), TOOLGLOT_WORKERS="2")
            address = await asyncio.to_thread(stack.enter_context, serving_workers)
            previous = None
            for number in range(16):  # each over a connection of its own
                previous = await refer(address, number, previous, "k")
            client = Client("openai_chat", stream=True)
            for question in ("What is in both?", "And now?", "And then?"):
                client.say(question)
                for _ in range(3):
                    status, events = await client.ask(address)
                    assert status == 200, events
    assert thinker.refused == 0


def test_an_address_of_others_is_refused_while_the_store_cannot_be_read(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "toolglot", "serve", "--host", "0.0.0.0", "--base-url", "http://127.0.0.1:1/v1"]
    dead = "postgresql://user:planted-secret@127.0.0.1:1/none"
    environ = CLEAN | {"TOOLGLOT_STORE_URL": dead, "TOOLGLOT_STATE_DIR": str(tmp_path)}
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2 and "is unknown" in ended.stderr and "planted-secret" not in ended.stderr
    with pytest.raises(AssertionError, match="no client key"):
        with serving(
            tmp_path,
            "open",
            "--host",
            "0.0.0.0",
            "--base-url",
            "http://127.0.0.1:1/v1",
            TOOLGLOT_STATE_DIR=str(tmp_path),
        ):
            pass

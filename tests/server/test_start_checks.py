"""What the gateway checks after its start: the lines that it prints, and the errors that they explain."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.gateway import ASK, run

from toolglot.config import Settings, load
from toolglot.server.lifecycle import listening
from toolglot.server.upstream.checks import KnownProblems
from toolglot.server.upstream.findings import Finding
from toolglot.sim import make_app, running

CONTEXT = {"message": "request (20345 tokens) exceeds the available context size (4096 tokens)", "code": 400}
ENDPOINTS = {
    "/v1/chat/completions": ASK,
    "/v1/responses": {"model": "sim", "input": "Hello"},
    "/v1/messages": {"model": "sim", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]},
    "/v1beta/models/sim:generateContent": {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]},
    "/api/chat": {"model": "sim", "messages": [{"role": "user", "content": "Hello"}]},
}
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLGLOT", "OPENAI"))}


def make_upstream(status: int = 200, error: Any = None, asked: list[str] | None = None, **properties: Any) -> Any:
    """A server with the model ``sim`` that refuses requests, and all requests if the key is wrong."""
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        if asked is not None:
            asked.append(request.path)
        if status == 401:
            return web.json_response({"error": {"message": "Incorrect API key"}}, status=401)
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": "sim", **properties}]})
        return web.json_response({"error": error}, status=status if error else 404)

    app.router.add_route("*", "/{path:.*}", answer)
    return app


def load_for(address: str, **arguments: Any) -> Settings:
    return load({"port": 0, "state_dir": "none", "mode": "text", "base_url": address, **arguments}, {})


async def check(settings: Settings) -> tuple[KnownProblems, list[Finding]]:
    problems = KnownProblems()
    findings: list[Finding] = []
    await problems.check(settings, findings.append)
    return problems, findings


async def list_errors(settings: Settings, problems: KnownProblems) -> list[str]:
    """The errors that clients of all wires get."""
    errors = []
    async with listening(settings, problems=problems) as address, aiohttp.ClientSession() as session:
        for path, body in ENDPOINTS.items():
            async with session.post(address + path, json=body) as response:
                answer = await response.json()
                assert response.status >= 400
                error = answer["error"]
                errors.append(error if isinstance(error, str) else error["message"])
    return errors


def try_errors(app: web.Application, *expected: str, **arguments: Any) -> None:
    async def test() -> None:
        async with running(app) as address:
            settings = load_for(f"{address}/v1", **arguments)
            problems, findings = await check(settings)
            assert len(findings) == 1
            for error in await list_errors(settings, problems):
                assert all(text in error for text in expected), error

    run(test)


def test_a_healthy_upstream_gets_no_line_and_no_request_to_its_model() -> None:
    asked: list[str] = []

    async def test() -> None:
        async with running(make_upstream(asked=asked, max_model_len=40_000)) as address:
            assert (await check(load_for(f"{address}/v1")))[1] == []

    run(test)
    assert asked and not {"/v1/chat/completions"} & set(asked)


def test_a_refused_key_is_explained_in_every_wire() -> None:
    try_errors(make_upstream(401), "wants a key and the gateway has none for it", "Next step: set TOOLGLOT_API_KEY")


def test_an_unknown_model_is_explained_in_every_wire() -> None:
    error = {"message": "The model does not exist."}
    try_errors(make_upstream(404, error), "has no model 'nope'; it has: sim", "--model sim", model="nope")


def test_a_small_context_is_explained_in_every_wire() -> None:
    try_errors(make_upstream(400, CONTEXT, max_model_len=4096), "start: sim reads 4,096 tokens", "--max-model-len")


def test_an_upstream_that_is_down_is_explained_in_every_wire() -> None:
    async def test() -> None:
        settings = load_for("http://127.0.0.1:9/v1")
        problems, findings = await check(settings)
        assert [finding.check for finding in findings] == ["upstream"]
        for error in await list_errors(settings, problems):
            assert "Next step: Start it, or give another address (--base-url" in error
            assert error.count("127.0.0.1:9") == 1, "what the error says already is not repeated"

    run(test)


def test_other_errors_are_not_explained() -> None:
    async def test() -> None:
        async with running(make_upstream(500, {"message": "It broke."}, max_model_len=4096)) as address:
            settings = load_for(f"{address}/v1")
            problems, findings = await check(settings)
            assert findings
            assert not [error for error in await list_errors(settings, problems) if "Next step" in error]

    run(test)


def test_an_upstream_without_a_list_is_named_only_if_no_model_is() -> None:
    async def test() -> None:
        async with running(web.Application()) as address:
            (finding,) = (await check(load_for(f"{address}/v1")))[1]
            assert "does not list its models" in finding.text and "--model" in finding.remedy
            assert (await check(load_for(f"{address}/v1", model="m")))[1] == []

    run(test)


# The command


@contextmanager
def serving(folder: Path, *options: str, **environ: str) -> Iterator[Path]:
    """``toolglot serve`` in a process; yields the file of what it prints."""
    output = folder / "output"
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", *options]
    with output.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env={**CLEAN, "HOME": str(folder), **environ})
    try:
        yield output
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def wait_for(output: Path, text: str) -> str:
    until = time.monotonic() + 60
    while text not in (found := output.read_text("utf-8")):
        assert time.monotonic() < until, found
        time.sleep(0.1)
    return found


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_start_prints_one_line_for_each_problem(workers: str, tmp_path: Path) -> None:
    with serving(tmp_path, "--base-url", "http://127.0.0.1:9/v1", TOOLGLOT_WORKERS=workers) as output:
        found = wait_for(output, "warning: ")
        wait_for(output, "Stop with Ctrl-C.")
    lines = [line for line in output.read_text("utf-8").splitlines() if line.startswith("warning: ")]
    assert len(lines) == 1 and "does not answer" in lines[0] and "  ->  Start it" in lines[0], found


def test_the_checks_can_be_switched_off(tmp_path: Path) -> None:
    with serving(tmp_path, "--base-url", "http://127.0.0.1:9/v1", TOOLGLOT_START_CHECKS="false") as output:
        wait_for(output, "Stop with Ctrl-C.")
    assert "warning" not in output.read_text("utf-8")


def test_the_printed_lines_for_agents_name_this_gateway_and_this_upstream(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(make_app()) as address:
            options = ("--base-url", f"{address}/v1", "--model", "sim", "--api-key", "sk-secret-123456")
            with serving(tmp_path, *options) as output:
                found = wait_for(output, "Stop with Ctrl-C.")
            own = re.search(r"listening at (http://[^ ]+)", found)
            assert own and f"toolglot setup claude --url {own[1]} " in found and "sk-secret" not in found
            assert f"toolglot run claude --base-url {address}/v1 --model sim " in found
            assert json.loads(re.findall(r'"tools": (\[.*\])}', found)[0])[0]["type"] == "function"

    run(test)

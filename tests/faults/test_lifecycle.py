"""The command ``toolglot serve`` as a process: start, stop, and what it refuses."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from support.gateway import ASK

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("TOOL", "OPENAI"))}


def started(*command: str, **environ: str) -> AbstractContextManager[tuple[subprocess.Popen[str], int]]:
    """A command of toolglot that serves, and its port."""
    return started_program("-m", "toolglot", *command, **environ)


@contextmanager
def started_program(*command: str, **environ: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A Python program that serves, and its port."""
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=CLEAN | environ,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                yield process, int(found[1])
                break
        else:
            raise AssertionError(process.communicate()[1])
    finally:
        process.kill()
        process.communicate()


@contextmanager
def asked(port: int, **fields: object) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        body = json.dumps(ASK | fields)
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        with connection.getresponse() as response:
            yield response
    finally:
        connection.close()


def ask(port: int) -> int:
    with asked(port) as response:
        return response.status


def test_open_streams_end_before_the_server_does() -> None:
    with (
        started("sim", "--port", "0", "--pace", "60", "--chunk", "4", "--dialect", "hermes") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1") as (server, port),
    ):
        with asked(port, stream=True) as response:
            first = response.read(20)
            server.send_signal(signal.SIGTERM)
            received = first + response.read()
        assert b'"finish_reason":"tool_calls"' in received and received.endswith(b"data: [DONE]\n\n")
        assert server.wait(20) == 0
        with pytest.raises(OSError):
            ask(port)


def test_every_request_is_one_line_of_log_without_secrets() -> None:
    with (
        started("sim", "--port", "0") as (_, upstream),
        started(
            "serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", "--api-key", "sk-secret-1234"
        ) as (server, port),  # fmt: skip
    ):
        assert ask(port) == 200
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=20)
        (record,) = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
        assert (record["status"], record["calls"], record["tools"]) == (200, 1, ["read"])
        assert "sk-secret" not in errors


def test_workers_share_a_port() -> None:
    with (
        started("sim", "--port", "0") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_WORKERS="1") as (_, port),
    ):  # fmt: skip
        free = port + 0
    with (
        started("sim", "--port", "0") as (_, upstream),
        started("serve", "--port", str(free), "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_WORKERS="2") as (server, port),
    ):  # fmt: skip
        assert {ask(port) for _ in range(6)} == {200}
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0
        with pytest.raises(OSError):
            ask(port)


def test_workers_agree_on_a_port_and_end_with_the_first() -> None:
    with (
        started("sim", "--port", "0") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_WORKERS="3") as (server, port),
    ):  # fmt: skip
        assert {ask(port) for _ in range(12)} == {200}
        server.kill()
        server.wait(20)
        for _ in range(100):
            try:
                ask(port)
            except OSError:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("a server still answers")


def test_all_workers_stop_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    with (
        started("sim", "--port", "0", "--pace", "150", "--chunk", "3") as (_, upstream),
        started("serve", "--port", str(free), "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_WORKERS="2") as (server, port),
        ExitStack() as streams,
    ):  # fmt: skip
        answers = [streams.enter_context(asked(port, stream=True)) for _ in range(8)]
        server.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        for _ in range(8):
            with pytest.raises(OSError):
                ask(port)
        assert all(b"[DONE]" in answer.read() for answer in answers)
        assert server.wait(20) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "no client key is set"),
        (["--port", "99999"], "whole number"),
        (["--mode", "magic"], "magic"),
        (["--base-url", "ftp://x"], "http"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_a_usage_error_is_one_line(arguments: list[str], words: str, tmp_path: Path) -> None:
    base = [] if "--base-url" in arguments or "--config" in arguments else ["--base-url", "http://127.0.0.1:9/v1"]
    done = subprocess.run(
        [sys.executable, "-m", "toolglot", "serve", *base, *arguments],
        capture_output=True,
        text=True,
        env=CLEAN,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_port_that_is_taken() -> None:
    with started("sim", "--port", "0") as (_, taken):
        done = subprocess.run(
            [sys.executable, "-m", "toolglot", "serve", "--port", str(taken), "--base-url", "http://127.0.0.1:9/v1"],
            capture_output=True,
            text=True,
            env=CLEAN,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2 and f"cannot listen on 127.0.0.1:{taken}" in done.stderr


def find_workers(supervisor: int) -> list[int]:
    """The processes that a process has started."""
    return [int(one) for one in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii").split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the process table of Linux")
def test_a_killed_worker_is_replaced_and_logged() -> None:
    with (
        started("sim", "--port", "0") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_WORKERS="2") as (server, port),
    ):  # fmt: skip
        workers = find_workers(server.pid)
        assert len(workers) == 2
        os.kill(workers[1], signal.SIGKILL)
        for _ in range(200):
            if len(now := find_workers(server.pid)) == 2 and now != workers:
                break
            time.sleep(0.1)
        assert len(set(now) - set(workers)) == 1
        assert {ask(port) for _ in range(6)} == {200}
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=20)
        assert server.returncode == 0
        assert f"worker {workers[1]} was killed by signal 9" in errors


def test_workers_that_cannot_listen_end_the_command() -> None:
    with started("sim", "--port", "0") as (_, taken):
        done = subprocess.run(
            [sys.executable, "-m", "toolglot", "serve", "--port", str(taken), "--base-url", "http://127.0.0.1:9/v1"],
            capture_output=True,
            text=True,
            env=CLEAN | {"TOOLGLOT_WORKERS": "2"},
            timeout=60,
            check=False,
        )
    assert done.returncode == 2 and done.stderr.count("cannot listen") == 1


def test_streams_that_outlast_the_drain_end_with_an_error() -> None:
    with (
        started("sim", "--port", "0", "--pace", "400", "--chunk", "2", "--dialect", "hermes") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_DRAIN_SECONDS="0.3") as (server, port),
        asked(port, stream=True) as response,
    ):  # fmt: skip
        first = response.read(20)
        server.send_signal(signal.SIGTERM)
        received = first + response.read()
        assert received.endswith(b'"code":"shutting_down"}}\n\n')
        assert server.wait(20) == 0


def test_whole_answers_that_outlast_the_drain_are_refused() -> None:
    with (
        started("sim", "--port", "0", "--latency", "20000") as (_, upstream),
        started("serve", "--port", "0", "--base-url", f"http://127.0.0.1:{upstream}/v1", TOOLGLOT_DRAIN_SECONDS="0.3") as (server, port),
        closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection,
    ):  # fmt: skip
        connection.request("POST", "/v1/chat/completions", json.dumps(ASK), {"Content-Type": "application/json"})
        time.sleep(0.5)
        server.send_signal(signal.SIGTERM)
        with connection.getresponse() as response:
            assert (response.status, json.load(response)["error"]["code"]) == (503, "shutting_down")
        assert server.wait(20) == 0


HANGING_READER = """
import sys
from toolglot.cli.main import main
from toolglot.core import watchdog
from toolglot.reading.reader import Reader

def hanging(method):
    def hang(*given):
        while watchdog.watch().number & 1:  # not what is read before the server listens
            pass
        return method(*given)
    return hang

Reader.feed, Reader.feed_last = hanging(Reader.feed), hanging(Reader.feed_last)
sys.exit(main(sys.argv[1:]))
"""


def test_a_hanging_reader_stops_neither_others_nor_the_signal() -> None:
    """Each answer ends with an error, and ``/health`` and SIGTERM are served meanwhile."""
    with started("sim", "--port", "0", "--dialect", "hermes") as (_, upstream):
        address = f"http://127.0.0.1:{upstream}/v1"
        with started_program("-c", HANGING_READER, "serve", "--port", "0", "--base-url", address) as (server, port):
            for stream in (False, True):
                with asked(port, stream=stream) as response:
                    assert b"gateway_stuck" in response.read()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with closing(connection):
                connection.request("GET", "/health")
                assert connection.getresponse().status == 200
            with asked(port, stream=True) as response:
                server.send_signal(signal.SIGTERM)
                response.read()
            assert server.wait(20) == 0

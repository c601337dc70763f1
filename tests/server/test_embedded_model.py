"""The embedded model starts, answers, and never outlives its parent process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.embedded import ask, needs_model

from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream import embedded as local


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # a child that was not waited for is dead, too
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


@needs_model
def test_it_answers_on_the_loopback_and_stops() -> None:
    with local.start() as running:
        assert running.base_url.startswith("http://127.0.0.1:")
        assert running.base_url.endswith("/v1")
        assert ask(running.base_url, [{"role": "user", "content": "Say hello."}], max_tokens=8).startswith("Hello")
        assert running.is_running()
    assert not running.is_running()
    running.stop()


@needs_model
def test_it_dies_with_its_parent_even_if_that_is_killed() -> None:
    program = "from toolglot.server.upstream.embedded import start; import time; l = start(); print(l.process.pid, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    deadline = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(child)


@needs_model
def test_a_file_that_is_no_model_is_a_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_text("no model")
    with pytest.raises(UnreachableError, match="the embedded model did not start: RuntimeError"):
        local.start(broken)


@needs_model
def test_waiting_has_a_limit() -> None:
    with pytest.raises(UnreachableError, match=r"limit 0\.01 s"):
        local.start(timeout=0.01)


@pytest.mark.parametrize("missing", [local.RUNTIME, local.WEIGHTS])
def test_the_error_for_a_missing_package_says_what_to_do(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else real(name) or real("json")
    )
    with pytest.raises(UsageError) as refused:
        local.start()
    for way_out in (missing.replace("_", "-"), "toolglot[local]", "--no-deps", "--base-url", "toolglot sim"):
        assert way_out in refused.value.message

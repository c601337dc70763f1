"""The embedded model starts, answers only to those who have its key, and never outlives its parent process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from support.embedded import KEY, ask, find_weights, needs_model, start_model

from toolglot.core.errors import UnreachableError, UsageError
from toolglot.server.upstream import embedded as local
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS, PackagedWeights, choose_model


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
    with start_model() as running:
        assert running.base_url.startswith("http://127.0.0.1:")
        assert running.base_url.endswith("/v1")
        assert ask(running.base_url, [{"role": "user", "content": "Say hello."}], max_tokens=8).startswith("Hello")
        assert running.is_running()
    assert not running.is_running()
    running.stop()


def post(address: str, key: str | None) -> int:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code


@needs_model
def test_only_its_own_key_is_accepted_and_no_other_user_sees_it() -> None:
    weights = find_weights()
    assert weights is not None
    with local.start(weights) as running, local.start(weights) as other:
        asked = f"{running.base_url}/chat/completions"
        assert (post(asked, None), post(asked, other.api_key)) == (401, 401)
        assert post(asked, running.api_key) == 200
        assert len(running.api_key) >= 32 and running.api_key not in repr(running)
        shown = Path(f"/proc/{running.process.pid}")
        if shown.exists():
            for name in ("cmdline", "environ"):
                assert running.api_key.encode() not in (shown / name).read_bytes()


@needs_model
def test_nothing_is_imported_from_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise SystemExit('hostile')")
    program = "from support.embedded import start_model; start_model().stop(); print('started')"
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-P", "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ended.stdout == "started\n", ended.stderr


@needs_model
def test_it_dies_with_its_parent_even_if_that_is_killed() -> None:
    program = f"from pathlib import Path; from toolglot.server.upstream.embedded import start; import time; l = start(Path({str(find_weights())!r})); print(l.process.pid, flush=True); time.sleep(60)"
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
    with pytest.raises(UnreachableError, match="the embedded model broken did not start: RuntimeError"):
        local.start(broken, choose_model(str(broken)))


@needs_model
def test_waiting_has_a_limit() -> None:
    with pytest.raises(UnreachableError, match=r"limit 0\.01 s"):
        start_model(timeout=0.01)


@needs_model
def test_context_and_name_are_those_of_the_choice() -> None:
    with start_model(context=512) as running:
        request = urllib.request.Request(
            running.base_url.removesuffix("/v1") + "/props", headers={"Authorization": f"Bearer {KEY}"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            properties = json.load(answer)
    assert properties["default_generation_settings"]["n_ctx"] == 512
    assert properties["model_alias"] == "smollm2-135m" == running.model


def test_the_error_for_a_missing_runtime_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == local.RUNTIME else real(name))
    with pytest.raises(UsageError) as refused:
        local.start(Path("a.gguf"))
    for way_out in (local.RUNTIME, "pip install", "[local]", "--base-url", "toolglot sim"):
        assert way_out in refused.value.message


def test_models_are_chosen_by_name_id_or_file(tmp_path: Path) -> None:
    assert choose_model("smollm2") is choose_model("SmolLM2-135M") is KNOWN_MODELS[DEFAULT_MODEL]
    file = tmp_path / "Own-Model.Q4.gguf"
    file.write_bytes(b"GGUF" + bytes(3 << 20))
    own = choose_model(str(file))
    assert (own.model, own.weights, own.coached) == ("Own-Model.Q4", file, False)
    assert "Own-Model.Q4 (3 MiB, 16,384 tokens)" in own.description
    for wrong, expected in (
        ("qwen2.5-coder-1.5", "did you mean qwen2.5-coder-1.5b?"),
        ("gpt-5", "known are: smollm2, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b"),
        (str(tmp_path / "none.gguf"), "does not exist"),
        (f"{tmp_path}/folder.gguf", "is a folder"),
    ):
        (tmp_path / "folder.gguf").mkdir(exist_ok=True)
        with pytest.raises(UsageError) as refused:
            choose_model(wrong)
        assert expected in refused.value.message


def test_every_known_model_says_its_memory_and_what_it_is_good_for() -> None:
    for known in KNOWN_MODELS.values():
        assert isinstance(known.weights, PackagedWeights)
        assert known.good_for in known.description and f"{known.memory:,} MiB of memory" in known.description
        assert known.memory > known.weights.size >> 20
        assert len(known.weights.sha256) == 64 and all("==" in package for package in known.weights.packages)

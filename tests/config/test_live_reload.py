"""The rollout is reloaded while the gateway runs if the file changes; an invalid file changes nothing."""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from faults.test_lifecycle import started
from support.gateway import ASK

from toolglot.cli.common_options import load_settings, watch_settings_file
from toolglot.config import LiveReload, Settings, Upstream, load
from toolglot.config.references import Secrets
from toolglot.config.rollout import Plan

HEAD = "[[upstream]]\nbase_url = 'http://127.0.0.1:{port}/v1'\n[tool_calling]\nmode = 'text'\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "toolglot.toml"
    path.write_text("[rollout]\nreading = 'shadow'\n")
    return path


def followed(path: Path) -> tuple[Settings, LiveReload]:
    settings = load({}, {}, path)
    return settings, LiveReload(path, lambda: load({}, {}, path), settings)


def rewrite(path: Path, text: str) -> None:
    """Write, and let the time of the file differ even if the clock has not moved."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(text)
    os.utime(path, ns=(before + 1_000_000, before + 1_000_000))


def test_a_change_comes_into_force(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings, follower = followed(file)
    assert not follower.check()
    rewrite(file, "[rollout]\nreading = 'canary-25'\nxml = 'off'\n")
    with caplog.at_level(logging.INFO):
        assert follower.check()
    assert settings.rollout_now.plan_of("reading") == Plan(25)
    assert settings.answered_by(Upstream()).rollout_now is settings.rollout_now
    assert caplog.messages == ["rollout of reading: shadow -> canary-25", "rollout of xml: full -> off"]
    assert not follower.check()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[rollout]\nreading = 'canary-200'\n", "rollout.reading is 'canary-200'"),
        ("[rollout\n", "is not TOML"),
        ("[rollout]\nredding = 'off'\n", "did you mean reading?"),
        ("[server]\nport = 'x'\n[rollout]\nreading = 'off'\n", "server.port"),
    ],
)
def test_contents_that_cannot_be_used_leave_everything_as_it_was(
    file: Path, caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    settings, follower = followed(file)
    rewrite(file, text)
    with caplog.at_level(logging.WARNING):
        assert not follower.check()
        assert not follower.check()
    assert settings.rollout_now.plan_of("reading") == Plan(dry_run=True)
    (message,) = caplog.messages
    assert why in message and "the old settings remain in use" in message
    rewrite(file, "[rollout]\nreading = 'off'\n")
    assert follower.check()
    assert settings.rollout_now.plan_of("reading") == Plan(0)


def test_a_file_that_is_gone_changes_nothing(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings, follower = followed(file)
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert not follower.check()
    assert settings.rollout_now.plan_of("reading") == Plan(dry_run=True)
    assert "the old settings remain in use" in caplog.text


def test_other_settings_wait_for_a_restart(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings, follower = followed(file)
    rewrite(file, "[server]\nport = 99\n[limits]\nmessages = 5\n[rollout]\nreading = 'full'\n")
    with caplog.at_level(logging.WARNING):
        assert follower.check()
    assert "changes of server, limits in" in caplog.messages[0]
    assert (settings.server.port, settings.limits.messages) == (8484, 10_000)
    assert settings.rollout_now.plan_of("reading") == Plan()


def test_secrets_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their files may be gone or changed: the gateway has what was in them at the start."""
    names = "one", "two", "three"
    for name in names:
        (tmp_path / name).write_text(f"sk-{name}-0123456789")
    monkeypatch.setenv("UPK_FILE", str(tmp_path / "one"))
    monkeypatch.setenv("TOOLGLOT_CLIENT_KEYS_FILE", str(tmp_path / "two"))
    file, head = tmp_path / "toolglot.toml", HEAD.format(port=9)
    head = head.replace("[tool_calling]", "api_key = 'env:UPK'\nheaders = { X-Key = 'file:three' }\n[tool_calling]")
    file.write_text(head)
    arguments, secrets = argparse.Namespace(config=str(file)), Secrets()
    settings = load_settings(arguments, secrets)
    follower = watch_settings_file(arguments, settings, secrets)
    assert follower is not None and not any("two" in secret for secret in secrets.values()), "only a hash"
    (tmp_path / "one").unlink()
    (tmp_path / "two").write_text("sk-other-0123456789")
    (tmp_path / "three").unlink()
    rewrite(file, head + "[rollout]\nreading = 'off'\n")
    with caplog.at_level(logging.WARNING):
        assert follower.check()
    assert caplog.messages == ["rollout of reading: full -> off"]
    rewrite(file, head + "[server]\nkeys = 'file:missing'\n")
    assert not follower.check() and f"refers to {tmp_path}/missing, which cannot be read" in caplog.text


# A gateway that runs


def called(port: int) -> bool:
    """Whether the answer had a call."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(ASK), {"Content-Type": "application/json"})
        message = json.loads(connection.getresponse().read())["choices"][0]["message"]
        return bool(message.get("tool_calls"))
    finally:
        connection.close()


def wait_until(port: int, expected: bool) -> None:
    until = time.monotonic() + 15
    while called(port) is not expected:
        assert time.monotonic() < until, "the change did not come into force"
        time.sleep(0.1)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, int, list[str]]]:
    """A gateway process before a sim process: its file, its port, and the lines of its log as they come."""
    path = tmp_path / "toolglot.toml"
    log: list[str] = []
    with ExitStack() as stack:
        _, sim = stack.enter_context(started("sim", "--port", "0", "--dialect", "hermes"))
        path.write_text(HEAD.format(port=sim) + "[rollout]\nreading = 'full'\n")
        process, port = stack.enter_context(
            started("serve", "--port", "0", "--config", str(path), "--state-dir", "none")
        )
        assert process.stderr is not None
        Thread(target=lambda: log.extend(iter(process.stderr.readline, "")), daemon=True).start()  # type: ignore[union-attr]
        yield path, port, log


def test_a_running_gateway_takes_a_change_without_a_restart(running: tuple[Path, int, list[str]]) -> None:
    path, port, log = running
    text = path.read_text()
    assert called(port)
    path.write_text(text.replace("'full'", "'off'"))
    wait_until(port, expected=False)
    path.write_text(text.replace("'full'", "'nonsense'"))
    until = time.monotonic() + 15
    while not any("the old settings remain in use" in line for line in log) and time.monotonic() < until:
        time.sleep(0.1)
    assert any("the old settings remain in use" in line for line in log)
    assert not called(port)
    path.write_text(text)
    wait_until(port, expected=True)
    assert any("rollout of reading: full -> off" in line for line in log)

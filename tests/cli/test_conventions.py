"""Conventions of the command line: help, JSON, colour, progress, signals, and no traceback for a mistake of the user."""

from __future__ import annotations

import argparse
import io
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.rows import in_one_test

from toolglot.cli.exit_codes import list_actions
from toolglot.cli.main import COMMANDS, build_parser, main, split_arguments
from toolglot.cli.terminal import CLEAR_LINE, ProgressLine, wants_color

COMMAND = [sys.executable, "-m", "toolglot"]
LOG_LINE = (
    '{"status": 200, "arms": {"reading": "on"}, "outcomes": {"reading": {"success": 1}}, "transformed": ["a"],'
    ' "conversation": "c", "confidences": [1.0], "complaints": [], "would": null}\n'
)


def walk(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in list_actions(parser).values():
        yield from walk(action)


PARSERS = {parser.prog: parser for parser in walk(build_parser())}
LEAVES = {name: parser for name, parser in PARSERS.items() if not list_actions(parser)}


SERVERS = ("toolglot serve", "toolglot sim")
"""Commands that an interrupt ends in the ordinary way."""


# Help


@in_one_test("name", PARSERS)
def test_every_help_has_examples_and_exit_codes(name: str) -> None:
    shown = PARSERS[name].format_help()
    assert re.search(r"^examples:\n  .*toolglot", shown, re.MULTILINE)
    assert re.search(r"^exit codes:\n  0 ", shown, re.MULTILINE)
    assert re.search(r"^  2 ", shown, re.MULTILINE)
    stopped = r"^  0 .*Ctrl-C" if name in SERVERS else r"^  130 .*Ctrl-C"
    assert re.search(stopped, shown, re.MULTILINE)
    assert shown.count("exit codes:") == 1
    assert PARSERS[name].description
    undescribed = [action.dest for action in PARSERS[name]._actions if not action.help and action.metavar != "COMMAND"]
    assert [dest for dest in undescribed if dest != "==SUPPRESS=="] == []


@in_one_test("name", PARSERS)
def test_every_example_is_accepted(name: str) -> None:
    parser, tried = build_parser(), 0
    for line in (PARSERS[name].epilog or "").splitlines():
        found = re.match(r"  .*?(toolglot [^|>]+?)(?:\s{2,}|\s*[|>]|$)", line)
        if found and "..." not in found[1]:
            words = shlex.split(re.split(r"\s(?:2$|<)", found[1].rstrip(")"))[0])
            given, _ = split_arguments(words[1:])
            parser.parse_args(given)
            tried += 1
    assert tried


WITHOUT_JSON = {
    "toolglot serve": "runs until it is stopped",
    "toolglot completion": "prints a script",
    "toolglot records export": "writes JSON lines",
    "toolglot sessions export": "writes a page",
}


@in_one_test("name", sorted(LEAVES))
def test_every_command_that_prints_facts_has_json(name: str) -> None:
    assert ("--json" in LEAVES[name].format_help()) is (name not in WITHOUT_JSON)


# Start


@pytest.mark.parametrize(
    ("arguments", "kept_out"),
    [
        (["read", "--json"], ["asyncio", "http.client", "toolglot.config", "toolglot.gateway", "yaml"]),
        (["--version"], ["toolglot.cli.read", "toolglot.cli.serve", "toolglot.config", "yaml"]),
        (["dialects"], ["toolglot.config", "toolglot.gateway"]),
        (["config", "check"], ["asyncio", "toolglot.gateway", "toolglot.server"]),
    ],
)
def test_a_command_imports_only_what_it_needs(tmp_path: Path, arguments: list[str], kept_out: list[str]) -> None:
    program = f"""
import sys
from toolglot.cli.main import main
try:
    main({arguments!r})
except SystemExit:
    pass
print(sorted(set({kept_out!r}) & set(sys.modules)), file=sys.stderr)
"""
    (tmp_path / "toolglot.toml").write_text("")
    call = '<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>'
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=call,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=True,
    )
    assert done.stderr == "[]\n"


# JSON


def documents(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    assert main(list(arguments)) == 0
    return json.loads(capsys.readouterr().out)


def test_keys_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--json", "--state-dir", str(tmp_path))
    assert documents(capsys, "key", "list", *store) == []
    created = documents(capsys, "key", "create", "--name", "alice", *store)
    assert isinstance(created, dict) and created["name"] == "alice" and created["expires"] == "never"
    listed = documents(capsys, "key", "list", *store)
    assert isinstance(listed, list) and [row["name"] for row in listed] == ["alice"]
    assert documents(capsys, "key", "revoke", "alice", *store) == {"revoked": "alice"}
    made = documents(capsys, "key", "--json")
    assert isinstance(made, dict) and set(made) == {"key", "hash"}


def test_the_rollout_and_faults_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--json", "--state-dir", str(tmp_path))
    shown = documents(capsys, "rollout", "show", *store)
    assert isinstance(shown, dict) and shown["source"] == "settings"
    changed = documents(capsys, "rollout", "set", "reading", "canary-25", *store)
    assert isinstance(changed, dict) and len(changed["changes"]) == 1
    shown = documents(capsys, "rollout", "show", *store)
    assert isinstance(shown, dict) and shown["source"] == "store" and "25" in shown["plans"]["reading"]
    faults = documents(capsys, "sim", "--faults", "--json")
    assert isinstance(faults, dict) and "lost_closer" in faults


# Colour


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True, True),
    ],
)
def test_colour_follows_the_variables(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], terminal: bool, expected: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = Screen() if terminal else io.StringIO()
    assert wants_color("auto", stream) is expected
    assert wants_color("always", stream) is True
    assert wants_color("never", stream) is False


# Progress


def test_a_progress_line_is_drawn_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "70")
    now, screen = 0.0, Screen()
    with ProgressLine("reading", 4_000_000, stream=screen, clock=lambda: now) as progress:
        progress.advance(1_000_000)
        assert screen.getvalue() == "", "short work shows nothing"
        now = 0.6
        progress.advance(1_000_000)
        assert screen.getvalue() == f"{CLEAR_LINE}reading  [############            ]  50%  2.0 MB of 4.0 MB"
        progress.advance(1_000_000)
        assert "75%" not in screen.getvalue(), "drawn at most ten times a second"
    assert screen.getvalue().endswith(CLEAR_LINE)


@pytest.mark.parametrize("stream", [io.StringIO(), Screen()])
def test_progress_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO) -> None:
    monkeypatch.setenv("TERM", "dumb")
    now = iter(range(100))
    with ProgressLine("reading", stream=stream, clock=lambda: next(now)) as progress:
        progress.advance(5)
        progress.advance(5)
    assert stream.getvalue() == ""


def test_a_line_is_no_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    now, screen = iter(range(100)), Screen()
    with ProgressLine("exporting", 0, "records", stream=screen, clock=lambda: next(now)) as progress:
        progress.advance(123_456_789)
    assert f"{CLEAR_LINE}exporting  123,456,{CLEAR_LINE}" == screen.getvalue()


def test_long_work_shows_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    now, screen = 0.0, Screen()
    with ProgressLine("", stream=screen, logged=True, clock=lambda: now) as progress:
        progress.show("downloading some", 40_000_000, 100_000_000)  # from an earlier start
        now = 10.0
        progress.show("downloading some", 60_000_000, 100_000_000)
    bar = "[##############          ]  60%  60.0 MB of 100.0 MB, 20 s left"
    assert screen.getvalue() == f"{CLEAR_LINE}downloading some  {bar}{CLEAR_LINE}"


def test_logged_progress_elsewhere_is_a_line_now_and_then() -> None:
    file = io.StringIO()
    with ProgressLine("", stream=file, logged=True) as progress:
        progress.show("waiting for another process to download some", 0, 0)
        for done in range(101):
            progress.show("downloading some", done * 1_000_000, 100_000_000)
    lines = file.getvalue().splitlines()
    assert lines[0] == "waiting for another process to download some"
    assert len(lines) == 12 and "\x1b" not in file.getvalue() and lines[-1].endswith("100%  100.0 MB of 100.0 MB")


def test_a_large_log_shows_progress_at_a_real_terminal(tmp_path: Path) -> None:
    """The report reads from a pipe that is written slowly; only standard error is a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "report", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(slave)
    assert process.stdin is not None
    shown, end = b"", time.monotonic() + 60
    while b"reading logs" not in shown and time.monotonic() < end:
        process.stdin.write(LOG_LINE.encode() * 100)
        process.stdin.flush()
        if select.select([master], [], [], 0.05)[0]:
            shown += os.read(master, 65536)
    output, _ = process.communicate()
    os.close(master)
    assert b"reading logs  " in shown and b" MB" in shown
    assert json.loads(output)["reading"][0]["arm"] == "on"


# Streams and signals


def shell(line: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = line.replace("toolglot", shlex.join(COMMAND), 1)
    return subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | variables,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("toolglot read <&-", 2, "standard input is closed: name a file"),
        ("toolglot explain --base-url http://127.0.0.1:1 <&-", 2, "standard input is closed"),
        ("toolglot report <&-", 2, "standard input is closed"),
        ("toolglot dialects >&-", 0, ""),
        ("toolglot read no-such-file 2>&-", 2, ""),
        ("toolglot dialects > /dev/full", 2, "No space left on device"),
        ("toolglot dialects | head -1 > /dev/null", 0, ""),
    ],
)
def test_closed_and_full_streams(tmp_path: Path, line: str, code: int, message: str) -> None:
    done = shell(line, tmp_path)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize("command", ["read", "report", "explain --base-url http://127.0.0.1:1 --state-dir none"])
def test_an_interrupt_exits_with_130(tmp_path: Path, command: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, *command.split()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell may ignore it in the background
    )
    assert process.stdin is not None
    wait_until_reading(process.pid)
    process.send_signal(signal.SIGINT)
    process.wait(60)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert errors == "toolglot: interrupted\n"


def wait_until_reading(pid: int) -> None:
    """Wait until the process sleeps in a read of its standard input, with all modules imported."""
    end, quiet = time.monotonic() + 60, 0
    while quiet < 5 and time.monotonic() < end:
        state = Path(f"/proc/{pid}/wchan").read_text("utf-8")
        quiet = quiet + 1 if "pipe" in state or "unix_stream" in state else 0
        time.sleep(0.05)
    assert quiet == 5, "the process does not read"


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for line in (f"toolglot sim --port {port}", f"toolglot serve --port {port} --base-url http://127.0.0.1:1/v1"):
            done = shell(line, tmp_path, XDG_STATE_HOME=str(tmp_path))
            assert done.returncode == 2
            assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
            assert "Traceback" not in done.stderr


# Mistakes

DEEP = b"[" * 100_000
INPUTS = {
    "missing": None,
    "directory": None,
    "binary": bytes(range(256)) * 400,
    "invalid_utf8": b'\xff\xfe{"a": "\xc3',
    "broken.json": b'{"tools": [',
    "scalar.json": b"3",
    "null.json": b"null",
    "wrong_tools.json": b'[{"name": 3}, 7, {"type": "function", "function": {"name": "a", "parameters": {"type": 3}}}]',
    "wrong_log.json": b'{"arms": {"reading": 1}, "status": "x"}\n{"arms": {}}\n{"arms": {"a": "b"}, "status": 1e999}',
    "deep.json": DEEP,
    "deep_log.json": b'{"arms": ' + DEEP,
    "deep.toml": b"a = " + DEEP,
    "broken.toml": b"[server\n",
    "nul.toml": b'[server]\nstate_dir = "a\\u0000b"\n[tool_calling]\nprofiles = "a\\u0000b"\n',
    "wrong.toml": b"upstream = 3\nserver = [1]\n[[model]]\nname = {}\n",
    "broken.yaml": b"- a\n  b: [",
    "evil.yaml": b"model_list: !!python/object/apply:os.system [true]",
    "wrong.yaml": b"model_list: [3, {model_name: [], litellm_params: {model: {}}}]",
    "deep.yaml": b"[" * 1000,
    "empty": b"",
    "long_line": b"x" * 300_000,
}
USES = [
    "read {}",
    "read {} --json --dialect hermes",
    "read {} --events --stream 100000",
    "read empty --tools {}",
    "report {}",
    "report {} --json",
    "explain {} --base-url http://127.0.0.1:1 --state-dir none",
    "explain {} --wire anthropic_messages --base-url http://127.0.0.1:1 --state-dir none",
    "explain empty --config {}",
    "config show --config {}",
    "config check {}",
    "explain empty --base-url http://127.0.0.1:1 --state-dir none --profiles {}",
    "records list --config {}",
    "key list --state-dir {}",
    "sessions list --store-url sqlite:{}",
    "rollout show --store-url sqlite:{}",
    "setup claude --print --model m --config {}",
    "doctor --no-call --state-dir none --config {}",
    "sim --port 0 --host nowhere.invalid --script {}",
    "eval {}",
    "eval {} --json --stream 3",
    "top --once --url http://127.0.0.1:1 --config {}",
    "replay rec_0 --url http://127.0.0.1:1 --config {}",
]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "OPENAI_", "TOOL_CALLING_", "LITELLM_")):
            monkeypatch.delenv(name)
    for name, data in INPUTS.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
    (tmp_path / "directory").mkdir()
    return tmp_path


@pytest.mark.parametrize("use", USES)
def test_no_mistake_ends_in_a_traceback(use: str, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in INPUTS.items():
        code = main(use.replace("{}", name).split())
        shown = capsys.readouterr()
        assert code in (0, 1, 2, 3), name
        assert "Traceback" not in shown.err
        if code == 2 and not use.startswith("doctor"):
            assert shown.err.startswith("toolglot: ") and shown.err.count("\n") <= 3, (name, shown.err)
        assert data is not None or code != 0 or "{}" not in use or use.startswith(("key", "sessions", "rollout")), name
        if data is not None:
            (inputs / name).write_bytes(data)


@pytest.mark.parametrize(
    "line",
    [
        "sim --port 99999999",
        "sim --port many",
        "sim --chunk 0",
        "read --stream 0 empty",
        "read --stream ² empty",
        "records list --limit 0",
        "completion tcsh",
        "config",
        "nothing",
        "serve --no-such-option",
        "",
    ],
)
def test_wrong_options_exit_with_2(line: str, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(line.split())
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("toolglot")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_cannot_be_written(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = inputs / "locked"
    folder.mkdir(mode=0o500)
    assert main(["key", "create", "--name", "a", "--state-dir", str(folder)]) == 2
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/proc/none", "/dev/null/state"])
def test_a_store_that_cannot_be_made(place: str, inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action, problem in (
        ("key create --name a", "the store .* cannot be used: "),
        ("rollout set reading full", "the store .* cannot be used: "),
        ("records list", "there is no store at "),
        ("sessions list", "there is no store at "),
    ):
        assert main([*action.split(), "--state-dir", place]) == 2
        assert re.match(f"toolglot: {problem}", capsys.readouterr().err), action


def test_every_command_is_tried() -> None:
    tried = {use.split()[0] for use in USES}
    assert set(COMMANDS) - tried <= {"serve", "probe", "dialects", "completion", "run", "errors"}

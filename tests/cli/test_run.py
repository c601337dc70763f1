"""``toolglot run``: a program in the foreground with a gateway of its own. The program is a stand-in that uses what it is
given; tests/agents runs the real ones."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from support.loopback import Loop, Sim, running_loop, running_sim

from toolglot.cli.foreground import Foreground
from toolglot.cli.gateway_process import direct_others
from toolglot.cli.main import main
from toolglot.clients.agents import AGENTS, Connection, find_agent
from toolglot.config import KeyHash, load
from toolglot.sim import running

STARTED = [agent for agent in AGENTS if agent.launch]
PATIENCE = 60.0
ASK = """\
import json, os, sys, urllib.request
settings = json.load(open(sys.argv[sys.argv.index("--settings") + 1]))["env"]
assert settings.items() <= os.environ.items()
tool = {"name": "write", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
body = {"model": os.environ["ANTHROPIC_MODEL"], "max_tokens": 99, "tools": [tool],
        "messages": [{"role": "user", "content": "Write to out.txt"}]}
headers = {"Authorization": "Bearer " + os.environ["ANTHROPIC_AUTH_TOKEN"], "Content-Type": "application/json"}
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
answer = json.load(urllib.request.urlopen(request))
call = next(part for part in answer["content"] if part["type"] == "tool_use")
print("called", call["name"], json.dumps(sys.argv[3:]), os.environ["ANTHROPIC_BASE_URL"], flush=True)
"""

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "XDG_", "OPENAI_", "ANTHROPIC_", "CLAUDE", "CODEX", "GEMINI", "HTTP")):
            monkeypatch.delenv(name)
    folder, programs = tmp_path / "home", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], home: Path) -> Cli:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["run", *arguments])
        out, errors = capfd.readouterr()
        return code, out, errors

    return run


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def sim(loop: Loop) -> Iterator[Sim]:
    with running_sim(loop) as sim:
        yield sim


def install(home: Path, program: str, text: str, shell: str = "/bin/sh") -> None:
    path = home.parent / "bin" / program
    path.write_text(f"#!{shell}\n{text}", "utf-8")
    path.chmod(0o755)


def install_claude(home: Path, more: str = "") -> None:
    install(home, "claude", ASK + more, sys.executable)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# The whole command


def test_the_program_uses_the_gateway_and_the_summary_counts(cli: Cli, home: Path, sim: Sim, tmp_path: Path) -> None:
    install_claude(home, "sys.exit(5)\n")
    own = home / ".claude" / "settings.json"
    own.parent.mkdir()
    own.write_bytes(b'{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}} ')
    state = str(tmp_path / "state")
    code, out, errors = cli("claude", "--base-url", sim.base_url, "--state-dir", state, "--", "-p", "a b", "--", "c")
    assert code == 5, errors
    assert 'called write ["-p", "a b", "--", "c"] http://127.0.0.1:' in out
    assert "Claude Code ended with code 5" in errors
    assert re.search(r"  1 turn, 1 call, 0 repairs, 0 retries, [\d,]+ tokens in, [\d,]+ out", errors)
    assert snapshot(home) == {".claude/settings.json": b'{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}} '}
    session = re.search(r"toolglot (sessions show ses_\w+ --state-dir \S+)", errors)
    assert session and main(session[1].split()) == 0
    assert f"resume:  toolglot run claude --base-url {sim.base_url} --state-dir {state} -- --continue" in errors
    address = out.split()[-1]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
    log = re.search(r"log:     (.*)", errors)
    assert log and '"wire":"anthropic_messages"' in Path(log[1]).read_text("utf-8")
    assert Path(log[1]).stat().st_mode & 0o777 == 0o600
    page = re.search(r"page:    (\S+)  \(figures only", errors)
    assert page and Path(page[1]) == Path(log[1]).with_suffix(".html")
    text = Path(page[1]).read_text("utf-8")
    assert text.startswith("<!doctype html>") and session[1].split()[2] in text and "out.txt" not in text


def test_the_summary_as_json(cli: Cli, home: Path, sim: Sim) -> None:
    install_claude(home)
    code, out, errors = cli("claude", "--base-url", sim.base_url, "--json", "--state-dir", "none")
    summary = json.loads(out.splitlines()[-1])
    assert code == 0 and "ended with" not in errors
    assert (summary["client"], summary["turns"], summary["calls"], summary["model"]) == ("claude", 1, 1, "sim")
    assert summary["input_tokens"] > 0 and summary["sessions"] == [] and Path(summary["log"]).exists()
    assert summary["html"] == "" and "page" not in errors, "there is no store"


def test_the_page_has_texts_if_they_are_recorded_and_no_keys(
    cli: Cli, home: Path, sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGLOT_STORE_BODIES", "all")
    install(
        home, "claude", ASK.replace("Write to out.txt", "Write sk-ant-0123456789abcdef01 to out.txt"), sys.executable
    )
    code, out, errors = cli("claude", "--base-url", sim.base_url, "--json")
    summary = json.loads(out.splitlines()[-1])
    assert code == 0, errors
    path = Path(summary["html"])
    page = path.read_text("utf-8")
    assert path.stat().st_mode & 0o777 == 0o600 and "out.txt" in page and "sk-ant-01234" not in page
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])
    assert data["session"]["id"] == summary["sessions"][0] and len(data["turns"]) == 1
    assert re.findall(r'(?:src|href)="?https?://', page) == [], "it needs no other file"


def test_no_page_is_written_if_it_is_not_wanted(cli: Cli, home: Path, sim: Sim) -> None:
    install_claude(home)
    code, _, errors = cli("claude", "--base-url", sim.base_url, "--no-html", "--state-dir", "s")
    assert code == 0 and "page:    " not in errors and "as page: toolglot sessions export ses_" in errors
    assert list(Path("s/runs").glob("*.html")) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), TimeoutError(), ValueError("odd")])
def test_a_page_that_cannot_be_written_changes_nothing_else(
    error: Exception, cli: Cli, home: Path, sim: Sim, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> bytes:
        raise error

    monkeypatch.setattr("toolglot.cli.run_page.export_page", fail)
    install_claude(home, "sys.exit(5)\n")
    code, _, errors = cli("claude", "--base-url", sim.base_url, "--state-dir", "s")
    assert code == 5 and f"the page of the session was not written: {type(error).__name__}" in errors
    assert "Claude Code ended with code 5" in errors and "as page: toolglot sessions export" in errors
    assert list(Path("s/runs").glob("*.html")) == []


def test_recovery_and_failures_are_counted(cli: Cli, home: Path, loop: Loop) -> None:
    with running_sim(loop, dialect="hermes", defects=1.0) as sim:
        install_claude(home)
        code, out, errors = cli("claude", "--base-url", sim.base_url, "--json", "--mode", "text")
    summary = json.loads(out.splitlines()[-1])
    assert code == 0 and summary["retries"] + summary["repairs"] > 0, errors
    with loop.entered(running(make_upstream(["m"]))) as address:
        code, _, errors = cli("claude", "--base-url", f"{address}/v1")
    assert code == 1 and "failed:  1 turn (the last one: upstream_refused)" in errors


def make_upstream(models: list[str], key: str = "") -> web.Application:
    """A server that lists its models and refuses everything else."""
    app = web.Application()

    async def answer(request: web.Request) -> web.Response:
        if key and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": {"message": "bad key"}}, status=401)
        if request.path == "/v1/models":
            return web.json_response({"data": [{"id": model} for model in models]})
        return web.json_response({"error": {"message": "no"}}, status=400)

    app.router.add_route("*", "/{path:.*}", answer)
    return app


def test_other_models_that_the_client_names_go_to_the_chosen_one(cli: Cli, home: Path, sim: Sim) -> None:
    before = sim.total
    text = ASK.replace('os.environ["ANTHROPIC_MODEL"]', '"claude-haiku-4"')
    install(home, "claude", text, sys.executable)
    assert cli("claude", "--base-url", sim.base_url)[0] == 0
    assert [request.body["model"] for request in sim.since(before) if request.body] == ["sim"]


@pytest.mark.parametrize(("text", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("exit 0", 0)])
def test_the_exit_code_is_that_of_the_program(text: str, code: int, cli: Cli, home: Path, sim: Sim) -> None:
    install(home, "aider", text)
    assert cli("aider", "--base-url", sim.base_url)[0] == code


def test_temporary_files_are_removed_and_client_folders_mirrored(cli: Cli, home: Path, sim: Sim) -> None:
    folder = home / ".gemini"
    (folder / "history").mkdir(parents=True)
    (folder / "settings.json").write_text('{"ui": {"theme": "mine"}}', "utf-8")
    install(
        home, "gemini", 'cd "$GEMINI_CLI_HOME/.gemini"; pwd; cat settings.json; echo x > history/kept; rm history\n'
    )
    code, out, errors = cli("gemini", "--base-url", sim.base_url)
    assert code == 0, errors
    used, _, settings = out.partition("\n")
    assert json.loads(settings) == {"ui": {"theme": "mine"}, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    assert not Path(used).exists() and (folder / "history" / "kept").exists()
    assert (folder / "settings.json").read_text("utf-8") == '{"ui": {"theme": "mine"}}'


# What is wrong before the start


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "'nope' is not a known client; known are: claude, codex"),
        (["roo"], "Roo Code has no program that could be started: 'toolglot setup roo'"),
        (["openai"], "OpenAI SDK for Python has no program"),
        (
            ["claude"],
            "Claude Code is not installed: there is no program 'claude' in PATH. Install it with: npm install",
        ),
        (["claude", "--mode", "x"], "--mode"),
        (["claude", "--config", "absent.toml"], "absent.toml"),
    ],
)
def test_mistakes_name_the_next_step(arguments: list[str], message: str, cli: Cli) -> None:
    code, out, errors = cli(*arguments)
    assert code == 2 and out == "" and message in errors


def test_arguments_of_the_client_need_a_separator(cli: Cli, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli("claude", "-p", "hi")
    assert "unrecognized arguments: -p hi; those for the client come after --" in capfd.readouterr().err


def test_every_program_has_a_command_that_installs_it() -> None:
    assert {agent.name for agent in STARTED} == {
        *("claude", "codex", "opencode", "gemini", "qwen", "cline", "kilo", "continue", "aider", "goose")
    }
    for agent in STARTED:
        assert agent.launch and agent.launch.install and agent.start


def test_an_upstream_that_is_down_stops_it(cli: Cli, home: Path) -> None:
    install(home, "aider", "touch started")
    code, _, errors = cli("aider", "--base-url", "http://127.0.0.1:9/v1")
    assert code == 2 and "problem: upstream 'default' at http://127.0.0.1:9/v1 does not answer" in errors
    assert "  ->  Start it" in errors and "aider was not started" in errors and not Path("started").exists()
    code, _, errors = cli("aider", "--base-url", "http://127.0.0.1:9/v1", "--no-check", "--model", "m")
    assert code == 0 and Path("started").exists()


def test_a_refused_key_stops_it(cli: Cli, home: Path, loop: Loop) -> None:
    install(home, "aider", "touch started")
    with loop.entered(running(make_upstream(["m"], key="the-right-key"))) as address:
        code, _, errors = cli("aider", "--base-url", f"{address}/v1", "--api-key", "sk-wrong-12345678")
    assert code == 2 and "refuses the gateway's own key" in errors and not Path("started").exists()
    assert "sk-wrong" not in errors


def test_the_model_must_exist_and_be_unambiguous(cli: Cli, home: Path, loop: Loop) -> None:
    install(home, "aider", 'echo "$AIDER_MODEL"')
    with loop.entered(running(make_upstream(["big", "small"]))) as address:
        base = ("aider", "--base-url", f"{address}/v1")
        code, _, errors = cli(*base)
        assert code == 2 and "choose a model with --model; there are: big, small" in errors
        code, _, errors = cli(*base, "--model", "nope")
        assert code == 2 and "has no model 'nope'; it has: big, small  ->  name one: --model big" in errors
        code, out, _ = cli(*base, "--model", "small")
        assert (code, out) == (0, "openai/small\n")
        Path("toolglot.toml").write_text(f'[[upstream]]\nname = "u"\nbase_url = "{address}/v1"\n{MODELS}', "utf-8")
        code, _, errors = cli("aider")
        assert code == 2 and "there are: coder, writer" in errors
        code, out, errors = cli("aider", "--model", "coder")
        assert (code, out) == (0, "openai/coder\n"), errors
    code, _, errors = cli("aider", "--model", "x", "--config", os.devnull)
    assert code == 2 and "--base-url" in errors


MODELS = '[[model]]\nname = "coder"\nmodel = "big"\n[[model]]\nname = "writer"\nmodel = "small"\n'


def test_a_gateway_with_client_keys(cli: Cli, home: Path, sim: Sim, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "tg-0123456789abcdef0123456789abcdef"
    install_claude(home)
    monkeypatch.setenv("TOOLGLOT_CLIENT_KEYS", str(KeyHash.of(key)))
    code, _, errors = cli("claude", "--base-url", sim.base_url)
    assert code == 2 and "needs a client key: set TOOLGLOT_KEY" in errors
    monkeypatch.setenv("TOOLGLOT_KEY", key)
    code, out, errors = cli("claude", "--base-url", sim.base_url)
    assert code == 0 and "called write" in out and key not in out + errors


# What is run


@pytest.mark.parametrize("agent", STARTED, ids=lambda agent: agent.name)
def test_print_shows_all_and_runs_nothing(agent: Any, cli: Cli, home: Path) -> None:
    options = ("--print", "--model", "m-7", "--base-url", "http://127.0.0.1:9/v1")
    code, out, errors = cli(agent.name, *options, "--", "extra argument")
    assert (code, errors) == (0, "") and "http://127.0.0.1:PORT" in out and "m-7" in out
    assert out.splitlines()[-1].startswith(agent.start.split()[0]) and out.endswith("'extra argument'\n")
    plan = json.loads(cli(agent.name, *options, "--json")[1])
    assert plan["command"][0] == agent.start.split()[0] and list(home.iterdir()) == []


def test_options_of_codex_are_toml() -> None:
    agent = find_agent("codex")
    assert agent is not None
    connection = Connection(address="http://127.0.0.1:1", model='a"b\\c', key="k")
    command = agent.list_command(["exec"], connection)
    values = [word for before, word in pairwise(command) if before == "--config"]
    settings = tomllib.loads("\n".join(values))
    assert settings["model"] == 'a"b\\c' and command[-1] == "exec"
    assert settings["model_providers"]["toolglot"]["env_key"] == "TOOLGLOT_KEY"
    assert agent.list_variables({}, connection) == {"TOOLGLOT_KEY": "k"}


def test_a_configuration_in_a_variable_is_extended(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", '{"theme": "mine", "model": "other"}')
    plan = json.loads(cli("opencode", "--print", "--json", "--model", "m")[1])
    config = json.loads(plan["environment"]["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "mine" and config["model"] == "toolglot/m"


def test_proxies_are_bypassed_and_other_providers_unset(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:1")
    monkeypatch.setenv("NO_PROXY", "intern")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    plan = json.loads(cli("claude", "--print", "--json")[1])
    assert plan["environment"]["NO_PROXY"] == "intern,127.0.0.1,localhost" and plan["unset"] == ["ANTHROPIC_API_KEY"]


def test_names_without_a_model_go_to_the_chosen_one() -> None:
    settings = load({"base_url": "http://127.0.0.1:9/v1", "model": "env"}, {})
    assert direct_others(settings, "mine").model_for("claude-haiku")[0].model == "mine"
    assert direct_others(settings, "mine").model_for("mine")[0].model == "mine"


# Signals


def start(home: Path, sim: Sim, text: str) -> subprocess.Popen[str]:
    install(home, "aider", text)
    process = subprocess.Popen(
        [sys.executable, "-m", "toolglot", "run", "aider", "--base-url", sim.base_url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


WAITING = "trap 'echo got {0}; exit 9' {0}\necho ready\nwhile :; do sleep 0.1; done\n"


def test_ctrl_c_is_for_the_program_and_the_summary_follows(home: Path, sim: Sim) -> None:
    process = start(home, sim, WAITING.format("INT"))
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 9 and "got INT" in out and "aider ended with code 9" in errors


def test_ctrl_c_again_does_not_stop_the_summary() -> None:
    with Foreground() as foreground:
        assert foreground.run(["/bin/sh", "-c", "kill -INT $PPID; exit 2"], {}) == 2
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(PATIENCE)


def test_a_signal_during_the_start_of_the_program_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("toolglot.cli.foreground.subprocess.Popen", Slow)
    with Foreground() as foreground:
        assert foreground.run(["/bin/sleep", "60"], {}) == 128 + signal.SIGTERM


def test_a_signal_for_the_command_is_passed_on(home: Path, sim: Sim) -> None:
    process = start(home, sim, WAITING.format("TERM"))
    process.terminate()
    out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 9 and "got TERM" in out and "aider ended with code 9" in errors


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_program_that_stops_itself_gives_the_terminal_back(home: Path, sim: Sim) -> None:
    process = start(home, sim, "echo ready\nkill -STOP $$\nexit 4\n")
    wait_until(lambda: state_of(process.pid) == "T")
    os.killpg(process.pid, signal.SIGCONT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 4


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_gateway_ends_with_the_command(home: Path, sim: Sim) -> None:
    process = start(home, sim, "echo ready\nsleep 60\n")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()
    commands = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in children}
    gateway = next(child for child, command in commands.items() if b"gateway_process" in command)
    program = next(child for child, command in commands.items() if b"aider" in command)
    process.kill()
    process.wait(PATIENCE)
    wait_until(lambda: state_of(gateway) in ("", "Z"))
    os.killpg(program if state_of(program) == "" else os.getpgid(program), signal.SIGKILL)
    process.communicate()


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)

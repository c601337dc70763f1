"""The commands in README.md and docs/tutorial.md, and the programs of docs/usage-guide.md, run as they are printed.

They run in an empty folder with an empty home, against the simulated model. Only ports are others (8099 is the simulated model,
and so is 8080, which stands for a server of the reader's; 8484 is the gateway), and the model ``any`` of the embedded one. Agents
are replaced by a program that notes its start; ``make test-clients`` runs the real ones. ``NOT_RUN`` says why a command is not run.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.doc_blocks import ROOT, find_blocks, find_inline_commands, split_commands, split_words

from toolglot.clients.agents import AGENTS

README, TUTORIAL, GUIDE = ROOT / "README.md", ROOT / "docs/tutorial.md", ROOT / "docs/usage-guide.md"
NOT_RUN = {
    r"make run": "creates an environment and installs a model; tests/server/test_embedded.py starts the same gateway",
    r"make (test|bench|docs)[a-z-]*": "runs for minutes; CI runs the tests and the docs, the benches are run by hand",
    r"python3 -m venv .*|\.venv/bin/pip .*|pip install .*|\. .*activate": "the tests run in such an environment",
    r"toolglot serve --embedded .*": "downloads 1.1 GB",
    r"toolglot [a-z ]+ [A-Z]+": "a name in capitals is to be filled in",
    r"toolglot run opencode --base-url https://.*": "needs a key of DashScope",
    r"toolglot serve": "the simulated model is used instead of the embedded one",
}
PRINTS = {
    r"toolglot setup [\w-]+$": r"called get_weather\(\{\"city\":\"Paris\"\}\)",
    r"toolglot setup \w+ --undo": "removed .*, which setup had made",
    r"toolglot doctor": "ok +call +(sim|qwen3.7-plus), streamed",
    r"toolglot explain": "tier +text",
    r"toolglot read": "get_weather",
    r"toolglot records list$": "rec_",
    r"toolglot sessions list": "ses_",
    r"toolglot report": "success rate +100.0 %",
    r"toolglot --version": r"toolglot \d",
    r"curl -s": r'"name":"(get_weather|read)","arguments":"\{\\"(city|filePath)\\":\\"(Paris|package.json)\\"\}"',
}
"""What a command prints if it works."""
AGENT = """#!/bin/sh
echo "$0" "$@" > started
"""
LITELLM = (
    "model_list:\n  - model_name: sim\n    litellm_params: {model: openai/sim, api_base: 'http://127.0.0.1:8099/v1'}\n"
)
TOML = '[[upstream]]\nname = "sim"\nbase_url = "http://127.0.0.1:8099/v1"\n'
SECONDS = 120.0
READY = {"sim": "toolglot sim: a simulated ", "serve": "is listening"}
"""What a server prints when it listens."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


class Shell:
    """A folder, an environment, and the servers that were started in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"8484": free_port(), "8099": free_port()}
        self.ports["8080"] = self.ports["8099"]
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        self.environ = {"HOME": str(folder / "home"), "LANG": "C.UTF-8", "TMPDIR": str(folder)}
        self.environ |= {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CONFIG", "STATE", "CACHE")}
        programs = folder / "programs"
        programs.mkdir()
        for agent in AGENTS:
            for name in {agent.name, agent.name.replace("continue", "cn")}:
                (programs / name).write_text(AGENT)
                (programs / name).chmod(0o755)
        self.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"], str(programs)])
        self.environ["TOOLGLOT_PORT"] = str(self.ports["8484"])
        (folder / "home").mkdir()
        (folder / "config.yaml").write_text(self.adapt(LITELLM))
        (folder / "toolglot.toml").write_text(self.adapt(TOML))

    def adapt(self, command: str) -> str:
        """The command with the ports of this test."""
        for printed, port in self.ports.items():
            command = command.replace(f"127.0.0.1:{printed}", f"127.0.0.1:{port}")
        return re.sub(r"^toolglot sim\b", f"toolglot sim --port {self.ports['8099']}", command)

    def run(self, command: str) -> str:
        """Run a command as printed; a server goes on, in place of the one before. Returns its output."""
        words = split_words(command)
        if words[:2] in (["toolglot", "sim"], ["toolglot", "serve"]):
            self.serve(words[1], command)
            return ""
        ended = subprocess.run(
            ["bash", "-euc", self.adapt(command)],
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        output = ended.stdout + ended.stderr
        assert ended.returncode == 0, f"{command}\n{output}"
        for pattern, printed in PRINTS.items():
            if re.match(pattern, command.split("  #")[0].strip()):
                assert re.search(printed, output), f"{command}\n{output}"
        return output

    def serve(self, name: str, command: str) -> None:
        self.stop(name)
        log = self.folder / f"{name}.log"
        with log.open("w") as output:
            server = subprocess.Popen(
                ["bash", "-euc", f"exec {self.adapt(command)}"],
                cwd=self.folder,
                env=self.environ,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.servers[name] = server
        limit = time.monotonic() + SECONDS
        while READY[name] not in log.read_text():
            assert server.poll() is None, f"{command}\n{log.read_text()}"
            assert time.monotonic() < limit, f"{command} does not listen\n{log.read_text()}"
            time.sleep(0.05)

    def stop(self, name: str) -> None:
        server = self.servers.pop(name, None)
        if server is not None:
            server.terminate()
            assert server.wait(SECONDS) is not None

    def close(self) -> None:
        for name in list(self.servers):
            self.stop(name)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def printed_commands(page: Path) -> list[str]:
    """The commands of the shell blocks of a page, then those in its text."""
    commands = [
        command for block in find_blocks(page) if block.language == "sh" for command in split_commands(block.text)
    ]
    return list(dict.fromkeys([*commands, *find_inline_commands(page)]))


def list_chat_commands() -> list[str]:
    """The commands of README.md for the web chat of Qwen: its last shell block with that token."""
    block = next(block for block in find_blocks(README) if block.language == "sh" and "QWEN_TOKEN" in block.text)
    return list(split_commands(block.text))


def list_other_commands() -> list[str]:
    return [command for command in printed_commands(README) if command not in list_chat_commands()]


def reason_not_to_run(command: str) -> str:
    plain = command.split("  #")[0].strip()
    return next((reason for pattern, reason in NOT_RUN.items() if re.fullmatch(pattern, plain)), "")


def test_every_reason_is_needed() -> None:
    commands = [command for page in (README, TUTORIAL) for command in printed_commands(page)]
    unused = [
        pattern
        for pattern in NOT_RUN
        if not any(re.fullmatch(pattern, command.split("  #")[0].strip()) for command in commands)
    ]
    assert unused == []


def test_the_tutorial(shell: Shell) -> None:
    ran = []
    for command in printed_commands(TUTORIAL):
        if reason_not_to_run(command):
            continue
        output = shell.run(command)
        ran.append(command.split("\n")[0])
        if command.startswith("toolglot sim --defects"):
            first = next(other for other in printed_commands(TUTORIAL) if other.startswith("curl -s"))
            shell.run(first)
        if command == "toolglot records list --limit 1 --json":
            limit = time.monotonic() + SECONDS
            while len(json.loads(output)["attempts"]) != 2:  # a record is written behind the answer
                assert time.monotonic() < limit, output
                output = shell.run(command)
    assert len(ran) >= 16, ran
    assert (shell.folder / "home/.codex/config.toml").is_file()
    assert not (shell.folder / "home/.claude/settings.json").exists()


def test_the_readme(shell: Shell) -> None:
    shell.run("toolglot sim")
    commands = list_other_commands()
    for command in commands:
        if command.startswith("toolglot serve") and not reason_not_to_run(command):
            shell.run(command)
    agents = 0
    for command in commands:
        if command.startswith(("toolglot serve", "toolglot sim", "toolglot run")) or reason_not_to_run(command):
            continue
        output = shell.run(command.replace('"model": "any"', '"model": "sim"'))
        if split_words(command)[1:2] == ["setup"]:
            agents += 1
            assert output
    assert agents == len(AGENTS)


def test_the_readme_runs_every_agent(shell: Shell) -> None:
    """Each line starts the agent's program."""
    shell.run("toolglot sim")
    lines = [command for command in list_other_commands() if command.startswith("toolglot run ")]
    for command in (line for line in lines if not reason_not_to_run(line)):
        shell.run(command)
        assert (shell.folder / "started").is_file(), command
        (shell.folder / "started").unlink()
    assert len(lines) >= 10


def test_the_qwen_chat_of_the_readme(shell: Shell) -> None:
    """As printed, with a simulated account."""
    shell.run("toolglot sim --wire qwen_web")
    [settings] = [block.text for block in find_blocks(README) if block.language == "toml" and "qwen_web" in block.text]
    (shell.folder / "qwen.toml").write_text(
        settings.replace("https://chat.qwen.ai", shell.adapt("http://127.0.0.1:8099"))
    )
    export, *commands = list_chat_commands()
    assert export.startswith("export QWEN_TOKEN=")
    for command in commands:
        needs = not command.startswith("toolglot setup")  # that asks the gateway
        shell.environ = {**shell.environ, "QWEN_TOKEN": "sim-token" if needs else ""}
        output = shell.run(command)
        assert not command.startswith("toolglot run") or (shell.folder / "started").is_file(), output
    assert len(commands) == 4


def test_the_programs_of_the_usage_guide(shell: Shell) -> None:
    programs = 0
    for block in sorted(find_blocks(GUIDE), key=lambda block: block.line):
        if block.language == "python":
            (shell.folder / "program.py").write_text(shell.adapt(block.text))
            assert shell.run("python program.py")
            programs += 1
        elif block.language == "sh":
            for command in split_commands(block.text):
                shell.run(command)
    assert programs == 3

"""Shell completion, in real shells: keys are typed into bash and zsh at a terminal, and fish is asked."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolglot.cli.completion import WRITERS, walk
from toolglot.cli.main import COMMANDS, build_parser

PROMPT = "READY>"
QUIET_SECONDS = 0.7
TIMEOUT = 60.0
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>()][0-9A-Z]?|\][^\x07]*\x07)|\r|\x07")


class Terminal:
    """A shell at a pseudo-terminal."""

    def __init__(self, command: list[str], folder: Path) -> None:
        environment = os.environ | {
            "TERM": "xterm",
            "PS1": PROMPT,
            "PROMPT": PROMPT,
            "HOME": str(folder),
            "COLUMNS": "200",
        }
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment, start_new_session=True
        )
        os.close(slave)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def read_until(self, pattern: str) -> str:
        """The output up to a match. Fails after a minute without one."""
        shown, end = "", time.monotonic() + TIMEOUT
        while not re.search(pattern, ESCAPES.sub("", shown)):
            assert time.monotonic() < end, f"no {pattern!r} in {shown!r}"
            if select.select([self.master], [], [], QUIET_SECONDS)[0]:
                shown += os.read(self.master, 65536).decode("utf-8", "replace")
        return ESCAPES.sub("", shown)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture(params=["bash", "zsh"])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    shell = shutil.which(request.param)
    if shell is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "answers.txt").write_text("x")
    script = tmp_path / "completion"
    script.write_text(
        subprocess.run(
            [sys.executable, "-m", "toolglot", "completion", request.param], capture_output=True, text=True, check=True
        ).stdout
    )
    start, prepare = {
        "bash": ([shell, "--norc", "--noprofile", "-i"], f"bind 'set enable-bracketed-paste off'; source {script}"),
        "zsh": ([shell, "-f", "-i"], f"autoload -Uz compinit && compinit -u -D && source {script}"),
    }[request.param]
    opened = Terminal(start, tmp_path)
    try:
        opened.read_until(PROMPT)
        opened.type(f"{prepare}; toolglot() {{ echo \"<$*>\"; }}; toolglot rea''dy\n")
        opened.read_until("<ready>")
        yield opened
    finally:
        opened.close()


TYPED = [
    ("dia", "dialects"),
    ("records li", "records list"),
    ("records list --limit 3 --outc", "records list --limit 3 --outcome"),
    ("serve --dialect qwen3_c", "serve --dialect qwen3_coder"),
    ("config show --json --mode nat", "config show --json --mode native"),
    ("setup openco", "setup opencode"),
    ("completion zs", "completion zsh"),
    ("read answ", "read answers.txt"),
    ("serve --config answ", "serve --config answers.txt"),
    ("dialects answ", "dialects answ"),
    ("read answers.txt --tool", "read answers.txt --tool"),
]


def test_a_shell_completes_what_is_typed(terminal: Terminal) -> None:
    for typed, completed in TYPED:
        terminal.type(f"toolglot {typed}\t\n")
        shown = terminal.read_until("<(.*)>\n")
        assert f"<{completed}>" in shown, typed


FISH = [
    ("toolglot dia", ["dialects"]),
    ("toolglot records li", ["list"]),
    ("toolglot key cr", ["create"]),
    ("toolglot records list --limit 3 --outc", ["--outcome"]),
    ("toolglot serve --dialect qwen3_c", ["qwen3_coder"]),
    ("toolglot config show --json --mode nat", ["native"]),
    ("toolglot setup openco", ["opencode"]),
    ("toolglot completion ", ["bash", "fish", "zsh"]),
    ("toolglot read answ", ["answers.txt"]),
    ("toolglot serve --config answ", ["answers.txt"]),
    ("toolglot dialects answ", []),
    ("toolglot serve --port answ", []),
]


def test_fish_completes(tmp_path: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    (tmp_path / "answers.txt").write_text("x")
    script = tmp_path / "toolglot.fish"
    script.write_text("\n".join(WRITERS["fish"](list(walk(build_parser())))))
    questions = "; ".join(f"complete -C '{typed}'; echo ==" for typed, _ in FISH)
    done = subprocess.run(
        [fish, "--no-config", "-c", f"source {script}; {questions}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"HOME": str(tmp_path)},
        check=True,
    )
    assert done.stderr == ""
    answers = [[line.split("\t")[0] for line in part.splitlines()] for part in done.stdout.split("==\n")]
    assert dict(zip([typed for typed, _ in FISH], answers, strict=False)) == dict(FISH)


def test_every_command_and_option_is_known() -> None:
    nodes = {node.path: node for node in walk(build_parser())}
    assert set(COMMANDS) == set(nodes[""].children)
    assert {"records list", "key create", "config check"} <= set(nodes)
    assert all(any("--help" in option.flags for option in node.options) for node in nodes.values())
    for writer in WRITERS.values():
        script = "\n".join(writer(list(nodes.values())))
        assert all(name in script for name in COMMANDS)

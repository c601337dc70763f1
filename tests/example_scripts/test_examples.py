"""Every example, run as its header says, against the simulated model."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from agents.cycles import NODE, PACKAGES
from agents.programs import serving
from example_scripts.conftest import EXAMPLES, ROOT, Start
from support.loopback import Loop, Sim, running_sim

from toolglot.config import load
from toolglot.config.settings import FALLBACK, SETTINGS

READING = "whole:    read"
LISTED = "There are two: package.json and src."
PROJECT = "The package.json shows this is the qwen-proxy project, version 1.0.0. It's an OpenAI-compatible proxy for Qwen models."
TESTED = "The tests pass."
SERVED = "The server listens on port 3000."

CLIENTS = {
    "openai_chat.py": (READING, "streamed: 'I list them.' bash", PROJECT, TESTED),
    "anthropic_messages.py": (READING, "streamed: 'I list them.' [('bash'", PROJECT, TESTED),
    "langchain_agent.py": (READING, "['bash'] [['package.json', 'src']]", LISTED, PROJECT, TESTED),
    "pydantic_ai_agent.py": ("streamed: bash", "['package.json', 'src']", LISTED, SERVED, PROJECT, TESTED),
    "openai_agents_runner.py": (
        "streamed: bash",
        LISTED,
        SERVED,
        *(f"{PROJECT} ({wire})" for wire in ("chat", "responses")),
    ),
}
"""The scripts, and what each prints."""


def texts_at_model(sim: Sim, before: int) -> str:
    return json.dumps([seen.body["messages"] for seen in sim.since(before)], ensure_ascii=False)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_runs_the_scenarios(name: str, start: Start, gateway: str, sim: Sim) -> None:
    before = sim.total
    ended = start("python", EXAMPLES / name, TOOLGLOT_URL=gateway)
    assert ended.code == 0, ended
    for line in CLIENTS[name]:
        assert line in ended.stdout, ended
    check_results(sim, before)


def check_results(sim: Sim, before: int) -> None:
    """The model was taught the tools as text, and got what the tools returned."""
    seen = texts_at_model(sim, before)
    assert "all 3 tests of the project pass" in seen and "qwen-proxy" in seen
    assert "<filePath>package.json</filePath>" in seen, "the earlier call is in the history, in the dialect"
    assert not any("tools" in request.body for request in sim.since(before))


def test_the_ai_sdk_runs_the_scenarios(start: Start, gateway: str, sim: Sim, tmp_path: Path) -> None:
    """With the packages of `make test-clients`, which are of the same versions."""
    pinned = json.loads((EXAMPLES / "package.json").read_text("utf-8"))["dependencies"]
    tested = json.loads((ROOT / "tests/agents/package.json").read_text("utf-8"))["dependencies"]
    assert pinned == {name: tested[name] for name in pinned}
    if not NODE.exists():
        pytest.fail("the AI SDK is missing; 'make test-examples' installs it")
    shutil.copy(EXAMPLES / "aisdk.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    before = sim.total
    ended = start(NODE, tmp_path / "aisdk.mjs", TOOLGLOT_URL=gateway)
    assert ended.code == 0, ended
    for line in (READING, "streamed: bash", f"end:      {LISTED}", f"cycle:    {PROJECT}", f"cycle:    {TESTED}"):
        assert line in ended.stdout, ended
    check_results(sim, before)


def test_the_requests_are_answered_as_expected(start: Start, gateway: str) -> None:
    ended = start("python", EXAMPLES / "tool_examples.py", TOOLGLOT_URL=gateway)
    assert ended.code == 0, ended
    names = [
        example["name"] for example in json.loads((EXAMPLES / "opencode_tool_examples.json").read_text())["examples"]
    ]
    ways = [f"ok   {name} ({way})" for name in names for way in ("whole", "streamed")]
    assert ended.stdout.splitlines() == ways and len(names) == 3


def test_an_unexpected_answer_is_reported(start: Start, loop: Loop) -> None:
    """Without a gateway the calls stay text, and the script says so."""
    script = tomllib.loads((EXAMPLES / "scenarios.toml").read_text("utf-8"))
    with running_sim(loop, script, dialect="hermes") as sim:
        ended = start("python", EXAMPLES / "tool_examples.py", TOOLGLOT_URL=sim.address)
    assert ended.code == 1, ended
    assert (ended.stdout.count("FAIL "), ended.stdout.count("ok  ")) == (4, 2), ended


def test_a_log_is_read(start: Start) -> None:
    ended = start("python", EXAMPLES / "read_log.py")
    assert ended.code == 1, ended
    assert ended.stdout.splitlines() == [
        'hermes: read_file {"path":"src/a.py"} (hermes)',
        'roo: write_file {"path":"page.html","content":"<p>1 < 2</p>","line_count":1} (roo_xml)',
        'stream: read_file {"path":"b/c.txt"} (mistral_args)',
        'damaged: read_file {"path":"d.txt"} (fenced_json, repaired: single_quotes)',
        "line 8: text only",
        *(line for line in ended.stdout.splitlines() if line.startswith("cut: no call (truncated")),
        "4 calls, 1 rejected",
    ]


def test_before_and_after_with_the_library_alone(start: Start) -> None:
    ended = start("python", EXAMPLES / "before_after.py")
    assert ended.code == 0, ended
    sections = dict(part.partition("\n")[::2] for part in re.split(r"^##+ ", ended.stdout, flags=re.MULTILINE)[1:])
    assert "<tool_name>" in sections["Tool Call Format"]
    called = r'"arguments": "{\"filePath\":\"/home/user/project/package.json\"}"'
    assert called in sections["A call with one parameter"]
    assert '"tool_calls"' not in sections["No call"]
    assert sections["Two calls in one answer"].count('"type": "function"') == 2
    assert '"role": "assistant"' in sections["A call and its result in the next request"]


def test_the_library_needs_no_server_package() -> None:
    """The examples of the library import nothing but toolglot and the standard library."""
    for name in ("read_log.py", "before_after.py", "use_dialect_plugin.py"):
        tree = ast.parse((EXAMPLES / name).read_text("utf-8"))
        roots = {
            node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
        }
        roots |= {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        }
        assert roots - sys.stdlib_module_names == {"toolglot"}, name


def test_a_program_runs_a_gateway(start: Start, sim: Sim) -> None:
    ended = start("python", EXAMPLES / "embed_gateway.py")
    assert ended.code == 0, ended
    address, call, stopped = ended.stdout.splitlines()
    assert address.startswith("gateway: http://127.0.0.1:")
    assert (call, stopped) == ('call: get_weather {"city":"Oslo"}', "stopped")
    other = start("python", EXAMPLES / "embed_gateway.py", sim.base_url, "sim")
    assert other.code == 0 and call in other.stdout, other


def test_an_asgi_server_runs_a_gateway(start: Start, sim: Sim, python: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [python, "-m", "uvicorn", "--app-dir", EXAMPLES, "asgi_app:app", "--port", "0"]
    environment = {"PATH": str(python.parent), "UPSTREAM": sim.base_url, "HOME": str(tmp_path)}
    with serving("uvicorn", command, tmp_path, environment, tmp_path / "uvicorn.log") as server:
        ended = start("python", EXAMPLES / "openai_chat.py", TOOLGLOT_URL=f"{server.address}/llm")
        assert ended.code == 0, (ended, str(server))
        for line in CLIENTS["openai_chat.py"]:
            assert line in ended.stdout
        about = start("python", "-c", f"import urllib.request as u; print(u.urlopen('{server.address}/about').read())")
        assert "/llm/v1" in about.stdout, about
    assert "Application shutdown complete" in str(server) and "Traceback" not in str(server)


def test_an_installed_package_brings_a_dialect(start: Start, python: Path, tmp_path: Path) -> None:
    """Installed as a user installs it, into a folder of its own."""
    uv = ROOT / ".venv/bin/uv"
    tool = [uv, "pip", "install", "--python", python] if uv.exists() else [python, "-m", "pip", "install"]
    target = tmp_path / "packages"
    install = [*tool, "--quiet", "--no-deps", "--target", target, EXAMPLES / "dialect_plugin"]
    subprocess.run(list(map(str, install)), check=True, capture_output=True)
    ended = start("python", EXAMPLES / "use_dialect_plugin.py", PYTHONPATH=str(target))
    assert ended.code == 0 and ended.stderr == "", ended
    lines = ended.stdout.splitlines()
    assert lines[0] == "arrow_call comes from toolglot_arrows:DIALECTS"
    assert lines[1].endswith("""WHERE note = '<== old'"} (dialect arrow_call)""")
    assert lines[2] == 'written: ==> query_db {"sql": "SELECT 1"} <=='
    listed = start(python.parent / "toolglot", "dialects", PYTHONPATH=str(target))
    assert re.search(r"^arrow_call +arrows +toolglot_arrows:DIALECTS", listed.stdout, re.MULTILINE), listed
    missing = start("python", EXAMPLES / "use_dialect_plugin.py")
    assert missing.code == 1 and "pip install ./examples/dialect_plugin" in missing.stderr


# -- the folder itself -------------------------------------------------------------------------------------------------


def test_every_variable_of_the_environment_file_is_a_setting() -> None:
    lines = [line for line in (EXAMPLES / ".env.example").read_text("utf-8").splitlines() if re.match(r"\w+=", line)]
    variables = dict(line.split("=", 1) for line in lines)
    known = {name for one in (*SETTINGS, *FALLBACK) for name in one.variables}
    assert variables.keys() <= known, variables.keys() - known
    settings = load({}, variables)
    assert settings.upstreams[0].base_url == variables["TOOLGLOT_BASE_URL"] and not settings.notes


def test_every_example_is_in_the_index_and_says_how_it_is_run() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")
    known = set(re.findall(r"\]\(([^)]+)\)", index))
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()} - {"README.md"}
    assert files <= known, files - known
    for name in files:
        text = (EXAMPLES / name).read_text("utf-8")
        if name.endswith((".py", ".mjs")):
            command = {".py": "python", ".mjs": "node"}[Path(name).suffix]
            assert f"{command} examples/{name}" in text[:800] or "uvicorn --app-dir examples" in text[:800], name

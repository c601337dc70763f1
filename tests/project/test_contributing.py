"""The how-tos of CONTRIBUTING.md, each executed on a copy of the project with the code that the page shows."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
BLOCK = re.compile(r"^( *)(`{3,})(\w+)\n(.*?)^\1\2$", re.DOTALL | re.MULTILINE)
LEFT_OUT = shutil.ignore_patterns("node_modules", "agents", "browser", "faults")
"""Compiled files are copied: with the times of their sources, which the copy keeps, they are used there."""


Run = Callable[..., str]


def blocks(heading: str) -> list[str]:
    """The code blocks of a section, without their indentation."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE, re.DOTALL | re.MULTILINE)
    assert section is not None, heading
    return [textwrap.dedent(found[4]) for found in BLOCK.finditer(section[1])]


def named_files(heading: str) -> list[str]:
    """The files that a section creates or edits, in order."""
    section = GUIDE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return [name for name in re.findall(r"`((?:src|tests)/[\w./]+\.\w+)`", section) if "<" not in name]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("src", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def run(copy: Path) -> Run:
    """Runs a Python module on the copy and gives its output; ``fails``: it must end with an error."""

    def start(*arguments: str, fails: bool = False, stdin: str = "", **variables: str) -> str:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLGLOT_", "PYTEST_"))}
        environ |= {"PYTHONPATH": str(copy / "src"), **variables}
        command = [sys.executable, *arguments]
        ended = subprocess.run(command, cwd=copy, env=environ, input=stdin, capture_output=True, text=True, check=False)
        assert bool(ended.returncode) == fails, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    return start


def extend_class(path: Path, name: str, line: str) -> None:
    """Add a line at the end of the fields of a class."""
    text = path.read_text("utf-8")
    found = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    last = max(node.end_lineno or 0 for node in found.body if isinstance(node, ast.AnnAssign))
    lines = text.splitlines()
    lines.insert(last, f"    {line.strip()}")
    path.write_text("\n".join(lines) + "\n", "utf-8")


UNUSED = ("cacheprovider", "xdist", "xdist.looponfail", "anyio", "schemathesis")
PYTEST = ("-m", "pytest", "-q", *(part for plugin in UNUSED for part in ("-p", f"no:{plugin}")))

DIALECT_WORKS = """
import toolglot

tool = {"name": "query_db", "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}}}
reading = toolglot.read('Now.\\n==> query_db {"sql": "SELECT 1"} <==', [tool])
assert [(call.name, call.arguments, call.dialect, call.repairs) for call in reading.calls] == [
    ("query_db", '{"sql":"SELECT 1"}', "arrow_call", ())
], reading
assert reading.text == "Now."
written = toolglot.write("query_db", '{"sql":"a <== b"}', "arrow_call")
assert [call.arguments for call in toolglot.read(written, [tool]).calls] == ['{"sql":"a <== b"}'], written
prompt = toolglot.teach([tool], dialect="arrow_call")
assert "==> tool_name" in prompt and "query_db" in prompt, prompt
assert toolglot.teach([tool], dialect="arrow-7b") == prompt
"""


def test_a_dialect_is_added(copy: Path, run: Run) -> None:
    record, sample = blocks("Add a dialect")
    at_record = copy / "src/toolglot/dialects/records/arrows.py"
    at_sample = copy / "tests/data/dialects/arrow_call/one.md"
    created = [str(path.relative_to(copy)) for path in (at_record, at_sample)]
    assert [name for name in named_files("Add a dialect") if name in created] == created

    at_record.write_text(record, "utf-8")
    run("-c", DIALECT_WORKS)
    forgotten = run(*PYTEST, "tests/dialects/test_dialects.py", "-k", "own and arrow_call", fails=True)
    assert "tests/data/dialects/arrow_call" in forgotten

    at_sample.parent.mkdir()
    at_sample.write_text(sample, "utf-8")
    run(*PYTEST, "tests/dialects/test_dialects.py", "-k", "arrow_call", "--update-samples")
    assert "### Call `query_db`" in at_sample.read_text("utf-8")
    run(*PYTEST, "tests/dialects/test_dialects.py", "-k", "arrow_call")


def test_a_setting_is_added(copy: Path, run: Run) -> None:
    [line] = blocks("Add a setting")
    assert named_files("Add a setting")[0] == "src/toolglot/config/settings.py"
    extend_class(copy / "src/toolglot/config/settings.py", "ServerSettings", line)
    shown = run("-m", "toolglot", "config", "show", TOOLGLOT_GREETING="hello")
    assert re.search(r"server\.greeting .*hello.*TOOLGLOT_GREETING", shown), shown
    table = copy / "tests/config/test_config.py"
    check = (*PYTEST, "tests/config/test_config.py", "-k", "variable or documentation_names")
    forgotten = run(*check, fails=True)
    assert "add server.greeting to SAMPLES" in forgotten and "documentation_names" in forgotten
    table.write_text(
        table.read_text("utf-8").replace("Any]] = {", 'Any]] = {\n    "server.greeting": ("hi", "hi"),', 1)
    )
    undocumented = run(*check, fails=True)
    assert "SAMPLES" not in undocumented and "1 failed" in undocumented
    run(*check, "--update-samples")
    run(*check)
    assert "| `server.greeting` |" in (copy / "docs/CONFIGURATION.md").read_text("utf-8")


def test_a_wire_field_that_is_forgotten_names_each_place(copy: Path, run: Run) -> None:
    [field] = blocks("Add a wire field")
    extend_class(copy / "src/toolglot/core/conversation.py", "Sampling", field)
    table = copy / "tests/wires/test_wire_fields.py"
    check = (*PYTEST, "tests/wires/test_wire_fields.py")
    assert "give it a value in VALUES" in run(*check, fails=True)

    text = table.read_text("utf-8")
    text = text.replace('    "effort": "low",\n', '    "effort": "low",\n    "frequency_penalty": 0.5,\n')
    table.write_text(text, "utf-8")
    named = run(*check, fails=True)
    wires = sorted(path.parent.name for path in (copy / "src/toolglot/wires").glob("*/request_decoder.py"))
    for wire in wires:
        for module in ("request_decoder", "request_encoder"):
            assert f"src/toolglot/wires/{wire}/{module}.py" in named

    places = dict.fromkeys(wires, "") | {"openai_chat": "frequency_penalty"}
    row = f'    "frequency_penalty": {places!r},\n'
    table.write_text(text.replace('    "effort": {\n', f'{row}    "effort": {{\n'), "utf-8")
    named = run(*check, fails=True)
    assert "wires/openai_chat/request_encoder.py does not write frequency_penalty" in named
    assert "1 failed" in named


ROO_IS_DETECTED = """
from support.xmlprompts import write_roo
from toolglot.clients.xml.detection import detect_client
from toolglot.core.conversation import Conversation, Message, Text

asked = Conversation("m", (Message("system", (Text(write_roo()),)), Message("user", (Text("go"),))))
found = [detect_client(asked, {"User-Agent": f"RooCode/{version}"}) for version in ("3.39.9", "3.40.0", "3.41.2")]
assert [one and one.profile for one in found] == ["roo-3.36", "roo-3.40", "roo-3.40"], found
"""


def test_a_version_of_an_xml_client_is_added(copy: Path, run: Run) -> None:
    profile, version = blocks("Add an XML client version")
    profiles, detection = (copy / name for name in named_files("Add an XML client version"))
    profiles.write_text(profiles.read_text("utf-8") + profile, "utf-8")
    rows = re.compile(r"^ROO_VERSIONS.*\(\n", re.MULTILINE)
    text, count = rows.subn(lambda found: f"{found[0]}    {version}", detection.read_text("utf-8"))
    assert count == 1
    detection.write_text(text, "utf-8")
    run("-c", ROO_IS_DETECTED, PYTHONPATH=os.pathsep.join((str(copy / "src"), str(copy / "tests"))))
    shown = run("-m", "toolglot", "config", "show", TOOLGLOT_XML_CLIENTS="roo-3.40")
    assert re.search(r"clients\.xml +roo-3\.40", shown), shown
    run(*PYTEST, "tests/clients/test_xml_forms.py", "-k", "3.40", EACH_ROW="1")


def test_a_profile_rule_is_added(copy: Path, run: Run) -> None:
    [rule] = blocks("Add a profile rule")
    rules = copy / named_files("Add a profile rule")[0]
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    body = json.dumps({"model": "sage-1", "messages": [{"role": "user", "content": "go"}], "tools": [tool]})
    address = ("--base-url", "https://api.example-cloud.test/v1", "--model", "sage-1")
    explain = ("-m", "toolglot", "explain", "--state-dir", "none", *address)
    assert "Example Cloud" not in run(*explain, stdin=body)

    text = rules.read_text("utf-8")
    rules.write_text(text.replace("\n[[rule]]", f"\n{rule}\n[[rule]]", 1), "utf-8")
    explained = run(*explain, stdin=body)
    assert "(Example Cloud)" in explained and "native" in explained

    rules.write_text(text, "utf-8")
    own = copy / "own.toml"
    own.write_text(rule, "utf-8")
    assert "(Example Cloud)" in run(*explain, "--profiles", str(own), stdin=body)

"""Every code block of the docs: Python compiles and imports what exists, settings load, commands and options exist.

The blocks of docs/library.md, docs/before-after.md and README.md are executed here, those of docs/usage-guide.md and the commands
of README.md and docs/tutorial.md in tests/example_scripts, those of CONTRIBUTING.md in test_contributing.py.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.doc_blocks import ROOT, Block, find_blocks, find_inline_commands, split_commands, split_words
from support.rows import in_one_test

from toolglot.cli.main import COMMANDS, build_parser
from toolglot.config import load
from toolglot.config.settings import SECTIONS, TABLES
from toolglot.dialects.records import all_dialects
from toolglot.gateway.capabilities.profiles import load_profiles
from toolglot.sim.script import load_script

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), ROOT / "bench/README.md"])
HISTORY = ROOT / "CHANGELOG.md"
BLOCKS = [block for page in PAGES if page != HISTORY for block in find_blocks(page)]
EXECUTED = [ROOT / name for name in ("README.md", "docs/library.md", "docs/before-after.md", "docs/clients.md")]
SERVERS = {"vllm", "llama-server", "ollama", "lms"}
"""Programs of others, of which only the name is checked."""
PROGRAMS = SERVERS | {"claude", "curl", "cat", "python", "python3", ".", ".venv/bin/pip", ".venv/bin/pre-commit", "pip"}
UNCHECKED = ("", "text", "markdown", "xml", "diff")
ALLOW_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
OUTPUT_COMMENT = re.compile(r"  # (?P<value>.+)$")


def blocks(*languages: str) -> list[Any]:
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.language in languages]


def test_every_language_is_checked() -> None:
    known = {"python", "sh", "toml", "json", "yaml", *UNCHECKED}
    assert [f"{block}: {block.language}" for block in BLOCKS if block.language not in known] == []


@in_one_test("block", blocks("python"))
def test_python_compiles_and_imports_what_exists(block: Block) -> None:
    tree = compile(block.text, str(block), "exec", ast.PyCF_ONLY_AST | ALLOW_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "toolglot":
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("page", EXECUTED, ids=lambda page: page.name)
def test_python_runs_and_gives_what_its_comments_say(page: Path) -> None:
    """``expression  # value``: the expression has that value."""
    names: dict[str, Any] = {}
    checked = 0
    for block in find_blocks(page):
        if block.language != "python":
            continue
        for node in ast.parse(block.text).body:
            lines = block.text.splitlines()[node.lineno - 1 : node.end_lineno]
            comment = OUTPUT_COMMENT.search(lines[-1])
            if isinstance(node, ast.Expr) and comment is not None:
                value = eval(compile(ast.Expression(node.value), str(block), "eval"), names)
                assert repr(value) == comment["value"], lines
                checked += 1
            else:
                exec(compile(ast.Module([node], []), str(block), "exec"), names)
    assert names
    assert checked >= {"README.md": 3, "library.md": 9}.get(page.name, 0)


def load_settings(block: Block, folder: Path) -> None:
    path = folder / "toolglot.toml"
    path.write_text(block.text, "utf-8")
    environ = dict.fromkeys(re.findall(r"(?:env:|os\.environ/)(\w+)", block.text), "secret-0123456789")
    load({"config": str(path)}, environ)


def load_rules(block: Block, folder: Path) -> None:
    path = folder / "own.toml"
    path.write_text(block.text, "utf-8")
    load_profiles(str(path))


def load_answers(block: Block, folder: Path) -> None:
    path = folder / "script.toml"
    path.write_text(block.text, "utf-8")
    load_script(path)


@pytest.mark.parametrize("block", blocks("toml"))
def test_toml_is_what_reads_it(block: Block, tmp_path: Path) -> None:
    document = tomllib.loads(block.text)
    readers: dict[str, Callable[[Block, Path], None]] = dict.fromkeys((*SECTIONS, *TABLES), load_settings)
    readers |= {"rule": load_rules, "answer": load_answers}
    kinds = {readers[key] for key in document if key in readers}
    assert kinds or "model_providers" in document, f"{block}: who reads this?"
    for read in kinds:
        read(block, tmp_path)


@in_one_test("block", blocks("json", "yaml"))
def test_data_is_data(block: Block) -> None:
    (json.loads if block.language == "json" else yaml.safe_load)(block.text)


def check_command(words: list[str]) -> str:
    """What is wrong with a command; "" if nothing is."""
    match words:
        case ["toolglot", "--version" | "--help"]:
            return ""
        case ["toolglot", command, *arguments]:
            if command not in COMMANDS:
                return f"there is no command {command!r}"
            if command == "run" and "--" in arguments:
                arguments = arguments[: arguments.index("--")]  # what follows is for the agent
            complaint = io.StringIO()
            with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(io.StringIO()):
                try:
                    build_parser([command]).parse_args([command, *arguments])
                except SystemExit as stop:
                    return complaint.getvalue() if stop.code else ""
            return ""
        case ["make", *targets]:
            known = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
            return ", ".join({word for word in targets if "=" not in word and word[0] != "-"} - known)
        case [("pip" | ".venv/bin/pip"), "install", extra]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
            found = re.fullmatch(r"\.\[(.+)\]", extra)
            return "" if found and set(found[1].split(",")) <= set(extras) else f"no such extra: {extra}"
        case ["export", *assignments]:
            variables = dict(assignment.split("=", 1) for assignment in assignments)
            own = {name: value for name, value in variables.items() if name.startswith(("TOOLGLOT_", "TOOL_CALLING_"))}
            notes = load({}, {name: value for name, value in own.items() if "$" not in value}).notes
            return "; ".join(notes)
        case ["python" | "python3", "-m", module, *_]:
            return "" if module in ("venv", "sglang.launch_server") else f"unknown module {module}"
    return "" if not words or words[0] in PROGRAMS else f"unknown program {words[0]}"


@in_one_test("block", blocks("sh"))
def test_commands_exist_with_these_options(block: Block) -> None:
    problems = {command: check_command(split_words(command)) for command in split_commands(block.text)}
    missing = [command for command, problem in problems.items() if problem]
    assert missing == [], problems


def test_commands_are_checked() -> None:
    assert check_command(["toolglot", "serve", "--bse-url", "http://a"])
    assert check_command(["toolglot", "sevre"]) and check_command(["make", "runn"]) and check_command(["telnet"])
    assert check_command(["pip", "install", ".[servre]"]) and check_command(["export", "TOOLGLOT_PROT=1"])
    assert list(split_commands("a 'b\nc' d\n# e\nf \\\n  g  # h\ncat > i <<'J'\nk\nJ\nl\n")) == [
        "a 'b\nc' d",
        "f \\\n  g  # h",
        "cat > i <<'J'\nk\nJ",
        "l",
    ]
    assert split_words("A=b c 'd e' # f") == ["c", "d e"] and split_words("a | b") == ["a"]


@in_one_test("page", [page for page in PAGES if page != HISTORY], ids=lambda page: page.name)
def test_commands_in_the_text_exist(page: Path) -> None:
    problems = {}
    for command in find_inline_commands(page):
        problem = check_command(split_words(command.replace("[", "").replace("]", "")))
        if problem and "arguments are required" not in problem and "|" not in command:
            problems[command] = problem
    assert problems == {}


RULES = {rule.name for rule in load_profiles().rules}
FACTS = {
    "vllm.md": {"server": ("vllm",)},
    "sglang.md": {"server": ("sglang",), "tool_call_parser": ("qwen3_coder",)},
    "llama-cpp.md": {
        "server": ("llama.cpp",),
        "supports_tools": ("true",),
        "supports_tool_calls": ("true",),
        "supports_parallel": ("true",),
    },
    "ollama.md": {"server": ("ollama",), "capabilities": ("tools",)},
    "lm-studio.md": {"server": ("lmstudio",), "capabilities": ("tool_use",)},
}


@in_one_test("page", sorted((ROOT / "docs/upstreams").glob("*.md")), ids=lambda page: page.name)
def test_the_page_of_an_upstream_names_its_rules(page: Path) -> None:
    """The first rule that a page names is the one that applies to its settings; all of them exist."""
    text = page.read_text("utf-8")
    stated = re.search(r"- Rules?: (.+?)\. [A-Z]", text, re.DOTALL)
    assert stated is not None
    names = re.findall(r"`([^`]+)`", stated[1])
    assert set(names) - RULES == set()
    [settings] = [tomllib.loads(block.text) for block in find_blocks(page) if block.language == "toml"]
    model = settings.get("model", [{}])[0]
    asked = model.get("model", model.get("name", "qwen3-max"))
    found = load_profiles().find(settings["upstream"][0]["base_url"], asked.replace("*", "5"), FACTS.get(page.name, {}))
    assert found.name == names[0]


def test_pictures_have_the_right_number_of_dialects() -> None:
    """Rounded down, so that one more dialect changes none of them."""
    readme, picture = ((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/data-path.svg"))
    stated = re.findall(r"more than (\d+)(?: dialects while| \| the text)", readme) + re.findall(
        r"of (\d+) dialects and more", picture
    )
    assert len(stated) == 3 and len(set(stated)) == 1, stated
    assert 0 < len(all_dialects()) - int(stated[0]) < 15, f"there are {len(all_dialects())} dialects: round that down"


def test_the_readme_has_the_figures_of_the_benches() -> None:
    """Every number in the tables of measurements stands in bench/README.md, too."""
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.partition("## What was measured")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|") and "---" not in line]
    bench = (ROOT / "bench/README.md").read_text("utf-8")
    numbers = {number.rstrip(",") for row in rows for number in re.findall(r"\d[\d.,]*%?", row)}
    assert len(numbers) > 40
    missing = {number for number in numbers if not re.search(rf"(?<![\d.,]){re.escape(number)}(?!\d)", bench)}
    assert missing == set()

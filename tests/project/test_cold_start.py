"""What a fresh process imports and compiles: little for a command, and nothing on the event loop of the gateway."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from toolglot.cli.main import COMMANDS, build_parser

TESTS = Path(__file__).resolve().parents[1]
HELP = (
    "import contextlib\nwith contextlib.suppress(SystemExit):\n from toolglot.cli.main import main; main({options!r})"
)
LIGHT = {"toolglot", "toolglot.cli", "toolglot.cli.main", "toolglot.cli.exit_codes", "toolglot.core"}
LIGHT |= {"toolglot.core.errors", "toolglot.core.error_guide"}
SERVER = {"asyncio", "asyncpg", "jsonschema_rs", "uvloop"}


def list_modules(use: str) -> set[str]:
    """The modules that a fresh process has loaded after some lines."""
    program = f"{use}\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "toolglot"}


def test_the_import_of_the_library_loads_no_module_of_it() -> None:
    modules = list_modules("import toolglot")
    assert own(modules) == {"toolglot"}
    assert modules.isdisjoint(SERVER | {"msgspec", "dataclasses", "json"})


@pytest.mark.parametrize("options", [["--help"], ["--version"], ["bogus"], []])
def test_help_and_version_load_no_command(options: list[str]) -> None:
    modules = list_modules(HELP.format(options=options))
    assert own(modules) <= LIGHT
    assert modules.isdisjoint(SERVER | {"msgspec"})


def test_the_settings_are_shown_without_parser_and_server() -> None:
    packages = {
        name.split(".")[1] for name in own(list_modules(HELP.format(options=["config", "show"]))) if "." in name
    }
    assert packages.isdisjoint({"server", "gateway", "console", "store", "reading", "prompting"})


def test_public_names_are_found_on_first_use() -> None:
    toolglot = import_module("toolglot")
    assert {name for name in toolglot.__all__ if not hasattr(toolglot, name)} == set()
    assert set(toolglot.__all__) <= set(dir(toolglot))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = toolglot.nothing


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_complete_only_if_it_is_chosen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    helps = []
    for requested in ([command], []):
        with pytest.raises(SystemExit):
            build_parser(requested).parse_args([command, "--help"])
        helps.append(capsys.readouterr().out)
    assert len(helps[0]) > len(helps[1])
    assert COMMANDS[command] in build_parser([]).format_help()


def test_the_first_requests_compile_and_import_nothing_on_the_event_loop() -> None:
    """In text and native mode, whole and streamed, with one tool and with many, from the first to the tenth answer."""
    command = [sys.executable, str(TESTS / "support" / "first_requests.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["", ""]

"""Dialects of other packages: found through entry points, checked, and left out if they are broken.

Packages are folders with a module and the metadata that an installer writes; each case runs in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RECORD = """
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import CallSyntax, Dialect, Wrap

ARROWS = Dialect(
    "arrow_call",
    CallSyntax(("==> {name} {before_object}",), NamedCall(), ("<==",)),
    sample='==> get_weather {"city": "Oslo"} <==',
    models=("arrow-*",),
)
"""

USE = """
import json, sys
import toolglot
tool = {"name": "query_db", "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}}}
def read(text):
    return [[call.name, call.arguments, call.dialect] for call in toolglot.read(text, [tool]).calls]
names = [dialect.name for dialect in toolglot.list_dialects()]
found = {
    "metadata": "importlib.metadata" in sys.modules,
    "names": names,
    "arrow": read('==> query_db {"sql": "SELECT 1"} <=='),
    "hermes": read('<tool_call>{"name": "query_db", "arguments": {"sql": "SELECT 1"}}</tool_call>'),
}
if "arrow_call" in names:
    dialect = toolglot.list_dialects()[names.index("arrow_call")]
    found["origin"] = [dialect.family, dialect.file]
    found["written"] = toolglot.write("query_db", {"sql": "a <== b"}, "arrow-7b", [tool])
    found["again"] = read(found["written"])
    found["taught"] = "==> tool_name" in toolglot.teach([tool], dialect="arrow_call")
print(json.dumps(found))
"""


LINES = """
from toolglot.dialects.codecs.named_call import NamedCall
from toolglot.dialects.spec import CallSyntax, Dialect

LINES = Dialect(
    "at_call",
    CallSyntax(("@@call {name} @@ {before_object}",), NamedCall(), ("@@end",)),
    sample='@@call get_weather @@ {"city": "Oslo"} @@end',
)
"""

QUOTE = """
import json
import toolglot
tool = {"name": "query_db", "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}}}
call = '@@call query_db @@ {"sql": "SELECT 1"} @@end'
text = f"I look at the table.\\n{call}"
names = [call.name for call in toolglot.read(text, [tool]).calls]
print(json.dumps([names, len(toolglot.read(text, [tool], quoted=[f"> {call}"]).calls)]))
"""


def install(folder: Path, package: str, module: str, *points: str, group: str = "toolglot.dialects") -> None:
    """Write a package as an installer does."""
    (folder / f"{package}.py").write_text(module, "utf-8")
    metadata = folder / f"{package}-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n", "utf-8")
    (metadata / "entry_points.txt").write_text("\n".join([f"[{group}]", *points, ""]), "utf-8")


def use(folder: Path, script: str = USE) -> tuple[Any, str]:
    """What a process finds with the packages of a folder, and what it prints as warnings."""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(
        command, env={"PYTHONPATH": str(folder)}, cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), ended.stderr


def test_a_dialect_of_a_package_is_read_written_and_taught(tmp_path: Path) -> None:
    install(tmp_path, "arrows", RECORD, "arrows = arrows:ARROWS")
    found, warnings = use(tmp_path)
    assert found["arrow"] == [["query_db", '{"sql":"SELECT 1"}', "arrow_call"]]
    assert found["names"][-1] == "arrow_call" and found["origin"] == ["arrows", "arrows:ARROWS"]
    assert found["written"].startswith("==> query_db {") and found["again"] == [
        ["query_db", '{"sql":"a <== b"}', "arrow_call"]
    ]
    assert found["taught"] and found["hermes"] and not warnings


def test_quoted_calls_in_a_dialect_of_a_package_are_recognised(tmp_path: Path) -> None:
    """Nothing in its calls looks like one in a dialect of toolglot, except the opening mark."""
    install(tmp_path, "lines", LINES, "lines = lines:LINES")
    found, warnings = use(tmp_path, QUOTE)
    assert found == [["query_db"], 0] and not warnings


def test_without_plugins_nothing_is_imported_for_them(tmp_path: Path) -> None:
    install(tmp_path, "others", RECORD, "arrows = others:ARROWS", group="another.group")
    found, warnings = use(tmp_path)
    assert not found["metadata"], "importlib.metadata takes as long to import as a tenth of the library"
    assert "arrow_call" not in found["names"] and not found["arrow"] and not warnings


BROKEN = {
    "import": ("raise ValueError('no such luck')", "ARROWS", "cannot be loaded: ValueError: no such luck"),
    "exit": ("import sys\nsys.exit(3)", "ARROWS", "cannot be loaded: SystemExit: 3"),
    "syntax": ("def", "ARROWS", "cannot be loaded: SyntaxError"),
    "missing": (RECORD, "TYPO", "cannot be loaded: AttributeError"),
    "kind": ("ARROWS = {'name': 'arrow_call'}", "ARROWS", "it names dict, where a Dialect or a tuple of Dialects"),
    "member": (RECORD + "ALL = ('x',)", "ALL", "it is str, where a Dialect was expected"),
    "name": (RECORD.replace('"arrow_call"', '"Arrow Call"'), "ARROWS", "the name must consist of lower-case letters"),
    "taken": (RECORD.replace('"arrow_call"', '"hermes"'), "ARROWS", "the name is taken by toolglot itself"),
    "reserved": (RECORD.replace('"arrow_call"', '"native"'), "ARROWS", "the name is taken by a setting"),
    "slot": (RECORD.replace("{before_object}", "{befor_object}"), "ARROWS", "there is no slot {befor_object}"),
    "string": (RECORD.replace('("<==",)', '"<=="'), "ARROWS", "is str, where a tuple of marks was expected"),
    "empty": (RECORD.replace('("<==",)', '("",)'), "ARROWS", "is '', where a text was expected"),
    "wrap": (RECORD.replace("    sample", "    wrap=('<a>',),\n    sample"), "ARROWS", "wrap holds str, where Wrap"),
    "codec": (RECORD.replace("NamedCall()", "None"), "ARROWS", "AttributeError"),
    "sample": (RECORD.replace("Oslo", "Rome"), "ARROWS", 'is read as get_weather {"city":"Rome"}'),
    "unread": (RECORD.replace("'==> get_weather", "'get_weather"), "ARROWS", "is read as no call"),
    "wide": (RECORD.replace("==> ", ""), "ARROWS", "it takes ordinary text for the call config"),
    "bug": (
        RECORD.replace("NamedCall()", "Bug()").replace(
            "ARROWS", "class Bug(NamedCall):\n    def read(*_):\n        1 / 0\n\nARROWS", 1
        ),
        "ARROWS",
        "ZeroDivisionError",
    ),
    "other": (
        RECORD.replace('\'==> get_weather {"city": "Oslo"} <==\'', "'[get_weather(city=\"Oslo\")]'"),
        "ARROWS",
        "is read as the dialect pythonic",
    ),
}


@pytest.fixture(scope="module")
def beside_broken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What a process finds where every broken package is installed, and a sound one."""
    folder = tmp_path_factory.mktemp("packages")
    for name, (module, attribute, _) in BROKEN.items():
        install(folder, f"broken_{name}", module, f"{name} = broken_{name}:{attribute}")
    install(folder, "sound", RECORD.replace("arrow_call", "sound_call").replace("==>", "=>>"), "sound = sound:ARROWS")
    return use(folder)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_named(name: str, beside_broken: tuple[dict[str, Any], str]) -> None:
    _, attribute, message = BROKEN[name]
    origin = f"{name} = broken_{name}:{attribute} of package broken_{name} 1.2"
    [warning] = [line for line in beside_broken[1].splitlines() if origin in line]
    assert message in warning


def test_broken_plugins_leave_the_others_alone(beside_broken: tuple[dict[str, Any], str]) -> None:
    found, warnings = beside_broken
    assert found["names"][-1] == "sound_call" and "arrow_call" not in found["names"]
    assert found["hermes"] == [["query_db", '{"sql":"SELECT 1"}', "hermes"]]
    assert len(warnings.splitlines()) == len(BROKEN)


def test_of_two_dialects_of_one_name_the_first_is_used(tmp_path: Path) -> None:
    install(tmp_path, "first", RECORD, "a = first:ARROWS")
    install(tmp_path, "second", RECORD, "b = second:ARROWS")
    found, warnings = use(tmp_path)
    assert found["names"].count("arrow_call") == 1 and found["origin"] == ["a", "first:ARROWS"]
    assert "the name is taken by the entry point a = first:ARROWS of package first 1.2; choose another" in warnings

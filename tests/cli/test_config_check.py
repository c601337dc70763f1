"""``toolglot config check`` and ``config schema``: every problem with its line; what the schema accepts, loads."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from support.rows import in_one_test

from toolglot.cli.main import main
from toolglot.config.json_schema import make_schema
from toolglot.config.settings import FIELDS, SECTIONS, Setting
from toolglot.config.toml_lines import LineIndex
from toolglot.core.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
SCHEMA_FILE = ROOT / "docs/toolglot.schema.json"
ALL_FIELDS = [one for table in FIELDS.values() for one in table.values()]

BAD_FILE = '''\
# a comment with [server]
[server]
prot = 8484
port = "http"
host = """
[limits]
messages = 0
"""

[reading]
shell = [
    "ls",  # [patterns]
    "cat",
]
min_confidence = 7

[tool_calling]
profiles = "none.toml"

[[upstream]]
name = "a"
base_url = "localhost:8000"
api_key = "env:NO_SUCH_KEY"

[[upstream]]
name = "a"
base_url = "http://127.0.0.1:1/v1"
headers.x-team = "one"
wire = "smoke"

[[model]]
upstream = "b"

[colour]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "OPENAI_", "TOOL_CALLING_", "LITELLM_")):
            monkeypatch.delenv(name)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], code: int, *options: str) -> dict[str, Any]:
    assert main(["config", "check", "--json", *options]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_every_problem_is_listed_with_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "toolglot.toml").write_text(BAD_FILE)
    document = check(capsys, 1)
    lines = BAD_FILE.splitlines()
    found = [(lines[one["line"] - 1], one["message"]) for one in document["problems"]]
    expected = [
        ("prot = 8484", "[server] has an unknown key 'prot'; did you mean port?"),
        ('port = "http"', "server.port is 'http'; it must be a whole number"),
        ("min_confidence = 7", "reading.min_confidence is 7; it must be a number from 0 to 1"),
        ('profiles = "none.toml"', "cannot read the profiles in none.toml"),
        ('base_url = "localhost:8000"', "[[upstream]] number 1 base_url is 'localhost:8000'"),
        ('api_key = "env:NO_SUCH_KEY"', "the environment variable NO_SUCH_KEY, which is not set"),
        ("[[upstream]]", "there are two [[upstream]] with the name 'a'"),
        ('wire = "smoke"', "[[upstream]] number 2 wire is 'smoke'"),
        ("[[model]]", "a [[model]] needs a name"),
        ("[[model]]", "unknown upstream 'b'"),
        ("[colour]", "has an unknown key 'colour'"),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected]
    assert [text in message for (_, message), (_, text) in zip(found, expected, strict=True)] == [True] * len(expected)
    assert [one["line"] for one in document["problems"]].count(25) == 1, "the second [[upstream]], not the first"


def test_a_person_sees_file_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "toolglot.toml").write_text("[server]\n\nport = 70000\n")
    assert main(["config", "check"]) == 1
    assert capsys.readouterr().out == (
        "toolglot.toml:3: server.port is 70000; it must be a whole number from 0 to 65535\n1 problem\n"
    )
    assert main(["config", "check", "--color", "always"]) == 1
    assert "\x1b[31m1 problem\x1b[0m" in capsys.readouterr().out


def test_what_overrides_a_bad_value_does_not_hide_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "toolglot.toml").write_text("[server]\nport = 70000\n")
    monkeypatch.setenv("TOOLGLOT_PORT", "8484")
    assert [one["line"] for one in check(capsys, 1)["problems"]] == [2]
    monkeypatch.setenv("TOOLGLOT_PORT", "many")
    assert [(one["line"], one["message"][:13]) for one in check(capsys, 1)["problems"]] == [
        (0, "TOOLGLOT_PORT"),
        (2, "server.port i"),
    ]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"[server]\nport = \n", 2),
        (b"[server]\nhost = '", 2),
        (b"[server]\nhost = '\xff'\n", 2),
        (b"[server]\nport = 1\nport = 2\n", 3),
        (b"\x00", 1),
        (b"a = " + b"[" * 100_000, 0),
    ],
)
def test_what_is_not_toml_has_a_line(folder: Path, capsys: pytest.CaptureFixture[str], data: bytes, line: int) -> None:
    (folder / "toolglot.toml").write_bytes(data)
    (problem,) = check(capsys, 1)["problems"]
    assert problem["line"] == line


def test_a_valid_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.toml").write_text("[server]\nport = 1\n")
    assert main(["config", "check", "other.toml"]) == 0
    assert capsys.readouterr().out == "other.toml is valid\n"


def test_a_litellm_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.yaml").write_text("model_list:\n  - {model_name: a\n")
    (problem,) = check(capsys, 1, "config.yaml")["problems"]
    assert "not YAML" in problem["message"]
    (folder / "config.yaml").write_text(
        "model_list:\n  - {model_name: a, litellm_params: {model: openai/b, api_base: 'http://127.0.0.1:1'}}\n"
    )
    assert check(capsys, 0, "config.yaml")["valid"] is True


@pytest.mark.parametrize("name", ["none.toml", "."])
def test_a_file_that_cannot_be_read_is_a_usage_error(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["config", "check", name]) == 2
    assert capsys.readouterr().err.startswith(f"toolglot: cannot read the settings in {name}: ")
    assert main(["config", "check"]) == 2
    assert "there is no toolglot.toml here" in capsys.readouterr().err


# Lines


def test_the_lines_of_keys_and_tables() -> None:
    text = "\n".join(
        [
            "top = 1",
            "[ a . 'b.c' ]",
            'x.y = """',
            "[z]",
            'k = 1 \\""""',
            "list = [ # ]",
            "  '[q]', { k = \"}\" },",
            "]",
            "[[row]]",
            "v = '''",
            "w = 1",
            "'''",
            "[row.sub]",
            "s = 1",
            "[[row]]",
            '"v" = 2',
        ]
    )
    document = tomllib.loads(text)
    lines = LineIndex(text)
    assert lines.line_of(("top",)) == 1
    assert lines.line_of(("a", "b.c")) == 2
    assert lines.line_of(("a", "b.c", "x", "y")) == lines.line_of(("a", "b.c", "x")) == 3
    assert lines.line_of(("a", "b.c", "list")) == 6
    assert lines.line_of(("row", 0)) == 9
    assert lines.line_of(("row", 0, "v")) == 10
    assert lines.line_of(("row", 0, "w")) == 9, "a line inside a string is no key"
    assert lines.line_of(("row", 0, "sub", "s")) == 14
    assert lines.line_of(("row", 1, "v")) == 16
    assert lines.line_of(("nothing",)) == 0
    assert set(document) == {"top", "a", "row"}


# JSON Schema


def test_the_schema_in_the_docs_is_up_to_date(request: pytest.FixtureRequest) -> None:
    generated = json.dumps(make_schema(), ensure_ascii=False, indent=2) + "\n"
    if request.config.getoption("--update-samples"):
        SCHEMA_FILE.write_text(generated, "utf-8")
    assert SCHEMA_FILE.read_text("utf-8") == generated, f"run pytest --update-samples {Path(__file__).name}"


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    assert json.loads(capsys.readouterr().out) == make_schema()


VALIDATOR = jsonschema_rs.validator_for(make_schema())


def snippets() -> list[str]:
    """The settings files that the docs and examples show."""
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    blocks = [
        block for page in pages for block in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    ]
    files = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*toolglot*.toml")]
    tables = set(FIELDS)
    return [text for text in (*blocks, *files) if set(tomllib.loads(text)) and set(tomllib.loads(text)) <= tables]


def test_the_files_of_the_docs_fit_the_schema() -> None:
    assert len(snippets()) >= 3
    problems = [(text, error.message) for text in snippets() for error in VALIDATOR.iter_errors(tomllib.loads(text))]
    assert problems == []


@in_one_test(
    "text",
    [
        "[server]\nprot = 1",
        "[server]\nport = 70000",
        "[server]\nport = true",
        "[sever]\nport = 1",
        "[[upstream]]\nname = 'a'",
        "[upstream]\nbase_url = 'http://a'",
        "[[upstream]]\nbase_url = 'a'",
        "[[upstream]]\nbase_url = 'http://a'\nwire = 'smoke'",
        "[[model]]\nmodel = 'a'",
        "[rollout]\nreading = 'canary-101'",
        "[reading]\nshell_syntax = ['tubes']",
        "[patterns]\nnatural_language = true",
    ],
)
def test_the_schema_refuses(text: str) -> None:
    assert not VALIDATOR.is_valid(tomllib.loads(text))


def test_the_schema_accepts_references_and_camel_case() -> None:
    document = {
        "server": {"port": "env:PORT", "logLevel": "debug"},
        "patterns": {"jsonCodeBlocks": False},
        "upstream": [{"base_url": "os.environ/URL", "api_key": "file:key.txt", "headers": {"x-team": "env:TEAM"}}],
        "rollout": {"stage": {"stage": "canary", "percent": 12.5, "tools": ["read"]}, "reading": 30, "xml": "auto"},
    }
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []


CANDIDATES: list[Any] = [
    *(True, False, 0, 1, 2, 5, 7, 8484, 65536, -1, 0.5, 1.5, 100, 100.5, 10**9, 10**30),
    *("", " ", "a", "auto", "on", "off", "1", "full", "canary", "canary-7.5", "canary-100", "canary-100.5", "shadow-3"),
    *("1 KiB", "0", "12 parsec", "3G", "debug", "text", "native", "hermes", "none", "sqlite:x", "openai_chat"),
    *(
        "http://h",
        "https://h:1/v1?x=1",
        "http://",
        "ftp://h",
        "x=1; y=2",
        "pipes",
        "pipes,chains",
        "reseed",
        "refuse",
        "feedback",
    ),
    *([], ["a"], ["pipes"], [1], {}, {"a": "b"}, {"a b": "c"}, {"stage": "canary"}, {"percent": 5}, {"percent": 500}),
]
FINER = {"api_key", "cookies", "headers", "keys", "url", "dialect", "base_url"}
"""Settings whose form is too fine for a schema that helps in an editor."""


@in_one_test("one", [one for one in ALL_FIELDS if one.field not in FINER], ids=lambda one: one.key)
def test_what_the_schema_accepts_loads(one: Setting) -> None:
    table: dict[str, Any] = {"base_url": "http://h"} if one.section == "upstream" else {}
    table |= {"name": "n"} if one.section == "model" else {}
    accepted = 0
    for candidate in CANDIDATES:
        filled = table | {one.field: candidate}
        if VALIDATOR.is_valid({one.section: filled if one.section in SECTIONS else [filled]}):
            accepted += 1
            one.kind.parse(candidate)
    assert accepted


@in_one_test("one", ALL_FIELDS, ids=lambda one: one.key)
def test_every_setting_has_a_schema_and_a_description(one: Setting) -> None:
    assert one.kind.schema, f"give the value type of {one.key} a schema in value_types.py"
    with pytest.raises(UsageError):
        one.kind.read(object(), "here")

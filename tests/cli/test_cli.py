"""The command line: what it prints, where, and how it exits."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.samples import DATA

import toolglot
from toolglot.cli.main import main
from toolglot.cli.terminal import GREEN, RED, wants_color

TOOLS = str(DATA / "tools" / "house.json")
CALL = '<tool_call>\n{"name": "list_sensors", "arguments": {}}\n</tool_call>'
ANSWER = f"<think>\nSensors first.\n</think>\n\nLooking.\n\n{CALL}\n"
CUT = '<tool_call>\n{"name": "save_note", "arguments": {"path": "a", "body": "unfini'


@pytest.fixture
def answer(tmp_path: Path) -> str:
    path = tmp_path / "answer.txt"
    path.write_text(ANSWER, encoding="utf-8")
    return str(path)


@pytest.fixture
def cut(tmp_path: Path) -> str:
    path = tmp_path / "cut.txt"
    path.write_text(CUT, encoding="utf-8")
    return str(path)


def run(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "toolglot", *arguments],
        input=text,
        capture_output=True,
        encoding="utf-8",
        env=os.environ | environment,
        timeout=60,
        check=False,
    )


# As a process


def test_module_reads_standard_input() -> None:
    done = run("read", "--tools", TOOLS, "--json", text=ANSWER)
    assert done.returncode == 0, done.stderr
    assert [call["name"] for call in json.loads(done.stdout)["calls"]] == ["list_sensors"]
    assert done.stderr == ""


def test_module_shows_no_colour_in_a_pipe() -> None:
    done = run("read", "--tools", TOOLS, text=ANSWER)
    assert "\x1b" not in done.stdout
    assert "1 call" in done.stdout


def test_errors_go_to_standard_error_without_a_traceback() -> None:
    done = run("read", "no-such-file.txt")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "toolglot: cannot read no-such-file.txt: No such file or directory\n"


def test_a_closed_pipe_is_no_error() -> None:
    script = f'"{sys.executable}" -m toolglot dialects --json | head -c 1'
    done = subprocess.run(["sh", "-c", script], capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.stderr == ""


# read


def test_json(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", answer, "--tools", TOOLS, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"text", "reasoning", "calls", "rejected", "unread"}
    assert document["text"].strip() == "Looking."
    assert document["reasoning"].strip() == "Sensors first."
    (call,) = document["calls"]
    assert set(call) == {"id", "name", "arguments", "dialect", "confidence", "repairs", "span"}
    assert call["arguments"] == "{}"
    assert document["rejected"] == []


UNREAD = [
    ("I will look.\n<read_file>\n<path>a.py</path>\n</read_file>", ["read_file"]),
    ('{"name": "read_file", "arguments": {"path": "a.py"}}', ["read_file"]),
    ('[get_weather(city="Oslo"), f(x=1)]', ["get_weather", "f"]),
    ('Action: search\nAction Input: {"query": "x"}', ["search"]),
    ('{"name": "Ann", "age": 3}', []),
    ("<my_app>x</my_app> prints print(3)", []),
    ("Nothing at all.", []),
]


UNDECLARED = [
    ("count(step=1)", ["count"]),
    ('["maps.zone(long=1)", "count(step=1)"]', ["maps.zone", "count"]),
    ("```python\n[count(step=1)]\n```", ["count"]),
    ('[{"get_zone": {"long": "1"}}]', ["get_zone"]),
    ('["get_zone", {"long": "1"}]', ["get_zone"]),
    ('{"user": {"id": 1}}', []),
    ('{"user_data": [1, 2]}', []),
    ("count = step(1)\nprint(count)", []),
    ("for i in x:\n    count(step=i)", []),
]


@pytest.mark.parametrize(("text", "names"), UNDECLARED)
def test_calls_that_need_declared_parameters_are_listed(
    text: str, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(text, encoding="utf-8")
    assert main(["read", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unread"] == names
    assert main(["read", str(path)]) == 0
    assert ("try --tools FILE" in capsys.readouterr().out) is bool(names)


@pytest.mark.parametrize(("text", "names"), UNREAD)
def test_calls_that_need_declared_names_are_listed(
    text: str, names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(text, encoding="utf-8")
    assert main(["read", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unread"] == names
    assert main(["read", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "no calls" in shown
    assert ("no tools were named" in shown) is bool(names)
    if names:
        options = [option for name in names for option in ("--tool", name)]
        assert main(["read", str(path), *options, "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert [call["name"] for call in document["calls"]] == names
        assert document["unread"] == []


@pytest.mark.parametrize("size", ["1", "3", "1000"])
def test_streaming_reads_the_same(answer: str, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["read", answer, "--tools", TOOLS])
    whole = capsys.readouterr().out
    main(["read", answer, "--tools", TOOLS, "--stream", size])
    assert capsys.readouterr().out == whole


def test_events_are_one_json_line_each(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", answer, "--tools", TOOLS, "--events", "--stream", "4"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert {"ReasoningDelta", "TextDelta", "CallStarted", "CallEnded"} <= set(kinds)
    assert "".join(event["text"] for event in events if event["event"] == "TextDelta").strip() == "Looking."


def test_a_person_sees_the_text_and_a_list(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", answer, "--tools", TOOLS]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(ANSWER)
    assert "1 call\n  list_sensors {}\n" in shown
    assert "confidence 1.00" in shown


def test_colour_marks_the_spans(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["read", answer, "--tools", TOOLS, "--color", "always"])
    shown = capsys.readouterr().out
    assert f"{GREEN}<tool_call>" in shown
    assert "\x1b[2mSensors first.\x1b[0m" in shown
    assert "\nLooking.\n" in shown


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_color("auto", Terminal())
    assert not wants_color("auto", io.StringIO())
    assert not wants_color("never", Terminal())
    assert wants_color("always", io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color("auto", Terminal())


def test_only_rejected_calls_exit_with_3(cut: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", cut, "--tools", TOOLS, "--truncated", "--color", "always"]) == 3
    shown = capsys.readouterr().out
    assert "no calls" in shown
    assert "1 rejected" in shown
    assert "truncated" in shown
    assert RED in shown
    assert main(["read", cut, "--tools", TOOLS, "--truncated", "--events"]) == 3
    assert main(["read", cut, "--tools", TOOLS, "--truncated", "--json"]) == 3


def test_defects_say_what_is_wrong_and_what_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.txt"
    path.write_text('<tool_call>\n{"name": "save_note", "arguments": {"path": "a"}}\n</tool_call>', encoding="utf-8")
    assert main(["read", str(path), "--tools", TOOLS]) == 3
    shown = capsys.readouterr().out
    assert "save_note missing_argument" in shown
    assert "body" in shown
    assert "right: " in shown


def test_unknown_tools_and_parallel(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.txt"
    path.write_text(CALL.replace("list_sensors", "launch") + "\n" + CALL, encoding="utf-8")

    def names(*options: str) -> list[str]:
        main(["read", str(path), "--tools", TOOLS, "--json", *options])
        return [call["name"] for call in json.loads(capsys.readouterr().out)["calls"]]

    assert names() == ["launch", "list_sensors"]
    assert names("--unknown-tools", "reject") == ["list_sensors"]
    assert names("--unknown-tools", "text") == ["list_sensors"]
    assert names("--no-parallel") == ["launch"]


def test_carriage_returns_and_bad_bytes_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.txt"
    path.write_bytes(b"a\r\nb \xff")
    assert main(["read", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "a\r\nb \ufffd"


def test_an_empty_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answer.txt"
    path.touch()
    assert main(["read", str(path)]) == 0
    assert "no calls" in capsys.readouterr().out


# Wrong use


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param('[\n  {"type": }\n]', ":2:12: the tools file is not JSON", id="not json"),
        pytest.param("7", "expected an array of tools", id="not an array"),
        pytest.param('{"tool": []}', "expected an array of tools", id="no tools key"),
        pytest.param('[{"type": "function", "function": {"name": "f", "parameters": 7}}]', "tool f: ", id="bad schema"),
    ],
)
def test_bad_tools(content: str, message: str, answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(content, encoding="utf-8")
    assert main(["read", answer, "--tools", str(tools)]) == 2
    assert message in capsys.readouterr().err


def test_missing_tools_file(answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", answer, "--tools", "nowhere.json"]) == 2
    assert "cannot read the tools file nowhere.json" in capsys.readouterr().err


def test_tools_may_be_a_request_body(answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = tmp_path / "request.json"
    body.write_text(json.dumps({"model": "m", "tools": json.loads(Path(TOOLS).read_text("utf-8"))}), encoding="utf-8")
    assert main(["read", answer, "--tools", str(body)]) == 0
    assert "1 call" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "hint"), [("hermse", "did you mean hermes"), ("zzzzzz", "'toolglot dialects' lists them all")]
)
def test_unknown_dialect(name: str, hint: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["read", answer, "--dialect", name]) == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["reed"],
        ["read", "--stream", "0"],
        ["read", "--stream", "x"],
        ["read", "--json", "--events"],
        ["read", "--nope"],
    ],
    ids=" ".join,
)
def test_wrong_arguments_exit_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert "usage: toolglot" in capsys.readouterr().err


# Help, version, dialects


@pytest.mark.parametrize("arguments", [["--help"], ["read", "--help"]], ids=" ".join)
def test_help_has_examples_and_exit_codes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert "examples:" in shown
    assert "exit codes:" in shown


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"toolglot {toolglot.__version__}\n"


def test_dialects_lists_every_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialects"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["name", "family", "file", "sample"]
    assert [line.split()[0] for line in lines[1:]] == [dialect.name for dialect in toolglot.list_dialects()]


def test_dialects_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dialects", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [record["name"] for record in records] == [dialect.name for dialect in toolglot.list_dialects()]
    assert all(set(record) == {"name", "family", "file", "sample"} for record in records)


# config, key


def plain_environment(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(("TOOLGLOT_", "OPENAI_", "TOOL_CALLING_", "LITELLM_")):
            monkeypatch.delenv(name)


def test_config_shows_values_and_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TOOLGLOT_PORT", "9000")
    (tmp_path / "toolglot.toml").write_text("[reading]\nmin_confidence = 0.5\n")
    assert main(["config", "show", "--mode", "text"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["server.port", "9000", "TOOLGLOT_PORT"] in rows
    assert ["tool_calling.mode", "text", "--mode"] in rows
    assert ["reading.min_confidence", "0.5", "toolglot.toml"] in rows
    assert ["reading.parallel_calls", "auto", "default"] in rows
    assert ["upstreams:", "none"] in rows


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_config_shows_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: list[str]
) -> None:
    plain_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TOOLGLOT_CLIENT_KEYS", "hunter2")
    (tmp_path / "toolglot.toml").write_text(
        "[[upstream]]\nname='big'\nbase_url='https://me:hunter2@big.example/v1?key=hunter2'\n"
        "api_key='hunter2'\nheaders={x-key='hunter2'}\n"
    )
    assert main(["config", "show", *form]) == 0
    shown = capsys.readouterr().out
    assert "hunter2" not in shown
    assert hashlib.sha256(b"hunter2").hexdigest() not in shown
    assert "https://***@big.example/v1?***" in shown


def test_config_as_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    plain_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TOOLGLOT_PROT", "1")
    assert main(["config", "show", "--json", "--base-url", "http://h", "--model", "m"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"]["server.port"] == {"value": 8484, "source": "default"}
    assert document["upstreams"][0]["base_url"] == "http://h"
    assert document["models"][0]["model"] == "m"
    assert document["sources"] == {"base_url": "--base-url", "model": "--model"}
    assert document["notes"] == ["TOOLGLOT_PROT is not a setting; did you mean TOOLGLOT_PORT?"]


def test_config_reports_a_bad_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain_environment(monkeypatch, tmp_path)
    assert main(["config", "show", "--port", "http"]) == 2
    assert capsys.readouterr().err == "toolglot: --port is 'http'; it must be a whole number from 0 to 65535\n"


def test_keys_with_the_admin_scope(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "--admin"]) == 0
    assert "TOOLGLOT_ADMIN_KEYS" in capsys.readouterr().out
    place = ["--state-dir", str(tmp_path)]
    assert main(["key", "create", "--name", "root", "--admin", *place]) == 0
    assert main(["key", "--admin", "create", "--name", "other", *place]) == 0
    assert main(["key", "create", "--name", "app", *place]) == 0
    assert capsys.readouterr().out.count("scope:   admin") == 2
    assert main(["key", "list", *place]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert {line[0]: line[-1] for line in lines} == {"root": "admin", "other": "admin", "app": "client"}


def test_key_prints_a_key_and_its_hash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key"]) == 0
    key, digest = (line.split()[1] for line in capsys.readouterr().out.splitlines())
    assert re.fullmatch(r"sk-toolglot-[\w-]{43}", key)
    assert digest == "sha256:" + hashlib.sha256(key.encode()).hexdigest()
    assert main(["key"]) == 0
    assert key not in capsys.readouterr().out

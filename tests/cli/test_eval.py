"""``toolglot eval``: scores of recorded outputs, groups, exit codes, odd lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolglot.cli.main import main

DATA = Path(__file__).resolve().parents[1] / "data"
TOOL = {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
CALL = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'


def row(raw: str, *paths: str, **more: Any) -> dict[str, Any]:
    calls = [{"name": "read", "arguments": {"path": path}} for path in paths]
    return {"raw": raw, "tools": [TOOL], "expected": {"calls": calls}, "dialect": "hermes", **more}


def evaluate(folder: Path, rows: list[Any], *options: str) -> int:
    corpus = folder / "corpus.jsonl"
    corpus.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in rows), "utf-8")
    return main(["eval", str(corpus), *options])


def test_outputs_are_scored_by_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row(CALL, "a"),
        row(CALL, "b"),
        row("no call", "a"),
        row(CALL),
        row(CALL, "a", dialect="", family="other"),
        "",
    ]
    assert evaluate(tmp_path, rows, "--json", "--show", "2") == 0
    found = json.loads(capsys.readouterr().out)
    scores = {key: found["groups"]["hermes"][key] for key in ("right", "missed", "wrong", "invented")}
    assert scores == {"right": 1, "missed": 1, "wrong": 1, "invented": 1}
    assert found["groups"]["other"]["right"] == 1
    assert [fault["verdict"] for fault in found["not_right"]] == ["wrong", "missed"]


def test_the_table_has_a_bar_for_each_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(tmp_path, [row(CALL, "a"), row("no", "a"), row(CALL, "a", dialect="kimi")], "--show", "1") == 0
    shown = capsys.readouterr().out
    assert "hermes        2         1         1" in shown
    assert " 50.0%" in shown and "100.0%" in shown and "66.7%" in shown
    assert ":2: missed" in shown


@pytest.mark.parametrize(("percent", "code"), [("50", 0), ("50.1", 1)])
def test_too_few_right_ones_are_an_exit_code(tmp_path: Path, percent: str, code: int) -> None:
    assert evaluate(tmp_path, [row(CALL, "a"), row("no", "a")], "--at-least", percent) == code


def test_a_cut_output_has_no_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate(tmp_path, [row(CALL[:-30], finish="length")], "--stream", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["all"]["right"] == 1


def test_outputs_without_expectation_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [CALL, CALL.replace("</tool_call>", ""), "just text", '<tool_call>{"name": "read", "arguments": {']
    rows = [{"text": text, "tools": [TOOL], "model": "m"} for text in texts]
    assert evaluate(tmp_path, rows, "--json", "--unknown-tools", "allow") == 0
    counts = json.loads(capsys.readouterr().out)["groups"]["m"]
    assert (counts["calls"], counts["repaired"], counts["text"], counts["rejected"]) == (1, 1, 1, 1)


def test_another_accepted_reading_counts(tmp_path: Path) -> None:
    both = row(CALL, "b", accept=[{"calls": [{"name": "read", "arguments": '{"path": "a"}'}]}])
    assert evaluate(tmp_path, [both], "--at-least", "100") == 0


@pytest.mark.parametrize("options", [(), ("--stream", "1"), ("--stream", "7")])
def test_the_samples_are_right(options: tuple[str, ...]) -> None:
    assert main(["eval", str(DATA / "wild.jsonl"), "--at-least", "100", *options]) == 0


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "no text"),
        ('{"raw": 1}', "no text"),
        ('{"raw": "x", "tools": {}}', "not a list"),
        ('{"raw": "x", "tools": [{"name": 1}]}', "corpus.jsonl:1"),
        ('{"raw": "x", "expected": {"calls": [{"arguments": {}}]}}', "'name' and 'arguments'"),
        ('{"raw": "x", "expected": {"calls": [{"name": "f", "arguments": "{"}]}}', "'name' and 'arguments'"),
        ("", "no outputs"),
    ],
)
def test_odd_lines_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, problem: str) -> None:
    assert evaluate(tmp_path, [line]) == 2
    assert problem in capsys.readouterr().err


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_an_unknown_group_names_those_that_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(CALL, "a", model="m", turns=2)]
    assert evaluate(tmp_path, rows, "--by", "modle") == 2
    assert "no line of" in (errors := capsys.readouterr().err)
    assert "has the field 'modle'; there are: dialect, model, turns" in errors
    assert evaluate(tmp_path, [*rows, row(CALL, "a")], "--by", "model") == 0, "some lines may lack it"

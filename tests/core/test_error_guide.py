"""The guide to errors covers every error that is raised, and names only what there is."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.error_texts import parse_text
from support.rows import in_one_test
from support.source_tables import parse_source

from toolglot.cli.main import COMMANDS, main
from toolglot.config.settings import FIELDS, SECTIONS
from toolglot.core import errors
from toolglot.core.error_guide import (
    Source,
    explain,
    explain_failure,
    find_entry,
    find_status,
    list_classes,
    load_guide,
    show_example,
)
from toolglot.core.events import Failed
from toolglot.wires.qwen_web import errors as web_chat_errors

SOURCE = Path(errors.__file__).parents[1]
FAILED_BY_CODE = "Failed", "fail", "make_failure"
"""Calls whose first or second argument is the code of a failed answer."""
CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")
PLACE = errors.UpstreamPlace("here", "http://127.0.0.1:1/v1")


@cache
def find_failure_codes() -> frozenset[str]:
    """The codes of failed answers in the source, apart from the simulated upstream."""
    return frozenset(_list_failure_codes())


def _list_failure_codes() -> Iterator[str]:
    for path in SOURCE.rglob("*.py"):
        if "sim" in path.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(parse_source(path)):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in FAILED_BY_CODE:
                texts = [given.value for given in node.args[:2] if isinstance(given, ast.Constant)]
                yield from (text for text in texts if isinstance(text, str) and CODE.fullmatch(text))


def test_the_search_finds_codes() -> None:
    assert {"empty_answer", "refused_call", "upstream_closed"} <= find_failure_codes()


def test_every_error_has_an_entry() -> None:
    codes = {kind.code for kind in list_classes()} | find_failure_codes()
    assert codes - set(load_guide()) == set(), "add the codes to src/toolglot/core/error_guide.toml"


def test_every_entry_is_an_error() -> None:
    source = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    assert [code for code in load_guide() if f'"{code}"' not in source] == []


@in_one_test("kind", list_classes(), ids=lambda kind: kind.__name__)
def test_an_entry_states_no_status_that_its_class_has(kind: type[errors.ToolglotError]) -> None:
    if kind is not errors.UpstreamResponseError:  # its status is the upstream's
        entry = load_guide()[kind.code]
        assert entry.status == 0 and find_status(entry) == kind.status


@in_one_test("kind", web_chat_errors._KINDS, ids=lambda kind: kind.code)
def test_errors_of_web_chats_have_entries_with_their_status(kind: web_chat_errors._Kind) -> None:
    assert find_status(load_guide()[kind.code]) == kind.status


@in_one_test("code", load_guide())
def test_entries_are_whole_sentences_about_things_that_exist(code: str) -> None:
    entry = load_guide()[code]
    assert entry.cause.endswith(".") and entry.step.endswith(".") and len(entry.step) < 160
    assert parse_text(show_example(entry)).code == code
    text = f"{entry.cause} {entry.step}"
    for section, field in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", text):
        assert section not in SECTIONS or field in FIELDS[section], f"{section}.{field} is not a setting"
    for command in re.findall(r"'toolglot (\w+)", text):
        assert command in COMMANDS


FOUND = {
    "its own code": (errors.RateLimitError("x", 1), "rate_limit_exceeded"),
    "a status decides": (errors.UpstreamResponseError("x", 429, "rate_limit_exceeded"), "upstream_limited"),
    "no code": (errors.UpstreamResponseError("x", 404), "upstream_not_found"),
    "a key": (errors.UpstreamResponseError("x", 403, "invalid_api_key"), "upstream_key_refused"),
    "any refusal": (errors.UpstreamResponseError("x", 418, "teapot"), "upstream_refused"),
    "a failure": (errors.UpstreamResponseError("x", 503, "overloaded"), "upstream_failed"),
    "a code of toolglot": (errors.UpstreamResponseError("x", 503, "upstream_blocked"), "upstream_blocked"),
    "a bug": (errors.InternalError("x"), "internal_error"),
}


@in_one_test("name", FOUND)
def test_the_entry_of_an_error(name: str) -> None:
    error, code = FOUND[name]
    assert find_entry(error).code == code


def test_texts_name_the_upstream_once() -> None:
    error = errors.UpstreamResponseError("It broke.", 500)
    assert parse_text(explain(error)).upstream == ""
    error.place = PLACE
    text = parse_text(explain(error))
    assert (text.message, text.upstream, text.address, text.status) == ("It broke.", "here", PLACE.address, "500")
    named = errors.UnreachableError(f"Upstream 'here' at {PLACE.address} cannot be reached.")
    named.place = PLACE
    assert explain(named).count(PLACE.address) == 1
    own = errors.UnreachableError("It is down.", step="start it.")
    assert explain(own) == "It is down. Next (operator): start it. [toolglot errors upstream_unreachable]"


def test_codes_of_upstreams_within_a_stream_are_not_taken_for_those_of_the_gateway() -> None:
    assert parse_text(explain_failure(Failed("invalid_api_key", "x"), PLACE)).code == "upstream_failed"
    assert parse_text(explain_failure(Failed("empty_answer", "x"), PLACE)).code == "empty_answer"
    assert explain_failure(Failed("shutting_down", "x", "As it is.")) == "As it is."


def test_all_sources_have_entries() -> None:
    assert {entry.source for entry in load_guide().values()} == set(Source)


def test_the_command_prints_an_entry_and_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "upstream_unreachable"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("upstream_unreachable (HTTP status 502)\n") and "next (operator):" in shown
    assert main(["errors"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(load_guide())
    assert main(["errors", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["code"] for entry in listed] == list(load_guide())
    assert main(["errors", "empty_answer", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == next(one for one in listed if one["code"] == "empty_answer")


def test_the_command_helps_with_unknown_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "upstream_key"]) == 2
    assert "did you mean upstream_key_refused or upstream_key_missing?" in capsys.readouterr().err
    assert main(["errors", "☃"]) == 2
    assert "'toolglot errors' lists them" in capsys.readouterr().err

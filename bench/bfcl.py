"""Rows of the Berkeley Function Calling Leaderboard, from the data files of the wheel ``bfcl-eval``, and their checker.

The checker is our own and follows the rules of BFCL for Python functions: the same number of calls in any order; a known
name; every required argument; no argument that the answer does not list; each value one of those allowed. Strings are
compared without case, blanks and ``,./-_*^``; a whole number counts where a float is due; nothing else is converted. An
argument may be left out if ``""`` is among its allowed values.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "irrelevance")
WITHOUT_CALL = frozenset({"irrelevance"})
VERDICTS = ("exact", "wrong", "missed", "invented")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}
IGNORED = re.compile(r"[ ,./\-_*^]")

Call = tuple[str, Any]
Answer = Mapping[str, Mapping[str, list[Any]]]


@dataclass(frozen=True)
class Question:
    """One row. ``answers`` holds one mapping for each call that is due: a name, and the allowed values by argument."""

    name: str
    category: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    answers: list[Answer]


def tool_name(name: str) -> str:
    """Names as chat wires allow them: BFCL too writes ``_`` for the dot where it asks such a wire."""
    return name.replace(".", "_")


def json_schema(schema: Any) -> Any:
    """A schema of BFCL, which names types as Python does, in the words of JSON Schema."""
    if isinstance(schema, list):
        return [json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    written = {key: json_schema(each) for key, each in schema.items()}
    kind = schema.get("type")
    return written | {"type": TYPES.get(kind, kind)} if isinstance(kind, str) else written


def find_category(name: str) -> str:
    """The category of a row, by the row's name."""
    return re.sub(r"_\d.*", "", name)


def make_question(row: Mapping[str, Any], answers: Sequence[Answer]) -> Question:
    """A row of the data with its answers, which a row without a call has none of."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool_name(each["name"]),
                "description": each["description"],
                "parameters": json_schema(each["parameters"]),
            },
        }
        for each in row["function"]
    ]
    named = [{tool_name(name): values for name, values in answer.items()} for answer in answers]
    return Question(row["id"], find_category(row["id"]), list(row["question"][0]), tools, named)


def choose(count: int, wanted: int) -> list[int]:
    """Which of ``count`` rows are taken: ``wanted`` of them, at equal distances from the first on."""
    wanted = min(count, wanted)
    return [number * count // wanted for number in range(wanted)]


def load_questions(wheel: Path, rows: int) -> list[Question]:
    """``rows`` questions of every category, always the same ones."""
    questions = []
    with zipfile.ZipFile(wheel) as archive:
        for category in CATEGORIES:
            asked = read_lines(archive, f"bfcl_eval/data/BFCL_v4_{category}.json")
            truth: dict[str, list[Answer]] = {}
            if category not in WITHOUT_CALL:
                received = read_lines(archive, f"bfcl_eval/data/possible_answer/BFCL_v4_{category}.json")
                truth = {each["id"]: each["ground_truth"] for each in received}
            questions += [make_question(asked[at], truth.get(asked[at]["id"], [])) for at in choose(len(asked), rows)]
    return questions


def read_lines(archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
    """The records of a file with one JSON object in each line."""
    return [json.loads(line) for line in archive.read(name).decode().splitlines() if line.strip()]


# -- the checker -------------------------------------------------------------------------------------------------------


def is_allowed(value: Any, allowed: Any) -> bool:
    """Whether a value is the one allowed. A mapping that is allowed lists the allowed values of each of its keys."""
    if isinstance(allowed, str) or isinstance(value, str):
        return isinstance(allowed, str) and isinstance(value, str) and plain(value) == plain(allowed)
    if isinstance(allowed, bool) or isinstance(value, bool):
        return value is allowed
    if isinstance(allowed, Mapping):
        return isinstance(value, Mapping) and arguments_fit(value, allowed)
    if isinstance(allowed, list):
        same_length = isinstance(value, list) and len(value) == len(allowed)
        return same_length and all(map(is_allowed, value, allowed))
    return bool(value == allowed)


def plain(text: str) -> str:
    """A string without what BFCL does not look at."""
    return IGNORED.sub("", text).lower().replace("'", '"')


def arguments_fit(arguments: Mapping[str, Any], allowed: Mapping[str, Any]) -> bool:
    """Whether every argument is listed with its value, and none is left out that must be there."""
    given = all(
        key in allowed and any(is_allowed(value, each) for each in as_list(allowed[key]))
        for key, value in arguments.items()
    )
    return given and all(key in arguments or "" in as_list(values) for key, values in allowed.items())


def as_list(values: Any) -> list[Any]:
    """The allowed values as a list; inside of lists of mappings some rows have the value itself."""
    return values if isinstance(values, list) else [values]


def is_declared(arguments: Mapping[str, Any], tool: Mapping[str, Any]) -> bool:
    """Whether the tool declares all arguments, and whole numbers are whole; other types show in the values."""
    properties = tool["function"]["parameters"].get("properties", {})
    return all(
        key in properties and not (isinstance(value, float) and properties[key].get("type") == "integer")
        for key, value in arguments.items()
    )


def call_fits(call: Call, answer: Answer, tools: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a call is the one that an answer describes."""
    name, arguments = call
    ((wanted, allowed),) = answer.items()
    tool = next((each for each in tools if each["function"]["name"] == name), None)
    if name != wanted or tool is None or not isinstance(arguments, Mapping):
        return False
    required = tool["function"]["parameters"].get("required", [])
    return (
        all(key in arguments for key in required) and is_declared(arguments, tool) and arguments_fit(arguments, allowed)
    )


def judge(question: Question, calls: Sequence[Call]) -> str:
    """How the calls of an answer compare with those due.

    ``missed``: what is there is right, but not all is there. ``invented``: all that is due is there, and more besides, or
    a call where none is due. ``wrong``: everything else.
    """
    absent, surplus = list(question.answers), 0
    for call in calls:
        found = next((answer for answer in absent if call_fits(call, answer, question.tools)), None)
        if found is None:
            surplus += 1
        else:
            absent.remove(found)
    if not surplus:
        return "missed" if absent else "exact"
    return "wrong" if absent else "invented"

"""The tasks, the relay's memory and the wires of ``bench/models.py``, without a model."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


def load(name: str) -> ModuleType:
    """A module of the bench folder, which is no package; these modules import each other by name."""
    sys.path.insert(0, str(BENCH))
    try:
        return import_module(name)
    finally:
        sys.path.remove(str(BENCH))


agent_tasks, remembering, message_wire = load("agent_tasks"), load("remembering"), load("message_wire")


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def solve(task: Any) -> list[dict[str, Any]]:
    """The answers of a model that solves the task."""
    written = [call("write_file", path=path, content=texts[0]) for path, texts in task.expected.items()]
    return [{"tool_calls": written}] * bool(written) + [{"content": f"It says {' and '.join(task.answer)}."}]


def test_every_task_can_be_solved_and_not_without_work(tmp_path: Path) -> None:
    assert len({task.name for task in agent_tasks.TASKS}) == len(agent_tasks.TASKS) >= 20
    for number, task in enumerate(agent_tasks.TASKS):
        answers = iter(solve(task))
        folder = tmp_path / str(number)
        folder.mkdir()
        assert agent_tasks.work(task, folder, lambda messages, tools, answers=answers: next(answers))[0], task.name
        idle = tmp_path / f"idle {number}"
        idle.mkdir()
        assert not agent_tasks.work(task, idle, lambda messages, tools: {"content": "Done."})[0], task.name


def test_a_task_is_not_solved_if_other_files_change(tmp_path: Path) -> None:
    task = next(task for task in agent_tasks.TASKS if task.name == "copy")
    answers = iter([{"tool_calls": [*solve(task)[0]["tool_calls"], call("write_file", path="c.txt", content="")]}, {}])
    assert not agent_tasks.work(task, tmp_path, lambda messages, tools: next(answers))[0]


def test_an_agent_ends_after_some_turns(tmp_path: Path) -> None:
    asked: list[int] = []

    def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
        asked.append(len(messages))
        return {"tool_calls": [call("list_files", path=".")]}

    agent_tasks.work(agent_tasks.TASKS[0], tmp_path, ask)
    assert asked == [2 + 2 * turn for turn in range(agent_tasks.MOST_TURNS)]


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("read_file", {"path": "a.txt"}, "one two one"),
        ("read_file", {"path": "../a.txt"}, "Error: ../a.txt is outside of the folder"),
        ("read_file", {"path": "b.txt"}, "Error: No such file or directory: b.txt"),
        ("read_file", {"path": "a\0"}, "Error: "),
        ("read_file", {}, "Error: path must be text"),
        ("read_file", None, "Error: the arguments are not a JSON object"),
        ("run", {}, "Error: unknown tool run"),
        ("list_files", {"path": "."}, "a.txt"),
        ("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "1"}, "a.txt was changed in 2 places."),
        ("edit_file", {"path": "a.txt", "old_text": "six", "new_text": "6"}, "Error: old_text was not found in a.txt"),
    ],
)
def test_tools(tmp_path: Path, name: str, arguments: Any, result: str) -> None:
    (tmp_path / "a.txt").write_text("one two one")
    assert agent_tasks.run_call(tmp_path, name, arguments).startswith(result)


def test_equal_requests_have_one_key() -> None:
    asked = {"model": "a", "messages": [], "temperature": 0, "max_tokens": 9}
    same = {"max_tokens": 9.0, "messages": [], "temperature": 0.0, "stream": False, "cache_prompt": True, "stop": None}
    other = {**asked, "messages": [{"role": "user", "content": "x"}]}
    keys = [remembering.make_key("/v1/chat/completions", json.dumps(each).encode()) for each in (asked, same, other)]
    assert keys[0] == keys[1] != keys[2]


def test_memory_is_kept_in_a_file(tmp_path: Path) -> None:
    remembering.Memory(tmp_path / "a").keep({"key": "k", "content": "é\n"})
    assert remembering.Memory(tmp_path / "a").find("k") == {"key": "k", "content": "é\n"}
    assert remembering.Memory(tmp_path / "a").find("l") is None


def test_messages_wire() -> None:
    schema = {"type": "object", "properties": {}}
    asked = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": None, "tool_calls": [call("a", x="1"), call("b")]},
            {"role": "tool", "tool_call_id": "call_a", "content": "r"},
            {"role": "tool", "tool_call_id": "call_b", "content": "q"},
        ],
        "tools": [{"type": "function", "function": {"name": "a", "description": "d", "parameters": schema}}],
    }
    uses = [
        {"type": "tool_use", "id": "call_a", "name": "a", "input": {"x": "1"}},
        {"type": "tool_use", "id": "call_b", "name": "b", "input": {}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "call_a", "content": "r"},
        {"type": "tool_result", "tool_use_id": "call_b", "content": "q"},
    ]
    assert message_wire.to_messages_request(asked) == {
        "model": "m",
        "system": "s",
        "messages": [
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": uses},
            {"role": "user", "content": results},
        ],
        "tools": [{"name": "a", "description": "d", "input_schema": schema}],
    }
    assert message_wire.from_messages_answer({"content": [{"type": "text", "text": "t"}, uses[0]]}) == {
        "role": "assistant",
        "content": "t",
        "tool_calls": [call("a", x="1")],
    }

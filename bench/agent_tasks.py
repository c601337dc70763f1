"""Small tasks on real files, and the agent that works on them with four tools.

A task is a request, the files that a temporary folder holds, and what must be true at the end: contents of files, or words
in the last answer. Files that a task does not name must stay as they are, and no others may appear. The agent is a
plain loop over a chat API: it runs the calls of an answer, sends their results and ends at the first answer without a call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local import tool

MOST_TURNS = 8
SYSTEM = (
    "You are an agent that works on the files of a folder. Use the tools to do what the user asks: read files before you"
    " use or change what is in them. When everything is done, answer with one short sentence without a tool call."
)
TOOLS = [
    tool("list_files", "List the names of the files in a folder.", path="Path of the folder, . for the main one"),
    tool("read_file", "Read the contents of a file.", path="Path of the file"),
    tool("write_file", "Create a file or replace all of its text.", path="Path of the file", content="The whole text"),
    tool(
        "edit_file",
        "Replace a piece of text in a file by another.",
        path="Path of the file",
        old_text="Text in the file, exactly",
        new_text="Text to put in its place",
    ),
]


@dataclass(frozen=True)
class Task:
    """``expected`` are the files at the end, each with the texts that are right; ``answer`` are words that the last
    answer must contain."""

    name: str
    request: str
    files: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    answer: tuple[str, ...] = ()


TASKS = [
    Task("create", "Create a file hello.txt with the text: Hello, world!", {}, {"hello.txt": ("Hello, world!",)}),
    Task(
        "create in a folder",
        "Create the file src/version.py with this one line:\nVERSION = '1.2.0'",
        {"README.md": "A program.\n"},
        {"src/version.py": ("VERSION = '1.2.0'",)},
    ),
    Task(
        "create two",
        "Create two files: one.txt with the text first, and two.txt with the text second.",
        {},
        {"one.txt": ("first",), "two.txt": ("second",)},
    ),
    Task(
        "create json",
        'Write {"items": []} to the file items.json.',
        {},
        {"items.json": ('{"items": []}', '{"items":[]}')},
    ),
    Task(
        "look up a port",
        "Which port does config.ini set?",
        {"config.ini": "[server]\nhost = localhost\nport = 8472\n"},
        answer=("8472",),
    ),
    Task(
        "list",
        "Which files are in the folder notes?",
        {"notes/monday.txt": "m\n", "notes/friday.txt": "f\n", "other.txt": "o\n"},
        answer=("monday", "friday"),
    ),
    Task(
        "follow a reference",
        "start.txt names another file. What does that other file say?",
        {"start.txt": "The text is in vault.txt\n", "vault.txt": "The word is heron.\n"},
        answer=("heron",),
    ),
    Task(
        "add two prices",
        "How much do the items in a.txt and b.txt cost together?",
        {"a.txt": "lamp: 20 euros\n", "b.txt": "desk: 45 euros\n"},
        answer=("65",),
    ),
    Task(
        "flip a setting",
        "Change debug from false to true in settings.json.",
        {"settings.json": '{"debug": false, "level": 3}\n'},
        {"settings.json": ('{"debug": true, "level": 3}',)},
    ),
    Task(
        "bump a version",
        "Change the version in project.toml from 1.0.0 to 1.1.0.",
        {"project.toml": '[project]\nname = "demo"\nversion = "1.0.0"\n'},
        {"project.toml": ('[project]\nname = "demo"\nversion = "1.1.0"',)},
    ),
    Task(
        "correct a typo",
        "Correct the spelling of 'recieve' in letter.txt.",
        {"letter.txt": "Dear Ann,\nwe hope to recieve your answer soon.\n"},
        {"letter.txt": ("Dear Ann,\nwe hope to receive your answer soon.",)},
    ),
    Task(
        "rename a function",
        "Rename the function add in calc.py to plus.",
        {"calc.py": "def add(a, b):\n    return a + b\n"},
        {"calc.py": ("def plus(a, b):\n    return a + b",)},
    ),
    Task(
        "fix a function",
        "The function double in double.py must return twice its argument. Fix it.",
        {"double.py": "def double(x):\n    return x + 2\n"},
        {"double.py": ("def double(x):\n    return x * 2", "def double(x):\n    return 2 * x")},
    ),
    Task(
        "append a line",
        "Add the line '- milk' at the end of shopping.txt.",
        {"shopping.txt": "- bread\n- eggs\n"},
        {"shopping.txt": ("- bread\n- eggs\n- milk",)},
    ),
    Task(
        "insert a first line",
        "Put the line '# main program' at the beginning of main.py, before all other lines.",
        {"main.py": "print('start')\n"},
        {"main.py": ("# main program\nprint('start')",)},
    ),
    Task(
        "copy",
        "Copy the file a.txt to b.txt.",
        {"a.txt": "Copper is a metal.\nIt conducts heat.\n"},
        {"b.txt": ("Copper is a metal.\nIt conducts heat.",)},
    ),
    Task(
        "join",
        "Write the text of first.txt and then that of second.txt, each on a line of its own, to both.txt.",
        {"first.txt": "apple\n", "second.txt": "pear\n"},
        {"both.txt": ("apple\npear",)},
    ),
    Task(
        "largest number",
        "Write the largest number in numbers.txt to the file max.txt, only the number.",
        {"numbers.txt": "17\n4\n93\n58\n"},
        {"max.txt": ("93",)},
    ),
    Task(
        "sort",
        "Write the names in people.txt in alphabetical order to sorted.txt, one in each line.",
        {"people.txt": "Mia\nBen\nZoe\nAda\n"},
        {"sorted.txt": ("Ada\nBen\nMia\nZoe",)},
    ),
    Task(
        "upper case",
        "Write the name of the user in user.json to name.txt, in capital letters.",
        {"user.json": '{"id": 7, "name": "nadia"}\n'},
        {"name.txt": ("NADIA",)},
    ),
    Task(
        "do what a file says",
        "Read todo.txt and do what it says.",
        {"todo.txt": "Create a file named done.txt with the text: finished\n"},
        {"done.txt": ("finished",)},
    ),
    Task(
        "replace twice",
        "Replace the word red by blue everywhere in colors.txt.",
        {"colors.txt": "red car\ngreen tree\nred house\n"},
        {"colors.txt": ("blue car\ngreen tree\nblue house",)},
    ),
    Task(
        "edit and report",
        "Change Hello to Goodbye in greet.py, then write the word changed to log.txt.",
        {"greet.py": "print('Hello')\n"},
        {"greet.py": ("print('Goodbye')",), "log.txt": ("changed",)},
    ),
    Task(
        "edit two files",
        "The host is now example.org instead of example.com. Change it in both app.cfg and db.cfg.",
        {"app.cfg": "host = example.com\nport = 80\n", "db.cfg": "host = example.com\nuser = app\n"},
        {"app.cfg": ("host = example.org\nport = 80",), "db.cfg": ("host = example.org\nuser = app",)},
    ),
]


# -- the tools ---------------------------------------------------------------------------------------------------------


def run_call(folder: Path, name: str, arguments: object) -> str:
    """The result of a call, or an error for the model. Nothing outside of the folder is touched."""
    declared = {each["function"]["name"]: each["function"]["parameters"]["required"] for each in TOOLS}
    if name not in declared:
        return f"Error: unknown tool {name}"
    if not isinstance(arguments, dict):
        return "Error: the arguments are not a JSON object"
    values = {key: arguments.get(key) for key in declared[name]}
    wrong = [key for key, value in values.items() if not isinstance(value, str)]
    if wrong:
        return f"Error: {', '.join(wrong)} must be text"
    try:
        path = (folder / values["path"]).resolve()
        if not path.is_relative_to(folder.resolve()):
            return f"Error: {values['path']} is outside of the folder"
        return _RUN[name](path, values)
    except (OSError, UnicodeDecodeError, ValueError) as failure:
        return f"Error: {getattr(failure, 'strerror', None) or failure}: {values['path']}"


def _list(path: Path, values: Mapping[str, Any]) -> str:
    return "\n".join(sorted(each.name + "/" * each.is_dir() for each in path.iterdir())) or "(no files)"


def _read(path: Path, values: Mapping[str, Any]) -> str:
    return path.read_text()


def _write(path: Path, values: Mapping[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(values["content"])
    return f"{values['path']} was written."


def _edit(path: Path, values: Mapping[str, Any]) -> str:
    text = path.read_text()
    count = text.count(values["old_text"]) if values["old_text"] else 0
    if not count:
        return f"Error: old_text was not found in {values['path']}"
    path.write_text(text.replace(values["old_text"], values["new_text"]))
    return f"{values['path']} was changed in {count} place{'s'[: count - 1]}."


_RUN = {"list_files": _list, "read_file": _read, "write_file": _write, "edit_file": _edit}


# -- the agent ---------------------------------------------------------------------------------------------------------

Ask = Callable[[list[dict[str, Any]], list[dict[str, Any]]], dict[str, Any]]
"""Sends messages and tools and returns the answer's message, or ``{"error": text}``."""


def work(task: Task, folder: Path, ask: Ask) -> tuple[bool, str]:
    """Let the agent work on a task in an empty folder. Returns whether the task is solved, and how it ended."""
    for name, text in task.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": task.request},
    ]
    answer, ending = "", "too many turns"
    for _ in range(MOST_TURNS):
        message = ask(messages, TOOLS)
        if "error" in message:
            ending = f"error {message['error']}"
            break
        answer = str(message.get("content") or "")
        calls = message.get("tool_calls") or []
        if not calls:
            ending = f"answered {answer[:300]!r}"
            break
        messages.append({"role": "assistant", "content": answer or None, "tool_calls": calls})
        for call in calls:
            function = call["function"]
            result = run_call(folder, function["name"], read_arguments(function["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    return is_solved(task, folder, answer), ending


def read_arguments(text: str) -> object:
    """The arguments of a call; None if they are not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def is_solved(task: Task, folder: Path, answer: str) -> bool:
    """Whether the folder holds exactly what it should, and the answer the words that it should."""
    wanted = {name: (text.rstrip(),) for name, text in task.files.items()} | dict(task.expected)
    found = {
        str(path.relative_to(folder)): path.read_text(errors="replace").rstrip()
        for path in folder.rglob("*")
        if path.is_file()
    }
    same = found.keys() == wanted.keys() and all(found[name] in texts for name, texts in wanted.items())
    return same and all(word in answer for word in task.answer)

"""Example turns for models that can write a call, but do not know when to make one.

Rules in the prompt hardly change what a small model does; turns of a conversation do (``bench/README.md``). The turns
are placed between the system prompt and the conversation and use the client's own tools, because tools that exist only
in examples are called too. A coding agent, with tools that read, edit and write files, gets short tasks: read first,
then change, then say in words what was done. Any other client gets a request for several calls, if these are allowed.
Files and values are nonsense, so that they fit no real task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.clients.file_tools import FileTool, find_file_tools
from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.prompting.call_writer import write_calls
from toolglot.prompting.conversation import PromptedConversation, render_as_text, write_result
from toolglot.prompting.few_shot import show_calls

FOLDER: Final = "/zq/"
"""Stands before the names of files where the tools ask for absolute paths."""
_GREETING: Final = ("Hello!", "Hello! What can I do for you?")
_DONE: Final = "ok"


class _Task(Struct, frozen=True, kw_only=True):
    """A task: what the user asks, the files to be read with their texts, what is changed, and the last answer."""

    request: str
    files: tuple[tuple[str, str], ...] = ()
    old: str = ""
    new: str = ""
    """The piece of text to be replaced in each of the files, and its replacement; without the former, the latter is
    the whole text of the file that is written."""
    written: str = ""
    """The file that is written; without it, the files that were read are changed."""
    answer: str


_TASKS: Final = (
    _Task(
        request="Write the words blue owl to {0}.",
        new="blue owl",
        written="zq0.txt",
        answer="I wrote blue owl to {0}.",
    ),
    _Task(
        request="Which mode does {0} set?",
        files=(("zq1.cfg", "size = 3\nmode = vorpal\n"),),
        answer="It sets the mode vorpal.",
    ),
    _Task(
        request="Add the line 'row 3' to {0}.",
        files=(("zq2.txt", "row 1\nrow 2\n"),),
        new="row 1\nrow 2\nrow 3\n",
        answer="I added row 3 to {0}.",
    ),
    _Task(
        request="Set depth to 4 in {0} and {1}.",
        files=(("zq3.ini", "width = 7\ndepth = 2\n"), ("zq4.ini", "depth = 2\nheight = 9\n")),
        old="depth = 2",
        new="depth = 4",
        answer="I set depth to 4 in {0} and {1}.",
    ),
    _Task(
        request="Put the label in {0} into {1}.",
        files=(("zq5.json", '{"id": 5, "label": "zk-81"}\n'),),
        new="zk-81",
        written="zq6.txt",
        answer="I wrote the label zk-81 to {1}.",
    ),
)


def render_with_examples(conversation: Conversation, dialect: str, *, parallel: bool = False) -> PromptedConversation:
    """Render a conversation as ``render_as_text`` does, with example turns behind the system prompt."""
    prompted = render_as_text(conversation, dialect, parallel=parallel)
    if not prompted.tools:
        return prompted
    examples = _make_turns(tuple(prompted.tools), dialect, parallel)
    system, *others = prompted.conversation.messages
    return replace(prompted, conversation=replace(prompted.conversation, messages=(system, *examples, *others)))


@lru_cache(maxsize=16)
def _make_turns(tools: tuple[Tool, ...], dialect: str, parallel: bool) -> tuple[Message, ...]:
    """User and assistant messages by turns."""
    found = find_file_tools(tools)
    if found.reader is None or found.writer is None or found.editor is None:
        texts = [*_GREETING, *show_calls(tools, dialect, _make_scalar)] if parallel else []
    else:
        agent = _Agent(tools, dialect, parallel, found.reader, found.writer, found.editor)
        texts = [*_GREETING, *(text for task in _TASKS for text in agent.work(task))]
    return tuple(Message("assistant" if at % 2 else "user", (Text(text),)) for at, text in enumerate(texts))


def _make_scalar(key: str, kind: str, number: int) -> Any:
    match kind:
        case "integer":
            return 11 + number
        case "number":
            return 1.5 + number
    return f"Zq{number + 1}"


_MadeCall = tuple[FileTool, tuple[str, ...], str]
"""A tool, its arguments and its result."""


class _Agent(Struct, frozen=True):
    """Does tasks with the tools of a client."""

    tools: tuple[Tool, ...]
    dialect: str
    parallel: bool
    reader: FileTool
    writer: FileTool
    editor: FileTool

    def work(self, task: _Task) -> Iterator[str]:
        """The texts of the user's side and of the model by turns, until a task is done."""
        folder = FOLDER * any(tool.absolute for tool in (self.reader, self.writer, self.editor))
        files = [(folder + path, text) for path, text in task.files]
        written = [folder + task.written] * bool(task.written)
        names = [*(path for path, _ in files), *written]
        asked = task.request.format(*names)
        reading = [(self.reader, (path,), text) for path, text in files]
        for made in (reading, self.change(task, files, written)):
            for calls in [made] if self.parallel and made else [[call] for call in made]:
                yield asked
                yield write_calls(self.dialect, [_name(call) for call in calls], self.tools)
                asked = "\n\n".join(write_result(self.dialect, tool.name, text) for tool, _, text in calls)
        yield asked
        yield task.answer.format(*names)

    def change(self, task: _Task, files: Sequence[tuple[str, str]], written: Sequence[str]) -> list[_MadeCall]:
        """The calls that write or edit."""
        if not task.new:
            return []
        if not task.old:
            return [(self.writer, (path, task.new), _DONE) for path in (written or [path for path, _ in files])]
        return [(self.editor, (path, task.old, task.new), _DONE) for path, _ in files]


def _name(call: _MadeCall) -> tuple[str, str]:
    """The name and the arguments of a call."""
    tool, values, _ = call
    return tool.name, json.dumps(tool.make_arguments(*values), ensure_ascii=False)

"""Example turns for models that can write a call, but do not know when to make one.

Rules in the prompt hardly change what a small model does; turns of a conversation do (``bench/README.md``). The turns
are placed between the system prompt and the conversation and use the client's own tools, because tools that exist only
in examples are called too. A coding agent, with tools that read, edit and write files, gets short tasks: read first,
then change, then say in words what was done. Any other client gets a request for several calls, if these are allowed.
Files and values are nonsense, so that they fit no real task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.clients.file_tools import FileTool, find_file_tools
from toolglot.core.conversation import Conversation, Message, Text, Tool
from toolglot.core.made_up_values import make_word
from toolglot.prompting.call_writer import write_calls
from toolglot.prompting.conversation import PromptedConversation, render_as_text, write_result
from toolglot.prompting.few_shot import show_calls

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
        request="Write the words $0 $1 to {0}.",
        new="$0 $1",
        written="$2.txt",
        answer="I wrote $0 $1 to {0}.",
    ),
    _Task(
        request="Which mode does {0} set?",
        files=(("$4.cfg", "size = 3\nmode = $6\n"),),
        answer="It sets the mode $6.",
    ),
    _Task(
        request="Add the line '$7 3' to {0}.",
        files=(("$8.txt", "$7 1\n$7 2\n"),),
        new="$7 1\n$7 2\n$7 3\n",
        answer="I added $7 3 to {0}.",
    ),
    _Task(
        request="Set $9 to 4 in {0} and {1}.",
        files=(("$10.ini", "width = 7\n$9 = 2\n"), ("$12.ini", "$9 = 2\nheight = 9\n")),
        old="$9 = 2",
        new="$9 = 4",
        answer="I set $9 to 4 in {0} and {1}.",
    ),
    _Task(
        request="Put the label in {0} into {1}.",
        files=(("$15.json", '{"id": 5, "label": "$17"}\n'),),
        new="$17",
        written="$18.txt",
        answer="I wrote the label $17 to {1}.",
    ),
)
"""Each number with a dollar sign is a made-up word."""
_SLOT: Final = re.compile(r"\$(\d+)")


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
        texts = [*_GREETING, *show_calls(tools, dialect)] if parallel else []
    else:
        agent = _Agent(tools, dialect, parallel, found.reader, found.writer, found.editor)
        texts = [*_GREETING, *(agent.fill_in(text) for task in _TASKS for text in agent.work(task))]
    return tuple(Message("assistant" if at % 2 else "user", (Text(text),)) for at, text in enumerate(texts))


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

    def fill_in(self, text: str) -> str:
        """Replace the slots of a task by words."""
        return _SLOT.sub(lambda slot: make_word(self.reader.name, self.writer.name, number=int(slot[1])), text)

    def work(self, task: _Task) -> Iterator[str]:
        """The texts of the user's side and of the model by turns, until a task is done."""
        folder = "/$19/" * any(tool.absolute for tool in (self.reader, self.writer, self.editor))
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

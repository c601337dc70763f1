"""A shell fence as a call to the tool that runs commands. Off unless the caller lists the commands that may run.

    ```bash
    git status
    ```

Only one plain command counts: its first word is on the list, and nothing in it pipes, redirects, substitutes or chains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from toolglot.dialect import Call
from toolglot.draft import Frame
from toolglot.jsontext import Value
from toolglot.pattern import Match
from toolglot.scanner import Steps
from toolglot.schema import Tool, Toolbox

COMMAND = "command"
_FENCE = ("```",)
_SHELL_SYNTAX = re.compile(r"[|&;<>`$(){}\\\n]")


def _runner(toolbox: Toolbox) -> Tool | None:
    """The one tool on offer that takes a command."""
    tools = [tool for tool in map(toolbox.find, toolbox.names) if tool is not None and tool.declares(COMMAND)]
    return tools[0] if len(tools) == 1 else None


@dataclass(frozen=True, slots=True)
class Shell:
    def accepts(self, head: str) -> bool:
        return True

    def read(self, frame: Frame, call: Call, found: Match) -> Steps[bool]:
        source = frame.source
        allowed = frame.options.shell
        tool = _runner(frame.toolbox) if allowed and frame.wrap_close == _FENCE else None
        line = found[0].removeprefix("$ ").strip()
        if tool is None or line.split(" ")[0] not in allowed or _SHELL_SYNTAX.search(line):
            return False
        source.pos = found.end()
        yield from source.skip_blanks()
        if (yield from source.peek(3)) != "```":
            return False
        draft = frame.begin(tool.name, frame.start)
        if draft is None:
            return False
        draft.add_value(COMMAND, line)
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """None: without the caller's list of commands a fence is never read as a call."""
        return iter(())

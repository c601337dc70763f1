"""Shell fences as calls to the tool that runs commands. Off unless the caller lists the allowed commands.

    ```bash
    git status
    ```

Only one plain command counts: its first word is on the list, and it does not pipe, redirect, substitute or chain unless
that is allowed too. Then every command in the line must be on the list. Quotes make no difference: a line that only
looks as if it did more than allowed stays text. If an explicit working directory is required, a fence counts only if
one is set and the tool has a parameter for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from toolglot.core.events import Reason
from toolglot.core.lenient_json import Value
from toolglot.core.options import Options
from toolglot.core.schema.toolset import CompiledTool, CompiledTools
from toolglot.dialects.partial_call import CallBlock
from toolglot.dialects.patterns import Match
from toolglot.dialects.scanner import Steps
from toolglot.dialects.spec import CallSyntax

COMMAND = "command"
DIRECTORIES = ("cwd", "workdir", "working_directory")
USUAL_NAMES = ("execute_command", "bash", "run_command", "shell")
_FENCE = ("```",)
_NEVER = re.compile(r"[{}\\\n]")
_SYNTAX = {
    "pipes": re.compile(r"(?<!\|)\|(?!\|)"),
    "redirects": re.compile(r"[<>]"),
    "substitution": re.compile(r"[`$()]"),
    "chains": re.compile(r"&|;|\|\|"),
}
_COMMANDS = re.compile(r"[|&;`()]+|\$\(")
"""Where another command may begin."""


def _find_runner(toolbox: CompiledTools) -> CompiledTool | None:
    """The only offered tool that takes a command; of several, the one with a usual name."""
    tools = [tool for tool in map(toolbox.find, toolbox.names) if tool is not None and tool.declares(COMMAND)]
    if len(tools) > 1:
        tools = [tool for tool in tools if tool.name in USUAL_NAMES]
    return tools[0] if len(tools) == 1 else None


def is_allowed(line: str, options: Options) -> bool:
    """Whether a line does only what the caller allows."""
    if _NEVER.search(line):
        return False
    if any(sign.search(line) for name, sign in _SYNTAX.items() if name not in options.shell_syntax):
        return False
    commands = [command.split() for command in _COMMANDS.split(line) if command.strip()]
    return bool(commands) and all(command[0] in options.shell for command in commands)


class Shell(Struct, frozen=True):
    def accepts(self, head: str) -> bool:
        return True

    def read(self, block: CallBlock, syntax: CallSyntax, found: Match) -> Steps[bool]:
        source = block.source
        options = block.options
        tool = _find_runner(block.tools) if options.shell and block.wrap_close == _FENCE else None
        line = found[0].removeprefix("$ ").strip()
        if tool is None or not is_allowed(line, options):
            return False
        source.pos = found.end()
        yield from source.skip_blanks()
        if (yield from source.peek(3)) != "```":
            return False
        call = block.begin(tool.name, block.start)
        if call is None:
            return False
        call.add_value(COMMAND, line)
        place = next(filter(tool.declares, DIRECTORIES), "")
        if options.shell_cwd and place:
            call.add_value(place, options.shell_cwd)
        elif options.patterns.require_cwd:
            call.add_defect(
                Reason.MISSING_ARGUMENT, place or DIRECTORIES[0], "nothing", "an explicit working directory"
            )
        return True

    def write(self, sample: str, name: str, arguments: Mapping[str, Value]) -> Iterator[str]:
        """None: without the caller's list of commands a fence is never read as a call."""
        return iter(())

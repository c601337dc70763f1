"""Exit codes of all commands, and what every help text has: examples and exit codes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
AddParser: TypeAlias = Callable[..., argparse.ArgumentParser]
"""Makes the parser of a command, as ``add_parser`` of argparse does; name and line of help are given already."""

OK, FINDINGS, USAGE_ERROR, ONLY_REJECTED, INTERRUPTED = 0, 1, 2, 3, 130

HEADING = "exit codes:"
EXIT_CODES = """\
exit codes:
  0    the command has done its work
  1    config check, doctor, setup: there is something to correct
  2    usage error: an invalid option, file, setting or answer of a server
  3    read: the text contains calls, but all of them were rejected
"""
COMMON_CODES = """\
exit codes:
  0    the command has done its work
  2    usage error: an invalid option, file or setting
"""
INTERRUPTED_LINE = f"  {INTERRUPTED}  interrupted with Ctrl-C\n"


def complete_help(parser: argparse.ArgumentParser, examples: str = "") -> None:
    """Complete the help of a command and of all its actions.

    An action without examples gets those of the command that show it, ``examples``; one without a description gets its
    line in the list of actions. Exit codes that are not described are added.
    """
    epilog = parser.epilog or _select_examples(examples, parser.prog)
    examples = epilog
    if HEADING not in epilog:
        epilog += ("\n" if epilog else "") + COMMON_CODES
    if "Ctrl-C" not in epilog.partition(HEADING)[2]:
        epilog += INTERRUPTED_LINE
    parser.epilog = epilog
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    about = _describe_actions(parser)
    for name, action in list_actions(parser).items():
        action.description = action.description or about.get(name, "").capitalize() + "."
        complete_help(action, examples)


def _select_examples(examples: str, command: str) -> str:
    lines = [line for line in examples.splitlines() if command in line]
    return "\n".join(["examples:", *lines, ""]) if lines else ""


def _describe_actions(parser: argparse.ArgumentParser) -> dict[str, str]:
    subcommands = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {choice.dest: choice.help or "" for action in subcommands for choice in action._get_subactions()}


def list_actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The subcommands of a parser by name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}

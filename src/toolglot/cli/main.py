"""Entry point of the ``toolglot`` command and list of its subcommands.

Each subcommand is a module with ``add(commands)``, which registers its parser and its ``run`` function. ``run`` takes
the parsed arguments and returns an exit code; a ``ClientError`` that it raises is printed as one line. Only the module
of the requested command is imported, for a fast start.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final

import toolglot
from toolglot.cli.exit_codes import EXIT_CODES, OK, USAGE_ERROR
from toolglot.core.errors import ClientError

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "toolglot.cli.serve",
    "setup": "toolglot.cli.setup",
    "doctor": "toolglot.cli.doctor",
    "errors": "toolglot.cli.errors",
    "explain": "toolglot.cli.explain",
    "probe": "toolglot.cli.probe",
    "report": "toolglot.cli.report",
    "records": "toolglot.cli.records",
    "sessions": "toolglot.cli.sessions",
    "read": "toolglot.cli.read",
    "dialects": "toolglot.cli.dialects",
    "config": "toolglot.cli.config",
    "key": "toolglot.cli.key",
    "rollout": "toolglot.cli.rollout",
    "sim": "toolglot.cli.sim",
}
"""The subcommands and their modules, in the order of the help text."""

EXAMPLES = """\
examples:
  toolglot serve
  toolglot serve --base-url http://127.0.0.1:8080/v1
  toolglot setup claude
  toolglot doctor
  toolglot errors upstream_key_refused
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1 --ask
  toolglot probe --base-url http://127.0.0.1:8080/v1 --model qwen3-coder
  toolglot report requests.log
  toolglot records list --outcome failed
  toolglot read answer.txt --tools tools.json
  llm "list the files" | toolglot read --tools tools.json --json
  toolglot read answer.txt --tools tools.json --events --stream 4
  toolglot dialects
  toolglot config show
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters: ``argv`` are the arguments without the program name (default: those of the process).

    Raises: ``SystemExit`` for ``--help``, ``--version`` and invalid arguments, as ``argparse`` does.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    given = sys.argv[1:] if argv is None else argv
    requested = given[:1] if given and given[0] in COMMANDS else COMMANDS
    arguments = build_parser(requested).parse_args(given)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClientError as error:
        print(f"toolglot: {error.message}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader is gone; discard the last flush
        return OK
    return code


def build_parser(requested: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Build the argument parser for these commands."""
    parser = argparse.ArgumentParser(
        prog="toolglot",
        description="Tool calling between any client and any model: a gateway, and a parser for calls written as text.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"toolglot {toolglot.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in requested:
        import_module(COMMANDS[command]).add(commands)
    return parser

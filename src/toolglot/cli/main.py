"""The command ``toolglot``: one file per subcommand, listed here.

Each file has ``add(commands)``, which registers its parser and sets ``run`` to what the command does. ``run`` takes the
parsed arguments and returns an exit code; a ``ClientError`` it raises is shown as one line. Only the file of the
command that is asked for is loaded, because a start should not wait for the others.
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
    "explain": "toolglot.cli.explain",
    "probe": "toolglot.cli.probe",
    "report": "toolglot.cli.report",
    "read": "toolglot.cli.read",
    "dialects": "toolglot.cli.dialects",
    "config": "toolglot.cli.config",
    "key": "toolglot.cli.key",
    "sim": "toolglot.cli.sim",
}
"""The subcommands and their files, in the order the help shows them."""

EXAMPLES = """\
examples:
  toolglot serve
  toolglot serve --base-url http://127.0.0.1:8080/v1
  toolglot explain request.json --base-url http://127.0.0.1:8080/v1 --ask
  toolglot probe --base-url http://127.0.0.1:8080/v1 --model qwen3-coder
  toolglot report requests.log
  toolglot read answer.txt --tools tools.json
  llm "list the files" | toolglot read --tools tools.json --json
  toolglot read answer.txt --tools tools.json --events --stream 4
  toolglot dialects
  toolglot config show
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    given = sys.argv[1:] if argv is None else argv
    asked = given[:1] if given and given[0] in COMMANDS else COMMANDS
    arguments = build_parser(asked).parse_args(given)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClientError as error:
        print(f"toolglot: {error.message}", file=sys.stderr)
        return USAGE_ERROR
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; let the last flush go nowhere
        return OK
    return code


def build_parser(asked: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands."""
    parser = argparse.ArgumentParser(
        prog="toolglot",
        description="Tool calling between any client and any model: a gateway, and a reader of calls written as text.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"toolglot {toolglot.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in asked:
        import_module(COMMANDS[command]).add(commands)
    return parser

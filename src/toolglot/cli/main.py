"""The command ``toolglot``: one file per subcommand, listed here.

Each file has ``add(commands)``, which registers its parser and sets ``run`` to what the command does. ``run`` takes the
parsed arguments and returns an exit code; a ``ClientError`` it raises is shown as one line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import toolglot
from toolglot.cli import config, dialects, explain, key, probe, read, report, serve
from toolglot.cli.exits import EXIT_CODES, OK, WRONG_USE
from toolglot.errors import ClientError
from toolglot.sim import command as sim

COMMANDS = (serve, explain, probe, report, read, dialects, config, key, sim)
"""The subcommands, in the order the help shows them."""

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
    arguments = build_parser().parse_args(argv)
    try:
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClientError as error:
        print(f"toolglot: {error.message}", file=sys.stderr)
        return WRONG_USE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on; let the last flush go nowhere
        return OK
    return code


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="toolglot",
        description="Tool calling between any client and any model: a gateway, and a reader of calls written as text.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"toolglot {toolglot.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return parser

"""Entry point of the ``toolglot`` command and list of its subcommands.

Each subcommand is a module with ``add(add_parser)``, which makes its parser and sets its ``run`` function. ``run``
takes the parsed arguments and returns an exit code; a ``ClientError`` that it raises is printed as one line. Only the
module of the requested command is imported; of the others the help text needs no more than is written here.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Final

import toolglot
from toolglot.cli.exit_codes import EXIT_CODES, INTERRUPTED, OK, USAGE_ERROR, complete_help
from toolglot.core.errors import ClientError

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "run the gateway",
    "setup": "point a client to the gateway",
    "run": "start an agent with a gateway of its own",
    "doctor": "check settings, upstream, model, store, port and clients",
    "errors": "explain an error of the gateway",
    "explain": "show how a request would be handled, and why",
    "probe": "test the tool support of a server and print a profile for it",
    "report": "compare the success of transformations by rollout arm",
    "records": "list, show and export the records of requests",
    "sessions": "list, show, export and delete sessions",
    "read": "parse one answer and show its calls, text and rejected calls",
    "eval": "score recorded outputs of models",
    "top": "watch the requests of a running gateway",
    "replay": "send a recorded request again and compare the answers",
    "dialects": "list the dialects",
    "config": "show and check the settings",
    "key": "generate a client key, or manage the keys in the store",
    "rollout": "show or change the rollout in the store",
    "sim": "run a simulated model, for tests and demos",
    "completion": "print a script that completes commands in a shell",
}
"""The subcommands and their lines in the help text, in its order. Each is the module ``toolglot.cli.<name>``."""

EXAMPLES = """\
examples:
  toolglot serve
  toolglot serve --base-url http://127.0.0.1:8080/v1
  toolglot setup claude
  toolglot run claude --base-url http://127.0.0.1:8080/v1
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
  toolglot config check toolglot.toml
  toolglot completion bash
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Parameters: ``argv`` are the arguments without the program name (default: those of the process).

    Raises: ``SystemExit`` for ``--help``, ``--version`` and invalid arguments, as ``argparse`` does.
    """
    _prepare_streams()
    given, passed = split_arguments(sys.argv[1:] if argv is None else argv)
    requested = [word for word in given if word in COMMANDS][:1]
    if argv is None:
        gc.disable()  # nothing of what a command imports becomes garbage
    try:
        parser = build_parser(requested)
        if argv is None:
            gc.freeze()
            gc.enable()
        arguments, unknown = parser.parse_known_args(given, argparse.Namespace(passed=passed))
        if unknown:
            hint = "; those for the client come after --" if requested == ["run"] else ""
            parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except ClientError as error:
        return _fail(error.message)
    except BrokenPipeError:
        _discard_output()  # the reader is gone
        return OK
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}")
    except RecursionError:
        return _fail("the input is nested too deeply")
    except KeyboardInterrupt:
        _discard_output()
        return _fail("interrupted", INTERRUPTED)
    return code


def _fail(message: str, code: int = USAGE_ERROR) -> int:
    print(f"toolglot: {message}", file=sys.stderr)
    return code


def _prepare_streams() -> None:
    """Write UTF-8, and replace a stream that is closed."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the last flush of the process cannot fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stream without a file
        pass


def split_arguments(given: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The arguments of the command, and those after ``--`` if it starts a program that gets them."""
    if given[:1] not in (["run"], ("run",)) or "--" not in given:
        return given, ()
    at = given.index("--")
    return given[:at], given[at + 1 :]


def build_parser(requested: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """Build the argument parser. Only these commands are complete; the others are names with a line of help."""
    parser = argparse.ArgumentParser(
        prog="toolglot",
        description="Tool calling between any client and any model: a gateway, and a parser for calls written as text.",
        epilog=EXAMPLES + "\n" + EXIT_CODES,
    )
    parser.add_argument("--version", action=_PrintVersion)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command, about in COMMANDS.items():
        add_parser = partial(commands.add_parser, command, help=about)
        if command in requested:
            import_module(f"toolglot.cli.{command}").add(add_parser)
        else:
            add_parser()
    complete_help(parser)
    return parser


class _PrintVersion(argparse.Action):
    """Like argparse's own action; the version is looked up only if it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"toolglot {toolglot.__version__}")
        parser.exit()

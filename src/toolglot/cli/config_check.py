"""``toolglot config check`` and ``toolglot config schema``: every problem of a settings file, and its JSON Schema."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolglot.cli.common_options import find_settings_file
from toolglot.cli.exit_codes import FINDINGS, OK, Commands
from toolglot.cli.terminal import BOLD, GREEN, RED, Paint, add_color_option, wants_color
from toolglot.config.loader import FILE_NAME, load
from toolglot.config.problems import Problem, Problems
from toolglot.config.toml_lines import LineIndex
from toolglot.core.errors import UsageError

CHECK_EXAMPLES = """\
examples:
  toolglot config check                      the file that 'toolglot serve' would use here
  toolglot config check deploy/toolglot.toml
  toolglot config check --json | jq '.problems[].line'

exit codes:
  0    the file is valid; there may be notes
  1    the file has problems, which are listed
  2    usage error: there is no file, or it cannot be read
"""
SCHEMA_EXAMPLES = """\
examples:
  toolglot config schema > toolglot.schema.json

Editors with a TOML language server use it if the settings file begins with this line:
  #:schema ./toolglot.schema.json
"""


def add_actions(actions: Commands) -> None:
    check = actions.add_parser(
        "check",
        help="list every problem of a settings file",
        description="List every problem of a settings file with its line: syntax, unknown keys, invalid values,"
        " variables that are not set, secrets whose files cannot be used, models without upstream, the profiles file.",
        epilog=CHECK_EXAMPLES,
    )
    check.add_argument(
        "config", nargs="?", metavar="FILE", help=f"settings file (default: that of 'serve', {FILE_NAME})"
    )
    check.add_argument("--json", action="store_true", help="print one JSON document")
    add_color_option(check)
    check.set_defaults(run=run_check)
    schema = actions.add_parser(
        "schema",
        help="print the JSON Schema of the settings file",
        description="Print the JSON Schema of the settings file, for editors. It is stricter than the gateway: numbers"
        " and switches are to be written as such, not as text.",
        epilog=SCHEMA_EXAMPLES,
    )
    schema.add_argument("--json", action="store_true", help="print JSON, as it does anyway")
    schema.set_defaults(run=run_schema)


def run_schema(arguments: argparse.Namespace) -> int:
    from toolglot.config.json_schema import make_schema

    print(json.dumps(make_schema(), ensure_ascii=False, indent=2))
    return OK


def run_check(arguments: argparse.Namespace) -> int:
    path = find_settings_file(arguments)
    if path is None:
        raise UsageError(f"there is no {FILE_NAME} here, and TOOLGLOT_CONFIG is not set: name the file to check")
    document = check_file(path)
    if arguments.json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\n".join(format_lines(document, Paint(wants_color(arguments.color, sys.stdout)))))
    return FINDINGS if document["problems"] else OK


def check_file(path: Path) -> dict[str, Any]:
    """All problems and notes of a settings file. Raises: UsageError if it cannot be read."""
    problems = Problems(collects=True)
    settings = load({}, os.environ, path, problems)
    profiles = settings.tool_calling.profiles
    if profiles and settings.sources["tool_calling.profiles"] == str(path):
        from toolglot.gateway.capabilities.profiles import load_profiles

        with problems.at("tool_calling", "profiles"):
            load_profiles(profiles)
    lines = LineIndex(path.read_text("utf-8", "replace"))
    found = [_describe(problem, path, lines) for problem in problems.found]
    return {
        "file": str(path),
        "valid": not found,
        "problems": sorted(found, key=lambda problem: problem["line"]),
        "notes": list(settings.notes),
    }


def _describe(problem: Problem, path: Path, lines: LineIndex) -> dict[str, Any]:
    return {
        "line": problem.line or lines.line_of(problem.place),
        "key": ".".join(str(step + 1) if isinstance(step, int) else step for step in problem.place),
        "message": problem.message.removeprefix(f"{path}: ").removeprefix(f"{path} "),
    }


def format_lines(document: dict[str, Any], paint: Paint) -> Iterator[str]:
    """``FILE:LINE: problem`` for each, as compilers print them; then a summary."""
    for problem in document["problems"]:
        place = f"{document['file']}:{problem['line']}" if problem["line"] else document["file"]
        yield f"{paint(place, BOLD)}: {problem['message']}"
    yield from (f"note: {note}" for note in document["notes"])
    number = len(document["problems"])
    yield (
        paint(f"{number} problem{'' if number == 1 else 's'}", RED)
        if number
        else paint(f"{document['file']} is valid", GREEN)
    )

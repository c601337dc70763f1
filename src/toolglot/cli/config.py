"""``toolglot config``: the effective settings and the source of each, with secrets masked; and checks of a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolglot.cli.common_options import add_gateway_options, load_settings
from toolglot.cli.config_check import add_actions
from toolglot.cli.exit_codes import OK, AddParser
from toolglot.config.description import describe_settings

EXAMPLES = """\
examples:
  toolglot config show                          the settings that 'toolglot serve' would use here
  toolglot config show --config config.yaml     how a LiteLLM file is understood
  TOOLGLOT_PORT=9000 toolglot config show       with a setting from the environment
  toolglot config check toolglot.toml           every problem of a file, with its line
  toolglot config schema                        the JSON Schema of the file, for editors
"""


def add(add_parser: AddParser) -> None:
    config = add_parser(description="Show and check the settings.", epilog=EXAMPLES)
    actions = config.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = actions.add_parser(
        "show",
        help="show every setting and its source",
        description="Show every setting and its source: command line, environment, file or default. Secrets are"
        " masked.",
    )
    show.add_argument("--json", action="store_true", help="print one JSON document")
    add_gateway_options(show)
    show.set_defaults(run=run)
    add_actions(actions)


def run(arguments: argparse.Namespace) -> int:
    document = describe_settings(load_settings(arguments))
    if arguments.json:
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\n".join(format_lines(document)))
    return OK


def format_lines(document: Mapping[str, Any]) -> Iterator[str]:
    rows = [(key, format_value(one["value"]), one["source"]) for key, one in document["settings"].items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for key, value, source in rows:
        yield f"{key:<{widths[0]}}  {value:<{widths[1]}}  {source}"
    for what in ("upstreams", "models"):
        yield ""
        yield what if document[what] else f"{what}: none"
        for one in document[what]:
            yield "  " + "  ".join(
                f"{key}={format_value(value)}" for key, value in one.items() if value not in ("", {})
            )
    for key, source in document["sources"].items():
        yield f"  {key} comes from {source}"
    yield from (f"note: {note}" for note in document["notes"])


def format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "-"
    if isinstance(value, bool):
        return str(value).lower()
    return "auto" if value is None else str(value) or "-"

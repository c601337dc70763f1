"""``toolglot config``: the effective settings and the source of each, with secrets masked; and checks of a file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from toolglot.cli.common_options import add_gateway_options, load_settings
from toolglot.cli.config_check import add_actions
from toolglot.cli.exit_codes import OK, Commands
from toolglot.config import KeyHash, Secret, Settings
from toolglot.config.keys import MASK, mask_address
from toolglot.config.rollout import Plan
from toolglot.config.settings import SETTINGS

EXAMPLES = """\
examples:
  toolglot config show                          the settings that 'toolglot serve' would use here
  toolglot config show --config config.yaml     how a LiteLLM file is understood
  TOOLGLOT_PORT=9000 toolglot config show       with a setting from the environment
  toolglot config check toolglot.toml           every problem of a file, with its line
  toolglot config schema                        the JSON Schema of the file, for editors
"""


def add(commands: Commands) -> None:
    config = commands.add_parser(
        "config", help="show and check the settings", description="Show and check the settings.", epilog=EXAMPLES
    )
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


def describe_settings(settings: Settings) -> dict[str, Any]:
    """The settings as a JSON document, with secrets masked."""
    return {
        "settings": {
            one.key: {
                "value": mask_value(getattr(getattr(settings, one.section), one.field)),
                "source": settings.sources.get(one.key, ""),
            }
            for one in SETTINGS
        },
        "upstreams": [{one.name: mask_value(getattr(up, one.name)) for one in fields(up)} for up in settings.upstreams],
        "models": [{one.name: getattr(model, one.name) for one in fields(model)} for model in settings.models],
        "sources": {
            key: source for key, source in settings.sources.items() if key not in {one.key for one in SETTINGS}
        },
        "notes": list(settings.notes),
    }


def mask_value(value: Any) -> Any:
    """The value with secrets masked."""
    match value:
        case Secret() | Plan():
            return str(value)
        case KeyHash():
            return MASK
        case tuple():
            return [mask_value(item) for item in value]
        case Mapping():
            return dict.fromkeys(value, MASK)
        case str() if "://" in value:
            return mask_address(value)
    return value


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

"""Reference pages that are generated from the source: commands, dialects, wires, events and metrics.

``pytest --update-samples tests/project/test_reference.py`` writes them into docs/reference.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import get_args, get_type_hints

import msgspec


def command_reference() -> str:
    """Every command with its arguments, as its parser defines them."""
    from toolglot.cli.main import build_parser

    return "\n" + "\n".join(_describe_parser(build_parser(), 2))


def _describe_parser(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    children: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            children = dict(action.choices)
    if level > 2:
        yield f"{'#' * (level - 1)} `{parser.prog}`\n"
        yield f"{_plain(parser.description or '')}\n"
    rows = [row for group in parser._action_groups for row in _describe_group(parser, group)]
    if rows:
        yield "| argument | meaning |\n|---|---|"
        yield "\n".join(rows) + "\n"
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"
    for child in children.values():
        yield from _describe_parser(child, level + 1)


def _describe_group(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> Iterator[str]:
    formatter = parser._get_formatter()
    for action in group._group_actions:
        if isinstance(action, (argparse._HelpAction, argparse._SubParsersAction)) or action.help == argparse.SUPPRESS:
            continue
        value = action.metavar or (action.choices and "{" + ",".join(map(str, action.choices)) + "}") or ""
        value = str(value or (action.dest.upper() if action.nargs != 0 else ""))
        name = ", ".join(f"{option} {value}".strip() for option in action.option_strings) or value
        meaning = _plain(formatter._expand_help(action)) if action.help else ""
        yield f"| `{_cell(name)}` | {_cell(meaning)} |"


def _plain(text: str) -> str:
    """Help text as Markdown: angle brackets and stars are not markup."""
    return re.sub(r"([<>*_])", r"\\\1", " ".join(text.split()))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def dialect_reference() -> str:
    """Every dialect by family: the models that use it, how sure its marks are, and a sample."""
    from toolglot.dialects.records import all_dialects
    from toolglot.dialects.spec import Commitment

    lines = []
    dialects = list(all_dialects())
    lines.append(f"\n{len(dialects)} dialects.\n")
    for family, members in groupby(dialects, key=lambda dialect: dialect.family):
        lines.append(f"## {family.replace('_', ' ').capitalize()}\n")
        for dialect in members:
            lines.append(f"### `{dialect.name}`\n")
            models = ", ".join(f"`{model}`" for model in dialect.models) or "none by its name"
            confidence = f" Confidence {dialect.confidence}." if dialect.confidence != 1 else ""
            marks = dialect.commitment.value.replace("the same", Commitment.TENTATIVE.value)
            lines.append(f"Models: {models}. {marks[0].upper()}{marks[1:]}.{confidence}\n")
            fence = "`" * (3 + max((len(run) for run in re.findall(r"`+", dialect.sample)), default=0))
            lines.append(f"{fence}text\n{dialect.sample.strip(chr(10))}\n{fence}\n")
    return "\n".join(lines)


def wire_reference() -> str:
    """The wires: addresses, stream formats and rules for the names of tools."""
    from toolglot.wires import all_wires

    rows = [
        "| wire | clients ask at | further endpoints | an upstream is asked at | stream | names of tools |",
        "|---|---|---|---|---|---|",
    ]
    for wire in all_wires().values():
        routes = _codes(path.replace(":.+}", "}") for path in wire.routes) or "no client uses it"
        more = _codes(f"{endpoint.method} {endpoint.path}" for endpoint in wire.extra_endpoints)
        upstream = wire.base_path + wire.locate("MODEL", stream=True)
        rows.append(
            f"| `{wire.name}` | {routes} | {more} | `{_cell(upstream)}` | `{wire.stream_type}` |"
            f" {_codes(filter(None, [wire.tool_name_pattern])) or 'any'} |"
        )
    return "\n".join(rows) + "\n"


def _codes(texts: Iterable[str]) -> str:
    return "<br>".join(f"`{_cell(text)}`" for text in texts)


def event_reference() -> str:
    """The events of an answer with their fields, and the reasons of rejected calls."""
    from toolglot.core import events

    order = (inspect.getdoc(events) or "").split("\n\n")
    lines = ["", order[2], "", order[3], "", "## Kinds", ""]
    for kind in get_args(events.Event):
        lines += [f"### `{kind.__name__}`\n", _plain(inspect.getdoc(kind) or "").replace("\\_", "_") + "\n"]
        hints = get_type_hints(kind)
        lines += ["| field | type | default |", "|---|---|---|"]
        for field in msgspec.structs.fields(kind):
            hint = hints[field.name]
            shown = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
            shown = re.sub(r"\b(?:toolglot|collections|typing)[\w.]*\.", "", shown)
            default = "" if field.default is msgspec.NODEFAULT else f"`{field.default!r}`"
            lines.append(f"| `{field.name}` | `{_cell(shown)}` | {default} |")
        lines.append("")
    lines += ["## Reasons of rejected calls\n", ", ".join(f"`{reason.value}`" for reason in events.Reason) + "\n"]
    return "\n".join(lines)


def metric_reference() -> str:
    """The Prometheus metrics of ``/metrics``."""
    from toolglot.gateway.telemetry.metrics import Histogram, Metrics

    rows = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for family in Metrics().families:
        name = f"{family.name}_total" if family.kind == "counter" else family.name
        labels = ", ".join(f"`{label}`" for label in family.labels)
        made = family.make()
        bounds = f" Buckets: {', '.join(map(str, made.bounds))}." if isinstance(made, Histogram) else ""
        rows.append(f"| `{name}` | {family.kind} | {labels} | {family.help}{bounds} |")
    return "\n".join(rows) + "\n"

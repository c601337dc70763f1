"""Clients that read tool calls in XML from the text of an answer: Roo, Kilo and Cline.

The profiles of a family of clients are a file in ``profiles``; the files are found by listing the folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import convert

from toolglot.clients.xml.client import XmlClient
from toolglot.clients.xml.parsers import TagGrammar, parse_cline, parse_roo
from toolglot.clients.xml.profile import ArgumentLimits, ClientTool, PromptLayout

Table = Mapping[str, Any]

PARSERS: Final = {"roo": parse_roo, "cline": parse_cline}


@cache
def all_clients() -> Mapping[str, XmlClient]:
    """All client profiles by name."""
    files = sorted(Path(__file__).with_name("profiles").glob("*.toml"))
    return {client.name: client for file in files for client in _load_family(tomllib.loads(file.read_text("utf-8")))}


def _load_family(document: Table) -> Iterator[XmlClient]:
    named = {**document, "parameters": {key: {"name": key} | one for key, one in document["parameters"].items()}}
    tools = {key: _make_tool({"name": key} | given, named) for key, given in document["tools"].items()}
    layouts = convert(document["layouts"], tuple[PromptLayout, ...])
    clients = {given["name"]: given for given in document["clients"]}
    for given in clients.values():
        yield _make_client(_fill(given, clients), document["family"], tools, layouts)


def _fill(given: Table, others: Mapping[str, Table]) -> dict[str, Any]:
    """The table with the fields of the one that it is like."""
    if "like" not in given:
        return dict(given)
    fields = {**_fill(others[given["like"]], others), **given}
    del fields["like"]
    return fields


def _make_tool(given: Table, document: Table) -> ClientTool:
    parameters = [_make_parameter(one, document) for one in given.get("parameters", ())]
    return convert({**given, "parameters": parameters}, ClientTool)


def _make_parameter(given: str | Table, document: Table) -> dict[str, Any]:
    fields = _fill({"like": given} if isinstance(given, str) else given, document["parameters"])
    if "unescaping" in fields:
        fields["unescaping"] = _fill({"like": fields["unescaping"]}, document["unescaping"])
    return fields


def _make_client(
    given: Table, family: Table, tools: Mapping[str, ClientTool], layouts: tuple[PromptLayout, ...]
) -> XmlClient:
    """A version with the tools and tags of its family. The arguments of other versions are ignored."""
    limits = convert(family.get("limits", {}), ArgumentLimits)
    known = {tools[key].name: tools[key] for key in (*family.get("tools", ()), *given["tools"])}
    parameters = frozenset((*family.get("parameters", ()), *given["parameters"]))
    return XmlClient(
        name=given["name"],
        tools=known,
        grammar=TagGrammar(
            tools=frozenset((*known, *given.get("tags", ()))),
            parameters=parameters,
            untrimmed=frozenset(family.get("untrimmed", ())),
            max_value_length=limits.parameter,
        ),
        parse=PARSERS[family["parser"]],
        limits=limits,
        aliases=family["aliases"],
        ignored_arguments=frozenset(family["ignored_arguments"]) - parameters,
        layouts=layouts,
        leading_tags=frozenset(family.get("leading_tags", ())),
        reasoning_tags=frozenset(family["reasoning_tags"]),
    )

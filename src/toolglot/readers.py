"""Readers for the answers of the gateway: the tools of a request, compiled once, and how strict to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from toolglot.conversation import Tool
from toolglot.errors import ToolSchemaError
from toolglot.options import Options
from toolglot.reading import Reader
from toolglot.schema import Toolbox


def make_reader(
    tools: tuple[Tool, ...],
    names: Mapping[str, str],
    dialect: str,
    strictness: tuple[Options, tuple[str, ...]],
    new_id: Callable[[], str],
) -> Reader:
    """A reader for one answer. The strictness is options and, if not all are, the tools that calls are made to."""
    options, only = strictness
    supported = options.supported_tools
    if only:
        tools = tuple(tool for tool in tools if names.get(tool.name, tool.name) in only)
        supported = tuple(name for name in supported if name in only)
    return Reader(
        toolbox(tools, supported),
        dialect,
        unknown_tools=options.unknown_tools,
        min_confidence=options.min_confidence,
        parallel=options.parallel,
        supported_tools=supported,
        shell=options.shell,
        shell_syntax=options.shell_syntax,
        shell_cwd=options.shell_cwd,
        thresholds=options.thresholds,
        new_id=new_id,
    )


@lru_cache(maxsize=256)
def toolbox(tools: tuple[Tool, ...], supported: tuple[str, ...]) -> Toolbox:
    """The compiled tools. Agents send the same ones with every turn, so they are compiled once."""
    declared = [{"name": tool.name, "parameters": dict(tool.parameters)} for tool in tools]
    return Toolbox([tool if _is_usable(tool) else {"name": tool["name"]} for tool in declared], supported)


def _is_usable(tool: Mapping[str, Any]) -> bool:
    try:
        Toolbox([tool])
    except ToolSchemaError:
        return False
    return True

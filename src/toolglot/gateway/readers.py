"""Readers for the answers of the gateway: the tools of a request, compiled once, and how strict to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from toolglot.core.conversation import Tool
from toolglot.core.options import Options
from toolglot.core.provenance import NO_QUOTATIONS, Quotations
from toolglot.core.schema.toolset import compile_tools
from toolglot.reading.reader import Reader


def make_reader(
    tools: tuple[Tool, ...],
    names: Mapping[str, str],
    dialect: str,
    strictness: tuple[Options, tuple[str, ...]],
    new_id: Callable[[], str],
    quotations: Quotations = NO_QUOTATIONS,
) -> Reader:
    """A reader for one answer. The strictness is options and, if not all are, the tools that calls are made to. The
    quotations are what of the conversation the answer may quote."""
    options, only = strictness
    supported = options.supported_tools
    if only:
        tools = tuple(tool for tool in tools if names.get(tool.name, tool.name) in only)
        supported = tuple(name for name in supported if name in only)
    return Reader.prepared(compile_tools(tools, supported), dialect, options, new_id, quotations)

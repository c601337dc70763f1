"""The structural tag of an answer that consists of calls, for servers that constrain answers with xgrammar.

    {"type": "tags_with_separator", "separator": "\\n", "at_least_one": true, "stop_after_first": true, "tags": [
        {"type": "tag", "begin": "...", "content": {"type": "grammar", "grammar": "root ::= ..."}, "end": "..."}]}

Strategy. There is one tag per tool: the text before the arguments, a grammar for them, the text after them. The
arguments are not left to the engine's own rules for JSON Schema. Those allow white space without end, half surrogate
pairs, and marks inside of values; they differ between versions of the engine, and refuse some schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from toolglot.core.conversation import Tool
from toolglot.prompting.grammar.call_shape import CallShape, UnwritableError, find_call_shape
from toolglot.prompting.grammar.rules import GrammarRules


@lru_cache(maxsize=16)
def build_structural_tag(tools: tuple[Tool, ...], dialect: str, *, parallel: bool) -> Mapping[str, Any] | None:
    """Build the structural tag of an answer that calls these tools in a dialect and contains nothing else.

    Parameters: ``dialect`` is a dialect name or a model id. ``parallel`` allows several calls, one per line.

    Returns: the ``format`` of a structural tag, or None if the dialect or a parameter cannot be written as a grammar or
    there are no tools.
    """
    shape = find_call_shape(dialect)
    if shape is None or not tools:
        return None
    try:
        tags = [_write_tag(shape, tool) for tool in tools]
    except UnwritableError:
        return None
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": "\n",
        "at_least_one": True,
        "stop_after_first": not parallel,
    }


def _write_tag(shape: CallShape, tool: Tool) -> dict[str, Any]:
    rules = GrammarRules()
    arguments = rules.write(shape.write_arguments(tool, rules) or '""')
    content = {"type": "grammar", "grammar": arguments}
    return {"type": "tag", "begin": shape.begin(tool), "content": content, "end": shape.end(tool)}

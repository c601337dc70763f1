"""The grammar of an answer that calls tools, in the GBNF of llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from toolglot.core.conversation import Tool
from toolglot.prompting.grammar.call_shape import CallShape, UnwritableError, find_call_shape
from toolglot.prompting.grammar.rules import GrammarRules, char_class, literal

MOST_CALLS = 8
BARE = "bare_json"


@lru_cache(maxsize=16)
def build_grammar(
    tools: tuple[Tool, ...], dialect: str, *, required: bool, parallel: bool, bare: bool = False
) -> str | None:
    """Build the grammar of an answer that calls these tools in a dialect.

    Parameters: ``dialect`` is a dialect name or a model id. Unless a call is ``required``, the answer may be text, with
    or without a call after it. ``parallel`` allows several calls, one per line. ``bare``: what begins like a call as
    bare JSON is one, to a tool that there is, and text is not empty; the smallest models forget the marks of their
    dialect.

    Returns: GBNF, or None if the dialect or a parameter cannot be written as a grammar or there are no tools.
    """
    shape = find_call_shape(dialect)
    if shape is None or not tools:
        return None
    shapes = _list_shapes(dialect, BARE) if bare else [shape]
    rules = GrammarRules()
    try:
        bodies = [
            f"{literal(shape.begin(tool))} {shape.write_arguments(tool, rules)} {literal(shape.end(tool))}"
            for shape in shapes
            for tool in tools
        ]
    except UnwritableError:
        return None
    calls = [rules.add("call", body) for body in bodies]
    several = f' ("\\n" call){{0,{MOST_CALLS - 1}}}' if parallel else ""
    rules.define("call", " | ".join(calls))
    rules.define("calls", f"call{several}")
    root = "calls"
    if not required:
        leads = _list_leads(shapes, tools)
        # after a backtick the reader would take the call as quoted
        before, text = rules.add_text({*leads, "`"}), rules.add_text(leads)
        root = f'{_begin_text(leads, text) if bare else text} | ({before} "\\n")? calls'
    return rules.write(root)


@lru_cache(maxsize=16)
def build_text_grammar(tools: tuple[Tool, ...], dialect: str) -> str | None:
    """Build the grammar of an answer in words: text that is not empty and holds no beginning of a call, neither in the
    dialect nor as bare JSON. Parameters and result are those of ``build_grammar``."""
    shapes = _list_shapes(dialect, BARE)
    leads = _list_leads(shapes, tools)
    if not leads:
        return None
    rules = GrammarRules()
    return rules.write(_begin_text(leads, rules.add_text(leads)))


def _list_shapes(*dialects: str) -> list[CallShape]:
    return [shape for dialect in dialects if (shape := find_call_shape(dialect)) is not None]


def _list_leads(shapes: Sequence[CallShape], tools: Sequence[Tool]) -> set[str]:
    """What calls of the tools begin with."""
    return {shape.lead(tool) for shape in shapes for tool in tools}


def _begin_text(leads: set[str], text: str) -> str:
    """Text that is not empty and does not begin like a call."""
    return f"{char_class(*sorted({lead[0] for lead in leads}), but=True)} {text}"

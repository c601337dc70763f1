"""Roo Code 3.29, of October 2025, whose prompt was examined when this began.

<write_to_file>
<path>notes.txt</path>
<content>
first line
</content>
<line_count>1</line_count>
</write_to_file>
"""

from __future__ import annotations

from dataclasses import replace

from toolglot.clients import roo_tools as roo
from toolglot.clients.client import Client
from toolglot.clients.parsers import Grammar, read_roo

_TOOLS = roo.collect(
    replace(roo.WRITE_TO_FILE, parameters=(*roo.WRITE_TO_FILE.parameters, roo.LINE_COUNT)),
    roo.INSERT_CONTENT,
    roo.SEARCH_AND_REPLACE,
    roo.LIST_DEFINITIONS,
)
_PARAMETERS = roo.PARAMETERS | {"line_count", "search", "replace", "use_regex", "ignore_case"}

CLIENT = Client(
    name="roo-3.29",
    tools=_TOOLS,
    grammar=Grammar(frozenset(_TOOLS), _PARAMETERS, roo.KEPT, roo.LIMITS.parameter),
    parse=read_roo,
    limits=roo.LIMITS,
    aliases=roo.ALIASES,
    ignored=frozenset({"task_progress", "requires_approval"}),
    layouts=(roo.LAYOUT,),
    leads=frozenset({"think"}),
)

"""Roo Code 3.36, of December 2025: the last that speaks XML with new tasks, and the one people stay with for that.

<write_to_file>
<path>notes.txt</path>
<content>
first line
</content>
</write_to_file>
"""

from __future__ import annotations

from toolglot.clients import roo_tools as roo
from toolglot.clients.client import Client
from toolglot.clients.parsers import Grammar, read_roo
from toolglot.clients.record import Care, ClientTool, Kind, Parameter

# these are not in its prompts; its parser knows them
_SEARCH_REPLACE = ClientTool(
    "search_replace", "Replaces one piece of a file.", (roo.FILE_PATH, roo.OLD_STRING, roo.NEW_STRING)
)
_EDIT_FILE = ClientTool(
    "edit_file",
    "Replaces text in a file, once or several times.",
    (
        roo.FILE_PATH,
        roo.OLD_STRING,
        roo.NEW_STRING,
        Parameter("expected_replacements", "How often it must be found.", required=False, kind=Kind.NUMBER),
    ),
)
_APPLY_PATCH = ClientTool(
    "apply_patch", "Applies a patch.", (Parameter("patch", "The patch.", kind=Kind.BLOCK, care=Care.ENDS),)
)
TOOLS = roo.collect(roo.WRITE_TO_FILE, _SEARCH_REPLACE, _EDIT_FILE, _APPLY_PATCH)
TAGS = frozenset(TOOLS) | {"search_and_replace"}
"""The last one is for native calls only, but opens a call wherever it stands."""

PARAMETERS = roo.PARAMETERS | {
    "files",
    "operations",
    "patch",
    "file_path",
    "old_string",
    "new_string",
    "expected_replacements",
}

CLIENT = Client(
    name="roo-3.36",
    tools=TOOLS,
    grammar=Grammar(TAGS, PARAMETERS, roo.KEPT, roo.LIMITS.parameter),
    parse=read_roo,
    limits=roo.LIMITS,
    aliases=roo.ALIASES,
    ignored=frozenset({"task_progress", "requires_approval", "line_count"}),
    layouts=(roo.LAYOUT,),
    leads=frozenset({"think"}),
)

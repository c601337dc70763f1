"""Kilo Code 4.145, of January 2026: its last version in which XML can be chosen. It reads as Roo does.

<edit_file>
<target_file>src/app.ts</target_file>
<instructions>I add the import</instructions>
<code_edit>
import { a } from "./a"
// ... existing code ...
</code_edit>
</edit_file>
"""

from __future__ import annotations

from dataclasses import replace

from toolglot.clients import roo_tools as roo
from toolglot.clients.client import Client
from toolglot.clients.parsers import Grammar, read_roo
from toolglot.clients.profiles.roo_3_36 import PARAMETERS as ROO_PARAMETERS
from toolglot.clients.profiles.roo_3_36 import TAGS as ROO_TAGS
from toolglot.clients.profiles.roo_3_36 import TOOLS as ROO_TOOLS
from toolglot.clients.record import Care, ClientTool, Kind, Parameter

_EDIT_FILE = ClientTool(
    "edit_file",
    "Edits a file from a sketch of the change.",
    (
        Parameter("target_file", "Path of the file.", aliases=("path", "file")),
        Parameter("instructions", "What changes, in one sentence.", care=Care.PROSE),
        Parameter("code_edit", "The changed lines, with a comment for those that stay.", kind=Kind.BLOCK),
    ),
)
_NEW_RULE = ClientTool("new_rule", "Writes a rule for later tasks.", (roo.PATH, replace(roo.CONTENT, rules=())))
_REPORT_BUG = ClientTool(
    "report_bug",
    "Prepares a report of a fault.",
    (
        Parameter("title", "What it is about.", care=Care.PROSE),
        Parameter("description", "What happened.", kind=Kind.BLOCK, care=Care.PROSE),
    ),
)
_CONDENSE = ClientTool(
    "condense",
    "Replaces the conversation by a summary.",
    (Parameter("message", "The summary.", kind=Kind.BLOCK, care=Care.PROSE),),
)
_DELETE_FILE = ClientTool("delete_file", "Deletes a file.", (roo.PATH,))

_TOOLS = {
    **ROO_TOOLS,
    **roo.collect(_EDIT_FILE, _DELETE_FILE, _NEW_RULE, _REPORT_BUG, _CONDENSE),
}
_PARAMETERS = ROO_PARAMETERS | {"target_file", "instructions", "code_edit", "title", "description"}

CLIENT = Client(
    name="kilo-4.145",
    tools=_TOOLS,
    grammar=Grammar(ROO_TAGS | frozenset(_TOOLS), _PARAMETERS, roo.KEPT, roo.LIMITS.parameter),
    parse=read_roo,
    limits=roo.LIMITS,
    aliases=roo.ALIASES,
    ignored=frozenset({"task_progress", "requires_approval", "line_count"}),
    layouts=(roo.LAYOUT,),
    leads=frozenset({"think"}),
)

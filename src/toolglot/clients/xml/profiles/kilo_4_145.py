"""Kilo Code 4.145, of January 2026: the last version with XML as an option. Its parser is that of Roo.

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

from msgspec.structs import replace

from toolglot.clients.xml import roo_tools as roo
from toolglot.clients.xml.profile import ClientParameter, ClientTool, ContentRewrite, Tolerance, ValueKind

_EDIT_FILE = ClientTool(
    "edit_file",
    "Edits a file from a sketch of the change.",
    (
        ClientParameter("target_file", "Path of the file.", aliases=("path", "file")),
        ClientParameter("instructions", "What changes, in one sentence.", tolerance=Tolerance.PROSE),
        ClientParameter("code_edit", "The changed lines, with a comment for those that stay.", kind=ValueKind.BLOCK),
    ),
)
_NEW_RULE = ClientTool(
    "new_rule",
    "Writes a rule for later tasks.",
    (
        roo.PATH,
        replace(
            roo.CONTENT,
            tolerance=Tolerance.TAIL,
            rewrites=(ContentRewrite.FENCES_TRIMMED, ContentRewrite.LINE_NUMBERS, ContentRewrite.BYTE_ORDER_MARK),
            may_be_empty=False,
        ),
    ),
)
_REPORT_BUG = ClientTool(
    "report_bug",
    "Prepares a report of a fault.",
    (
        ClientParameter("title", "What it is about.", tolerance=Tolerance.PROSE),
        ClientParameter("description", "What happened.", kind=ValueKind.BLOCK, tolerance=Tolerance.PROSE),
    ),
)
_CONDENSE = ClientTool(
    "condense",
    "Replaces the conversation by a summary.",
    (ClientParameter("message", "The summary.", kind=ValueKind.BLOCK, tolerance=Tolerance.PROSE),),
)
_DELETE_FILE = ClientTool("delete_file", "Deletes a file.", (roo.PATH,))

CLIENTS = (
    roo.define_client(
        "kilo-4.145",
        (
            roo.WRITE_TO_FILE,
            roo.SEARCH_REPLACE,
            roo.APPLY_PATCH,
            _EDIT_FILE,
            _DELETE_FILE,
            _NEW_RULE,
            _REPORT_BUG,
            _CONDENSE,
        ),
        frozenset(
            {
                *("files", "operations", "patch", "file_path", "old_string", "new_string"),
                *("search", "replace", "use_regex", "ignore_case", "old_str", "new_str"),
                *("target_file", "instructions", "code_edit", "title", "description"),
            }
        ),
        frozenset({roo.NATIVE_TAG}),
    ),
)

"""Roo Code 3.29.3 of October 2025 and before.

<write_to_file>
<path>notes.txt</path>
<content>
first line
</content>
<line_count>1</line_count>
</write_to_file>
"""

from __future__ import annotations

from toolglot.clients.xml import roo_tools as roo

CLIENTS = (
    roo.define_client(
        "roo-3.29",
        (roo.WRITE_WITH_LINE_COUNT, roo.INSERT_CONTENT, roo.SEARCH_AND_REPLACE, roo.LIST_DEFINITIONS),
        frozenset({"line_count", "search", "replace", "use_regex", "ignore_case"}),
    ),
)

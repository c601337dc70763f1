"""Roo Code from 3.29.4, of October 2025, to 3.36, of December 2025, the last with XML for new tasks.

<write_to_file>
<path>notes.txt</path>
<content>
first line
</content>
</write_to_file>

The prompts hardly changed. The parsers added tags of native tools one by one, and a tag that the parser knows is no
longer text. A profile is named after its first version, the last one after the version that people stay with.
"""

from __future__ import annotations

from toolglot.clients.xml import roo_tools as roo

_COUNTED = frozenset({"line_count"})
_FILES = frozenset({"files"})
_PATCH = _FILES | {"operations", "patch"}
_STRINGS = _PATCH | {"file_path", "old_string", "new_string"}
LAST_PARAMETERS = _STRINGS | {"expected_replacements"}
_NATIVE = frozenset({roo.NATIVE_TAG})
_OLD = (roo.INSERT_CONTENT, roo.LIST_DEFINITIONS)

CLIENTS = (
    roo.define_client("roo-3.30", (roo.WRITE_WITH_LINE_COUNT, *_OLD), _COUNTED),
    roo.define_client("roo-3.32", (roo.WRITE_WITH_LINE_COUNT, *_OLD), _COUNTED | _FILES),
    roo.define_client("roo-3.35", (roo.WRITE_WITH_LINE_COUNT, *_OLD, roo.APPLY_PATCH), _COUNTED | _PATCH, _NATIVE),
    roo.define_client("roo-3.35.4", (roo.WRITE_TO_FILE, *_OLD, roo.APPLY_PATCH), _PATCH, _NATIVE),
    roo.define_client(
        "roo-3.36.0",
        (roo.WRITE_TO_FILE, roo.LIST_DEFINITIONS, roo.SEARCH_REPLACE, roo.APPLY_PATCH),
        _STRINGS,
        _NATIVE,
    ),
    roo.define_client(
        "roo-3.36", (roo.WRITE_TO_FILE, roo.SEARCH_REPLACE, roo.EDIT_FILE, roo.APPLY_PATCH), LAST_PARAMETERS, _NATIVE
    ),
)

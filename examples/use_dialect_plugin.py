"""A dialect that comes from another package: it is read, written and taught like any other.

    pip install ./examples/dialect_plugin
    python examples/use_dialect_plugin.py

The package names its record in the entry point group ``toolglot.dialects``; nothing is imported or registered here.
"""

from __future__ import annotations

import sys

import toolglot

TOOLS = [
    {
        "name": "query_db",
        "description": "Run a query",
        "parameters": {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]},
    }
]
ANSWER = """I count the sensors.
==> query_db {"sql": "SELECT count(*) FROM sensors WHERE note = '<== old'"} <==
"""


def main() -> None:
    record = next((dialect for dialect in toolglot.list_dialects() if dialect.name == "arrow_call"), None)
    if record is None:
        sys.exit("The package is not installed: pip install ./examples/dialect_plugin")
    print(f"{record.name} comes from {record.file}")
    reading = toolglot.read(ANSWER, TOOLS)
    for call in reading.calls:
        print(f"read:    {call.name} {call.arguments} (dialect {call.dialect})")
    print(f"written: {toolglot.write('query_db', {'sql': 'SELECT 1'}, 'arrow-7b', TOOLS)}")
    print(f"taught:  {toolglot.teach(TOOLS, 'arrow_call')[:60]!r} ...")


if __name__ == "__main__":
    main()

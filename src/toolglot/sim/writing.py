"""Stand-in until ``toolglot.speaking`` is here."""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolglot.conversation import Tool


def write_call(dialect: str, name: str, arguments: str, tools: Sequence[Tool] = ()) -> str:
    if dialect == "hermes":
        return f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": {arguments}}}\n</tool_call>'
    values = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in json.loads(arguments).items()
    }
    if dialect == "roo_xml":
        inner = "".join(f"<{key}>{value}</{key}>\n" for key, value in values.items())
        return f"<{name}>\n{inner}</{name}>"
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"

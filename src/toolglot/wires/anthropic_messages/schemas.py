"""Schemas of the Messages endpoint and of its token count."""

from __future__ import annotations

from typing import Final

from toolglot.wires.anthropic_messages.errors import KINDS
from toolglot.wires.anthropic_messages.request_decoder import MODES, ROLES
from toolglot.wires.json_schemas import (
    ANYTHING,
    FLAG,
    NULL,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    TEXTS,
    WHOLE,
    WireSchemas,
    fixed,
    listing,
    one_of,
    table,
    words,
)

BLOCK: Final = {
    **table({"type": TEXT}, {"text": ANYTHING, "source": ANYTHING, "input": ANYTHING, "content": ANYTHING}),
    "description": "text, image, document, tool_use (with a name), tool_result (with a tool_use_id), thinking,"
    " redacted_thinking; other blocks reach upstreams of the same protocol only.",
}
CONTENT: Final = one_of(TEXT, NULL, listing(BLOCK))
TOOL: Final = table({}, {"name": TEXT, "description": TEXT, "input_schema": OBJECT, "type": TEXT})
CHOICE: Final = one_of(words(*MODES), table({"type": words(*MODES, "tool")}, {"name": TEXT}), NULL)
REQUEST: Final = table(
    {"messages": listing(table({"role": words(*ROLES)}, {"content": CONTENT}), 1)},
    {
        "model": TEXT,
        "system": CONTENT,
        "stream": FLAG,
        "tools": one_of(listing(TOOL), NULL),
        "tool_choice": CHOICE,
        "max_tokens": NUMBER_OR_NULL,
        "temperature": NUMBER_OR_NULL,
        "top_p": NUMBER_OR_NULL,
        "top_k": NUMBER_OR_NULL,
        "stop_sequences": TEXTS,
    },
)

SCHEMAS: Final = WireSchemas(
    title="Anthropic Messages",
    request=REQUEST,
    response=table(
        {
            "id": TEXT,
            "type": fixed("message"),
            "role": fixed("assistant"),
            "model": TEXT,
            "content": listing(table({"type": TEXT})),
            "stop_reason": TEXT_OR_NULL,
            "usage": table({"input_tokens": WHOLE, "output_tokens": WHOLE}),
        }
    ),
    error=table({"type": fixed("error"), "error": table({"type": words(*KINDS.values()), "message": TEXT})}),
    stream="Server-sent events from message_start to message_stop, or an event error.",
    extra={"/count_tokens": (REQUEST, table({"input_tokens": WHOLE}))},
)

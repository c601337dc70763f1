"""Schemas of the Responses endpoint."""

from __future__ import annotations

from typing import Final

from toolglot.wires.json_schemas import (
    ANYTHING,
    FLAG,
    NULL,
    NUMBER,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXT_OR_NULL,
    WireSchemas,
    fixed,
    listing,
    one_of,
    table,
    words,
)
from toolglot.wires.openai_responses.request_decoder import ROLES
from toolglot.wires.openai_responses.tools import MODES

CONTENT: Final = one_of(TEXT, NULL, listing(one_of(TEXT, table({}, {"type": TEXT, "text": ANYTHING}))))
MESSAGE: Final = table({"role": words(*ROLES)}, {"type": fixed("message"), "content": CONTENT})
RESULT: Final = table(
    {"type": words("function_call_output", "custom_tool_call_output"), "output": ANYTHING}, {"call_id": ANYTHING}
)
CALL: Final = table(
    {"type": words("function_call", "custom_tool_call")},
    {"call_id": ANYTHING, "name": ANYTHING, "arguments": ANYTHING, "input": ANYTHING},
)
REASONING: Final = table({"type": fixed("reasoning")}, {"summary": ANYTHING, "encrypted_content": ANYTHING})
ITEM: Final = {
    "anyOf": [MESSAGE, CALL, RESULT, REASONING, OBJECT],
    "description": "Items of other types are skipped. item_reference and previous_response_id need an answer that this"
    " gateway or an upstream of the same protocol keeps.",
}
TOOL: Final = table({}, {"type": TEXT, "name": TEXT, "description": TEXT, "parameters": OBJECT})
ERROR: Final = table({"error": table({"message": TEXT, "type": TEXT, "param": TEXT_OR_NULL, "code": TEXT_OR_NULL})})

SCHEMAS: Final = WireSchemas(
    title="OpenAI Responses",
    request=table(
        {"input": one_of(TEXT, listing(ITEM, 1))},
        {
            "model": TEXT,
            "instructions": CONTENT,
            "stream": FLAG,
            "store": FLAG,
            "previous_response_id": ANYTHING,
            "tools": one_of(listing(TOOL), NULL),
            "tool_choice": one_of(words(*MODES), OBJECT, NULL),
            "parallel_tool_calls": FLAG,
            "max_output_tokens": NUMBER_OR_NULL,
            "temperature": NUMBER_OR_NULL,
            "top_p": NUMBER_OR_NULL,
            "reasoning": ANYTHING,
            "text": ANYTHING,
            "include": ANYTHING,
        },
    ),
    response=table(
        {
            "id": TEXT,
            "object": fixed("response"),
            "created_at": NUMBER,
            "status": TEXT,
            "model": TEXT,
            "output": listing(table({"type": TEXT})),
        },
        {"usage": one_of(OBJECT, NULL), "error": one_of(OBJECT, NULL)},
    ),
    error=ERROR,
    stream="Server-sent events from response.created to response.completed, response.incomplete, or response.failed and"
    " error.",
)

"""Schemas of the Chat Completions endpoint."""

from __future__ import annotations

from typing import Final

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
from toolglot.wires.openai_chat.request_decoder import CHOICES, ROLES

PART: Final = one_of(TEXT, table({}, {"type": TEXT, "text": ANYTHING, "image_url": ANYTHING}))
CALL: Final = table({}, {"id": ANYTHING, "type": ANYTHING, "function": OBJECT})
MESSAGE: Final = {
    **table(
        {"role": words(*ROLES)},
        {
            "content": one_of(TEXT, NULL, listing(PART)),
            "tool_calls": one_of(listing(CALL), NULL),
            "tool_call_id": ANYTHING,
            "function_call": ANYTHING,
            "name": ANYTHING,
            "reasoning_content": ANYTHING,
        },
    ),
    "description": "A message with the role tool or function needs a content.",
}
TOOL: Final = table({}, {"type": TEXT, "function": table({"name": TEXT}, {"description": TEXT, "parameters": OBJECT})})
USAGE: Final = one_of(table({"prompt_tokens": WHOLE, "completion_tokens": WHOLE, "total_tokens": WHOLE}), NULL)
ANSWERED: Final = table(
    {"role": fixed("assistant"), "content": TEXT_OR_NULL},
    {
        "tool_calls": listing(
            table(
                {"id": TEXT, "type": TEXT},
                {"function": table({"name": TEXT, "arguments": TEXT}), "custom": OBJECT},
            )
        ),
        "function_call": table({"name": TEXT, "arguments": TEXT}),
    },
)
ERROR: Final = table({"error": table({"message": TEXT, "type": TEXT, "param": TEXT_OR_NULL, "code": TEXT_OR_NULL})})

SCHEMAS: Final = WireSchemas(
    title="OpenAI Chat Completions",
    request=table(
        {"messages": listing(MESSAGE, 1)},
        {
            "model": TEXT,
            "stream": FLAG,
            "stream_options": table({}, {"include_usage": FLAG}),
            "tools": one_of(listing(TOOL), NULL),
            "tool_choice": one_of(words(*CHOICES), OBJECT, NULL),
            "parallel_tool_calls": FLAG,
            "max_tokens": NUMBER_OR_NULL,
            "max_completion_tokens": NUMBER_OR_NULL,
            "temperature": NUMBER_OR_NULL,
            "top_p": NUMBER_OR_NULL,
            "seed": NUMBER_OR_NULL,
            "stop": TEXTS,
            "n": {"enum": [1, None]},
            "reasoning_effort": ANYTHING,
            "response_format": one_of(OBJECT, NULL),
            "functions": one_of(listing(OBJECT), NULL),
            "function_call": one_of(words("none", "auto"), OBJECT, NULL),
        },
    ),
    response=table(
        {
            "id": TEXT,
            "object": fixed("chat.completion"),
            "created": WHOLE,
            "model": TEXT,
            "choices": listing(table({"index": WHOLE, "message": ANSWERED, "finish_reason": TEXT_OR_NULL}), 1),
        },
        {"usage": USAGE},
    ),
    error=ERROR,
    stream="Server-sent events: chat.completion.chunk objects, an error object if the answer fails, then [DONE].",
)

"""Schemas of Ollama's chat and of the endpoints that describe models."""

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
    WireSchemas,
    fixed,
    listing,
    one_of,
    table,
    words,
)
from toolglot.wires.ollama.request_decoder import ROLES

MESSAGE: Final = table(
    {"role": words(*ROLES)},
    {
        "content": TEXT_OR_NULL,
        "images": one_of(listing({"type": "string", "minLength": 1}), NULL),
        "thinking": ANYTHING,
        "tool_calls": listing(table({"function": table({"name": {"type": "string", "pattern": r"\S"}})})),
    },
)
OPTIONS: Final = table(
    {},
    {
        **dict.fromkeys(("num_predict", "temperature", "top_p", "top_k", "seed"), NUMBER_OR_NULL),
        "stop": TEXTS,
    },
)
TOOL: Final = table({}, {"type": TEXT, "function": table({"name": TEXT}, {"description": TEXT, "parameters": OBJECT})})
NAMED: Final = {"type": "string", "minLength": 1}

SCHEMAS: Final = WireSchemas(
    title="Ollama chat",
    request=table(
        {"messages": listing(MESSAGE, 1)},
        {
            "model": TEXT,
            "stream": {**FLAG, "default": True},
            "tools": one_of(listing(TOOL), NULL),
            "options": one_of(OPTIONS, NULL),
            "think": ANYTHING,
            "format": one_of(TEXT, OBJECT, NULL),
        },
    ),
    response=table(
        {"model": TEXT, "created_at": TEXT, "message": table({"role": fixed("assistant"), "content": TEXT})},
        {"done": FLAG, "done_reason": TEXT},
    ),
    error=table({"error": TEXT}),
    stream="One JSON object per line; the last one has done: true, or is an error object.",
    extra={
        "/tags": (None, table({"models": listing(table({"name": TEXT, "model": TEXT, "digest": TEXT}))})),
        "/show": (
            one_of(table({"model": NAMED}), table({"name": NAMED})),
            table({"capabilities": listing(TEXT), "details": OBJECT}),
        ),
        "/version": (None, table({"version": TEXT})),
    },
)

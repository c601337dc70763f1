"""Schemas of generateContent and streamGenerateContent."""

from __future__ import annotations

from typing import Final

from toolglot.wires.gemini.request_decoder import STREAMING
from toolglot.wires.json_schemas import (
    ANYTHING,
    NULL,
    NUMBER_OR_NULL,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    WireSchemas,
    fixed,
    listing,
    one_of,
    table,
    words,
)

PART: Final = table(
    {}, {"text": ANYTHING, "inlineData": ANYTHING, "functionCall": ANYTHING, "functionResponse": ANYTHING}
)
ROLE: Final = one_of(words("", "user", "model", "function", "system"), NULL)
CONTENT: Final = one_of(TEXT, table({}, {"role": ROLE, "parts": one_of(listing(PART), NULL)}))
TOOL: Final = table({}, {"functionDeclarations": listing(table({"name": TEXT}, {"description": TEXT}))})

SCHEMAS: Final = WireSchemas(
    title="Gemini",
    request=table(
        {"contents": one_of(CONTENT, listing(CONTENT))},
        {
            "systemInstruction": one_of(TEXT, table({}, {"parts": ANYTHING}), NULL),
            "tools": one_of(listing(TOOL), OBJECT, NULL),
            "toolConfig": ANYTHING,
            "generationConfig": table(
                {},
                {
                    "maxOutputTokens": NUMBER_OR_NULL,
                    "temperature": NUMBER_OR_NULL,
                    "topP": NUMBER_OR_NULL,
                    "topK": NUMBER_OR_NULL,
                    "seed": NUMBER_OR_NULL,
                    "responseMimeType": TEXT,
                    "responseJsonSchema": OBJECT,
                    "stopSequences": TEXTS,
                    "candidateCount": {"enum": [1, None]},
                },
            ),
        },
    ),
    response=table(
        {"candidates": listing(table({"index": WHOLE}, {"content": OBJECT, "finishReason": TEXT}))},
        {"usageMetadata": OBJECT, "modelVersion": TEXT, "responseId": TEXT},
    ),
    error=table(
        {
            "error": table(
                {
                    "code": WHOLE,
                    "message": TEXT,
                    "status": TEXT,
                    "details": listing(table({"reason": TEXT, "domain": fixed("toolglot")})),
                }
            )
        }
    ),
    listed=f":{STREAMING}",
    stream="Server-sent events with alt=sse, else one JSON list: responses in parts, and an error object if it fails.",
)

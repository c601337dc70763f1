"""Encode a conversation as a request of the Gemini wire.

The wire has only two roles and no system message in the middle: that becomes a user message. Results of one turn are
sent together. The first call of a turn carries the signature from its model, or a placeholder, because newer models
refuse calls without a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, takewhile
from mimetypes import guess_type
from typing import Any

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    ProviderPart,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.gemini.field_names import (
    BUDGET,
    EFFORT,
    EFFORT_VALUES,
    JSON_SCHEMA,
    JSON_TYPE,
    MIME_TYPE,
    NAME,
    NO_SIGNATURE,
    OWN_SCHEMA,
    THINKING,
    unify,
)
from toolglot.wires.json_fields import parse_body, read_arguments
from toolglot.wires.translation import offers_calls, write_budget, write_effort

SAMPLING_FIELDS = {
    "maxOutputTokens": "max_tokens",
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "seed": "seed",
}
CARRIES = {
    "model": "in the path",
    "messages": "",
    "tools": "",
    "choice": "some of the tools, optional: only those are offered",
    "extra": "within this wire",
    "max_tokens": "",
    "temperature": "",
    "top_p": "",
    "top_k": "",
    "seed": "",
    "stop": "",
    "parallel_calls": "enforced on the response",
    "effort": "nearest level",
    "json_object": "with tools from Gemini 3 on, else the prompt asks for it",
    "json_schema": "with tools from Gemini 3 on, else the prompt asks for it",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

CALLS_AND_FORMAT = re.compile(r"gemini-(?:[3-9]|\d\d)")
"""Models that take tools and a format in one request."""

WITH_BUDGET = re.compile(r"gemini-2\.")
"""Models that take a budget of reasoning tokens and no level."""
LEAST_BUDGET = 128

MODES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the conversation as the body of a request."""
    leading = list(takewhile(lambda message: message.role == "system", conversation.messages))
    request: dict[str, Any] = {}
    if leading:
        request["systemInstruction"] = {"parts": [_encode_part(part) for each in leading for part in each.parts]}
    request["contents"] = list(_encode_contents(conversation.messages[len(leading) :]))
    request |= {key: value for key, value in conversation.extra.items() if key != "generationConfig"}
    request |= _encode_tools(conversation)
    settings = dict(conversation.extra.get("generationConfig", {}))
    sampling = conversation.sampling
    settings |= {key: value for key, name in SAMPLING_FIELDS.items() if (value := getattr(sampling, name)) is not None}
    if sampling.stop:
        settings["stopSequences"] = list(sampling.stop)
    if sampling.effort and THINKING not in settings:
        settings[THINKING] = _encode_effort(sampling.effort, conversation.model)
    if (sampling.json_object or sampling.json_schema) and not {MIME_TYPE, JSON_SCHEMA, OWN_SCHEMA} & settings.keys():
        settings |= _encode_format(sampling)
    if settings:
        request["generationConfig"] = settings
    return encode(request)


def _encode_effort(effort: str, model: str) -> dict[str, Any]:
    """The effort, as a budget for models that refuse levels; some of these cannot reason not at all."""
    if not WITH_BUDGET.search(model):
        return {EFFORT: write_effort(effort, EFFORT_VALUES).upper()}
    return {BUDGET: max(write_budget(effort), LEAST_BUDGET if "pro" in model else 0)}


def _encode_format(sampling: Sampling) -> dict[str, Any]:
    wanted = sampling.json_schema
    schema = {} if wanted is None else {JSON_SCHEMA: dict(wanted.schema)}
    return {MIME_TYPE: JSON_TYPE, **schema}


def enforces_format(conversation: Conversation) -> bool:
    """Older models refuse a request with tools and a format."""
    return not offers_calls(conversation) or CALLS_AND_FORMAT.search(conversation.model) is not None


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """Return the body, on demand without its tool fields. The model name is not part of the body."""
    if not without_tools:
        return body
    dropped = ("tools", "toolConfig")
    return encode({key: value for key, value in unify(parse_body(body)).items() if key not in dropped})


def _encode_tools(conversation: Conversation) -> dict[str, Any]:
    """The tools. An optional choice among some of them cannot be expressed: only those are offered."""
    choice = conversation.choice
    narrowed = choice.only if choice.mode == "auto" else ()
    offered = [tool for tool in conversation.tools if not narrowed or tool.name in narrowed]
    if not offered:
        return {}
    declared = [
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": dict(tool.parameters)}
        for tool in offered
    ]
    encoded: dict[str, Any] = {"tools": [{"functionDeclarations": declared}]}
    return (
        encoded
        if choice.mode == "auto"
        else encoded | {"toolConfig": {"functionCallingConfig": _encode_choice(choice)}}
    )


def _encode_choice(choice: ToolChoice) -> dict[str, Any]:
    encoded: dict[str, Any] = {"mode": MODES[choice.mode]}
    return encoded | {"allowedFunctionNames": list(choice.only)} if choice.only else encoded


def _encode_contents(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    for role, group in groupby(messages, key=lambda message: message.role):
        if role == "tool":
            results = [part for message in group for part in message.parts if isinstance(part, ToolResult)]
            yield {"role": "user", "parts": [_encode_result(result, names) for result in results]}
            continue
        for message in group:
            names |= {call.id: call.name for call in message.calls}
            if role == "assistant":
                parts = _encode_turn(message.parts)
            else:
                parts = [_encode_part(part) for part in message.parts] or [{"text": ""}]
            if parts:
                yield {"role": "model" if role == "assistant" else "user", "parts": parts}


def _encode_turn(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Encode a turn of the model. A signature goes to the part after the reasoning."""
    encoded: list[dict[str, Any]] = []
    signature, signed = "", False
    for part in parts:
        if isinstance(part, Reasoning):
            if part.kind == NAME:
                signature = part.signature or signature
                encoded += [{"text": part.text, "thought": True}] if part.text else []
            continue
        fields = _encode_call(part) if isinstance(part, ToolCall) else _encode_part(part)
        if isinstance(part, ToolCall):
            signature, signed = signature or ("" if signed else NO_SIGNATURE), True
        encoded.append(fields | {"thoughtSignature": signature} if signature else fields)
        signature = ""
    if signature:
        encoded.append({"text": "", "thoughtSignature": signature})
    return encoded


def _encode_call(call: ToolCall) -> dict[str, Any]:
    return {"functionCall": {"id": call.id, "name": call.name, "args": read_arguments(call.arguments)}}


def _encode_result(result: ToolResult, names: Mapping[str, str]) -> dict[str, Any]:
    text = "".join(part.text for part in result.content if isinstance(part, Text))
    encoded: dict[str, Any] = {
        "id": result.call_id,
        "name": result.name or names.get(result.call_id, "unknown"),
        "response": {"error" if result.error else "output": text},
    }
    images = [_encode_part(part) for part in result.content if isinstance(part, Image)]
    return {"functionResponse": encoded | {"parts": images} if images else encoded}


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Image) and part.data:
        return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    if isinstance(part, Image):
        media_type = part.media_type or guess_type(part.url)[0]
        return {"fileData": {"fileUri": part.url, **({"mimeType": media_type} if media_type else {})}}
    if isinstance(part, ProviderPart) and part.wire == NAME:
        return dict(part.data)
    raise RequestError("The request holds a part that the upstream's protocol has no word for.", "messages")

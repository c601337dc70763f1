"""Encode a conversation as a request of the Responses wire.

Every part of a message is an item or a part of one, in order. Reasoning of other wires is not sent: a server of this
wire refuses reasoning that it has not signed. Requests disable storage, so reasoning models are asked for signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any

from toolglot.core.conversation import (
    EFFORTS,
    Conversation,
    Image,
    Message,
    Part,
    ProviderPart,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import adapt_body
from toolglot.wires.openai_responses.request_decoder import EFFORT, FORMAT, NAME
from toolglot.wires.openai_responses.tools import encode_choice, encode_tools
from toolglot.wires.protocol import write_error
from toolglot.wires.translation import image_url, mention_json, table_at, write_effort, write_format

SIGNING_MODELS = re.compile(r"(?:.*/)?(?:o[1-9]|gpt-(?:[5-9]|\d\d)(?!.*-chat)|codex)")
"""Models that sign their reasoning on request; others refuse the request."""

CARRIES = {
    "model": "",
    "messages": "",
    "tools": "",
    "choice": "",
    "extra": "within this wire",
    "max_tokens": "",
    "temperature": "",
    "top_p": "",
    "parallel_calls": "",
    "effort": "nearest level",
    "json_object": "",
    "json_schema": "",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")
SAMPLING_FIELDS = {"max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p"}
"""The sampling parameters that this wire has fields for."""


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the conversation as the body of a request."""
    sampling, messages = conversation.sampling, _list_messages(conversation)
    request: dict[str, Any] = {"model": conversation.model}
    if messages and messages[0].role == "system" and [type(part) for part in messages[0].parts] == [Text]:
        request["instructions"] = messages.pop(0).text
    request["input"] = [item for message in messages for item in _encode_message(message)]
    request |= {"store": False, **_request_signatures(conversation.model), **conversation.extra}
    request |= _encode_sampling(sampling, conversation.extra)
    if conversation.tools:
        request |= {"tools": encode_tools(conversation.tools), **encode_choice(conversation.choice)}
        if sampling.parallel_calls is not None:
            request["parallel_tool_calls"] = sampling.parallel_calls
    if stream:
        request["stream"] = True
    return encode(request)


def _list_messages(conversation: Conversation) -> list[Message]:
    """The messages; the word that a request for any JSON object needs is added for clients of other wires."""
    own = table_at(conversation.extra, FORMAT[0])
    asks = conversation.sampling.json_object and FORMAT[1] not in own
    return list(mention_json(conversation.messages) if asks else conversation.messages)


def _encode_sampling(sampling: Sampling, extra: Mapping[str, Any]) -> dict[str, Any]:
    encoded = {key: value for key, name in SAMPLING_FIELDS.items() if (value := getattr(sampling, name)) is not None}
    if sampling.effort and EFFORT[0] not in extra:
        encoded[EFFORT[0]] = {EFFORT[1]: write_effort(sampling.effort, EFFORTS[:-1])}
    if sampling.json_object or sampling.json_schema:
        encoded[FORMAT[0]] = {FORMAT[1]: write_format(sampling), **table_at(extra, FORMAT[0])}
    return encoded


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """Return the body with another model name and, on demand, without its tool fields."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _request_signatures(model: str) -> dict[str, Any]:
    return {"include": ["reasoning.encrypted_content"]} if SIGNING_MODELS.match(model) else {}


def _encode_message(message: Message) -> Iterator[dict[str, Any]]:
    """The items of a message: adjacent texts and images share an item, other parts have one each. So do texts of the
    assistant: as parts of an item they would need ids, which other wires do not know."""
    for kind, parts in groupby(message.parts, key=lambda part: _ITEMS.get(type(part))):
        if kind is not None:
            yield from (item for part in parts if (item := kind(part)) is not None)
        elif message.role == "assistant":
            for part in parts:
                content = part.text if isinstance(part, Text) else [_encode_part(part)]
                yield {"type": "message", "role": "assistant", "content": content}
        else:
            yield {"type": "message", "role": message.role, "content": list(map(_encode_part, parts))}
    if not message.parts:
        yield {"type": "message", "role": message.role, "content": []}


def _encode_call(call: ToolCall) -> dict[str, Any]:
    arguments = call.arguments if call.arguments.strip() else "{}"
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def _encode_reasoning(thought: Reasoning) -> dict[str, Any] | None:
    if thought.kind != NAME:
        return None
    summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    signed = {"encrypted_content": thought.signature} if thought.signature else {}
    return {"type": "reasoning", "summary": summary, **signed}


def _encode_result(result: ToolResult) -> dict[str, Any]:
    content = write_error(result).content
    output: str | list[dict[str, Any]]
    if all(isinstance(part, Text) for part in content) and len(content) < 2:
        output = "".join(part.text for part in content if isinstance(part, Text))
    else:
        output = list(map(_encode_part, content))
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


_ITEMS: Mapping[type, Callable[[Any], dict[str, Any] | None]] = {
    ToolCall: _encode_call,
    Reasoning: _encode_reasoning,
    ToolResult: _encode_result,
}


def _encode_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": image_url(part), "detail": part.detail or "auto"}
    if isinstance(part, ProviderPart) and part.wire == NAME:
        return dict(part.data)
    raise RequestError("The request holds a part that the upstream's protocol has no word for.", "messages")

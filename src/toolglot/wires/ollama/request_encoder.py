"""Encode a conversation as a request of Ollama's wire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import adapt_body, read_arguments, write_function
from toolglot.wires.ollama.request_decoder import EFFORT, FORMAT, SAMPLING_FIELDS
from toolglot.wires.protocol import OutputFormat, write_error
from toolglot.wires.translation import demand_call, offers_calls, write_effort

CARRIES = {
    "model": "",
    "messages": "",
    "tools": "",
    "choice": "only those are offered; required: a system message",
    "extra": "within this wire",
    "max_tokens": "",
    "temperature": "",
    "top_p": "",
    "top_k": "",
    "seed": "",
    "stop": "",
    "parallel_calls": "enforced on the response",
    "effort": "nearest level",
    "json_object": "not with tools: the prompt asks for it",
    "json_schema": "not with tools: the prompt asks for it",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

OUTPUT_FORMATS: Mapping[str, OutputFormat] = {"json_schema": lambda schema: {"format": schema}}
"""The field that constrains what a model writes; see ``Wire.output_formats``."""

TOOL_FIELDS = ("tools",)
EFFORT_VALUES = ("low", "medium", "high")
BETWEEN = "\n\n"
"""Separates texts that other wires send as several parts."""


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the conversation as the body of a request."""
    tools, demand = _choose(conversation.tools, conversation.choice)
    request: dict[str, Any] = {
        "model": conversation.model,
        "messages": [*demand, *(encoded for message in conversation.messages for encoded in _encode_message(message))],
        **conversation.extra,
        "stream": stream,
    }
    sampling = conversation.sampling
    encoded = {
        key: getattr(sampling, field) for key, field in SAMPLING_FIELDS.items() if getattr(sampling, field) is not None
    }
    options = conversation.extra.get("options", {}) | encoded | ({"stop": list(sampling.stop)} if sampling.stop else {})
    if options:
        request["options"] = options
    if sampling.effort and EFFORT not in request:
        request[EFFORT] = sampling.effort != "none" and write_effort(sampling.effort, EFFORT_VALUES)
    if FORMAT not in request:
        request |= _encode_format(sampling)
    if tools:
        request["tools"] = [write_function(tool) for tool in tools]
    return encode(request)


def _encode_format(sampling: Sampling) -> dict[str, Any]:
    if sampling.json_schema is not None:
        return {FORMAT: dict(sampling.json_schema.schema)}
    return {FORMAT: "json"} if sampling.json_object else {}


def enforces_format(conversation: Conversation) -> bool:
    """A model that is held to a format cannot call a tool."""
    return not offers_calls(conversation)


def _choose(tools: Iterable[Tool], choice: ToolChoice) -> tuple[list[Tool], list[dict[str, Any]]]:
    """The wire has no tool choice: forbidden tools are not offered, a required call is demanded in a message."""
    offered = [tool for tool in tools if choice.allows(tool.name)]
    if choice.mode != "required" or not offered:
        return offered, []
    return offered, _encode_message(demand_call(offered))


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """Return the body with another model name and, on demand, without its tool fields."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _encode_message(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [_encode_result(write_error(part)) for part in message.parts if isinstance(part, ToolResult)]
    encoded = {"role": message.role, **_encode_shown(message.parts, "" if message.role == "assistant" else BETWEEN)}
    thought = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    if thought:
        encoded["thinking"] = thought
    if message.calls:
        encoded["tool_calls"] = [_encode_call(call, index) for index, call in enumerate(message.calls)]
    return [encoded]


def _encode_result(result: ToolResult) -> dict[str, Any]:
    encoded = {"role": "tool", **_encode_shown(result.content)}
    named = {"tool_name": result.name, "tool_call_id": result.call_id}
    return encoded | {key: value for key, value in named.items() if value}


def _encode_shown(parts: Iterable[Part], between: str = BETWEEN) -> dict[str, Any]:
    """Text and images; the wire has one field for each."""
    encoded: dict[str, Any] = {"content": between.join(part.text for part in parts if isinstance(part, Text))}
    images = [part for part in parts if isinstance(part, Image)]
    if any(image.url for image in images):
        raise RequestError("An image that is given by its address cannot be carried to this model.", "messages")
    return encoded | {"images": [image.data for image in images]} if images else encoded


def _encode_call(call: ToolCall, index: int) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": read_arguments(call.arguments)}
    return {"id": call.id, "function": function}

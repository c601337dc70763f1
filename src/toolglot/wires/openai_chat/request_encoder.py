"""Encode a conversation as a Chat Completions request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
    ToolChoice,
    ToolResult,
)
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import adapt_body, write_function
from toolglot.wires.openai_chat.function_fields import OLDER_FIELDS
from toolglot.wires.openai_chat.request_decoder import (
    EFFORT,
    FORMAT,
    NAME,
    NEWER_MAX_TOKENS,
    NO_SAMPLING,
    REASONING_FIELDS,
    SAMPLING_FIELDS,
    write_signature,
)
from toolglot.wires.protocol import OutputFormat, write_error
from toolglot.wires.translation import image_url, mention_json, write_effort, write_format

CARRIES = {
    "model": "",
    "messages": "",
    "tools": "",
    "choice": "",
    "extra": "within this wire",
    "max_tokens": "",
    "temperature": "",
    "top_p": "",
    "seed": "",
    "stop": "",
    "parallel_calls": "",
    "effort": "nearest level",
    "json_object": "",
    "json_schema": "",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

OUTPUT_FORMATS: Mapping[str, OutputFormat] = {
    "grammar": lambda text: {"grammar": text},
    "structural_tag": lambda tag: {"response_format": {"type": "structural_tag", "format": tag}},
    "json_schema": lambda schema: {
        "response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
    },
}
"""The fields of servers that constrain what a model writes; see ``Wire.output_formats``."""

TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls", *OLDER_FIELDS)
EFFORT_VALUES = EFFORTS[:-1]


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the conversation as the body of a request."""
    sampling, messages = conversation.sampling, conversation.messages
    if sampling.json_object and FORMAT not in conversation.extra:
        messages = tuple(mention_json(messages))
    request: dict[str, Any] = {
        "model": conversation.model,
        "messages": _encode_messages(messages),
        **conversation.extra,
    }
    if sampling != NO_SAMPLING:
        request |= _encode_sampling(sampling, conversation.extra)
    if conversation.tools:
        request["tools"] = [write_function(tool) for tool in conversation.tools]
        request |= _encode_choice(conversation.choice)
        if sampling.parallel_calls is not None:
            request["parallel_tool_calls"] = sampling.parallel_calls
    if stream:
        request["stream"] = True
        if wants_usage:
            request["stream_options"] = {"include_usage": True}
    return encode(request)


def _encode_sampling(sampling: Sampling, extra: Mapping[str, Any]) -> dict[str, Any]:
    encoded = {
        key: getattr(sampling, key) for key in SAMPLING_FIELDS if key != "max_tokens" or NEWER_MAX_TOKENS not in extra
    }
    if sampling.effort and EFFORT not in extra:
        encoded[EFFORT] = write_effort(sampling.effort, EFFORT_VALUES)
    if (sampling.json_object or sampling.json_schema) and FORMAT not in extra:
        encoded[FORMAT] = _encode_format(sampling)
    stop = {"stop": list(sampling.stop)} if sampling.stop else {}
    return {key: value for key, value in encoded.items() if value is not None} | stop


def _encode_format(sampling: Sampling) -> dict[str, Any]:
    written = write_format(sampling)
    kind = written.pop("type")
    return {"type": kind, "json_schema": written} if written else {"type": kind}


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """Return the body with another model name and, on demand, without its tool fields."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _encode_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Images of results follow in a user message after all results of that turn: this wire has no other place for
    them."""
    encoded: list[dict[str, Any]] = []
    shown: list[Part] = []
    for message in messages:
        if message.role != "tool":
            if shown:
                encoded.append({"role": "user", "content": _encode_content(shown)})
                shown = []
            encoded.append(_encode_message(message))
            continue
        for result in message.parts:
            if isinstance(result, ToolResult):
                images = [part for part in result.content if isinstance(part, Image)]
                shown += [Text(f"From the result of the call {result.call_id}:"), *images] if images else []
                encoded.append(_encode_result(result))
    return [*encoded, {"role": "user", "content": _encode_content(shown)}] if shown else encoded


def _encode_message(message: Message) -> dict[str, Any]:
    parts = message.parts
    if len(parts) == 1 and isinstance(only := parts[0], Text):
        return {"role": message.role, "content": only.text}
    calls = _encode_calls(parts)
    content = _encode_content(parts)
    encoded = {"role": message.role, "content": "" if content is None and "tool_calls" not in calls else content}
    encoded |= calls
    thoughts = [part for part in parts if isinstance(part, Reasoning) and part.text]
    if not thoughts:
        return encoded
    field = thoughts[0].kind if thoughts[0].kind in REASONING_FIELDS else REASONING_FIELDS[0]
    return encoded | {field: "".join(part.text for part in thoughts)}


def _encode_calls(parts: Iterable[Part]) -> dict[str, Any]:
    """The calls, each with the signature before it; a signature after the last call belongs to the message."""
    calls, signature = [], ""
    for part in parts:
        if isinstance(part, Reasoning) and part.kind == NAME:
            signature = part.signature
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function} | write_signature(signature))
            signature = ""
    return ({"tool_calls": calls} if calls else {}) | write_signature(signature)


_ENCODED: Mapping[type, Callable[[Any], dict[str, Any]]] = {
    Text: lambda part: {"type": "text", "text": part.text},
    Image: lambda part: {"type": "image_url", "image_url": _encode_image(part)},
    ProviderPart: lambda part: dict(part.data),
}


def _encode_content(parts: Iterable[Part]) -> str | list[dict[str, Any]] | None:
    shown = [part for part in parts if type(part) in _ENCODED]
    if not shown:
        return None
    if len(shown) == 1 and isinstance(shown[0], Text):
        return shown[0].text
    return [_ENCODED[type(part)](part) for part in shown]


def _encode_image(image: Image) -> dict[str, Any]:
    url = image_url(image)
    return {"url": url, "detail": image.detail} if image.detail else {"url": url}


def _encode_result(result: ToolResult) -> dict[str, Any]:
    content = _encode_content([part for part in write_error(result).content if isinstance(part, Text)])
    return {"role": "tool", "tool_call_id": result.call_id, "content": content or ""}


def _encode_choice(choice: ToolChoice) -> dict[str, Any]:
    if choice.only and (choice.mode != "required" or len(choice.only) > 1):
        tools = [{"type": "function", "function": {"name": name}} for name in choice.only]
        return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}}
    if choice.only:
        return {"tool_choice": {"type": "function", "function": {"name": choice.only[0]}}}
    return {} if choice.mode == "auto" else {"tool_choice": choice.mode}

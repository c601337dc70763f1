"""Decode requests of Ollama's wire.

    {"model": "qwen3", "options": {"temperature": 0, "num_predict": 100},
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "tool_calls": [{"function": {"name": "tell_time", "arguments": {}}}]},
                  {"role": "tool", "tool_name": "tell_time", "content": "12:00"}],
     "tools": [{"type": "function", "function": {"name": "tell_time", "parameters": {"type": "object"}}}]}

Responses are streamed unless the request disables it. Most clients send no call ids, so an id is made from the position
of a call. Some name in a result an id that they did not send with the call: such a result belongs to the first
unanswered call. Fields that are not modelled are kept in ``Conversation.extra`` under their own names.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import (
    Conversation,
    Image,
    JsonSchema,
    Message,
    Reasoning,
    Role,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.wires.json_fields import (
    NO_TOOLS,
    check_messages,
    dicts_in,
    number_at,
    parse_body,
    read_functions,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
)
from toolglot.wires.protocol import ClientRequest, read_error
from toolglot.wires.translation import read_effort

NAME = "ollama"
ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
MODELLED = frozenset(("model", "messages", "tools", "stream", "options"))
SAMPLING_FIELDS = {
    "num_predict": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
}
EFFORT, FORMAT = "think", "format"
MAGIC = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGO": "image/gif", "UklGR": "image/webp"}


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """Decode a request; ``RequestError`` names the invalid field."""
    fields = parse_body(body, read_functions)
    tools, notes = fields.get("tools", NO_TOOLS)
    options = fields.get("options") or {}
    if not isinstance(options, dict):
        raise RequestError("options must be an object.", "options")
    sampling, rest = _decode_options(options)
    wanted = fields.get(FORMAT)
    effort = "none" if fields.get(EFFORT) is False else read_effort(fields.get(EFFORT))
    sampling = replace(sampling, effort=effort, **_decode_format(wanted))
    conversation = Conversation(
        model=text_at(fields, "model"),
        messages=_decode_messages(check_messages(fields)),
        tools=tools,
        sampling=sampling,
        extra={key: value for key, value in fields.items() if key not in MODELLED}
        | ({"options": rest} if rest else {}),
    )
    is_read = sampling.json_object or sampling.json_schema or not wanted
    modelled = frozenset([EFFORT] * bool(sampling.effort) + [FORMAT] * bool(is_read))
    return ClientRequest(
        conversation=conversation,
        stream=fields.get("stream") is not False,
        wants_usage=True,
        notes=notes,
        modelled=modelled,
    )


def _decode_format(wanted: object) -> dict[str, Any]:
    """The JSON format as fields of ``Sampling``: a word, or a schema."""
    if isinstance(wanted, dict) and wanted:
        return {"json_schema": JsonSchema(wanted)}
    return {"json_object": True} if wanted == "json" else {}


def _decode_options(options: Mapping[str, Any]) -> tuple[Sampling, dict[str, Any]]:
    """The options that are modelled, and the others. ``num_predict`` below 1 means no limit."""
    whole = {key: whole_at(options, key, "options.") for key in ("num_predict", "top_k", "seed")}
    unlimited = whole["num_predict"] is not None and whole["num_predict"] < 1
    sampling = Sampling(
        max_tokens=None if unlimited else whole["num_predict"],
        temperature=number_at(options, "temperature", "options."),
        top_p=number_at(options, "top_p", "options."),
        top_k=whole["top_k"],
        seed=whole["seed"],
        stop=texts_at(options, "stop", "options."),
    )
    known = {"stop", *SAMPLING_FIELDS} - ({"num_predict"} if unlimited else set())
    return sampling, {key: value for key, value in options.items() if key not in known}


def _decode_messages(payload: Sequence[object]) -> tuple[Message, ...]:
    """Decode the messages. If calls have no ids, result ids that match no call are dropped."""
    messages = tuple(_decode_message(message, at) for at, message in enumerate(payload))
    given = {text_at(call, "id") for message in payload for call in _calls_in(message)}
    if "" not in given:
        return messages
    return tuple(_drop_unknown_ids(message, given) if message.role == "tool" else message for message in messages)


def _calls_in(message: object) -> list[dict[str, Any]]:
    return dicts_in(message.get("tool_calls")) if isinstance(message, dict) else []


def _drop_unknown_ids(message: Message, given: Container[str]) -> Message:
    """Drop result ids that are not in ``given``."""
    strange = (isinstance(part, ToolResult) and part.call_id not in given for part in message.parts)
    parts = zip(message.parts, strange, strict=True)
    return replace(message, parts=tuple(replace(part, call_id="") if drop else part for part, drop in parts))


def _decode_message(message: object, at: int) -> Message:
    where = f"messages[{at}]"
    if not isinstance(message, dict):
        raise RequestError(f"{where} must be an object with a role and content.", where)
    role = ROLES.get(text_at(message, "role"))
    if role is None:
        raise RequestError(f"{where}.role must be one of {', '.join(ROLES)}.", f"{where}.role")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise RequestError(f"{where}.content must be text.", f"{where}.content")
    shown: tuple[Text | Image, ...] = ((Text(content),) if content else ()) + _decode_images(message, where)
    if role == "tool":
        name = text_at(message, "tool_name") or text_at(message, "name")
        return Message(role, (read_error(ToolResult(text_at(message, "tool_call_id"), name, shown)),))
    if role != "assistant":
        return Message(role, shown)
    thought = text_at(message, "thinking")
    calls = [_decode_call(call, f"call_{at}_{n}", where) for n, call in enumerate(dicts_in(message.get("tool_calls")))]
    return Message(role, (*([Reasoning(thought)] if thought else []), *shown, *calls))


def _decode_images(message: Mapping[str, Any], where: str) -> tuple[Image, ...]:
    images = message.get("images") or []
    if not isinstance(images, list) or not all(isinstance(image, str) and image for image in images):
        raise RequestError(f"{where}.images must be a list of base64 texts.", f"{where}.images")
    return tuple(Image(data=image, media_type=_guess_type(image)) for image in images)


def _guess_type(image: str) -> str:
    """The wire has no media type; infer it from the first bytes."""
    return next((kind for magic, kind in MAGIC.items() if image.startswith(magic)), "image/png")


def _decode_call(call: Mapping[str, Any], own_id: str, where: str) -> ToolCall:
    payload = call.get("function")
    name = text_at(payload, "name") if isinstance(payload, dict) else ""
    if not isinstance(payload, dict) or not name.strip():
        raise RequestError(f"{where}.tool_calls must name tools.", f"{where}.tool_calls")
    return ToolCall(text_at(call, "id") or own_id, name, write_arguments(payload.get("arguments")))

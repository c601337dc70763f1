"""What a client asks on the wire of Ollama.

    {"model": "qwen3", "options": {"temperature": 0, "num_predict": 100},
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "tool_calls": [{"function": {"name": "tell_time", "arguments": {}}}]},
                  {"role": "tool", "tool_name": "tell_time", "content": "12:00"}],
     "tools": [{"type": "function", "function": {"name": "tell_time", "parameters": {"type": "object"}}}]}

Answers are streamed unless the request says otherwise. Most clients know no ids of calls, so those are made from the
place of a call. Some name in a result the id of a call that they did not write there: such a result belongs to the
first call that waits. Fields that are not modelled travel in ``Conversation.extra`` under their own names.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import (
    NO_TOOLS,
    adapt_body,
    check_messages,
    dicts_in,
    number_at,
    parse_body,
    read_arguments,
    read_functions,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
    write_function,
)
from toolglot.wires.protocol import ClientRequest, read_error, write_error
from toolglot.wires.translation import demand_call, read_effort, write_effort

NAME = "ollama"
TOOL_FIELDS = ("tools",)
ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
MODELLED = frozenset(("model", "messages", "tools", "stream", "options"))
LIMITS = {"num_predict": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "seed": "seed"}
EFFORT = "think"
EFFORT_WORDS = ("low", "medium", "high")
BETWEEN = "\n\n"
"""What parts texts that other wires keep apart."""
MAGIC = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGO": "image/gif", "UklGR": "image/webp"}


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """The request in neutral words; ``RequestError`` names the field that cannot be meant."""
    asked = parse_body(body, read_functions)
    tools, notes = asked.get("tools", NO_TOOLS)
    options = asked.get("options") or {}
    if not isinstance(options, dict):
        raise RequestError("options must be an object.", "options")
    limits, rest = _decode_options(options)
    limits = replace(limits, effort=read_effort(asked.get(EFFORT)))
    conversation = Conversation(
        model=text_at(asked, "model"),
        messages=_decode_messages(check_messages(asked)),
        tools=tools,
        limits=limits,
        extra={key: value for key, value in asked.items() if key not in MODELLED} | ({"options": rest} if rest else {}),
    )
    modelled = frozenset([EFFORT] if limits.effort else ())
    return ClientRequest(conversation, asked.get("stream") is not False, True, notes, modelled=modelled)


def _decode_options(options: Mapping[str, Any]) -> tuple[Sampling, dict[str, Any]]:
    """The options that all wires know, and the others. A number of tokens below one stands for no limit."""
    whole = {key: whole_at(options, key, "options.") for key in ("num_predict", "top_k", "seed")}
    unlimited = whole["num_predict"] is not None and whole["num_predict"] < 1
    limits = Sampling(
        max_tokens=None if unlimited else whole["num_predict"],
        temperature=number_at(options, "temperature", "options."),
        top_p=number_at(options, "top_p", "options."),
        top_k=whole["top_k"],
        seed=whole["seed"],
        stop=texts_at(options, "stop", "options."),
    )
    known = {"stop", *LIMITS} - ({"num_predict"} if unlimited else set())
    return limits, {key: value for key, value in options.items() if key not in known}


def _decode_messages(told: Sequence[object]) -> tuple[Message, ...]:
    """The messages. Where calls have no ids, an id of a result that no call has says nothing, and is left out."""
    messages = tuple(_decode_message(message, at) for at, message in enumerate(told))
    given = {text_at(call, "id") for message in told for call in _calls_in(message)}
    if "" not in given:
        return messages
    return tuple(_forget_id(message, given) if message.role == "tool" else message for message in messages)


def _calls_in(message: object) -> list[dict[str, Any]]:
    return dicts_in(message.get("tool_calls")) if isinstance(message, dict) else []


def _forget_id(message: Message, given: Container[str]) -> Message:
    """The message without ids of results that are none of the given ones."""
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
    """The wire does not tell what an image is, but its first bytes do."""
    return next((kind for magic, kind in MAGIC.items() if image.startswith(magic)), "image/png")


def _decode_call(call: Mapping[str, Any], own_id: str, where: str) -> ToolCall:
    told = call.get("function")
    name = text_at(told, "name") if isinstance(told, dict) else ""
    if not isinstance(told, dict) or not name.strip():
        raise RequestError(f"{where}.tool_calls must name tools.", f"{where}.tool_calls")
    return ToolCall(text_at(call, "id") or own_id, name, write_arguments(told.get("arguments")))


# -- the way back ------------------------------------------------------------------------------------------------------


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """The same request in the words of this wire."""
    tools, demand = _choose(conversation.tools, conversation.choice)
    request: dict[str, Any] = {
        "model": conversation.model,
        "messages": [*demand, *(told for message in conversation.messages for told in _encode_message(message))],
        **conversation.extra,
        "stream": stream,
    }
    limits = conversation.limits
    told = {key: getattr(limits, field) for key, field in LIMITS.items() if getattr(limits, field) is not None}
    options = conversation.extra.get("options", {}) | told | ({"stop": list(limits.stop)} if limits.stop else {})
    if options:
        request["options"] = options
    if limits.effort and EFFORT not in request:
        request[EFFORT] = limits.effort != "none" and write_effort(limits.effort, EFFORT_WORDS)
    if tools:
        request["tools"] = [write_function(tool) for tool in tools]
    return encode(request)


def _choose(tools: Iterable[Tool], choice: ToolChoice) -> tuple[list[Tool], list[dict[str, Any]]]:
    """The wire knows no choice: tools that may not be called are not offered, and what must be done is said."""
    offered = [tool for tool in tools if choice.allows(tool.name)]
    if choice.mode != "required" or not offered:
        return offered, []
    return offered, _encode_message(demand_call(offered))


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """The request as it is, but for the model's name and, if so wished, for everything about tools."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _encode_message(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [_encode_result(write_error(part)) for part in message.parts if isinstance(part, ToolResult)]
    told = {"role": message.role, **_encode_shown(message.parts, "" if message.role == "assistant" else BETWEEN)}
    thought = "".join(part.text for part in message.parts if isinstance(part, Reasoning))
    if thought:
        told["thinking"] = thought
    if message.calls:
        told["tool_calls"] = [_encode_call(call, index) for index, call in enumerate(message.calls)]
    return [told]


def _encode_result(result: ToolResult) -> dict[str, Any]:
    told = {"role": "tool", **_encode_shown(result.content)}
    named = {"tool_name": result.name, "tool_call_id": result.call_id}
    return told | {key: value for key, value in named.items() if value}


def _encode_shown(parts: Iterable[Part], between: str = BETWEEN) -> dict[str, Any]:
    """Text and images; the wire has one place for each."""
    told: dict[str, Any] = {"content": between.join(part.text for part in parts if isinstance(part, Text))}
    images = [part for part in parts if isinstance(part, Image)]
    if any(image.url for image in images):
        raise RequestError("An image that is given by its address cannot be carried to this model.", "messages")
    return told | {"images": [image.data for image in images]} if images else told


def _encode_call(call: ToolCall, index: int) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": read_arguments(call.arguments)}
    return {"id": call.id, "function": function}

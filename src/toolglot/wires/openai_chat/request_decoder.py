"""What a client asks on the chat wire.

    {"model": "qwen3-coder", "stream": true,
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "content": null, "tool_calls": [
                      {"id": "call_1", "type": "function", "function": {"name": "tell_time", "arguments": "{}"}}]},
                  {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}],
     "tools": [{"type": "function", "function": {"name": "tell_time", "parameters": {"type": "object"}}}]}

Fields that are not modelled travel in ``Conversation.extra`` under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolglot.core.conversation import (
    EFFORTS,
    Conversation,
    Image,
    Message,
    Mode,
    Part,
    ProviderPart,
    Reasoning,
    Role,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.errors import RequestError, ToolResultsError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import (
    NO_TOOLS,
    adapt_body,
    check_choice,
    check_messages,
    number_at,
    parse_body,
    read_functions,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
    write_function,
)
from toolglot.wires.openai_chat.signatures import NAME, read_signature, write_signature
from toolglot.wires.protocol import ClientRequest, read_error, write_error
from toolglot.wires.translation import address_image, read_effort, read_image, write_effort

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
LIMITS = ("max_tokens", "temperature", "top_p", "seed")
MODELLED = frozenset(
    ("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "n", "stop")
) | frozenset(LIMITS)

TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")

NEWER_LIMIT = "max_completion_tokens"
"""Says the same as ``max_tokens``; servers take only one of them, so it goes back under the name it had."""

EFFORT = "reasoning_effort"
EFFORT_WORDS = EFFORTS[:-1]
LIMITED = frozenset((*LIMITS, NEWER_LIMIT, EFFORT, "stop", "parallel_tool_calls"))

THOUGHT_FIELDS = ("reasoning_content", "reasoning")
"""Where thoughts stand: nothing is agreed upon, so the kind of a thought may name the field."""

RARITIES = frozenset((*THOUGHT_FIELDS, "refusal", "extra_content"))
BESIDES = RARITIES | {"tool_calls", "function_call"}
"""What a message of the assistant may have besides content."""

ANY_CHOICE, NO_LIMITS = ToolChoice(), Sampling()
CHOICES: Mapping[str, Mode] = {"none": "none", "auto": "auto", "required": "required", "any": "required"}


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """The request in neutral words; ``RequestError`` names the field that cannot be meant."""
    asked = parse_body(body, read_functions)
    if "n" in asked and asked["n"] not in (None, 1):
        raise RequestError("Only one answer can be given to a request: n must be 1.", "n")
    tools, skipped = asked.get("tools", NO_TOOLS)
    notes = list(skipped)
    conversation = Conversation(
        model=text_at(asked, "model"),
        messages=tuple([_decode_message(message, at, notes) for at, message in enumerate(check_messages(asked))]),
        tools=tools,
        choice=_decode_choice(asked["tool_choice"], tools) if "tool_choice" in asked else ANY_CHOICE,
        limits=NO_LIMITS if LIMITED.isdisjoint(asked) else _decode_limits(asked),
        extra={} if MODELLED.issuperset(asked) else {key: asked[key] for key in asked if key not in MODELLED},
    )
    options = asked.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    modelled = frozenset((NEWER_LIMIT, EFFORT) if conversation.limits.effort else (NEWER_LIMIT,))
    return ClientRequest(conversation, asked.get("stream") is True, wants_usage, tuple(notes), modelled=modelled)


# -- messages ----------------------------------------------------------------------------------------------------------


def _decode_message(message: object, at: int, notes: list[str]) -> Message:
    if not isinstance(message, dict):
        raise RequestError(f"messages[{at}] must be an object with a role and content.", f"messages[{at}]")
    told, content = message.get("role"), message.get("content")
    role = ROLES.get(told) if isinstance(told, str) else None
    if role is None:
        raise RequestError(f"messages[{at}].role must be one of {', '.join(ROLES)}.", f"messages[{at}].role")
    parts = (Text(content),) if isinstance(content, str) else _decode_content(content, f"messages[{at}].content")
    if role == "tool":
        parts = (_decode_result(message, parts, at),)
    elif role == "assistant" and not BESIDES.isdisjoint(message):
        parts = (*_decode_rarities(message, parts), *_decode_calls(message, at, notes))
    return Message(role, parts)


def _decode_rarities(message: Mapping[str, Any], said: tuple[Part, ...]) -> Iterable[Part]:
    """What the assistant said, with what few servers have beside it."""
    if RARITIES.isdisjoint(message):
        return said
    thought = text_at(message, "reasoning_content") or text_at(message, "reasoning")
    parts = [Reasoning(thought), *said] if thought else [*said]
    if refusal := text_at(message, "refusal"):
        parts.append(Text(refusal))
    if seal := read_signature(message.get("extra_content")):
        parts.append(Reasoning("", seal, NAME))
    return parts


def _decode_content(content: object, where: str) -> tuple[Part, ...]:
    if content is None:
        return ()
    if not isinstance(content, list):
        raise RequestError(f"{where} must be text, a list of parts, or null.", where)
    return tuple([_decode_part(part, f"{where}[{at}]") for at, part in enumerate(content)])


def _decode_part(part: object, where: str) -> Part:
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        raise RequestError(f"{where} must be a content part.", where)
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return Text(part[key])
    if part.get("type") != "image_url":
        return ProviderPart(NAME, part)
    image = part.get("image_url")
    url, detail = (text_at(image, "url"), text_at(image, "detail")) if isinstance(image, dict) else (image, "")
    try:
        return read_image(url if isinstance(url, str) else "", detail)
    except ValueError:
        raise RequestError(f"{where}.image_url needs a url.", where) from None


def _decode_calls(message: Mapping[str, Any], at: int, notes: list[str]) -> list[Part]:
    listed = message.get("tool_calls") or []
    if not isinstance(listed, list):
        raise RequestError(f"messages[{at}].tool_calls must be a list.", f"messages[{at}].tool_calls")
    old = message.get("function_call")
    if isinstance(old, dict):
        listed = [*listed, {"function": old}]
    calls: list[Part] = []
    for number, call in enumerate(listed):
        where = f"messages[{at}].tool_calls[{number}]"
        if not isinstance(call, dict):
            raise RequestError(f"{where} must be an object.", where)
        if seal := read_signature(call.get("extra_content")):
            calls.append(Reasoning("", seal, NAME))
        calls.append(_decode_call(call, where, notes))
    return calls


def _decode_call(call: Mapping[str, Any], where: str, notes: list[str]) -> ToolCall:
    told = call.get("function") or call.get("custom") or {}
    if not isinstance(told, dict):
        raise RequestError(f"{where}.function must be an object.", where)
    name = text_at(told, "name").strip()
    if not name:
        notes.append(f"{where} names no tool")
    arguments = told.get("arguments") if "input" not in told else {"input": told["input"]}
    if not isinstance(arguments, str):
        arguments = write_arguments(arguments or {})
    return ToolCall(text_at(call, "id"), name or "unnamed", arguments)


def _decode_result(message: Mapping[str, Any], parts: Iterable[Part], at: int) -> ToolResult:
    if "content" not in message:
        where = f"messages[{at}]"
        raise ToolResultsError(f"Invalid tool results: {where} has no content.", f"{where}.content")
    content = [part if isinstance(part, (Text, Image)) else Text(write_arguments(_bare(part))) for part in parts]
    return read_error(ToolResult(text_at(message, "tool_call_id"), text_at(message, "name"), tuple(content)))


def _bare(part: Part) -> Any:
    return dict(part.data) if isinstance(part, ProviderPart) else str(part)


# -- tools and the choice among them -----------------------------------------------------------------------------------


def _decode_choice(choice: object, tools: tuple[Tool, ...]) -> ToolChoice:
    if choice is None:
        return ANY_CHOICE
    if isinstance(choice, str):
        if choice not in CHOICES:
            raise RequestError(f"tool_choice cannot be {choice!r}.", "tool_choice")
        return check_choice(ToolChoice(CHOICES[choice]), tools)
    if not isinstance(choice, dict):
        raise RequestError("tool_choice must be a word or an object.", "tool_choice")
    allowed = choice.get("allowed_tools")
    if choice.get("type") == "allowed_tools" and isinstance(allowed, dict):
        names = tuple(dict.fromkeys(_name_of(tool) for tool in allowed.get("tools") or ()))
        mode: Mode = "required" if allowed.get("mode") == "required" else "auto"
        return check_choice(ToolChoice(mode, names), tools)
    return check_choice(ToolChoice.one(_name_of(choice)), tools)


def _name_of(entry: object) -> str:
    told = entry.get("function") or entry.get("custom") or entry if isinstance(entry, dict) else {}
    name = text_at(told, "name") if isinstance(told, dict) else ""
    if not name:
        raise RequestError("tool_choice must name a tool.", "tool_choice")
    return name


def _decode_limits(asked: Mapping[str, Any]) -> Sampling:
    parallel = asked.get("parallel_tool_calls")
    return Sampling(
        max_tokens=whole_at(asked, "max_tokens") or whole_at(asked, NEWER_LIMIT),
        temperature=number_at(asked, "temperature"),
        top_p=number_at(asked, "top_p"),
        seed=whole_at(asked, "seed"),
        stop=texts_at(asked, "stop"),
        parallel_calls=parallel if isinstance(parallel, bool) else None,
        effort=read_effort(asked.get(EFFORT)),
    )


# -- the way back ------------------------------------------------------------------------------------------------------


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """The same request in the words of this wire."""
    limits = conversation.limits
    request: dict[str, Any] = {
        "model": conversation.model,
        "messages": _encode_messages(conversation.messages),
        **conversation.extra,
    }
    if limits != NO_LIMITS:
        request |= _encode_limits(limits, conversation.extra)
    if conversation.tools:
        request["tools"] = [write_function(tool) for tool in conversation.tools]
        request |= _encode_choice(conversation.choice)
        if limits.parallel_calls is not None:
            request["parallel_tool_calls"] = limits.parallel_calls
    if stream:
        request["stream"] = True
        if wants_usage:
            request["stream_options"] = {"include_usage": True}
    return encode(request)


def _encode_limits(limits: Sampling, extra: Mapping[str, Any]) -> dict[str, Any]:
    told = {key: getattr(limits, key) for key in LIMITS if key != "max_tokens" or NEWER_LIMIT not in extra}
    if limits.effort and EFFORT not in extra:
        told[EFFORT] = write_effort(limits.effort, EFFORT_WORDS)
    stop = {"stop": list(limits.stop)} if limits.stop else {}
    return {key: value for key, value in told.items() if value is not None} | stop


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """The request as it is, but for the model's name and, if so wished, for everything about tools."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _encode_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Images of results follow in a message of the user, behind all results of that turn: this wire has no other place
    for them."""
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
    encoded = {"role": message.role, "content": _encode_content(parts), **_encode_calls(parts)}
    thoughts = [part for part in parts if isinstance(part, Reasoning) and part.text]
    if not thoughts:
        return encoded
    field = thoughts[0].kind if thoughts[0].kind in THOUGHT_FIELDS else THOUGHT_FIELDS[0]
    return encoded | {field: "".join(part.text for part in thoughts)}


def _encode_calls(parts: Iterable[Part]) -> dict[str, Any]:
    """The calls, each with the signature that stands before it; one behind all of them belongs to the message."""
    calls, seal = [], ""
    for part in parts:
        if isinstance(part, Reasoning) and part.kind == NAME:
            seal = part.signature
        elif isinstance(part, ToolCall):
            function = {"name": part.name, "arguments": part.arguments}
            calls.append({"id": part.id, "type": "function", "function": function} | write_signature(seal))
            seal = ""
    return ({"tool_calls": calls} if calls else {}) | write_signature(seal)


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
    url = address_image(image)
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

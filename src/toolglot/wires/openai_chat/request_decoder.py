"""Decode Chat Completions requests.

    {"model": "qwen3-coder", "stream": true,
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "content": null, "tool_calls": [
                      {"id": "call_1", "type": "function", "function": {"name": "tell_time", "arguments": "{}"}}]},
                  {"role": "tool", "tool_call_id": "call_1", "content": "12:00"}],
     "tools": [{"type": "function", "function": {"name": "tell_time", "parameters": {"type": "object"}}}]}

Fields that are not modelled are kept in ``Conversation.extra`` under their own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import (
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
from toolglot.wires.json_fields import (
    NO_TOOLS,
    check_choice,
    check_messages,
    number_at,
    parse_body,
    read_functions,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
)
from toolglot.wires.openai_chat.function_fields import (
    CHOICE,
    FUNCTIONS,
    HINT,
    OLDER_FIELDS,
    assign_ids,
    decode_function_choice,
    decode_functions,
    is_older,
)
from toolglot.wires.protocol import ClientRequest, read_error
from toolglot.wires.translation import read_effort, read_format, read_image

NAME = "openai_chat"
ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
SAMPLING_FIELDS = ("max_tokens", "temperature", "top_p", "seed")
MODELLED = frozenset(
    ("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "n", "stop")
) | frozenset((*SAMPLING_FIELDS, *OLDER_FIELDS))

NEWER_MAX_TOKENS = "max_completion_tokens"
"""Newer name of ``max_tokens``; servers accept only one of them, so the client's name is kept."""

EFFORT, FORMAT = "reasoning_effort", "response_format"
SAMPLING_KEYS = frozenset((*SAMPLING_FIELDS, NEWER_MAX_TOKENS, EFFORT, FORMAT, "stop", "parallel_tool_calls"))

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Fields for reasoning: servers do not agree on one, so ``Reasoning.kind`` may name it."""

RARE_FIELDS = frozenset((*REASONING_FIELDS, "refusal", "extra_content"))
ASSISTANT_FIELDS = RARE_FIELDS | {"tool_calls", "function_call"}
"""Fields of an assistant message other than its content."""

ALWAYS_MODELLED, IN_EXTRA = frozenset((NEWER_MAX_TOKENS,)), frozenset((EFFORT, FORMAT))
ANY_CHOICE, NO_SAMPLING = ToolChoice(), Sampling()
CHOICES: Mapping[str, Mode] = {"none": "none", "auto": "auto", "required": "required", "any": "required"}


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """Decode a request; ``RequestError`` names the invalid field."""
    fields = parse_body(body, read_functions)
    if "n" in fields and fields["n"] not in (None, 1):
        raise RequestError("Only one answer can be given to a request: n must be 1.", "n")
    tools, skipped = fields.get("tools", NO_TOOLS)
    notes, messages = list(skipped), check_messages(fields)
    conversation = Conversation(
        model=text_at(fields, "model"),
        messages=tuple([_decode_message(message, at, notes) for at, message in enumerate(messages)]),
        tools=tools,
        choice=_decode_choice(fields["tool_choice"], tools) if "tool_choice" in fields else ANY_CHOICE,
        sampling=NO_SAMPLING if SAMPLING_KEYS.isdisjoint(fields) else _decode_sampling(fields),
        extra={} if MODELLED.issuperset(fields) else {key: fields[key] for key in fields if key not in MODELLED},
    )
    options = fields.get("stream_options")
    wants_usage = isinstance(options, dict) and options.get("include_usage") is True
    decoded = ClientRequest(
        conversation=conversation,
        stream=fields.get("stream") is True,
        wants_usage=wants_usage,
        notes=tuple(notes),
        modelled=ALWAYS_MODELLED if IN_EXTRA.isdisjoint(fields) else _list_modelled(fields, conversation.sampling),
    )
    older = (FUNCTIONS in fields or HINT in body) and is_older(fields, messages)
    return _read_older_fields(decoded, fields) if older else decoded


def _read_older_fields(request: ClientRequest, fields: Mapping[str, Any]) -> ClientRequest:
    """The request with the functions as tools, unless it has tools as well."""
    conversation, notes = request.conversation, request.notes
    messages = assign_ids(conversation.messages)
    if fields.get("tools") or "tool_choice" in fields:
        if fields.get(FUNCTIONS):
            notes = (*notes, f"{FUNCTIONS} skipped: the request has tools")
        conversation = replace(conversation, messages=messages)
        return replace(request, conversation=conversation, notes=notes, is_older_form=True)
    tools, skipped = decode_functions(fields.get(FUNCTIONS))
    choice = decode_function_choice(fields.get(CHOICE), tools)
    sampling = replace(conversation.sampling, parallel_calls=False) if tools else conversation.sampling
    conversation = replace(conversation, messages=messages, tools=tools, choice=choice, sampling=sampling)
    memory = {FUNCTIONS: True}
    return replace(request, conversation=conversation, notes=notes + skipped, memory=memory, is_older_form=True)


def _list_modelled(fields: Mapping[str, Any], sampling: Sampling) -> frozenset[str]:
    """The settings that reach other wires; of the output formats those that are JSON, and plain text."""
    plain = fields.get(FORMAT) in (None, {"type": "text"})
    is_read = plain or sampling.json_object or sampling.json_schema
    return ALWAYS_MODELLED.union([EFFORT] * bool(sampling.effort), [FORMAT] * bool(is_read))


# -- messages ----------------------------------------------------------------------------------------------------------


def _decode_message(message: object, at: int, notes: list[str]) -> Message:
    if not isinstance(message, dict):
        raise RequestError(f"messages[{at}] must be an object with a role and content.", f"messages[{at}]")
    payload, content = message.get("role"), message.get("content")
    role = ROLES.get(payload) if isinstance(payload, str) else None
    if role is None:
        raise RequestError(f"messages[{at}].role must be one of {', '.join(ROLES)}.", f"messages[{at}].role")
    parts = (Text(content),) if isinstance(content, str) else _decode_content(content, f"messages[{at}].content")
    if role == "tool":
        parts = (_decode_result(message, parts, at),)
    elif role == "assistant" and not ASSISTANT_FIELDS.isdisjoint(message):
        parts = (*_decode_rare_fields(message, parts), *_decode_calls(message, at, notes))
    return Message(role, parts)


def _decode_rare_fields(message: Mapping[str, Any], content: tuple[Part, ...]) -> Iterable[Part]:
    """The assistant's content with fields that only few servers use."""
    if RARE_FIELDS.isdisjoint(message):
        return content
    thought = text_at(message, "reasoning_content") or text_at(message, "reasoning")
    parts = [Reasoning(thought), *content] if thought else [*content]
    if refusal := text_at(message, "refusal"):
        parts.append(Text(refusal))
    if signature := read_signature(message.get("extra_content")):
        parts.append(Reasoning("", signature, NAME))
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
        if signature := read_signature(call.get("extra_content")):
            calls.append(Reasoning("", signature, NAME))
        calls.append(_decode_call(call, where, notes))
    return calls


def _decode_call(call: Mapping[str, Any], where: str, notes: list[str]) -> ToolCall:
    payload = call.get("function") or call.get("custom") or {}
    if not isinstance(payload, dict):
        raise RequestError(f"{where}.function must be an object.", where)
    name = text_at(payload, "name").strip()
    if not name:
        notes.append(f"{where} names no tool")
    arguments = payload.get("arguments") if "input" not in payload else {"input": payload["input"]}
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
    payload = entry.get("function") or entry.get("custom") or entry if isinstance(entry, dict) else {}
    name = text_at(payload, "name") if isinstance(payload, dict) else ""
    if not name:
        raise RequestError("tool_choice must name a tool.", "tool_choice")
    return name


def _decode_sampling(fields: Mapping[str, Any]) -> Sampling:
    parallel = fields.get("parallel_tool_calls")
    return Sampling(
        max_tokens=whole_at(fields, "max_tokens") or whole_at(fields, NEWER_MAX_TOKENS),
        temperature=number_at(fields, "temperature"),
        top_p=number_at(fields, "top_p"),
        seed=whole_at(fields, "seed"),
        stop=texts_at(fields, "stop"),
        parallel_calls=parallel if isinstance(parallel, bool) else None,
        effort=read_effort(fields.get(EFFORT)),
        **_decode_format(fields.get(FORMAT)),
    )


def _decode_format(value: object) -> dict[str, Any]:
    """The JSON format; some servers have the schema right beside the type."""
    if not isinstance(value, dict):
        return {}
    kind = value.get("type")
    return read_format(kind, value.get("json_schema") if kind == "json_schema" else value)


# -- reasoning signatures ----------------------------------------------------------------------------------------------
# Only some servers send them: on the first call of a response, or next to its text, where they must come back.
#     "tool_calls": [{"id": "...", "extra_content": {"google": {"thought_signature": "..."}}, "function": {...}}]


def read_signature(extra: object) -> str:
    """Return the signature in an ``extra_content``, or an empty string."""
    vendor = extra.get("google") if isinstance(extra, dict) else None
    signature = vendor.get("thought_signature") if isinstance(vendor, dict) else None
    return signature if isinstance(signature, str) else ""


def write_signature(signature: str) -> dict[str, Any]:
    return {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}

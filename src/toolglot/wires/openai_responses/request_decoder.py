"""Decode requests of the Responses wire, ``POST /v1/responses``.

    {"model": "m", "instructions": "Be brief.", "stream": true, "tools": [{"type": "function", "name": "read", ...}],
     "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "..."}]},
               {"type": "reasoning", "summary": [{"type": "summary_text", "text": "..."}], "encrypted_content": "..."},
               {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
               {"type": "function_call_output", "call_id": "call_1", "output": "..."}]}

Strategy. Input is a list of items; adjacent text, reasoning and calls of the assistant become one message, in the order
of the items. Known references were replaced before (``previous_responses``). A reference that is left can only be valid
for an upstream of this wire; for any other the request is refused, with a hint at what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    Part,
    ProviderPart,
    Reasoning,
    Role,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
)
from toolglot.core.errors import RequestError, ToolResultsError
from toolglot.wires.json_fields import number_at, parse_body, text_at, whole_at, write_arguments
from toolglot.wires.openai_responses.previous_responses import PREVIOUS, REFERENCE
from toolglot.wires.openai_responses.tools import INPUT, ToolTable, collect_tools, decode_choice, flatten_name
from toolglot.wires.protocol import ClientRequest, read_error
from toolglot.wires.translation import read_effort, read_format, read_image, table_at, unwrap_signature

NAME = "openai_responses"
ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
STATEFUL = (PREVIOUS, "conversation", "prompt", "background")
"""Fields that refer to something that the server stores or is to store."""

MODELLED = frozenset(
    ("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options")
) | {"max_output_tokens", "temperature", "top_p", "store", *STATEFUL}

EFFORT = ("reasoning", "effort")
"""Path of the field for the reasoning effort."""

FORMAT = ("text", "format")
"""Path of the field for the output format."""

TOOL_ITEMS = ("additional_tools", "tool_search_output")
"""Items that contain tools."""


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """Decode a request; ``RequestError`` names the invalid field."""
    fields = parse_body(body, collect_tools)
    items = _list_items(fields.get("input"))
    table = _add_tools(fields.get("tools"), items)
    notes = list(table.notes)
    transcript = Transcript(items, notes)
    instructions = fields.get("instructions")
    if instructions:
        transcript.add_message("system", _decode_content(instructions, "instructions"))
    for at, item in enumerate(items):
        transcript.take(item, f"input[{at}]")
    conversation = Conversation(
        model=text_at(fields, "model"),
        messages=transcript.close(),
        tools=table.offered,
        choice=decode_choice(fields.get("tool_choice"), table.tools),
        sampling=_decode_sampling(fields),
        extra={key: value for key, value in fields.items() if key not in MODELLED},
    )
    problem = _find_reference(fields) or transcript.unknown_reference
    if not conversation.messages and problem is None:
        raise RequestError("A request needs input that is not empty.", "input")
    return ClientRequest(
        conversation=conversation,
        stream=fields.get("stream") is True,
        wants_usage=True,
        notes=tuple(notes),
        memory=table.memory(),
        same_wire_only=problem,
        may_be_referenced=fields.get("store") is not False,
        modelled=_list_modelled(fields, conversation.sampling),
        special_tools=frozenset((*table.custom, *table.namespaces)),
    )


def _list_modelled(fields: Mapping[str, Any], sampling: Sampling) -> frozenset[str]:
    """The settings inside objects that reach other wires; of the output formats those that are JSON, and plain text."""
    plain = table_at(fields, FORMAT[0]).get(FORMAT[1]) in (None, {"type": "text"})
    is_read = plain or sampling.json_object or sampling.json_schema
    return frozenset([".".join(EFFORT)] * bool(sampling.effort) + [".".join(FORMAT)] * bool(is_read))


def _add_tools(begun: ToolTable | None, items: list[dict[str, Any]]) -> ToolTable:
    """All tools: those of the request, which are cached and shared, and those that items contain."""
    with_tools = [(at, item) for at, item in enumerate(items) if item.get("type") in TOOL_ITEMS]
    table = ToolTable(begun) if begun is None or with_tools else begun
    for at, item in with_tools:
        table.add(item.get("tools"), f"input[{at}].tools")
    return table


def _find_reference(fields: Mapping[str, Any]) -> RequestError | None:
    """The error for other wires, if the request refers to something that its server stores."""
    for key in STATEFUL:
        if fields.get(key):
            known = "it is not known here (any more)" if key == PREVIOUS else "nothing of that kind is kept here"
            return RequestError(f"{key} cannot be honoured: {known}. Send the whole history in input.", key)
    return None


def _list_items(given: object) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise RequestError("input must be text or a list of items.", "input")
    for at, item in enumerate(given):
        if not isinstance(item, dict):
            raise RequestError(f"input[{at}] must be an object.", f"input[{at}]")
    return given


def _decode_sampling(fields: Mapping[str, Any]) -> Sampling:
    parallel = fields.get("parallel_tool_calls")
    wanted = table_at(table_at(fields, FORMAT[0]), FORMAT[1])
    return Sampling(
        max_tokens=whole_at(fields, "max_output_tokens"),
        temperature=number_at(fields, "temperature"),
        top_p=number_at(fields, "top_p"),
        parallel_calls=parallel if isinstance(parallel, bool) else None,
        effort=read_effort(table_at(fields, EFFORT[0]).get(EFFORT[1])),
        **read_format(wanted.get("type"), wanted),
    )


# -- items -------------------------------------------------------------------------------------------------------------


class Transcript:
    """Converts items to messages."""

    def __init__(self, items: list[dict[str, Any]], notes: list[str]) -> None:
        self.known = {text_at(item, "id"): item for item in items if item.get("type") != REFERENCE}
        self.notes = notes
        self.messages: list[Message] = []
        self.parts: list[Part] = []
        self.unknown_reference: RequestError | None = None

    def take(self, item: dict[str, Any], where: str) -> None:
        kind = text_at(item, "type") or ("message" if "role" in item else "")
        if kind in TOOL_ITEMS:
            return
        if kind == REFERENCE:
            self.resolve(item, where)
        elif kind in _ITEMS:
            _ITEMS[kind](self, item, where)
        else:
            self.notes.append(f"{where} skipped: items of type {kind!r} mean nothing here")

    def resolve(self, item: Mapping[str, Any], where: str) -> None:
        """Take the referenced item, if it is in the same request."""
        found = self.known.get(text_at(item, "id"))
        if found is not None:
            self.take(found, where)
            return
        self.unknown_reference = RequestError(
            f"{where} refers to the item {item.get('id')}, which is not known here (any more). "
            "Send the item itself (set store to false).",
            where,
        )

    def add_message(self, role: Role, parts: list[Part]) -> None:
        if role == "assistant":
            self.parts += parts
            return
        self.pause()
        self.messages.append(Message(role, tuple(parts)))

    def pause(self) -> None:
        """End the turn of the assistant."""
        if self.parts:
            self.messages.append(Message("assistant", tuple(self.parts)))
            self.parts = []

    def close(self) -> tuple[Message, ...]:
        self.pause()
        return tuple(self.messages)

    def take_message(self, item: Mapping[str, Any], where: str) -> None:
        role = ROLES.get(text_at(item, "role"))
        if role is None:
            raise RequestError(f"{where}.role must be one of {', '.join(ROLES)}.", f"{where}.role")
        self.add_message(role, _decode_content(item.get("content"), f"{where}.content"))

    def take_reasoning(self, item: Mapping[str, Any], where: str) -> None:
        payload = [_join_texts(item.get(key)) for key in ("summary", "content")]
        signature, kind = unwrap_signature(text_at(item, "encrypted_content"), NAME)
        self.parts.append(Reasoning(payload[0] or payload[1], signature, kind))

    def take_call(self, item: Mapping[str, Any], where: str) -> None:
        arguments = item.get("arguments")
        if item.get("type") == "custom_tool_call":
            arguments = {INPUT: item.get("input", "")}
        name = flatten_name(text_at(item, "namespace"), text_at(item, "name").strip())
        if not name:
            self.notes.append(f"{where} names no tool")
        self.parts.append(ToolCall(text_at(item, "call_id"), name or "unnamed", write_arguments(arguments)))

    def take_result(self, item: Mapping[str, Any], where: str) -> None:
        if "output" not in item:
            raise ToolResultsError(f"Invalid tool results: {where} has no output.", f"{where}.output")
        output = item["output"]
        if output is not None and not isinstance(output, str | list):
            output = write_arguments(output)
        parts = _decode_content(output, f"{where}.output")
        content = tuple(part if isinstance(part, Text | Image) else Text(_encode_foreign(part)) for part in parts)
        self.pause()
        self.messages.append(Message("tool", (read_error(ToolResult(text_at(item, "call_id"), "", content)),)))


_ITEMS: Mapping[str, Callable[[Transcript, dict[str, Any], str], None]] = {
    "message": Transcript.take_message,
    "reasoning": Transcript.take_reasoning,
    "function_call": Transcript.take_call,
    "custom_tool_call": Transcript.take_call,
    "function_call_output": Transcript.take_result,
    "custom_tool_call_output": Transcript.take_result,
}


def _encode_foreign(part: Part) -> str:
    return write_arguments(dict(part.data)) if isinstance(part, ProviderPart) else str(part)


# -- content -----------------------------------------------------------------------------------------------------------


def _join_texts(parts: object) -> str:
    listed = parts if isinstance(parts, list) else []
    return "\n\n".join(part["text"] for part in listed if isinstance(part, dict) and isinstance(part.get("text"), str))


def _decode_content(content: object, where: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise RequestError(f"{where} must be text, a list of parts, or null.", where)
    return [_decode_part(part, f"{where}[{at}]") for at, part in enumerate(content)]


def _decode_part(part: object, where: str) -> Part:
    if isinstance(part, str):
        return Text(part)
    if not isinstance(part, dict):
        raise RequestError(f"{where} must be a content part.", where)
    for key in ("text", "refusal"):
        if isinstance(part.get(key), str):
            return Text(part[key])
    url = part.get("image_url")
    url = table_at(part, "image_url").get("url", url)
    if part.get("type") != "input_image" or not isinstance(url, str) or not url:
        return ProviderPart(NAME, part)
    detail = text_at(part, "detail")
    try:
        return read_image(url, "" if detail == "auto" else detail)
    except ValueError:
        raise RequestError(f"{where}.image_url shows nothing.", where) from None

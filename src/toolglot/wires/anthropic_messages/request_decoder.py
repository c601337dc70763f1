"""Decode requests of the Messages wire.

    {"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": "Be brief.",
     "messages": [{"role": "user", "content": "What is the time?"},
                  {"role": "assistant", "content": [
                      {"type": "tool_use", "id": "toolu_1", "name": "tell_time", "input": {}}]},
                  {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "12:00"}]}],
     "tools": [{"name": "tell_time", "input_schema": {"type": "object"}}]}

Tool results are in user messages here; they get messages of their own, before the other content of the user message.
Fields that are not modelled are kept in ``Conversation.extra`` under their own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolglot.core.conversation import (
    Conversation,
    Image,
    JsonSchema,
    Message,
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
    Tools,
)
from toolglot.core.errors import RequestError, ToolResultsError
from toolglot.core.json_numbers import encode
from toolglot.wires.anthropic_messages.ids import EFFORT, FORMAT, NAME, OLD_FORMAT, REDACTED, THINKING, read_signature
from toolglot.wires.anthropic_messages.text_editor import TYPE_PREFIX, define_text_editor
from toolglot.wires.json_fields import (
    NO_TOOLS,
    Offer,
    check_choice,
    check_messages,
    number_at,
    parse_body,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
)
from toolglot.wires.protocol import ClientRequest
from toolglot.wires.translation import read_budget, read_effort, table_at

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
MODELLED = frozenset(("model", "messages", "system", "tools", "tool_choice", "stream", "max_tokens")) | {
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
}
BESIDE = MODELLED - {"top_p"}
"""What is modelled beside a temperature: upstreams take only one of both, unless the client knows better."""
MODES: Mapping[str, ToolChoice] = {"auto": ToolChoice(), "any": ToolChoice("required"), "none": ToolChoice("none")}
CHARACTERS_PER_TOKEN = 4


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """Decode a request; ``RequestError`` names the invalid field."""
    fields = parse_body(body, _decode_tools)
    tools, notes = fields.get("tools", NO_TOOLS)
    messages = [
        *_decode_system(fields.get("system")),
        *(
            decoded
            for at, message in enumerate(check_messages(fields))
            for decoded in _decode_message(message, f"messages[{at}]")
        ),
    ]
    choice, alone = fields.get("tool_choice"), fields.get("temperature") is None
    conversation = Conversation(
        model=text_at(fields, "model"),
        messages=tuple(messages),
        tools=tools,
        choice=check_choice(_decode_choice(choice), tools),
        sampling=_decode_sampling(fields, choice),
        extra={key: value for key, value in fields.items() if key not in (MODELLED if alone else BESIDE)},
    )
    ids = frozenset([call.id for message in messages if message.role == "assistant" for call in message.calls])
    efforts = (".".join(EFFORT), f"{THINKING}.type", f"{THINKING}.budget_tokens")
    modelled = ["top_p", *(efforts if conversation.sampling.effort else ())]
    if conversation.sampling.json_schema:
        modelled += [".".join(FORMAT), OLD_FORMAT]
    return ClientRequest(
        conversation=conversation,
        stream=fields.get("stream") is True,
        wants_usage=True,
        notes=notes,
        memory={"ids": ids},
        modelled=frozenset(modelled),
    )


# -- messages ----------------------------------------------------------------------------------------------------------


def _decode_system(system: object) -> list[Message]:
    parts = _decode_content(system, "system")
    if any(isinstance(part, Reasoning | ToolCall | ToolResult) for part in parts):
        raise RequestError("system must be a text or a list of text blocks.", "system")
    return [Message("system", tuple(parts))] if parts else []


def _decode_message(message: object, where: str) -> Iterable[Message]:
    if not isinstance(message, dict):
        raise RequestError(f"{where} must be an object with a role and content.", where)
    role = ROLES.get(text_at(message, "role"))
    if role is None:
        raise RequestError(f"{where}.role must be one of {', '.join(ROLES)}.", f"{where}.role")
    parts = _decode_content(message.get("content"), f"{where}.content")
    results = tuple([part for part in parts if isinstance(part, ToolResult)])
    rest = tuple([part for part in parts if not isinstance(part, ToolResult)]) if results else tuple(parts)
    if results:
        yield Message("tool", results)
    if rest or not results:
        try:
            yield Message(role, rest)
        except ValueError as error:
            raise RequestError(f"{where}.content: {error}.", f"{where}.content") from None


def _decode_content(content: object, where: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise RequestError(f"{where} must be text or a list of blocks.", where)
    return [_decode_block(block, f"{where}[{at}]") for at, block in enumerate(content)]


def _decode_block(block: object, where: str) -> Part:
    if not isinstance(block, dict):
        raise RequestError(f"{where} must be a content block.", where)
    read = _BLOCKS.get(text_at(block, "type"))
    return read(block, where) if read else ProviderPart(NAME, block)


def _decode_image(block: Mapping[str, Any], where: str) -> Part:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    if source.get("type") == "url" and text_at(source, "url"):
        return Image(url=source["url"])
    if source.get("type") == "base64" and text_at(source, "data"):
        return Image(data=source["data"], media_type=text_at(source, "media_type") or "image/png")
    return ProviderPart(NAME, block)


def _decode_document(block: Mapping[str, Any], where: str) -> Part:
    """A plain-text document is text; other documents only pass within this wire."""
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "text":
        return ProviderPart(NAME, block)
    title = text_at(block, "title")
    return Text(f"{title}\n\n{text_at(source, 'data')}" if title else text_at(source, "data"))


def _decode_call(block: Mapping[str, Any], where: str) -> Part:
    name = text_at(block, "name")
    if not name.strip():
        raise RequestError(f"{where}.name must name a tool.", f"{where}.name")
    return ToolCall(text_at(block, "id"), name, encode(block.get("input")).decode())


def _decode_thinking(block: Mapping[str, Any], where: str) -> Part:
    kind, signature = read_signature(text_at(block, "signature"))
    return Reasoning(text_at(block, "thinking"), signature, kind)


def _decode_result(block: Mapping[str, Any], where: str) -> Part:
    call_id = text_at(block, "tool_use_id")
    if not call_id:
        raise ToolResultsError(f"Invalid tool results: {where} has no tool_use_id.", f"{where}.tool_use_id")
    content = block.get("content")
    parts = _decode_content(content, f"{where}.content")
    return ToolResult(call_id, "", tuple(map(_decode_result_part, parts)), block.get("is_error") is True)


def _decode_result_part(part: Part) -> Text | Image:
    """A part of a result; one without a neutral form becomes text."""
    if isinstance(part, (Text, Image)):
        return part
    payload = dict(part.data) if isinstance(part, ProviderPart) else {}
    if payload.get("type") == "tool_reference":
        return Text(f"The tool {payload.get('tool_name')} can be called now.")
    return Text(write_arguments(payload))


_BLOCKS: Mapping[str, Callable[[Mapping[str, Any], str], Part]] = {
    "text": lambda block, where: Text(text_at(block, "text")),
    "image": _decode_image,
    "document": _decode_document,
    "tool_use": _decode_call,
    "tool_result": _decode_result,
    "thinking": _decode_thinking,
    "redacted_thinking": lambda block, where: Reasoning("", text_at(block, "data"), REDACTED),
}


# -- tools and the choice among them -----------------------------------------------------------------------------------


def _is_text_editor(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and text_at(entry, "type").startswith(TYPE_PREFIX)
        and bool(text_at(entry, "name").strip())
    )


def _decode_tools(tools: object) -> Offer:
    """Decode plain tools, including deferred ones; tools that the provider defines or runs are skipped with a note. The
    provider's text editor is run by the client, and its schema is known."""
    if tools is None:
        return NO_TOOLS
    if not isinstance(tools, list):
        raise RequestError("tools must be a list.", "tools")
    found: dict[str, Tool] = {}
    notes: list[str] = []
    for at, entry in enumerate(tools):
        if _is_text_editor(entry):
            known = define_text_editor(entry["name"])
            found.setdefault(known.name, known)
            continue
        problem = _problem_with(entry, found)
        if problem:
            notes.append(f"tools[{at}] skipped: {problem}")
            continue
        found[entry["name"]] = Tool(entry["name"], text_at(entry, "description"), entry.get("input_schema") or {})
    return Tools(found.values()), tuple(notes)


def _problem_with(entry: object, found: Mapping[str, Tool]) -> str:
    if not isinstance(entry, dict):
        return "not an object"
    if entry.get("type") not in (None, "custom"):
        return f"{entry['type']} is a tool of the provider"
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        return "no name"
    if not isinstance(entry.get("input_schema") or {}, dict):
        return "its input_schema is no JSON Schema"
    return f"a second tool named {name}" if name in found else ""


def _decode_choice(choice: object) -> ToolChoice:
    if choice is None:
        return ToolChoice()
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind == "tool" and isinstance(choice, dict) and text_at(choice, "name").strip():
        return ToolChoice.one(choice["name"])
    if not isinstance(kind, str) or kind not in MODES:
        raise RequestError("tool_choice must be one of auto, any, none, or tool with a name.", "tool_choice")
    return MODES[kind]


def _decode_sampling(fields: Mapping[str, Any], choice: object) -> Sampling:
    alone = choice.get("disable_parallel_tool_use") if isinstance(choice, dict) else None
    wanted = table_at(table_at(fields, FORMAT[0]), FORMAT[1]) or table_at(fields, OLD_FORMAT)
    schema = wanted.get("schema")
    return Sampling(
        max_tokens=whole_at(fields, "max_tokens"),
        temperature=number_at(fields, "temperature"),
        top_p=number_at(fields, "top_p"),
        top_k=whole_at(fields, "top_k"),
        stop=texts_at(fields, "stop_sequences"),
        parallel_calls=not alone if isinstance(alone, bool) else None,
        effort=read_effort(table_at(fields, EFFORT[0]).get(EFFORT[1])) or _read_thinking(table_at(fields, THINKING)),
        json_schema=JsonSchema(schema) if isinstance(schema, dict) else None,
    )


def _read_thinking(thinking: Mapping[str, Any]) -> str:
    """The effort that an older field means: reasoning is off, or has a budget."""
    return "none" if thinking.get("type") == "disabled" else read_budget(thinking.get("budget_tokens"))


# -- counting ----------------------------------------------------------------------------------------------------------


def count_tokens(request: ClientRequest) -> int:
    """Estimate the token count of a request; the tokenizer of the model is not known."""
    conversation = request.conversation
    tools = [tool.name + tool.description + write_arguments(dict(tool.parameters)) for tool in conversation.tools]
    texts = [text for message in conversation.messages for part in message.parts for text in _texts_of(part)]
    return max(1, sum(map(len, [*tools, *texts])) // CHARACTERS_PER_TOKEN)


def _texts_of(part: Part) -> list[str]:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return [text]
        case ToolCall(name=name, arguments=arguments):
            return [name, arguments]
        case ToolResult(content=content):
            return [text for inner in content for text in _texts_of(inner)]
    return []


def answer_count(body: bytes, models: Sequence[str]) -> bytes:
    return msgspec.json.encode({"input_tokens": count_tokens(decode_request(body, {}))})

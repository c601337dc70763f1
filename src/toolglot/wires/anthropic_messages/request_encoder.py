"""Encode a conversation as a request of the Messages wire.

Strategy. The wire is strict about order, so the conversation is put in order first: results directly after the turn
that called, before other user content; adjacent messages of one role are one turn; a call without a result gets an
error as its result; every id is unique and uses only allowed characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from toolglot.core.conversation import (
    Conversation,
    Image,
    Message,
    ProviderPart,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from toolglot.core.json_numbers import encode
from toolglot.wires.anthropic_messages.ids import (
    EFFORT,
    EFFORT_VALUES,
    FORMAT,
    NAME,
    OLD_FORMAT,
    REDACTED,
    THINKING,
    Ids,
)
from toolglot.wires.anthropic_messages.output_schema import adapt_schema
from toolglot.wires.json_fields import adapt_body, read_arguments
from toolglot.wires.translation import UNANSWERED, table_at, write_effort

CARRIES = {
    "model": "",
    "messages": "",
    "tools": "",
    "choice": "some of the tools: only those are offered",
    "extra": "within this wire",
    "max_tokens": "4096 if unset",
    "temperature": "at most 1",
    "top_p": "without a temperature",
    "top_k": "",
    "stop": "",
    "parallel_calls": "",
    "effort": "nearest level",
    "json_schema": "objects are closed; what the wire has no keyword for: in descriptions, or in the prompt",
}
"""The fields of a request that this wire transports; see ``protocol.CARRIED_FIELDS``."""

TOOL_FIELDS = ("tools", "tool_choice")
MAX_TOKENS = 4096
"""The wire requires a limit; the default if the client sets none."""

MAX_TEMPERATURE = 1.0

Block = dict[str, Any]


def encode_request(conversation: Conversation, *, stream: bool, wants_usage: bool) -> bytes:
    """Encode the conversation as the body of a request."""
    leading = list(takewhile(lambda message: message.role == "system", conversation.messages))
    turns = Turns()
    for message in _in_order(conversation.messages[len(leading) :]):
        turns.take(message)
    turns.settle()
    if not turns.turns and leading:
        # the wire requires a user message
        turns.take(Message("user", leading.pop().parts))
    request: dict[str, Any] = {"model": conversation.model, **conversation.extra}
    request |= _encode_system(leading)
    request |= {"messages": turns.turns, **_encode_sampling(conversation)}
    choice = conversation.choice
    # the wire can name one required tool; for any other subset only those tools are offered
    offered = () if _names_one(choice) else choice.only
    tools = [tool for tool in conversation.tools if not offered or tool.name in offered]
    if tools:
        request["tools"] = [_encode_tool(tool) for tool in tools]
        request |= _encode_choice(choice, conversation.sampling.parallel_calls)
    if stream:
        request["stream"] = True
    return encode(request)


def adapt_request(body: bytes, model: str, *, without_tools: bool) -> bytes:
    """Return the body with another model name and, on demand, without its tool fields."""
    return adapt_body(body, model, TOOL_FIELDS if without_tools else ())


def _encode_system(messages: Iterable[Message]) -> dict[str, Any]:
    parts = [part for message in messages for part in message.parts]
    system = [{"type": "text", "text": part.text} for part in parts if isinstance(part, Text) and part.text.strip()]
    if not system:
        return {}
    return {"system": system[0]["text"] if len(system) == 1 else system}


def _in_order(messages: Sequence[Message]) -> Iterable[Message]:
    """Move results directly after the turn that called."""
    others: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            yield from others
            others = []
        if message.role in ("assistant", "tool"):
            yield message
        else:
            others.append(message)
    yield from others


class Turns:
    """Builds the messages of a request."""

    def __init__(self) -> None:
        self.turns: list[dict[str, Any]] = []
        self.ids = Ids()
        self.given: dict[str, str] = {}
        self.waiting: list[str] = []

    def take(self, message: Message) -> None:
        role = "user" if message.role == "tool" else message.role
        goes_on = bool(self.turns) and role == self.turns[-1]["role"] == "assistant"
        if message.role != "tool" and not goes_on:
            self.settle()
        blocks = [block for part in message.parts for block in self.encode_part(part)]
        if blocks:
            self.add(role, blocks)

    def add(self, role: str, blocks: list[Block]) -> None:
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1]["content"] += blocks
        else:
            self.turns.append({"role": role, "content": blocks})

    def settle(self) -> None:
        """Add error results for calls without a result."""
        missing, self.waiting = self.waiting, []
        if missing:
            self.add("user", [_encode_result(call_id, (Text(UNANSWERED),), True) for call_id in missing])

    def encode_part(self, part: object) -> list[Block]:
        match part:
            case Text(text=text):
                return [{"type": "text", "text": text}] if text.strip() else []
            case Image():
                return [_encode_image(part)]
            case ToolCall():
                return [self.encode_call(part)]
            case ToolResult(call_id=call_id):
                given = self.given.get(call_id) or self.ids.give(call_id)
                self.waiting = [other for other in self.waiting if other != given]
                return [_encode_result(given, part.content, part.error)]
            case Reasoning():
                return _encode_thought(part)
            case ProviderPart(wire=wire, data=data) if wire == NAME:
                return [dict(data)]
        return []

    def encode_call(self, call: ToolCall) -> Block:
        given = self.given[call.id] = self.ids.give(call.id)
        self.waiting.append(given)
        return {"type": "tool_use", "id": given, "name": call.name, "input": read_arguments(call.arguments)}


def _encode_thought(thought: Reasoning) -> list[Block]:
    """Only reasoning with a signature of this wire is sent."""
    if thought.kind == REDACTED:
        return [{"type": "redacted_thinking", "data": thought.signature}]
    if thought.kind == NAME and thought.signature:
        return [{"type": "thinking", "thinking": thought.text, "signature": thought.signature}]
    return []


def _encode_image(image: Image) -> Block:
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _encode_result(call_id: str, content: Iterable[Text | Image], error: bool) -> Block:
    encoded = [
        _encode_image(part) if isinstance(part, Image) else {"type": "text", "text": part.text} for part in content
    ]
    encoded = [block for block in encoded if block.get("text", "image").strip()]
    block: Block = {"type": "tool_result", "tool_use_id": call_id}
    if encoded:
        block["content"] = encoded[0]["text"] if len(encoded) == 1 and "text" in encoded[0] else encoded
    return block | {"is_error": True} if error else block


def _encode_tool(tool: Tool) -> dict[str, Any]:
    encoded: dict[str, Any] = {"name": tool.name}
    if tool.description:
        encoded["description"] = tool.description
    encoded["input_schema"] = {"type": "object", **tool.parameters}
    return encoded | {"strict": True} if tool.strict else encoded


def _names_one(choice: ToolChoice) -> bool:
    return choice.mode == "required" and len(choice.only) == 1


def _encode_choice(choice: ToolChoice, parallel: bool | None) -> dict[str, Any]:
    if choice.mode == "none":
        return {"tool_choice": {"type": "none"}}
    if _names_one(choice):
        encoded: dict[str, Any] = {"type": "tool", "name": choice.only[0]}
    else:
        encoded = {"type": "any" if choice.mode == "required" else "auto"}
    if parallel is not None:
        encoded["disable_parallel_tool_use"] = not parallel
    return {} if encoded == {"type": "auto"} else {"tool_choice": encoded}


def _encode_sampling(conversation: Conversation) -> dict[str, Any]:
    """The wire accepts either a temperature (at most 1) or ``top_p``, not both."""
    sampling = conversation.sampling
    encoded: dict[str, Any] = {"max_tokens": sampling.max_tokens or MAX_TOKENS}
    if sampling.temperature is not None:
        encoded["temperature"] = min(sampling.temperature, MAX_TEMPERATURE)
    elif sampling.top_p is not None:
        encoded["top_p"] = sampling.top_p
    if sampling.top_k is not None:
        encoded["top_k"] = sampling.top_k
    if (config := _encode_config(conversation)) is not None:
        encoded[EFFORT[0]] = config
    stops = [stop for stop in sampling.stop if stop.strip()]
    return encoded | {"stop_sequences": stops} if stops else encoded


def _encode_config(conversation: Conversation) -> dict[str, Any] | None:
    """The settings that share one object: those of this wire, and of others the effort and the schema. None if there
    is nothing to add to the client's own."""
    sampling, extra = conversation.sampling, conversation.extra
    added: dict[str, Any] = {}
    if sampling.effort not in ("", "none") and extra.keys().isdisjoint((EFFORT[0], THINKING)):
        added[EFFORT[1]] = write_effort(sampling.effort, EFFORT_VALUES)
    own = table_at(extra, FORMAT[0])
    if sampling.json_schema is not None and FORMAT[1] not in own and OLD_FORMAT not in extra:
        schema = adapt_schema(sampling.json_schema.schema)
        if schema is not None:
            added[FORMAT[1]] = {"type": "json_schema", "schema": schema}
    return {**own, **added} if added else None


def enforces_format(conversation: Conversation) -> bool:
    """The wire takes only some schemas."""
    wanted = conversation.sampling.json_schema
    return wanted is None or adapt_schema(wanted.schema) is not None

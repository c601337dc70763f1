"""Helpers for what every wire represents differently.

A reasoning signature of another wire is wrapped for the client into the signature field of its own wire, and unwrapped
when it comes back. Images are URLs or bytes. Token counts have another path on every wire.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import (
    EFFORTS,
    Conversation,
    Image,
    JsonSchema,
    Message,
    Part,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from toolglot.core.schema.strictness import allows_strict
from toolglot.core.tool_names import assign_names

UNANSWERED = "No result of this call is known."
"""The result of a call without one, which wires and servers refuse."""

UNSET: tuple[object, ...] = (None, (), "")
"""Values of a sampling parameter that leave it to the upstream."""

_LENT = re.compile(r"toolglot:([^:]+):")
_DATA_URL = re.compile(r"data:([^;,]*);base64,")


def wrap_signature(signature: str, kind: str, own: str) -> str:
    """Wrap a signature of the wire ``kind`` for a client of the wire ``own``, which returns it unchanged."""
    return signature if kind in (own, "") else f"toolglot:{kind}:{signature}"


def unwrap_signature(lent: str, own: str) -> tuple[str, str]:
    """Return a signature that came back, and the wire that it belongs to."""
    marked = _LENT.match(lent)
    return (lent[marked.end() :], marked[1]) if marked else (lent, own)


def read_image(url: str, detail: str = "") -> Image:
    """Decode an image URL or data URL; ``ValueError`` if it is empty."""
    embedded = _DATA_URL.match(url)
    if embedded:
        return Image(data=url[embedded.end() :], media_type=embedded[1] or "image/png", detail=detail)
    return Image(url=url, detail=detail)


def image_url(image: Image) -> str:
    return image.url or f"data:{image.media_type};base64,{image.data}"


def table_at(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cachedContentTokenCount",),
    ("cache_read_input_tokens",),
    ("cached_tokens",),
)
"""Paths of the count of cached input tokens in the usage objects of the wires."""

CACHE_WRITTEN = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    ("cache_creation_input_tokens",),
)
"""Paths of the count of input tokens that were written to the cache."""

REASONED = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "thinking_tokens"),
    ("thoughtsTokenCount",),
)
"""Paths of the count of reasoning tokens."""


def find_count(payload: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int:
    """Return the first count found at one of these paths, or 0."""
    for *folders, key in places:
        holder = payload
        for folder in folders:
            holder = table_at(holder, folder)
        count = holder.get(key)
        if isinstance(count, int):
            return count
    return 0


def read_effort(value: object) -> str:
    """Return a known reasoning effort, or an empty string."""
    known = value.lower() if isinstance(value, str) else ""
    return known if known in EFFORTS else ""


BUDGETS: Mapping[str, int] = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
"""The reasoning tokens of an effort, for wires and models that take a budget in its place."""


def read_budget(budget: object) -> str:
    """Return the highest effort that a budget of reasoning tokens suffices for; "" if the model decides (-1)."""
    if not isinstance(budget, int | float) or isinstance(budget, bool) or budget < 0:
        return ""
    return [effort for effort, tokens in BUDGETS.items() if tokens <= budget or (effort == "minimal" and budget)][-1]


def write_budget(effort: str) -> int:
    """Return the reasoning tokens of an effort."""
    return BUDGETS.get(effort, BUDGETS["high"])


def write_effort(effort: str, words: tuple[str, ...]) -> str:
    """Map an effort to the ``words`` of a wire, ordered like ``EFFORTS``: the same, the next lower, or the lowest."""
    if not effort:
        return ""
    rank = EFFORTS.index(effort)
    return next((value for value in reversed(words) if EFFORTS.index(value) <= rank), words[0])


FORMAT_NAME = "answer"
"""The name of a schema that has none, on wires that require one."""

_NAME_MARKS = re.compile(r"[^a-zA-Z0-9_-]+")


def read_format(kind: object, given: object) -> dict[str, Any]:
    """Return the JSON format of a request as fields of ``Sampling``.

    ``kind`` is the type of the format, ``given`` the object with its schema, if it has one."""
    if kind not in ("json_object", "json_schema"):
        return {}
    described = given if isinstance(given, dict) else {}
    schema, texts = described.get("schema"), [described.get(key) for key in ("name", "description")]
    if not isinstance(schema, dict):
        return {"json_object": True}
    name, description = (text if isinstance(text, str) else "" for text in texts)
    return {"json_schema": JsonSchema(schema, name, description, described.get("strict") is True)}


def write_format(sampling: Sampling) -> dict[str, Any]:
    """Return the JSON format as an object with its type, in the form that two wires share. Without a word on
    strictness a schema is strict where every server accepts it."""
    wanted = sampling.json_schema
    if wanted is None:
        return {"type": "json_object"} if sampling.json_object else {}
    name = _NAME_MARKS.sub("_", wanted.name or text_in(wanted.schema.get("title"))).strip("_")[:64]
    encoded: dict[str, Any] = {"type": "json_schema", "name": name or FORMAT_NAME, "schema": dict(wanted.schema)}
    if wanted.description:
        encoded["description"] = wanted.description
    strict = allows_strict(wanted.schema) if wanted.strict is None else wanted.strict
    return encoded | {"strict": True} if strict else encoded


def text_in(value: object) -> str:
    return value if isinstance(value, str) else ""


def mention_json(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages with one that asks for JSON, if none does: servers of two wires refuse a request for any JSON object
    whose messages do not contain the word."""
    if any("json" in part.text.lower() for message in messages for part in message.parts if isinstance(part, Text)):
        return messages
    leading = len(list(takewhile(lambda message: message.role == "system", messages)))
    return (
        *messages[:leading],
        Message("system", (Text("The whole answer is one JSON object."),)),
        *messages[leading:],
    )


def list_not_carried(conversation: Conversation, modelled: Collection[str], carries: Collection[str]) -> list[str]:
    """List what an upstream of another wire is not sent.

    ``modelled``: settings of ``extra`` that ``Conversation`` models too (``ClientRequest.modelled``). ``carries``: the
    fields that the wire of the upstream transports (``Wire.carries``).
    """
    sampling = conversation.sampling
    lost = [name for name in sampling.__struct_fields__ if name not in carries and getattr(sampling, name) not in UNSET]
    return [*_list_settings(conversation.extra, modelled), *lost]


def _list_settings(settings: Mapping[str, Any], modelled: Collection[str], where: str = "") -> Iterator[str]:
    """The settings that are not modelled, by their path."""
    for key, value in settings.items():
        name = where + key
        if isinstance(value, dict) and any(one.startswith(f"{name}.") for one in modelled):
            yield from _list_settings(value, modelled, f"{name}.")
        elif name not in modelled:
            yield name


def offers_calls(conversation: Conversation) -> bool:
    """Whether the model may call a tool."""
    return bool(conversation.tools) and conversation.choice.mode != "none"


def demand_call(tools: Iterable[Tool]) -> Message:
    """A system message that demands a call, for wires and servers without a tool choice."""
    return Message("system", (Text(f"Your next answer must be a call of {' or '.join(tool.name for tool in tools)}."),))


def drop_empty_texts(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Drop empty texts of the assistant, which other wires refuse."""
    if not any(message.role == "assistant" and NOTHING in message.parts for message in messages):
        return messages
    kept = (_without_empty_texts(message) if message.role == "assistant" else message for message in messages)
    return tuple(message for message in kept if message is not None)


def _without_empty_texts(message: Message) -> Message | None:
    parts = tuple(part for part in message.parts if part != NOTHING)
    return message if parts == message.parts else Message("assistant", parts) if parts else None


NOTHING = Text("")
NO_NAMES: Mapping[str, str] = {}


def rename_tools(conversation: Conversation, allowed: str | None) -> tuple[Conversation, Mapping[str, str]]:
    """Replace tool names that a wire does not allow; also return the map from new to original names."""
    if allowed is None:
        return conversation, NO_NAMES
    past = [call.name for message in conversation.messages for call in message.calls]
    fits = re.compile(allowed).fullmatch
    given = assign_names([tool.name for tool in conversation.tools], lambda name: fits(name) is not None, past)
    renamed = {new: own for own, new in given.items() if new != own}
    if not renamed:
        return conversation, NO_NAMES
    messages = tuple(
        replace(message, parts=tuple(_rename(part, given) for part in message.parts))
        for message in conversation.messages
    )
    tools = tuple(replace(tool, name=given[tool.name]) for tool in conversation.tools)
    choice = replace(conversation.choice, only=tuple(given[name] for name in conversation.choice.only))
    return replace(conversation, messages=messages, tools=tools, choice=choice), renamed


def _rename(part: Part, given: Mapping[str, str]) -> Part:
    return (
        replace(part, name=given[part.name]) if isinstance(part, ToolCall | ToolResult) and part.name in given else part
    )

"""What the vendors' own packages say of requests and answers: their types, read as strictly as they can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import GeneratorType
from typing import Any

import ollama
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from google.genai import types as gemini
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

REQUESTS: Mapping[str, tuple[Any, Any]] = {
    "openai_chat": (CompletionCreateParamsNonStreaming, CompletionCreateParamsStreaming),
    "openai_responses": (ResponseCreateParamsNonStreaming, ResponseCreateParamsStreaming),
    "anthropic_messages": (MessageCreateParamsNonStreaming, MessageCreateParamsStreaming),
    "ollama": (ollama._types.ChatRequest, ollama._types.ChatRequest),
}
ANSWERS: Mapping[str, tuple[Any, Any]] = {
    "openai_chat": (ChatCompletion, ChatCompletionChunk),
    "openai_responses": (Response, ResponseStreamEvent),
    "anthropic_messages": (Message, RawMessageStreamEvent),
    "gemini": (gemini.GenerateContentResponse, gemini.GenerateContentResponse),
    "ollama": (ollama.ChatResponse, ollama.ChatResponse),
}
GEMINI_FIELDS: Mapping[str, Any] = {
    "contents": list[gemini.Content],
    "systemInstruction": gemini.Content,
    "tools": list[gemini.Tool],
    "toolConfig": gemini.ToolConfig,
    "generationConfig": gemini.GenerationConfig,
}


@cache
def reader_of(kind: Any) -> Callable[[Any], Any]:
    return TypeAdapter(kind).validate_python


def check_request(wire: str, body: bytes) -> None:
    """Raise an error if the types of the vendor do not allow a request, or do not know one of its fields."""
    fields = json.loads(body)
    if wire == "gemini":
        for name, value in fields.items():
            exhaust(reader_of(GEMINI_FIELDS[name])(value))
        return
    kind = REQUESTS[wire][fields.get("stream") is True]
    known = set(getattr(kind, "model_fields", None) or kind.__annotations__)
    known |= {name for base in getattr(kind, "__orig_bases__", ()) for name in getattr(base, "__annotations__", {})}
    assert fields.keys() <= known, fields.keys() - known
    exhaust(reader_of(kind)(fields))


def check_answer(wire: str, body: bytes, stream: bool) -> None:
    """Raise an error if the types of the vendor do not allow an answer, or an event of its stream."""
    for payload in read_events(body) if stream else [json.loads(body)]:
        exhaust(reader_of(ANSWERS[wire][stream])(payload))


def read_events(body: bytes) -> Iterator[Any]:
    lines = (line.removeprefix(b"data: ") for line in body.splitlines() if line[:5] == b"data:" or line[:1] == b"{")
    return (json.loads(line) for line in lines if line != b"[DONE]")


def exhaust(value: Any) -> None:
    """Read all of a value: lists that a type calls iterable are only checked then."""
    if isinstance(value, Mapping):
        value = value.values()
    elif type(value).__name__ != "ValidatorIterator" and not isinstance(value, list | tuple | GeneratorType):
        return
    for one in value:
        exhaust(one)

"""All wires of the oracle by name."""

from __future__ import annotations

from dataclasses import replace

from support.oracle.anthropic import anthropic_answer, anthropic_request, read_anthropic_answer, read_anthropic_request
from support.oracle.chat import chat_answer, chat_request, read_chat_answer, read_chat_request
from support.oracle.formats import add_format, read_format
from support.oracle.gemini import gemini_answer, gemini_request, read_gemini_answer, read_gemini_request
from support.oracle.ollama import ollama_answer, ollama_request, read_ollama_answer, read_ollama_request
from support.oracle.records import Answer, JsonObject, Request, dump, load
from support.oracle.responses import read_responses_answer, read_responses_request, responses_answer, responses_request

REQUESTS = {
    "openai_chat": chat_request,
    "openai_responses": responses_request,
    "anthropic_messages": anthropic_request,
    "gemini": gemini_request,
    "ollama": ollama_request,
}
ANSWERS = {
    "openai_chat": (chat_answer, read_chat_answer),
    "openai_responses": (responses_answer, read_responses_answer),
    "anthropic_messages": (anthropic_answer, read_anthropic_answer),
    "gemini": (gemini_answer, read_gemini_answer),
    "ollama": (ollama_answer, read_ollama_answer),
}
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini": "/v1beta/models/{model}:{verb}",
    "ollama": "/api/chat",
}


def write_request(wire: str, asked: Request) -> bytes:
    return dump(add_format(wire, REQUESTS[wire](asked), asked.shape)).encode()


def path_of(wire: str, model: str, stream: bool) -> str:
    return PATHS[wire].format(model=model, verb="streamGenerateContent?alt=sse" if stream else "generateContent")


def read_request(wire: str, path: str, body: bytes) -> Request:
    read = load(body)
    return replace(_read_body(wire, path, read), shape=read_format(wire, read))


def _read_body(wire: str, path: str, read: JsonObject) -> Request:
    match wire:
        case "openai_chat":
            return read_chat_request({"stream": False} | read)
        case "openai_responses":
            return read_responses_request({"stream": False} | read)
        case "anthropic_messages":
            return read_anthropic_request({"stream": False} | read)
        case "gemini":
            return read_gemini_request(read, "streamGenerateContent" in path)
        case _:
            return read_ollama_request({"stream": True} | read)


def write_answer(wire: str, answer: Answer, stream: bool, size: int = 7) -> bytes:
    """An upstream's answer; ``size``: the length of the pieces that a stream is cut into."""
    return ANSWERS[wire][0](answer, stream, size)


def read_answer(wire: str, body: bytes, stream: bool) -> Answer:
    """An answer as a client of the wire reads it."""
    return ANSWERS[wire][1](body, stream)

"""Decode requests of the Gemini wire, ``POST /v1beta/models/{model}:generateContent``.

    {"systemInstruction": {"parts": [{"text": "Be brief."}]},
     "contents": [{"role": "user", "parts": [{"text": "..."}]},
                  {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
                  {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "..."}}}]}],
     "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": {...}}]}]}

Strategy. The vendor's own package sends every chunk of a stream back as a content of its own, so adjacent contents of
the model are merged into one message, and adjacent texts into one text. Call ids may be missing: a call gets one from
its number, which is the same in every turn, and a result finds its call by id, by name, or by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from toolglot.core.conversation import (
    Conversation,
    Image,
    JsonSchema,
    Message,
    Mode,
    Part,
    ProviderPart,
    Reasoning,
    Sampling,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    Tools,
)
from toolglot.core.errors import RequestError
from toolglot.wires.gemini.field_names import (
    BUDGET,
    EFFORT,
    FORMAT_PATHS,
    JSON_SCHEMA,
    JSON_TYPE,
    MIME_TYPE,
    NAME,
    OWN_SCHEMA,
    THINKING,
    pick,
    pick_table,
    pick_text,
    read_schema,
    read_signature,
    unify,
)
from toolglot.wires.json_fields import (
    NO_TOOLS,
    Offer,
    check_choice,
    dicts_in,
    number_at,
    parse_body,
    text_at,
    texts_at,
    whole_at,
    write_arguments,
)
from toolglot.wires.protocol import ClientRequest
from toolglot.wires.translation import read_budget, read_effort

STREAMING = "streamGenerateContent"
INCLUDED = "includeThoughts"
MODES: Mapping[str, Mode] = {"ANY": "required", "NONE": "none"}
MODELLED = frozenset(("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model"))
CHOICE = "toolConfig.functionCallingConfig"
SAMPLING_KEYS = frozenset(("maxOutputTokens", "temperature", "topP", "topK", "seed", "stopSequences", "candidateCount"))


def decode_request(body: bytes, path: Mapping[str, str]) -> ClientRequest:
    """Decode a request; ``path`` holds the model, and whether and how to stream. ``RequestError`` names the field."""
    fields = unify(parse_body(body, _decode_tools))
    settings = unify(pick_table(fields, "generationConfig"))
    if settings.get("candidateCount") not in (None, 1):
        where = "generationConfig.candidateCount"
        raise RequestError("Only one answer can be given to a request: candidateCount must be 1.", where)
    tools, skipped = fields.get("tools", NO_TOOLS)
    notes = list(skipped)
    transcript = Transcript(notes)
    instruction = fields.get("systemInstruction")
    if instruction:
        transcript.messages.append(Message("system", tuple(_decode_system(instruction))))
    contents = fields.get("contents")
    listed = contents if isinstance(contents, list) else [contents]
    for at, content in enumerate(listed):
        transcript.take(content, f"contents[{at}]")
    rest = {key: value for key, value in settings.items() if key not in SAMPLING_KEYS}
    extra = {key: value for key, value in fields.items() if key not in MODELLED}
    conversation = Conversation(
        model=path.get("model", "") or text_at(fields, "model"),
        messages=transcript.close(),
        tools=tools,
        choice=_decode_choice(pick_table(pick_table(fields, "toolConfig"), "functionCallingConfig"), tools),
        sampling=_decode_sampling(settings),
        extra=extra | ({"generationConfig": rest} if rest else {}),
    )
    stream = path.get("method") == STREAMING
    thoughts = pick(pick_table(settings, THINKING), INCLUDED) is True
    listing = stream and path.get("alt") != "sse"
    memory = {"thoughts": thoughts, "list": listing}
    return ClientRequest(
        conversation=conversation,
        stream=stream,
        wants_usage=True,
        notes=tuple(notes),
        memory=memory,
        stream_type="application/json" if listing else "",
        modelled=_list_modelled(settings, conversation.sampling),
    )


def _list_modelled(settings: Mapping[str, Any], sampling: Sampling) -> frozenset[str]:
    """The settings inside objects that reach other wires; of the output formats those that are JSON, and plain text."""
    keys = [EFFORT, BUDGET, INCLUDED] if sampling.effort else [INCLUDED]
    modelled = frozenset([f"generationConfig.{THINKING}.{key}" for key in keys])
    is_read = sampling.json_object or sampling.json_schema or pick_text(settings, MIME_TYPE) == "text/plain"
    return modelled.union(FORMAT_PATHS) if is_read else modelled


def _decode_system(instruction: object) -> list[Part]:
    if isinstance(instruction, str):
        return [Text(instruction)]
    if not isinstance(instruction, dict):
        raise RequestError("systemInstruction must be a content with parts.", "systemInstruction")
    return [_decode_part(part) for part in dicts_in(instruction.get("parts"))]


# -- contents ----------------------------------------------------------------------------------------------------------


class Transcript:
    """Converts contents to messages."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.messages: list[Message] = []
        self.parts: list[Part] = []
        self.calls = 0
        self.waiting: dict[str, str] = {}
        self.seen: set[str] = set()

    def take(self, content: object, where: str) -> None:
        if isinstance(content, str):
            content = {"parts": [{"text": content}]}
        if not isinstance(content, dict):
            raise RequestError(f"{where} must be a content with a role and parts.", where)
        parts = content.get("parts")
        if parts is not None and not isinstance(parts, list):
            raise RequestError(f"{where}.parts must be a list.", f"{where}.parts")
        role = content.get("role")
        if role == "model":
            for part in dicts_in(parts):
                self.take_model(part, where)
        elif role in (None, "", "user", "function", "system"):
            self.take_user(dicts_in(parts), role == "system")
        else:
            raise RequestError(f"{where}.role must be user or model.", f"{where}.role")

    def close(self) -> tuple[Message, ...]:
        if self.parts:
            self.messages.append(Message("assistant", tuple(self.parts)))
            self.parts = []
        return tuple(self.messages)

    def take_user(self, parts: list[dict[str, Any]], instructed: bool) -> None:
        """Take user parts and tool results."""
        self.close()
        payload = [self.decode_result(found) for part in parts if (found := pick_table(part, "functionResponse"))]
        if payload:
            self.messages.append(Message("tool", tuple(payload)))
        rest = [_decode_part(part) for part in parts if not pick_table(part, "functionResponse")]
        if rest or not payload:
            self.messages.append(Message("system" if instructed else "user", tuple(rest)))

    def decode_result(self, payload: Mapping[str, Any]) -> ToolResult:
        name, given = text_at(payload, "name"), text_at(payload, "id")
        call_id = given if given in self.waiting else self.find_call(name) or given
        self.waiting.pop(call_id, None)
        content, error = _decode_result(payload)
        return ToolResult(call_id, name, content, error)

    def find_call(self, name: str) -> str:
        """Find the call of a result: the first to that tool, or the only unanswered one."""
        named = [call_id for call_id, called in self.waiting.items() if called == name]
        waiting = named or (list(self.waiting) if len(self.waiting) == 1 else [])
        return waiting[0] if waiting else ""

    def take_model(self, part: Mapping[str, Any], where: str) -> None:
        """Take a part of the model. A signature belongs to the reasoning before the part that holds it."""
        signature, kind = read_signature(part)
        if part.get("thought") is True:
            self.add_reasoning(text_at(part, "text"), signature, kind)
            return
        if signature:
            self.add_reasoning("", signature, kind)
        called = pick_table(part, "functionCall")
        if called:
            self.parts.append(self.decode_call(called, where))
        elif isinstance(part.get("text"), str):
            if self.parts and isinstance(self.parts[-1], Text):
                self.parts[-1] = Text(self.parts[-1].text + part["text"])
            elif part["text"]:
                self.parts.append(Text(part["text"]))
        else:
            self.parts.append(_decode_part(part))

    def add_reasoning(self, text: str, signature: str, kind: str) -> None:
        last = self.parts[-1] if self.parts else None
        if isinstance(last, Reasoning) and not last.signature:
            self.parts[-1] = replace(last, text=last.text + text, signature=signature, kind=kind)
        elif text or signature:
            self.parts.append(Reasoning(text, signature, kind))

    def decode_call(self, called: Mapping[str, Any], where: str) -> ToolCall:
        self.calls += 1
        name = text_at(called, "name").strip()
        if not name:
            self.notes.append(f"{where} names no tool")
        call_id = text_at(called, "id")
        if not call_id or call_id in self.seen:
            call_id = f"{call_id or 'call'}_{self.calls}"
        self.seen.add(call_id)
        self.waiting[call_id] = name
        return ToolCall(call_id, name or "unnamed", write_arguments(called.get("args") or {}))


def _decode_part(part: Mapping[str, Any]) -> Part:
    if isinstance(part.get("text"), str):
        return Text(part["text"])
    return _decode_image(part) or ProviderPart(NAME, part)


def _decode_image(part: Mapping[str, Any]) -> Image | None:
    inline, file = pick_table(part, "inlineData"), pick_table(part, "fileData")
    media_type = pick_text(inline or file, "mimeType")
    if media_type and not media_type.startswith("image/"):
        return None
    if data := text_at(inline, "data"):
        return Image(data=data.replace("-", "+").replace("_", "/"), media_type=media_type or "image/png")
    url = pick_text(file, "fileUri")
    return Image(url=url, media_type=media_type) if url else None


def _decode_result(payload: Mapping[str, Any]) -> tuple[tuple[Text | Image, ...], bool]:
    """Content and error flag of a result. A single wrapper key is the wire's; other objects are the tool's own."""
    response = payload.get("response")
    error = isinstance(response, dict) and bool(response.get("error")) and "output" not in response
    if isinstance(response, dict) and len(response) == 1:
        key, value = next(iter(response.items()))
        response = value if key in ("output", "result", "error") else response
    text = response if isinstance(response, str) else write_arguments(response) if response is not None else ""
    images = [image for part in dicts_in(payload.get("parts")) if (image := _decode_image(part))]
    return ((Text(text),) if text or not images else ()) + tuple(images), error


# -- tools, choice, sampling -------------------------------------------------------------------------------------------


def _decode_tools(tools: object) -> Offer:
    """Decode the usable tools; tools that the server would run are skipped with a note."""
    if tools is not None and not isinstance(tools, list | dict):
        raise RequestError("tools must be a list.", "tools")
    found: dict[str, Tool] = {}
    notes: list[str] = []
    for at, entry in enumerate(dicts_in([tools] if isinstance(tools, dict) else tools)):
        hosted = [key for key in unify(entry) if key != "functionDeclarations"]
        notes += [f"tools[{at}] skipped: not a function but {key!r}" for key in hosted]
        for number, declared in enumerate(dicts_in(pick(entry, "functionDeclarations"))):
            name = text_at(declared, "name")
            problem = "no name" if not name.strip() else f"a second tool named {name}" if name in found else ""
            if problem:
                notes.append(f"tools[{at}].functionDeclarations[{number}] skipped: {problem}")
            else:
                found[name] = Tool(name, text_at(declared, "description"), _decode_parameters(declared))
    return Tools(found.values()), tuple(notes)


def _decode_parameters(declared: Mapping[str, Any]) -> dict[str, Any]:
    schema = pick(declared, "parametersJsonSchema")
    return schema if isinstance(schema, dict) else read_schema(pick_table(declared, "parameters"))


def _decode_choice(config: Mapping[str, Any], tools: tuple[Tool, ...]) -> ToolChoice:
    mode = MODES.get(pick_text(config, "mode").upper(), "auto")
    listed = pick(config, "allowedFunctionNames")
    names = [name for name in listed if isinstance(name, str) and name] if isinstance(listed, list) else []
    return check_choice(ToolChoice(mode, tuple(dict.fromkeys(names)) if mode != "none" else ()), tools, CHOICE)


def _decode_sampling(settings: Mapping[str, Any]) -> Sampling:
    where = "generationConfig."
    thinking = pick_table(settings, THINKING)
    return Sampling(
        max_tokens=whole_at(settings, "maxOutputTokens", where),
        temperature=number_at(settings, "temperature", where),
        top_p=number_at(settings, "topP", where),
        top_k=whole_at(settings, "topK", where),
        seed=whole_at(settings, "seed", where),
        stop=texts_at(settings, "stopSequences", where),
        effort=read_effort(pick_text(thinking, EFFORT)) or read_budget(pick(thinking, BUDGET)),
        **_decode_format(settings),
    )


def _decode_format(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON format as fields of ``Sampling``. There are other types, such as one value of an enumeration."""
    media_type = pick_text(settings, MIME_TYPE)
    if media_type not in (JSON_TYPE, ""):
        return {}
    schema = pick_table(settings, JSON_SCHEMA) or read_schema(pick_table(settings, OWN_SCHEMA))
    if schema:
        return {"json_schema": JsonSchema(schema)}
    return {"json_object": True} if media_type else {}

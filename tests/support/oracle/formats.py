"""The JSON format of an answer, as each wire asks for it: any object, or a schema.

A format is a text: empty for none, ``object``, or the schema.
"""

from __future__ import annotations

from support.oracle.records import JsonObject, WireError, dump, load

OBJECT = "object"


def add_format(wire: str, body: JsonObject, shape: str) -> JsonObject:
    """The body of a request with a format. ``anthropic_messages`` has none for any object."""
    if not shape:
        return body
    schema = None if shape == OBJECT else load(shape)
    named = {"type": "json_object"} if schema is None else {"type": "json_schema", "name": "result", "schema": schema}
    match wire:
        case "openai_chat":
            kind = named.pop("type")
            return body | {"response_format": {"type": kind} | ({"json_schema": named} if named else {})}
        case "openai_responses":
            return body | {"text": {"format": named}}
        case "anthropic_messages":
            config = body.get("output_config") or {}
            return body | {"output_config": config | {"format": {"type": "json_schema", "schema": schema}}}
        case "gemini":
            held = {"responseMimeType": "application/json"} | ({"responseJsonSchema": schema} if schema else {})
            return body | {"generationConfig": body["generationConfig"] | held}
        case _:
            return body | {"format": schema or "json"}


def read_format(wire: str, body: JsonObject) -> str:
    """The format that an upstream understands."""
    match wire:
        case "openai_chat":
            wanted = body.get("response_format") or {}
            return _read_typed(wanted.get("type"), wanted.get("json_schema"))
        case "openai_responses":
            wanted = (body.get("text") or {}).get("format") or {}
            return _read_typed(wanted.get("type"), wanted)
        case "anthropic_messages":
            wanted = (body.get("output_config") or {}).get("format")
            return _read_typed("json_schema", wanted | {"name": "none"}) if wanted else ""
        case "gemini":
            config = body.get("generationConfig") or {}
            schema = config.get("responseJsonSchema")
            if config.get("responseMimeType") != "application/json":
                if schema is not None:
                    raise WireError("a schema without its type")
                return ""
            return dump(schema) if schema is not None else OBJECT
        case _:
            wanted = body.get("format") or ""
            return OBJECT if wanted == "json" else dump(wanted) if wanted else ""


def _read_typed(kind: str | None, named: JsonObject | None) -> str:
    if kind == "json_schema":
        if not named or not named.get("name"):
            raise WireError("a schema without a name")
        return dump(named["schema"])
    return OBJECT if kind == "json_object" else ""

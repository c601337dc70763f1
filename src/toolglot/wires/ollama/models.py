"""The other endpoints of Ollama's wire: list models, describe one, version."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from toolglot.core.errors import RequestError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import parse_body, text_at

LEVEL = "0.12.6"
"""The reported server version; clients refuse servers that are too old."""

LONG_AGO = "1970-01-01T00:00:00Z"


def list_models(body: bytes, models: Sequence[str]) -> bytes:
    return encode({"models": [_describe(name) for name in models]})


def show_model(body: bytes, models: Sequence[str]) -> bytes:
    """Describe a model. Every model can call tools through the gateway."""
    fields = parse_body(body)
    name = text_at(fields, "model") or text_at(fields, "name")
    if not name:
        raise RequestError("model must name a model.", "model")
    encoded = {"modelfile": "", "parameters": "", "template": "", "modified_at": LONG_AGO, "model_info": {}}
    return encode(encoded | {"details": _detail(), "capabilities": ["completion", "tools"]})


def show_version(body: bytes, models: Sequence[str]) -> bytes:
    return encode({"version": LEVEL})


def _describe(name: str) -> dict[str, Any]:
    digest = sha256(name.encode()).hexdigest()
    encoded = {"name": name, "model": name, "modified_at": LONG_AGO, "size": 0, "digest": digest}
    return encoded | {"details": _detail()}


def _detail() -> dict[str, Any]:
    texts = dict.fromkeys(("parent_model", "format", "family", "parameter_size", "quantization_level"), "")
    return {**texts, "families": []}

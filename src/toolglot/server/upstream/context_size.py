"""How many tokens a model of an upstream can read, and what the server lists about its models.

Strategy. Servers state the size in different places. All places are asked at once, with a short timeout. What a running
server has allocated counts more than what a model could read.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from toolglot.config import Upstream
from toolglot.core.errors import ToolglotError
from toolglot.server.upstream.connection import SMALL_BODY
from toolglot.server.upstream.discovery import default_headers
from toolglot.server.upstream.pool import ConnectionPool
from toolglot.wires import all_wires

TIMEOUT: Final = 3.0
LISTED_SIZES: Final = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx")
"""Members of a listed model that state its size."""


class ContextSize(Struct, frozen=True):
    """A number of tokens, and how it is raised. ``certain``: the server has allocated that many."""

    tokens: int
    remedy: str
    certain: bool = True


async def list_models(pool: ConnectionPool, upstream: Upstream) -> list[dict[str, Any]]:
    """The models that a stateless upstream lists, with what it says about them.

    Raises: ToolglotError if it refuses or cannot be reached; ValueError if the answer is no list of models.
    """
    status, body = await _send(pool, upstream, "GET", upstream.endpoint("/models"))
    if status >= 300:
        raise all_wires()[upstream.wire].decode_error(status, body)
    listed = _decode(body)
    models = listed.get("data") or listed.get("models") if isinstance(listed, dict) else None
    if not isinstance(models, list):
        raise ValueError("its answer is no list of models")
    return [model for model in models if isinstance(model, dict) and _name(model)]


def model_names(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of listed models."""
    return [_name(model) for model in listed]


def _name(model: Mapping[str, Any]) -> str:
    name = model.get("id") or model.get("name")
    return name.removeprefix("models/") if isinstance(name, str) else ""


async def find_context_size(
    pool: ConnectionPool, upstream: Upstream, model: str, listed: Sequence[Mapping[str, Any]]
) -> ContextSize | None:
    """The context size of a model, or None if the server does not state it."""
    entry = next((one for one in listed if _name(one) == model), {})
    if all_wires()[upstream.wire].chat is not None:
        return _read_listed(entry)
    root = _root(upstream.base_url)
    asked = json.dumps({"model": model}).encode()
    properties, shown = await asyncio.gather(
        _ask(pool, upstream, "GET", f"{root}/props"), _ask(pool, upstream, "POST", f"{root}/api/show", asked)
    )
    return _read_properties(properties) or _read_shown(shown) or _read_listed(entry)


def _read_properties(answer: Any) -> ContextSize | None:
    """The answer of llama.cpp."""
    size = _member(answer, "default_generation_settings", "n_ctx")
    return ContextSize(size, "start llama-server with -c 32768") if isinstance(size, int) else None


def _read_shown(answer: Any) -> ContextSize | None:
    """The answer of Ollama: the parameter ``num_ctx``, else what the model could read."""
    remedy = "OLLAMA_CONTEXT_LENGTH=32768 ollama serve"
    parameters = _member(answer, "parameters")
    if isinstance(parameters, str) and (found := re.search(r"^num_ctx\s+(\d{1,9})\s*$", parameters, re.MULTILINE)):
        return ContextSize(int(found[1]), remedy)
    facts = _member(answer, "model_info")
    sizes = (
        [size for name, size in facts.items() if name.endswith(".context_length")] if isinstance(facts, dict) else []
    )
    return ContextSize(sizes[0], remedy, certain=False) if sizes and isinstance(sizes[0], int) else None


def _read_listed(entry: Mapping[str, Any]) -> ContextSize | None:
    sizes = (entry.get(name) for name in LISTED_SIZES)
    size = next((size for size in sizes if isinstance(size, int)), None)
    return ContextSize(size, "start the server with a larger context (vLLM: --max-model-len)") if size else None


def _root(base_url: str) -> str:
    """The base URL without the path of its API."""
    parts = urlsplit(base_url)
    return urlunsplit(parts._replace(path=re.sub(r"/(?:v1|v1beta|api)/?$", "", parts.path).rstrip("/")))


def _member(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


async def _ask(pool: ConnectionPool, upstream: Upstream, method: str, url: str, body: bytes | None = None) -> Any:
    with suppress(ToolglotError, ValueError, TimeoutError):
        async with asyncio.timeout(TIMEOUT):
            status, received = await _send(pool, upstream, method, url, body)
            return _decode(received) if status == 200 else None
    return None


async def _send(
    pool: ConnectionPool, upstream: Upstream, method: str, url: str, body: bytes | None = None
) -> tuple[int, bytes]:
    async with pool.send(method, url, upstream, default_headers(upstream), body) as response:
        return response.status, await response.read(SMALL_BODY)


def _decode(body: bytes) -> Any:
    try:
        return json.loads(body)
    except RecursionError:
        raise ValueError("its answer is nested too deeply") from None

"""Check and parse the requests of a client, strictly: each broken rule is refused with its own error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias

from toolglot.sim.qwen_web.errors import ERRORS, PAGES, RequestRefusedError, refuse_input

Fields: TypeAlias = Mapping[str, Any]

ENVELOPE_VERSION = "2.1"
CHAT_MODES = ("normal", "guest", "local")
CHAT_TYPES = (
    *("t2t", "search", "t2i", "t2v", "image_edit", "artifacts", "web_dev", "deep_research", "learn", "travel"),
)
SECONDS, MILLISECONDS = (10**9, 10**11), (10**12, 10**14)
"""The range of a plausible time, which tells the two units apart."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A request for a new chat."""

    title: str
    models: tuple[str, ...]
    chat_type: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A request for an answer. ``thinking`` is empty, ``think`` or ``thinking_summary``."""

    chat_id: str
    parent: str | None
    message_id: str
    role: str
    text: str
    model: str
    incremental: bool
    stream: bool
    thinking: str


def parse_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a request body. Raises: ``RequestRefusedError``."""
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise refuse_input("body, it is not JSON.") from error
    if not isinstance(body, dict):
        raise refuse_input("body, it is not a JSON object.")
    return body


def read_token(headers: Mapping[str, str]) -> str:
    """The token of the Authorization header, or of the cookie."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get("token")
    except CookieError:
        return ""
    return cookie.value if cookie else ""


def parse_create(body: Fields) -> CreateRequest:
    """Parse a request for a new chat. Raises: ``RequestRefusedError``."""
    models = body.get("models")
    if not isinstance(models, list) or not models or not all(isinstance(name, str) and name for name in models):
        raise refuse_input("models.")
    _check_choice(body, "chat_mode", CHAT_MODES)
    _check_choice(body, "chat_type", CHAT_TYPES)
    _check_time(body, MILLISECONDS, "milliseconds")
    if body.get("project_id"):
        raise RequestRefusedError(ERRORS["not_found"])
    return CreateRequest(str(body.get("title") or "New Chat"), tuple(models), str(body["chat_type"]))


def parse_completion(body: Fields, chat_id: str, *, accepts_whole: bool) -> CompletionRequest:
    """Parse a request for an answer; ``chat_id`` is that of its address, ``accepts_whole`` allows ``stream: false``.

    Raises: ``RequestRefusedError``; for a body in the form of another API it is the risk page.
    """
    messages = body.get("messages")
    if _is_foreign(body, messages):
        raise RequestRefusedError(PAGES["waf_json"], is_violation=True)
    if not chat_id or body.get("chat_id") != chat_id or body.get("chatId", chat_id) != chat_id:
        raise refuse_input("chat_id, the address and the body must have the same one.")
    if not isinstance(messages, list) or not messages or not isinstance(messages[0], Mapping):
        raise refuse_input("messages.")
    if len(messages) > 1:
        raise RequestRefusedError(ERRORS["too_many_messages"], is_violation=True)
    _check_envelope(body, accepts_whole)
    message = messages[0]
    _check_message(message)
    return CompletionRequest(
        chat_id=chat_id,
        parent=_read_parent(body, message),
        message_id=message["fid"],
        role=message["role"],
        text=message["content"],
        model=body["model"],
        incremental=body.get("incremental_output") is True,
        stream=body["stream"],
        thinking=_read_thinking(message["feature_config"]),
    )


def _is_foreign(body: Fields, messages: Any) -> bool:
    """Whether the body is a plain request of another chat API."""
    entries = messages if isinstance(messages, list) else []
    known = ("fid", "feature_config", "chat_type")
    return "chat_id" not in body and not any(
        isinstance(entry, Mapping) and any(name in entry for name in known) for entry in entries
    )


def _check_envelope(body: Fields, accepts_whole: bool) -> None:
    if body.get("version") != ENVELOPE_VERSION:
        raise refuse_input(f"version, it must be {ENVELOPE_VERSION!r}.")
    if not isinstance(body.get("stream"), bool) or not (body["stream"] or accepts_whole):
        raise refuse_input("stream, only true is supported.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise refuse_input("model.")
    _check_choice(body, "chat_mode", CHAT_MODES)
    _check_time(body, SECONDS, "seconds")


def _check_message(message: Fields) -> None:
    if message.get("role") not in ("user", "system"):
        raise refuse_input(f"role {message.get('role')!r}, it must be user.")
    if not isinstance(message.get("content"), str) or not message["content"]:
        raise refuse_input("content, it must be text.")
    if not isinstance(message.get("fid"), str) or not message["fid"]:
        raise refuse_input("fid.")
    if not isinstance(message.get("files", []), list):
        raise refuse_input("files.")
    if message.get("user_action", "chat") != "chat":
        raise refuse_input("user_action.")
    _check_choice(message, "chat_type", CHAT_TYPES)
    _check_time(message, SECONDS, "seconds")
    config = message.get("feature_config")
    if not isinstance(config, Mapping) or config.get("output_schema") != "phase":
        raise refuse_input("feature_config, output_schema must be 'phase'.")


def _read_parent(body: Fields, message: Fields) -> str | None:
    """The parent, which four fields name. Those that are present must agree; an empty string is null."""
    if "parent_id" not in body:
        raise refuse_input("parent_id, it is missing.")
    fields = [fields.get(name) for fields in (body, message) for name in ("parent_id", "parentId") if name in fields]
    if not all(value is None or isinstance(value, str) for value in fields):
        raise refuse_input("parent_id, it must be text or null.")
    parents = {value or None for value in fields}
    if len(parents) > 1:
        raise refuse_input("parent_id, the request names more than one.")
    parent: str | None = parents.pop()
    return parent


def _read_thinking(config: Fields) -> str:
    if config.get("thinking_enabled") is not True:
        return ""
    return "thinking_summary" if config.get("thinking_format") == "summary" else "think"


def _check_choice(fields: Fields, name: str, choices: tuple[str, ...]) -> None:
    if fields.get(name) not in choices:
        raise refuse_input(f"{name}, it must be one of {', '.join(choices)}.")


def _check_time(fields: Fields, limits: tuple[int, int], unit: str) -> None:
    least, most = limits
    value = fields.get("timestamp")
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < most:
        raise refuse_input(f"timestamp, it must be in {unit}.")

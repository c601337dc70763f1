"""The calls of the Qwen web chat besides completions: create, stop and delete a chat, list the models.

POST /api/v2/chats/new  {"title": "New Chat", "models": ["qwen3.7-plus"], ...}
-> {"success": true, "request_id": "r-1", "data": {"id": "c-1"}}
"""

from __future__ import annotations

from collections.abc import Mapping
from time import gmtime, strftime
from typing import Any, Final
from urllib.parse import quote

from toolglot.core.errors import UpstreamResponseError
from toolglot.core.json_numbers import encode
from toolglot.wires.json_fields import dicts_in, parse_object, text_at
from toolglot.wires.protocol import ChatCall, ChatPosition, ChatProtocol, NewId
from toolglot.wires.qwen_web.errors import classify, read_error, restore_error
from toolglot.wires.qwen_web.request_encoder import CHAT_MODE, CHAT_TYPE, encode_tail
from toolglot.wires.translation import table_at

ORIGIN: Final = "https://chat.qwen.ai"
WEB_VERSION: Final = "0.3.11"
"""Version of the web page whose protocol this is."""
COMPLETIONS: Final = "/api/v2/chat/completions"
LIST_MODELS: Final = (ChatCall(method="GET", path="/api/models"), ChatCall(method="GET", path="/api/v2/models/"))
"""The service has had both; some of its addresses have only one."""
CHECK_KEY: Final = ChatCall(method="GET", path="/api/v1/auths/")


def create(model: str, now: float) -> ChatCall:
    """The call that makes a chat. Its time is in milliseconds, unlike that of completions."""
    body = {
        "title": "New Chat",
        "models": [model],
        "chat_mode": CHAT_MODE,
        "chat_type": CHAT_TYPE,
        "timestamp": int(now * 1000),
        "chatId": "",
        "project_id": "",
    }
    return ChatCall(method="POST", path="/api/v2/chats/new", body=encode(body))


def read_chat_id(body: bytes) -> str:
    """The id of the chat that was made. Raises: UpstreamResponseError if there is none."""
    error = read_error(body)
    if error is not None:
        raise error
    chat_id = text_at(table_at(parse_object(body) or {}, "data"), "id")
    if not chat_id:
        raise UpstreamResponseError("The upstream made no chat.", 502, "upstream_invalid")
    return chat_id


def place(body: bytes, position: ChatPosition) -> bytes:
    """Put an encoded request at its position in a chat."""
    request = parse_object(body) or {}
    parent, now = position.parent or None, int(position.now)
    [message] = request["messages"]
    message |= {
        "fid": position.fresh_id(),
        "parentId": parent,
        "parent_id": parent,
        "childrenIds": [position.fresh_id()],
        "timestamp": now,
    }
    request |= {
        "chatId": position.chat_id,
        "chat_id": position.chat_id,
        "parentId": position.parent,
        "parent_id": parent,
        "timestamp": now,
    }
    return encode(request)


def locate(chat_id: str) -> str:
    return f"{COMPLETIONS}?chat_id={quote(chat_id, safe='')}"


def stop(chat_id: str, response_id: str) -> ChatCall:
    """The call that ends an answer in progress."""
    body = encode({"chat_id": chat_id, "response_id": response_id})
    return ChatCall(method="POST", path=f"{COMPLETIONS}/stop", body=body)


def delete(chat_id: str) -> ChatCall:
    return ChatCall(method="DELETE", path=f"/api/v2/chats/{quote(chat_id, safe='')}")


def read_models(body: bytes) -> list[dict[str, Any]]:
    """The models in either form: ``{"data": [...]}`` or ``{"success": true, "data": {"data": [...]}}``."""
    payload = parse_object(body) or {}
    listed = payload.get("data")
    listed = listed.get("data") if isinstance(listed, dict) else listed
    return [_describe_model(entry) for entry in dicts_in(listed) if text_at(entry, "id") and _is_active(entry)]


def _is_active(entry: Mapping[str, Any]) -> bool:
    return table_at(entry, "info").get("is_active") is not False


def _describe_model(entry: Mapping[str, Any]) -> dict[str, Any]:
    meta = table_at(table_at(entry, "info"), "meta")
    described = {"id": entry["id"], "object": "model", "owned_by": text_at(entry, "owned_by") or "qwen"}
    named = {"name": text_at(entry, "name"), "context_length": meta.get("max_context_length")}
    return described | {key: value for key, value in named.items() if value}


def write_headers(chat_id: str, fresh_id: NewId, now: float) -> dict[str, str]:
    """The headers of every request. None of them is a proof of a browser; such values are never made up."""
    return {
        "Accept": "application/json",
        "source": "web",
        "version": WEB_VERSION,
        "x-request-id": fresh_id(),
        "timezone": strftime("%a %b %d %Y %H:%M:%S GMT+0000", gmtime(now)),
        "x-accel-buffering": "no",
        "Origin": ORIGIN,
        "Referer": f"{ORIGIN}/c/{quote(chat_id, safe='')}" if chat_id else f"{ORIGIN}/",
    }


CHAT: Final = ChatProtocol(
    create=create,
    read_chat_id=read_chat_id,
    encode_tail=encode_tail,
    place=place,
    locate=locate,
    stop=stop,
    delete=delete,
    list_models=LIST_MODELS,
    check_key=CHECK_KEY,
    read_models=read_models,
    read_error=read_error,
    restore_error=restore_error,
    classify=classify,
    headers=write_headers,
)

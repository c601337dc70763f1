"""The errors of the web chat. Nearly all come with HTTP status 200."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON_TYPE, HTML_TYPE = "application/json", "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ChatError:
    """An error that the service reports. ``status`` is the HTTP status where the service uses another one than 200 as
    well; ``in_stream``: it is reported inside the stream."""

    code: str
    details: str
    status: int = 200
    more: Mapping[str, Any] = field(default_factory=dict)
    in_stream: bool = False

    def to_json(self) -> dict[str, Any]:
        return {"code": self.code, "details": self.details, **self.more}


@dataclass(frozen=True, slots=True)
class Page:
    """A response that is not made by the chat service itself: a risk page, or nothing."""

    about: str
    body: bytes
    content_type: str = JSON_TYPE


class RequestRefusedError(Exception):
    """The simulator refuses a request. ``is_violation``: no correct client sends it."""

    def __init__(self, error: ChatError | Page, *, is_violation: bool = False, with_status: bool = False) -> None:
        super().__init__(error.details if isinstance(error, ChatError) else error.about)
        self.error = error
        self.is_violation = is_violation
        self.with_status = with_status


def refuse_input(what: str) -> RequestRefusedError:
    """A request that breaks a rule of the protocol."""
    return RequestRefusedError(ChatError("Bad_Request", f"Invalid input {what}"), is_violation=True)


def parent_missing(parent: str) -> ChatError:
    return ChatError("Bad_Request", f"Invalid input chat parent_id {parent} is not exist.")


_HOURS = {"template": "You've reached the upper limit. Please wait {{num}} hours before trying again.", "num": 6}
ERRORS: dict[str, ChatError] = {
    "rate_limited": ChatError("RateLimited", "You've reached the upper limit for today's usage.", more=_HOURS),
    "parallel_limited": ChatError("ParallelLimited", "Too many chats are answered at the same time."),
    "too_many_requests": ChatError("Too_Many_Requests", "Too many requests, please slow down."),
    "quota_limited": ChatError("quotaLimited", "The quota of this model is used up."),
    "exceed_limit": ChatError("ExceedLimit", "The usage limit is exceeded."),
    "quota_exhausted": ChatError("quota_exhausted", "The quota is exhausted."),
    "allocated_quota": ChatError("Throttling", "Allocated quota exceeded, please increase your quota limit."),
    "too_many_messages": ChatError("Bad_Request", "Invalid input too many messages."),
    "parent_not_exist": parent_missing("00000000-0000-4000-8000-000000000000"),
    "parent_not_found": ChatError("PARENT_NOT_FOUND", "The parent message is not found."),
    "not_found": ChatError("Not_Found", "The chat is not found."),
    "chat_not_found": ChatError("CHAT_NOT_FOUND", "This chat has been deleted or does not exist."),
    "in_progress": ChatError("Bad_Request", "The chat is in progress!", status=400),
    "unauthorized": ChatError("Unauthorized", "You are not signed in.", status=401),
    "unauthorized_lowercase": ChatError("unauthorized", "You are not signed in.", status=401),
    "token_expired": ChatError("Unauthorized", "Token has expired", status=401),
    "context_length_exceeded": ChatError(
        "ContextLengthExceeded", "The conversation exceeds the context length of the model.", in_stream=True
    ),
    "internal_server_error": ChatError("Internal_Server_Error", "Something went wrong, please try again."),
    "internal_error": ChatError("Bad_Request", "internal error, please try again later"),
}
"""Every error by its name as a fault."""

PAGES: dict[str, Page] = {
    "waf_json": Page(
        "the risk page as JSON: the service suspects automated use",
        json.dumps(
            {
                "ret": ["FAIL_SYS_USER_VALIDATE", "RGV587_ERROR::SM::the request is held back, try again later"],
                "data": {"url": "https://captcha.invalid/punish?x5secdata=simulated&action=captcha"},
            }
        ).encode(),
    ),
    "waf_html": Page(
        "the risk page as HTML: the service suspects automated use",
        b'<!doctype html><html><head><meta name="aliyun_waf_aa" content="simulated"></head>'
        b'<body><div id="aliyun_waf_captcha">Please verify that you are not a robot.</div></body></html>',
        HTML_TYPE,
    ),
    "empty_body": Page("HTTP 200 without a body", b""),
    "bad_gateway": Page(
        "an HTML page without any known mark", b"<html><body><h1>Bad Gateway</h1></body></html>", HTML_TYPE
    ),
}
RISK_PAGES = ("waf_html", "waf_json")

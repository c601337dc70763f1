"""Errors of the Qwen web chat.

    {"success": false, "request_id": "r", "data": {"code": "RateLimited", "details": "...", "num": 6}}
    data: {"error": {"code": "ContextLengthExceeded", "details": "..."}, "response_id": "a-1"}
    {"ret": ["FAIL_SYS_USER_VALIDATE", "RGV587_ERROR::..."], "data": {"url": "https://.../punish?action=captcha"}}

Most of them come with status 200, as the whole body or inside the stream. ``_KINDS`` lists what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamResponseError
from toolglot.core.events import Failed
from toolglot.wires.json_fields import parse_object, text_at
from toolglot.wires.protocol import ChatFault

EMPTY: Final = "empty_answer"
SECONDS_PER_HOUR: Final = 3600
BLOCKED_SECONDS: Final = 900
BUSY_SECONDS: Final = 5
MAX_HOURS: Final = 24 * 31
"""A longer wait than a month is not believed."""
_LOOKED_AT: Final = 64 << 10
"""Only the beginning of a page is searched for the words of a risk check."""


class _Kind(Struct, frozen=True):
    """One kind of error: how it is recognised and what it becomes. ``meaning`` is the message; the guide of
    errors has the next step."""

    code: str
    status: int
    codes: tuple[str, ...]
    words: re.Pattern[str] | None
    meaning: str
    fault: ChatFault = ChatFault.NONE
    retry_after: int = 0

    def matches(self, code: str, text: str) -> bool:
        return code in self.codes or (self.words is not None and self.words.search(text) is not None)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BLOCKED: Final = _Kind(
    "upstream_blocked",
    503,
    (),
    _words(r"FAIL_SYS_USER_VALIDATE|RGV587|aliyun_waf|/punish\?|action=captcha"),
    "The upstream suspects automated use and asks for a check by a person. No further request is sent to it for a"
    " while.",
    ChatFault.BLOCKED,
    BLOCKED_SECONDS,
)
_KINDS: Final = (
    _BLOCKED,
    _Kind(
        "context_length_exceeded",
        400,
        ("contextlengthexceeded",),
        None,
        "The conversation is longer than the model's context.",
    ),
    _Kind(
        "chat_in_progress",
        503,
        (),
        _words(r"chat is in progress"),
        "The chat is still being answered.",
        ChatFault.BUSY,
        BUSY_SECONDS,
    ),
    _Kind(
        "parent_not_found",
        404,
        ("parentnotfound",),
        _words(r"parent_id \S* ?is not exist"),
        "The message to follow is not in the chat.",
        ChatFault.GONE,
    ),
    _Kind(
        "too_many_messages",
        502,
        (),
        _words(r"too many messages"),
        "The upstream takes one message per request and got several. This is a bug in toolglot.",
    ),
    _Kind(
        "upstream_unauthorized",
        401,
        ("unauthorized",),
        _words(r"token has expired"),
        "The upstream does not accept the gateway's token for it.",
    ),
    _Kind(
        "chat_not_found",
        404,
        ("notfound", "chatnotfound"),
        _words(r"chat has been deleted"),
        "The chat does not exist any more.",
        ChatFault.GONE,
    ),
    _Kind(
        "rate_limited",
        429,
        ("parallellimited", "toomanyrequests"),
        None,
        "The account has too many requests at once.",
        retry_after=BUSY_SECONDS,
    ),
    _Kind(
        "quota_exhausted",
        429,
        ("ratelimited", "quotalimited", "exceedlimit", "quotaexhausted"),
        _words(r"allocated quota exceeded|upper limit for today"),
        "The account has used up its quota.",
    ),
    _Kind(
        "upstream_internal_error",
        502,
        ("internalservererror",),
        _words(r"internal error"),
        "The upstream failed by itself.",
        ChatFault.TRANSIENT,
    ),
    _Kind(
        EMPTY, 502, (), None, "The upstream sent an empty answer, as it does to slow users down.", ChatFault.TRANSIENT
    ),
)
_BY_CODE: Final = {kind.code: kind for kind in _KINDS}
_STATUSES: Final = {401: "upstream_unauthorized", 429: "rate_limited", 500: "upstream_internal_error"}
"""What a status means if the body says nothing."""


def classify(error: ToolglotError) -> ChatFault:
    """What an error means for the chat, by its code."""
    kind = _BY_CODE.get(error.code)
    return kind.fault if kind is not None else ChatFault.NONE


def restore_error(event: Failed) -> ToolglotError:
    """The error of a failed stream, with the status that belongs to its code."""
    kind = _BY_CODE.get(event.kind)
    if kind is None:
        error = UpstreamError(event.message)
        error.code = event.kind
        return error
    restored = _make(kind)
    restored.message = event.message
    return restored


def read_error(body: bytes) -> UpstreamResponseError | None:
    """The error in the body of a response with status 200; None if it is a stream or a success."""
    start = body.lstrip()
    if not start:
        return _make(_BY_CODE[EMPTY])
    if start[:1] not in b"{<":
        return None
    payload = parse_object(body)
    if payload is not None:
        return find_error(payload)
    if _is_risk_page(body):
        return _make(_BLOCKED)
    return UpstreamResponseError("The upstream sent a page instead of an answer.", 502, "upstream_invalid")


def decode_error(status: int, body: bytes) -> UpstreamResponseError:
    """Decode the body of a response with an error status."""
    found = read_error(body) if body.strip() else None
    if found is not None and found.code != "upstream_invalid":
        return found
    kind = _BY_CODE.get(_STATUSES.get(status, ""))
    if kind is not None:
        return _make(kind, status=status)
    return UpstreamResponseError(f"The upstream answered with status {status}.", status)


def find_error(payload: Mapping[str, Any]) -> UpstreamResponseError | None:
    """The error in a JSON object, or None if it is none."""
    if isinstance(payload.get("ret"), list):
        return _make(_BLOCKED) if _is_risk_page(str(payload).encode()) else _describe(payload, str(payload["ret"]))
    error = payload.get("error")
    if error:
        return _describe(error if isinstance(error, dict) else {"details": str(error)})
    if payload.get("success") is False:
        data = payload.get("data")
        return _describe(data if isinstance(data, dict) else payload)
    if "choices" not in payload and (payload.get("code") or payload.get("detail")) and "success" not in payload:
        return _describe(payload)
    return None


def _is_risk_page(body: bytes) -> bool:
    text = body[:_LOOKED_AT].decode(errors="replace")
    return _BLOCKED.words is not None and _BLOCKED.words.search(text) is not None


def _describe(error: Mapping[str, Any], text: str = "") -> UpstreamResponseError:
    code = error.get("code") or ""
    text = text or next(filter(None, (text_at(error, key) for key in ("details", "detail", "message", "msg"))), "")
    plain = re.sub(r"[^a-z0-9]", "", str(code).lower())
    for kind in _KINDS:
        if kind.matches(plain, text):
            return _make(kind, text, _read_hours(error) if kind.code == "quota_exhausted" else 0)
    return UpstreamResponseError(
        text or f"The upstream refused the request ({code or 'no code'}).", 502, str(code) or None
    )


def _read_hours(error: Mapping[str, Any]) -> int:
    """How many seconds the upstream wants to be left alone; 0 if it does not say."""
    hours = error.get("num")
    known = isinstance(hours, int | float) and not isinstance(hours, bool) and 0 < hours <= MAX_HOURS
    return int(hours * SECONDS_PER_HOUR) if known and hours is not None else 0


def _make(kind: _Kind, details: str = "", retry_after: int = 0, status: int = 0) -> UpstreamResponseError:
    message = f"{kind.meaning} ({details})" if details else kind.meaning
    error = UpstreamResponseError(message, status or kind.status, kind.code)
    wait = retry_after or kind.retry_after
    if wait:
        error.headers["Retry-After"] = str(wait)
    return error

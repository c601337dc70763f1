"""The faults of the simulated web chat, by name.

An error is reported instead of an answer (``rate_limited``), with the HTTP status that the service uses as well
(``in_progress_status``), as the first event of the stream (``rate_limited_first``) or in the middle of the answer
(``rate_limited_mid``). All these happen to a completion; ``create_rate_limited`` happens when a chat is made, and
``models_``, ``stop_`` and ``delete_`` likewise.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from toolglot.sim.damage import CALL_FAULTS, JSON_FAULTS, MARK_FAULTS
from toolglot.sim.qwen_web.errors import ERRORS, PAGES, ChatError, Page

COMPLETION = "completion"
ROUTES = ("create", "models", "stop", "delete")
"""Calls besides completions that can fail; their faults start with the name."""

DEGENERATE = {"empty_answer": "", "dots": "...", "ok": "OK", "yes": "Yes"}
"""Answers that suggest throttling."""

STREAM_FAULTS = {
    "done": "the stream ends with [DONE]",
    "no_blank_lines": "no empty lines between events",
    "no_phase": "events have no phase",
    "no_finish": "the stream ends without a finish event",
    "finish_reason": "the last event has a finish_reason instead of a status",
    "no_usage": "events have no usage",
    "no_response_id": "events have no response_id",
    "keep_alive": "response.info events between the others",
    "ping": "ping events, with an event name, between the others",
    "comments": "comments between the events",
    "crlf": "lines end with CR LF",
    "bad_frame": "one event is not JSON",
    "no_content_type": "the answer has no useful content type",
    "cumulative": "every event repeats the whole text so far, although increments were requested",
    "thinking": "the model thinks, as text, although nothing asked for it",
    "thinking_summary": "the model thinks, as a summary, although nothing asked for it",
    "platform_tool": "the platform runs a tool of its own first",
    "web_search": "the platform searches the web first",
    "dual_response": "two answers at once, in one stream",
    "no_interception": "the platform leaves <tool_call> in the answer alone",
    "whole_answers": "stream: false is accepted and gets a whole answer",
    "status_errors": "errors come with HTTP 400 or 401 where the service does so at times",
    "chat_deleted": "the chat is deleted just before the request",
    "stop_keeps_lock": "stop does not unlock the chat at once",
    "reset": "the connection is closed before the headers",
    "hang_before_headers": "the server never sends headers",
    "hang_after_headers": "the stream stalls after the headers",
    "cut_mid": "the connection is closed in the middle of the answer",
    "hang_mid": "the stream stalls in the middle of the answer",
    "slow_drip": "a few bytes at a time",
}


@dataclass(frozen=True, slots=True)
class ErrorFault:
    """An error or a page, and where it comes: ``body``, ``status``, ``first`` or ``mid``."""

    error: ChatError | Page
    position: str = "body"
    route: str = COMPLETION

    @property
    def about(self) -> str:
        if isinstance(self.error, Page):
            return self.error.about
        where = {
            "body": "instead of an answer, with HTTP 200",
            "status": f"instead of an answer, with HTTP {self.error.status}",
            "first": "as the first event after the stream has opened",
            "mid": "in the middle of the answer",
        }[self.position]
        return f"{self.error.code}, {self.error.details!r}, {where}"


def _completion_faults() -> dict[str, ErrorFault]:
    found: dict[str, ErrorFault] = {}
    for name, error in ERRORS.items():
        found[name] = ErrorFault(error, "first" if error.in_stream else "body")
        if error.status != 200:
            found[f"{name}_status"] = ErrorFault(error, "status")
        found |= {f"{name}_{position}": ErrorFault(error, position) for position in ("first", "mid")}
    return found | {name: ErrorFault(page) for name, page in PAGES.items()}


def _route_faults() -> dict[str, ErrorFault]:
    positions = {"": "body", "_status": "status"}
    errors = {
        f"{name}{suffix}": ErrorFault(error, position)
        for name, error in ERRORS.items()
        for suffix, position in positions.items()
        if not suffix or error.status != 200
    }
    anywhere = errors | {name: ErrorFault(page) for name, page in PAGES.items()}
    return {
        f"{route}_{name}": ErrorFault(fault.error, fault.position, route)
        for route in ROUTES
        for name, fault in anywhere.items()
    }


ERROR_FAULTS = _completion_faults() | _route_faults()
_DAMAGE = CALL_FAULTS | JSON_FAULTS | MARK_FAULTS
FAULTS: dict[str, str] = (
    {name: fault.about for name, fault in ERROR_FAULTS.items()}
    | {name: f"the whole answer is {text!r}" for name, text in DEGENERATE.items()}
    | STREAM_FAULTS
    | {name: fault.__doc__ or "" for name, fault in _DAMAGE.items()}
)
"""Every fault with its description."""


def find_error(faults: Collection[str], route: str, *positions: str) -> ErrorFault | None:
    """The first fault that is an error of this call, at one of these positions."""
    found = (ERROR_FAULTS[fault] for fault in faults if fault in ERROR_FAULTS)
    return next((fault for fault in found if fault.route == route and fault.position in positions), None)


def route_of(fault: str) -> str:
    return ERROR_FAULTS[fault].route if fault in ERROR_FAULTS else COMPLETION

"""What a client must receive for each fault of the simulated model, by mode. A damaged call may end in any honest way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from toolglot.sim.faults import FAULTS

Ends = frozenset[str]
OK: Final = frozenset({"ok"})
FAILURES: Final = frozenset({"error", "error_event"})
CUT: Final = FAILURES | {"truncated"}
HONEST: Final = OK | CUT

HARMLESS: Final = (
    "none", "role_every_chunk", "no_role", "null_fields", "no_index", "same_index", "no_id", "no_type", "repeat_id",
    "one_delta", "object_arguments", "no_done", "no_usage", "usage_in_finish", "stop_finish", "empty_data", "comments",
    "crlf", "slow_drip", "json_instead_of_sse", "no_content_type",
)  # fmt: skip
"""The answer is whole, and unusual at most."""
REFUSED: Final = {
    "http_400": 400, "http_401": 401, "http_404": 404, "http_429": 429, "http_500": 500, "http_502_html": 502, "http_503": 503,
}  # fmt: skip
LOST: Final = ("reset", "hang_before_headers", "hang_after_headers", "empty_answer")
"""Nothing of the answer comes."""
BROKEN_STREAM: Final = ("bad_frame", "error_after_first", "event_error", "cut_mid_call", "hang_mid")
"""A stream does not come whole; a whole answer may."""
UNTOLD_END: Final = ("no_finish",)
"""The stream ends without a finish reason."""
NATIVE_ONLY: Final = ("no_tools_400", "no_parser_400", "parse_500", "parse_error", "parse_error_late")
"""The upstream cannot do native tools: an error where they are asked for, nothing else."""


def _expect() -> dict[str, Mapping[tuple[str, bool], Ends]]:
    payload: dict[str, Mapping[tuple[str, bool], Ends]] = {}
    modes = [(mode, stream) for mode in ("relay", "native", "text") for stream in (True, False)]
    for fault in ("none", *FAULTS):
        if fault in HARMLESS:
            payload[fault] = dict.fromkeys(modes, OK)
        elif fault in REFUSED:
            payload[fault] = dict.fromkeys(modes, frozenset({"error"}))
        elif fault in LOST:
            payload[fault] = dict.fromkeys(modes, FAILURES)
        elif fault in BROKEN_STREAM:
            payload[fault] = {(mode, stream): CUT if stream else HONEST for mode, stream in modes}
        elif fault in UNTOLD_END:
            payload[fault] = dict.fromkeys(modes, HONEST)
        elif fault in NATIVE_ONLY:
            payload[fault] = {(mode, stream): HONEST if mode == "native" else OK for mode, stream in modes}
        elif fault == "length":
            payload[fault] = dict.fromkeys(modes, CUT)
        else:
            payload[fault] = {(mode, stream): OK if mode == "relay" else HONEST for mode, stream in modes}
    return payload


EXPECTED: Final = _expect()

"""The guide to all errors: for each code its cause, who acts next, what to do, and an example.

``explain`` and ``explain_failure`` make the text that clients are shown:

    MESSAGE (upstream 'NAME' at ADDRESS) Next (operator): WHAT TO DO. [toolglot errors CODE]

``toolglot errors CODE`` prints an entry; docs/errors.md is generated from all of them. They are data, in
``error_guide.toml``, and read when the first error is explained.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct, convert

from toolglot.core.errors import ToolglotError, UpstreamError, UpstreamPlace, UpstreamResponseError, read_status
from toolglot.core.events import Failed

_REFERENCE: Final = re.compile(r"\[toolglot errors ([a-z_]{1,40})\]\Z")
SENTENCE_ENDS: Final = (".", "!", "?")
GUIDE_FILE: Final = Path(__file__).with_suffix(".toml")


class Actor(StrEnum):
    """Who acts next."""

    CLIENT = "client"
    OPERATOR = "operator"
    UPSTREAM = "upstream"


class Source(StrEnum):
    """Where an error comes from. Only those of upstreams and models name an upstream."""

    REQUEST = "request"
    GATEWAY = "gateway"
    UPSTREAM = "upstream"
    MODEL = "model"


SOURCES: Final = {
    Source.REQUEST: "The request is refused before it is sent to an upstream.",
    Source.GATEWAY: "The gateway cannot answer.",
    Source.UPSTREAM: "The upstream cannot be used, or refuses the request.",
    Source.MODEL: "The upstream answered, but the answer cannot be used.",
}


class ErrorEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error. ``status`` is 0 if it is that of the class with this code, or of ``UpstreamError``. ``step`` ends each
    message. ``example`` is a message without its place and step."""

    code: str
    source: Source
    actor: Actor
    cause: str
    step: str
    example: str
    status: int = 0

    @property
    def advice(self) -> str:
        return format_advice(self, self.step)


def format_advice(entry: ErrorEntry, step: str) -> str:
    return f"Next ({entry.actor}): {step} [toolglot errors {entry.code}]"


class _Guide(Struct, frozen=True):
    error: list[ErrorEntry]


@cache
def load_guide() -> Mapping[str, ErrorEntry]:
    """All entries, by code."""
    read = convert(tomllib.loads(GUIDE_FILE.read_text("utf-8")), _Guide)
    return MappingProxyType({entry.code: entry for entry in read.error})


_BY_STATUS: Final = {
    401: "upstream_key_refused",
    402: "upstream_limited",
    403: "upstream_key_refused",
    404: "upstream_not_found",
    429: "upstream_limited",
}
_NAMED_BY_UPSTREAM: Final = (Source.UPSTREAM, Source.MODEL)


def find_entry(error: ToolglotError) -> ErrorEntry:
    """The entry of an error. Upstreams choose the codes of their own errors, so their status decides, unless the code
    is one of those that toolglot gives to errors of upstreams."""
    if not isinstance(error, UpstreamError):
        return load_guide().get(error.code) or load_guide()[type(error).code]
    known = load_guide().get(error.entry or error.code)
    if known is not None and known.source in _NAMED_BY_UPSTREAM and known.code != UpstreamResponseError.code:
        return known
    return _find_by_status(error.status if isinstance(error, UpstreamResponseError) else 0)


def _find_by_status(status: int) -> ErrorEntry:
    known = _BY_STATUS.get(status, UpstreamResponseError.code) if 400 <= status < 500 else UpstreamError.code
    return load_guide()[known]


def explain(error: ToolglotError) -> str:
    """The text of an error for a client: what failed, at which upstream, who acts next, and what to do."""
    if error.explanation:
        return error.explanation
    entry, place = find_entry(error), error.place if isinstance(error, UpstreamError) else None
    status = error.status if isinstance(error, UpstreamResponseError) else 0
    return _join(error.message, place, status, format_advice(entry, error.step or entry.step))


def explain_failure(failure: Failed, place: UpstreamPlace | None = None) -> str:
    """The text of a failed answer for a client, as in ``explain``."""
    entry = load_guide().get(failure.kind)
    if entry is None or entry.source not in _NAMED_BY_UPSTREAM or entry.code == UpstreamResponseError.code:
        entry = _find_by_status(read_status(failure.kind))  # without a status the upstream failed in its answer
    return failure.explanation or _join(failure.message, place, 0, entry.advice)


def make_failure(kind: str, message: str) -> Failed:
    """A failed answer with the text for a client; for what fails after the upstream has been named."""
    return Failed(kind, explain_failure(Failed(kind, message)))


def find_reference(message: str) -> str:
    """The code that a text for a client ends with; empty if there is none. The upstream may be another toolglot."""
    found = _REFERENCE.search(message)
    return found[1] if found else ""


def _join(message: str, place: UpstreamPlace | None, status: int, advice: str) -> str:
    if find_reference(message):  # what the next gateway advises is nearer to the cause
        advice = ""
    if place is None or place.address in message:
        return f"{message}{'' if message.endswith(SENTENCE_ENDS) or not advice else '.'} {advice}".rstrip()
    return f"{message} ({place}{f', status {status}' if status else ''}) {advice}".rstrip()


def list_classes(kind: type[ToolglotError] = ToolglotError) -> list[type[ToolglotError]]:
    """A class of errors and all below it."""
    return [kind, *(found for below in kind.__subclasses__() for found in list_classes(below))]


def find_status(entry: ErrorEntry) -> int:
    """The HTTP status of an error; within a stream that has begun there is none."""
    known = {kind.code: kind.status for kind in list_classes()}
    return entry.status or known.get(entry.code, UpstreamError.status)


def show_example(entry: ErrorEntry) -> str:
    """The text of an example of an error, as a client is shown it."""
    place = UpstreamPlace("default", "http://127.0.0.1:8000/v1") if entry.source in _NAMED_BY_UPSTREAM else None
    return _join(entry.example, place, 0, entry.advice)

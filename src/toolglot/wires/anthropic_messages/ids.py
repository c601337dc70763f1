"""Call ids and reasoning signatures in the form that the Messages wire allows.

Signatures of other providers are wrapped into signatures of this wire, because clients return those unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from hashlib import sha256

from msgspec import Struct

from toolglot.core.conversation import Message, Text, ToolCall
from toolglot.wires.id_references import ReferenceFields

NAME = "anthropic_messages"
EFFORT = ("output_config", "effort")
"""Path of the field for the reasoning effort."""
THINKING = "thinking"
"""The field that switches reasoning on or off, with a budget of tokens."""
FORMAT, OLD_FORMAT = ("output_config", "format"), "output_format"
"""Path of the field for the output format, and its older place."""
EFFORT_VALUES = ("low", "medium", "high", "max")
REDACTED = f"{NAME}.redacted"
"""The kind of a signature that contains the reasoning itself."""

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9_-]+")
_WRAPPED = re.compile(r"toolglot~([\w.]+)~(.+)", re.DOTALL)
LONGEST = 48
REFERENCES = ReferenceFields(free=("input",))


class BlockPosition(Struct, frozen=True):
    """Position in a stream: blocks started (-1: no message yet), the kind of the open block, and its call index."""

    begun: int = -1
    kind: str = ""
    call: int = -1


def scrub(call_id: str) -> str:
    """Return the id if its characters are allowed, else a deterministic and unique replacement."""
    if _ALLOWED.fullmatch(call_id):
        return call_id
    plain = _NOT_ALLOWED.sub("_", call_id)[:LONGEST].strip("_") or "toolu"
    return f"{plain}_{sha256(call_id.encode(errors='replace')).hexdigest()[:8]}"


def find_refusal(messages: Sequence[Message]) -> str:
    """Why upstreams refuse messages that are otherwise complete: an id of another wire, or an empty message."""
    for at, message in enumerate(messages):
        if message.role != "assistant":
            continue
        foreign = (part.id for part in message.parts if isinstance(part, ToolCall) and not _ALLOWED.fullmatch(part.id))
        if (call_id := next(foreign, None)) is not None:
            return f"messages[{at}]: the id {call_id} is not allowed here and was replaced"
        if at < len(messages) - 1 and all(isinstance(part, Text) and not part.text.strip() for part in message.parts):
            return f"messages[{at}]: an empty message of the assistant was left out"
    return ""


class Ids:
    """Assigns a unique id to every call."""

    def __init__(self, taken: Collection[str] = (), mark: str = "") -> None:
        self.taken = set(taken)
        self.mark = mark

    def give(self, call_id: str) -> str:
        wanted = scrub(call_id)
        given, number = wanted, 1
        while given in self.taken:
            number += 1
            given = f"{wanted}_{self.mark or number}"
            self.mark = ""
        self.taken.add(given)
        return given


def read_signature(signature: str) -> tuple[str, str]:
    """Unwrap a signature: the kind and the signature, both empty if there is none."""
    wrapped = _WRAPPED.fullmatch(signature)
    if wrapped:
        return wrapped[1], wrapped[2]
    return (NAME, signature) if signature else ("", "")


def write_signature(kind: str, signature: str) -> str:
    return signature if kind in (NAME, "") else f"toolglot~{kind}~{signature}"

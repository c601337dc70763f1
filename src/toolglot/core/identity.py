"""What makes two messages, calls or conversations the same: clients do not send them back byte by byte.

Strategy. Everything is compared by a hash of its canonical form. Of a message, line endings, white space at the end,
the form of empty content and the format of a call's arguments do not count; neither do ids, reasoning and cache marks.
White space in front of an answer does not count either. Everything else does, so a message that was edited, pruned or
summarised is another message.

Arguments are the same if JavaScript makes the same value of them, because many clients parse them and write them anew:
``1.0``, ``1`` and ``10e-1`` are one number, and so are ``-0`` and ``0``; whole numbers beyond 2**53 are rounded, and a
number beyond the largest float is ``null``. What a model wrote in two attempts is compared without that rounding: the
ids of two messages may differ in their last digit only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from math import isfinite
from typing import Final

from toolglot.core.conversation import Conversation, Image, Message, Part, ProviderPart, Text, ToolCall, ToolResult
from toolglot.core.text_cache import TextCache

HASH_BYTES: Final = 20
_ARGUMENTS: Final[TextCache[bytes]] = TextCache(1 << 20)
"""Hashes of arguments in their canonical form, by the hash of the text."""
_NO_ARGUMENTS: Final = (b"", b"null", b"[]", b'""')
"""What servers write for an empty object."""


def hash_texts(*texts: str) -> bytes:
    """An unkeyed hash of texts that only have to be compared."""
    return sha256(b"".join([frame(encode_text(text)) for text in texts])).digest()[:HASH_BYTES]


def encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def frame(text: bytes) -> bytes:
    """A field with its length, so that fields cannot run into each other."""
    return b"%d:%b" % (len(text), text)


# -- calls -------------------------------------------------------------------------------------------------------------


def canonical_json(text: str, *, exact: bool = False) -> bytes:
    """JSON text in a form that does not depend on key order, white space, escapes and the notation of numbers.
    ``exact``: numbers are not rounded as JavaScript does."""
    read = _read_exactly if exact else _read_number
    try:
        value = json.loads(text, parse_float=read, parse_int=read)
        return encode_text(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return encode_text(text)


def _read_number(text: str) -> float | None:
    number = float(text) + 0.0  # makes -0.0 the same as 0.0
    return number if isfinite(number) else None


def _read_exactly(text: str) -> float | str:
    number = float(text) + 0.0
    return number if abs(number) < 2**53 else f"number {text}"


def hash_call(name: str, arguments: str, *, exact: bool = False) -> bytes:
    """A hash that does not depend on how arguments are formatted. Agents send the same ones with every turn."""
    raw = sha256((b"=" if exact else b"") + encode_text(arguments)).digest()
    known = _ARGUMENTS.get(raw)
    if known is None:
        canonical = canonical_json(arguments.strip(), exact=exact)
        known = sha256(b"{}" if canonical in _NO_ARGUMENTS else canonical).hexdigest()
        _ARGUMENTS.add(raw, known)
    return hash_texts(name, known)


# -- messages ----------------------------------------------------------------------------------------------------------


def hash_message(message: Message, calls: Mapping[str, str]) -> bytes:
    """The hash of a message; ``calls`` describes the earlier calls by their ids."""
    role, text = message.role.encode(), encode_text(_canonical_text(message.role, message.text))
    made = sha256(b"%b%d:" % (frame(role), len(text)))
    made.update(text)  # not joined with the rest: it may be large
    for part in message.parts:
        if type(part) is not Text:
            made.update(b"".join(map(frame, _canonical_part(part, calls))))
    return made.digest()


def _canonical_text(role: str, text: str) -> str:
    text = (text.replace("\r\n", "\n") if "\r\n" in text else text).rstrip()
    return text.lstrip() if role == "assistant" else text


def _canonical_part(part: Part, calls: Mapping[str, str]) -> Iterable[bytes]:
    """The fields of a part that count; text is hashed for the whole message."""
    match part:
        case ToolCall(name=name, arguments=arguments):
            return b"call", hash_call(name, arguments)
        case ToolResult():
            return _canonical_result(part, calls)
        case Image():
            return _canonical_image(part)
        case ProviderPart(wire=wire, data=data):
            return b"part", encode_text(wire), encode_text(json.dumps(data, sort_keys=True, default=str))
    return ()


def _canonical_result(result: ToolResult, calls: Mapping[str, str]) -> Iterable[bytes]:
    """A result counts as the result of a certain call, whatever the id of that call is."""
    texts = "".join([part.text for part in result.content if isinstance(part, Text)])
    yield b"error" if result.error else b"result"
    yield encode_text(calls.get(result.call_id) or f"? {result.name}")
    yield encode_text(_canonical_text("tool", texts))
    for part in result.content:
        if isinstance(part, Image):
            yield from _canonical_image(part)


def _canonical_image(image: Image) -> Iterable[bytes]:
    return b"image", encode_text(image.url), encode_text(image.data)


# -- conversations -----------------------------------------------------------------------------------------------------


def identify(conversation: Conversation) -> str:
    """A short key that all turns of a conversation share: of the model and the first user message; without a user
    message, of the first text. Later turns never change it, even if the first message has no text."""
    messages = conversation.messages
    first = next((message for message in messages if message.role == "user"), None)
    first = first or next((message for message in messages if message.text), Message("user"))
    return hash_texts(conversation.model, hash_message(first, {}).hex())[:6].hex()

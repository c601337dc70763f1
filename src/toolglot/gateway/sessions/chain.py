"""Recognises a conversation by its messages: keyed hashes of all its prefixes.

Strategy. Clients send the whole history with every request, and no id that can be trusted. ``make_chain`` hashes the
messages one after the other, each hash including the one before, so that one hash stands for a whole prefix. Two
requests belong to one conversation if a prefix of one is a prefix of the other. The hashes are keyed by the client's
owner hash and by a secret of the gateway: other clients never have the same ones, and a stolen store does not confirm
guesses.

Messages are compared in a canonical form, because clients do not send them back byte by byte: line endings, white space
at the end, the form of empty content and the format of a call's arguments do not count; neither do ids, reasoning and
cache marks. White space in front of an answer does not count either. Everything else does, so a message that was
edited, pruned or summarised is another message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final

from msgspec import Struct

from toolglot.config import Settings
from toolglot.core.conversation import Image, Message, Part, ProviderPart, Text, ToolCall, ToolResult
from toolglot.core.text_cache import TextCache

HASH_BYTES: Final = 20
_ARGUMENTS: Final[TextCache[bytes]] = TextCache(1 << 20)
"""Hashes of arguments in their canonical form, by the hash of the text."""
VERSION: Final = b"1"
"""Part of every hash: a change of the canonical form makes earlier hashes unknown instead of wrong."""


class Chain(Struct, frozen=True, kw_only=True):
    """The hashes of a dialog: ``keys[n]`` stands for its first n messages, ``answers`` maps the position of each answer
    to its own hash."""

    keys: tuple[bytes, ...]
    answers: Mapping[int, bytes]

    @property
    def end(self) -> bytes:
        """The key of the whole dialog."""
        return self.keys[-1]

    @property
    def last_answer(self) -> int | None:
        """The position of the last answer."""
        return max(self.answers, default=None)

    def extend(self, answer: Message) -> tuple[bytes, bytes]:
        """The key of the dialog with one more message, an answer, and the hash of that answer."""
        digest = _hash_message(answer, {})
        return _join(self.end, digest), digest


def split_context(messages: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """The system messages at the beginning, and the dialog after them."""
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    return messages[:start], messages[start:]


def make_chain(dialog: Iterable[Message], secret: bytes, *scope: str) -> Chain:
    """Hash a dialog. ``scope`` narrows it: dialogs of different scopes never have the same keys."""
    keys, answers = [_start_chain(secret, scope)], {}
    calls: dict[str, str] = {}
    for at, message in enumerate(dialog):
        digest = _hash_message(message, calls)
        if message.role == "assistant":
            answers[at] = digest
            for number, call in enumerate(message.calls):
                calls[call.id] = f"{number} {call.name}"
        keys.append(_join(keys[-1], digest))
    return Chain(keys=tuple(keys), answers=answers)


@lru_cache(maxsize=256)
def _start_chain(secret: bytes, scope: tuple[str, ...]) -> bytes:
    """The key of an empty dialog; cached because a client uses the same one for all its requests."""
    fields = b"".join(map(_frame, (VERSION, *map(_encode, scope))))
    return blake2b(fields, digest_size=HASH_BYTES, key=secret).digest()


def hash_texts(*texts: str) -> bytes:
    """An unkeyed hash of texts that only have to be compared."""
    return sha256(b"".join([_frame(_encode(text)) for text in texts])).digest()[:HASH_BYTES]


# -- canonical form ----------------------------------------------------------------------------------------------------


def _hash_message(message: Message, calls: Mapping[str, str]) -> bytes:
    """The hash of a message; ``calls`` names the earlier calls by their ids."""
    role, text = message.role.encode(), _encode(_canonical_text(message.role, message.text))
    made = sha256(b"%b%d:" % (_frame(role), len(text)))
    made.update(text)  # not joined with the rest: it may be large
    for part in message.parts:
        if type(part) is not Text:
            made.update(b"".join(map(_frame, _canonical_part(part, calls))))
    return made.digest()


def _canonical_text(role: str, text: str) -> str:
    text = (text.replace("\r\n", "\n") if "\r\n" in text else text).rstrip()
    return text.lstrip() if role == "assistant" else text


def _canonical_part(part: Part, calls: Mapping[str, str]) -> Iterable[bytes]:
    """The fields of a part that count; text is hashed for the whole message."""
    match part:
        case ToolCall(name=name, arguments=arguments):
            return b"call", _encode(name), _hash_arguments(arguments)
        case ToolResult():
            return _canonical_result(part, calls)
        case Image():
            return _canonical_image(part)
        case ProviderPart(wire=wire, data=data):
            return b"part", _encode(wire), _encode(json.dumps(data, sort_keys=True, default=str))
    return ()


def _canonical_result(result: ToolResult, calls: Mapping[str, str]) -> Iterable[bytes]:
    """A result counts as the result of a certain call, whatever the id of that call is."""
    texts = "".join([part.text for part in result.content if isinstance(part, Text)])
    yield b"error" if result.error else b"result"
    yield _encode(calls.get(result.call_id) or f"? {result.name}")
    yield _encode(_canonical_text("tool", texts))
    for part in result.content:
        if isinstance(part, Image):
            yield from _canonical_image(part)


def _canonical_image(image: Image) -> Iterable[bytes]:
    return b"image", _encode(image.url), _encode(image.data)


def _hash_arguments(arguments: str) -> bytes:
    """A hash that does not depend on how arguments are formatted. Agents send the same ones with every turn."""
    raw = sha256(_encode(arguments)).digest()
    known = _ARGUMENTS.get(raw)
    if known is None:
        known = sha256(canonical_json(arguments)).hexdigest()
        _ARGUMENTS.add(raw, known)
    return known.encode()


def canonical_json(text: str) -> bytes:
    """JSON text in a form that does not depend on key order, white space, escapes and the notation of numbers."""
    try:
        value = json.loads(text or "{}", parse_float=_canonical_number)
        return _encode(json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
    except (ValueError, RecursionError):
        return _encode(text)


def _canonical_number(text: str) -> float | int:
    """Clients written in JavaScript send 1.0 back as 1."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


# -- hashing -----------------------------------------------------------------------------------------------------------


def _join(key: bytes, digest: bytes) -> bytes:
    return blake2b(digest, digest_size=HASH_BYTES, key=key).digest()


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _frame(text: bytes) -> bytes:
    """A field with its length, so that fields cannot run into each other."""
    return b"%d:%b" % (len(text), text)


def make_chain_secret(settings: Settings) -> bytes:
    """The key of the hashes that conversations are recognised by: the same on all hosts with the same upstream keys,
    and not in the store."""
    keys = sorted(upstream.api_key.reveal() for upstream in settings.upstreams)
    return sha256("\0".join(["toolglot chain", *keys]).encode()).digest()

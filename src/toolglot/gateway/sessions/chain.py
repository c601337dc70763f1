"""Recognises a conversation by its messages: keyed hashes of all its prefixes.

Strategy. Clients send the whole history with every request, and no id that can be trusted. ``make_chain`` hashes the
messages one after the other, each hash including the one before, so that one hash stands for a whole prefix. Two
requests belong to one conversation if a prefix of one is a prefix of the other. The hashes are keyed by the client's
owner hash and by a secret of the gateway: other clients never have the same ones, and a stolen store does not confirm
guesses.

Messages are compared in their canonical form (``core/identity.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Final

from msgspec import Struct

from toolglot.config import Settings
from toolglot.core.conversation import Message
from toolglot.core.identity import HASH_BYTES, encode_text, frame, hash_message

VERSION: Final = b"2"
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
        digest = hash_message(answer, {})
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
        digest = hash_message(message, calls)
        if message.role == "assistant":
            answers[at] = digest
            for number, call in enumerate(message.calls):
                calls[call.id] = f"{number} {call.name}"
        keys.append(_join(keys[-1], digest))
    return Chain(keys=tuple(keys), answers=answers)


@lru_cache(maxsize=256)
def _start_chain(secret: bytes, scope: tuple[str, ...]) -> bytes:
    """The key of an empty dialog; cached because a client uses the same one for all its requests."""
    fields = b"".join(map(frame, (VERSION, *map(encode_text, scope))))
    return blake2b(fields, digest_size=HASH_BYTES, key=secret).digest()


def _join(key: bytes, digest: bytes) -> bytes:
    return blake2b(digest, digest_size=HASH_BYTES, key=key).digest()


def make_chain_secret(settings: Settings) -> bytes:
    """The key of the hashes that conversations are recognised by: the same on all hosts with the same upstream keys,
    and not in the store."""
    keys = sorted(upstream.api_key.reveal() for upstream in settings.upstreams)
    return sha256("\0".join(["toolglot chain", *keys]).encode()).digest()

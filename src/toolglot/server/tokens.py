"""Random tokens, and the key of the hashes that conversations are recognised by."""

from __future__ import annotations

from hashlib import sha256
from secrets import token_hex
from typing import Final

from toolglot.config import Settings

TOKEN_LENGTH: Final = 24
TOKENS_AT_ONCE: Final = 256


class TokenSource:
    """Random tokens. urandom is slow; one call yields 256 tokens. Thread-safe."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def take(self) -> str:
        while True:
            try:
                return self._made.pop()
            except IndexError:
                digits = token_hex(TOKEN_LENGTH // 2 * TOKENS_AT_ONCE)
                self._made += [digits[at : at + TOKEN_LENGTH] for at in range(0, len(digits), TOKEN_LENGTH)]


def make_chain_secret(settings: Settings) -> bytes:
    """The key of the hashes that conversations are recognised by: the same on all hosts with the same upstream keys,
    and not in the store."""
    keys = sorted(upstream.api_key.reveal() for upstream in settings.upstreams)
    return sha256("\0".join(["toolglot chain", *keys]).encode()).digest()

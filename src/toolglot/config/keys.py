"""Secrets: keys that the gateway presents to upstreams, and keys that clients present to the gateway.

An upstream's key must be sent, so it is stored, in a type that never prints it. A client's key only has to be
recognised, so only its hash is stored. Client keys are long and random (``make_key``), so a plain SHA-256 is enough:
they cannot be guessed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

MASK: Final = "***"
HASHED: Final = "sha256:"
PREFIX: Final = "sk-toolglot-"
KEY_BYTES: Final = 32
OWNER_LABEL: Final = b"toolglot owner"
OWNER_BYTES: Final = 16
NO_OWNER: Final = b""
"""The owner of everything in a gateway without client keys."""
REFUSED_OWNER: Final = b"refused"
"""The owner of requests without a valid key. No key has this owner, so only the operator sees its rows."""


class Secret:
    """A text that is never shown: ``str``, ``repr`` and formatting give ``***``."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. Hand it to the network and to nothing else."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return MASK if self._text else ""


def mask_address(address: str) -> str:
    """Mask the user name, password and query of a URL."""
    parts = urlsplit(address)
    netloc = f"{MASK}@{parts.netloc.rpartition('@')[2]}" if "@" in parts.netloc else parts.netloc
    return urlunsplit(parts._replace(netloc=netloc, query=MASK if parts.query else ""))


@dataclass(frozen=True, slots=True)
class KeyHash:
    """The SHA-256 hash of a client key."""

    digest: bytes

    @classmethod
    def of(cls, key: str) -> KeyHash:
        """The hash of a key, given in plain text or as ``sha256:<64 hexadecimal digits>``. Raises: ValueError."""
        return cls.read(key) if key.startswith(HASHED) else cls(_digest(key))

    @classmethod
    def read(cls, key: str) -> KeyHash:
        """The hash ``sha256:<64 hexadecimal digits>``. Raises: ValueError."""
        try:
            digest = bytes.fromhex(key.removeprefix(HASHED))
        except ValueError:
            digest = b""
        if not key.startswith(HASHED) or len(digest) != hashlib.sha256().digest_size:
            raise ValueError("a hashed key is sha256: and 64 hexadecimal digits")
        return cls(digest)

    def __str__(self) -> str:
        return HASHED + self.digest.hex()


class StoredKey(NamedTuple):
    """A client key of the store. ``expires`` 0 means never; ``is_admin``: it may open the console."""

    hash: KeyHash
    expires: float = 0.0
    is_admin: bool = False


class ClientKeys:
    """The keys that clients may present: those of the settings, ``own`` and ``admin``, and those of the store.

    ``required``: clients need a key even if none is known. A gateway that has had keys stays closed without them.
    """

    def __init__(
        self,
        own: Sequence[KeyHash],
        now: Callable[[], float],
        *,
        required: bool = False,
        admin: Sequence[KeyHash] = (),
    ) -> None:
        self._own = (*own, *admin)
        self._admin = admin
        self._now = now
        self._stored: Sequence[StoredKey] = ()
        self.required = required or bool(self._own)

    def set_stored(self, keys: Sequence[StoredKey]) -> None:
        self._stored = keys
        self.required |= bool(keys)

    def admit(self, presented: str) -> bool:
        if not self._stored:
            return admit(self._own, presented)
        return admit((*self._own, *(key.hash for key in self._list_valid())), presented)

    def list_admin(self) -> list[KeyHash]:
        """The keys with the admin scope that are valid now."""
        return [*self._admin, *(key.hash for key in self._list_valid() if key.is_admin)]

    def _list_valid(self) -> Iterator[StoredKey]:
        now = self._now()
        return (key for key in self._stored if not key.expires or now < key.expires)


def admit(keys: Iterable[KeyHash], presented: str) -> bool:
    """Whether one of the keys was presented, in constant time."""
    digest = _digest(presented)
    found = False
    for key in keys:
        found |= hmac.compare_digest(key.digest, digest)
    return found and bool(presented)


def owner_of(key: str) -> bytes:
    """The owner of what a client key stores: the same on every host and after every start.

    It needs no secret of its own. The key is long and random, so neither it nor its hash can be guessed from the owner;
    and the label keeps the owner, which a store holds, from being the hash by which the gateway recognises the key.
    """
    return hmac.digest(OWNER_LABEL, _digest(key), "sha256")[:OWNER_BYTES]


def make_key(random_bytes: Callable[[int], bytes]) -> str:
    """A new client key."""
    return PREFIX + base64.urlsafe_b64encode(random_bytes(KEY_BYTES)).decode().rstrip("=")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()

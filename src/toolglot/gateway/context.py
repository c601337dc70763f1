"""What a request arrives with, and what all requests of a gateway share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from uuid import UUID

from msgspec import Struct

from toolglot.config import Settings
from toolglot.config.keys import NO_OWNER
from toolglot.gateway.routing import Capabilities
from toolglot.gateway.sessions.ttl_store import Lookup
from toolglot.gateway.telemetry.log import RequestRecorder
from toolglot.wires.protocol import Wire


class Source(Struct, frozen=True):
    """Clock and randomness."""

    now: Callable[[], float]
    token: Callable[[], str]

    def uuid(self) -> str:
        """A random UUID (version 4)."""
        return str(UUID(bytes=blake2b(self.token().encode(), digest_size=16).digest(), version=4))


class GatewayContext(Struct, frozen=True):
    """What all requests of a gateway share."""

    settings: Settings
    source: Source
    capabilities: Capabilities
    chain_secret: bytes = b""
    """The key of the hashes that conversations are recognised by; empty: they are not recognised."""


class IncomingRequest(Struct, frozen=True, eq=False):
    """A request as it arrived. ``path`` holds the named parts of its path and query, ``mode`` the mode that it asks for
    in a header, ``key`` the client's API key, ``owner`` the owner of what is stored of it. ``lookup`` is set if the
    store may have values that are not in memory."""

    wire: Wire
    body: bytes
    recorder: RequestRecorder
    path: Mapping[str, str] = {}
    mode: str = ""
    key: str = ""
    headers: Mapping[str, str] | None = None
    owner: bytes = NO_OWNER
    lookup: Lookup | None = None

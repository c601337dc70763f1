"""Limits how many wrong keys a client may try.

Strategy. Each network (an IPv4 address, or the /64 of an IPv6 address) may present some wrong keys in a minute, and so
may all networks together; beyond that a key is refused without being compared. One number per network is kept: the time
at which all its failures are forgotten (a leaky bucket). The table holds the networks that failed last. A key that an
address has presented before, right or wrong, is no new guess: clients that work go on while others at their address
guess, and a client that repeats an old key does not block its address.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import Final, NamedTuple

from toolglot.core.errors import RateLimitError

MINUTE: Final = 60.0
CLIENT_GUESSES, ALL_CLIENT_GUESSES = 60, 600
"""Wrong keys of one network and of all in a minute, at the endpoints of clients, which take admin keys, too."""
LOGIN_GUESSES, ALL_LOGIN_GUESSES = 10, 100
"""Wrong keys of one network and of all in a minute, at the console."""
MAX_NETWORKS: Final = 1000
MAX_KNOWN: Final = 10_000
EPSILON: Final = 0.001
"""Seconds that do not count: times are sums."""
TOO_MANY: Final = "Too many wrong keys were presented; no key is compared for now."


class Network(NamedTuple):
    """Where a client is. Those on this machine have a limit of their own, so that no one else can lock them out."""

    name: str
    is_local: bool


class GuessLimit:
    """The failures of one kind of endpoint. ``each`` and ``total``: how many in a minute, of one network and of all (0:
    no limit). ``clock`` gives seconds and never goes back. ``workers``: processes that share the port; each gets its
    part."""

    def __init__(self, clock: Callable[[], float], each: int, total: int = 0, *, workers: int = 1) -> None:
        self._clock = clock
        self._pauses = MINUTE / max(1, each // workers), MINUTE / max(1, total // workers) if total else 0.0
        self._forgotten: dict[object, float] = {}
        self._known: dict[bool, dict[int, None]] = {True: {}, False: {}}

    def admit(self, peer: str, key: str, is_right: Callable[[str], bool]) -> bool:
        """Whether a key is right. Raises: RateLimitError if it is new, and too many were wrong."""
        if not key:
            return False
        mark = hash((peer, key))
        is_new = not any(mark in known for known in self._known.values())
        if is_new:
            self.check(peer)
        right = is_right(key)
        if mark not in self._known[right]:
            self._remember(mark, right)
            if is_new and not right:
                self.count(peer)
        return right

    def check(self, peer: str) -> None:
        """Raise RateLimitError if this client may not try a key now."""
        now, network = self._clock(), find_network(peer)
        waits = [
            self._forgotten.get(name, 0.0) - now - MINUTE + pause
            for name, pause in zip((network, network.is_local), self._pauses, strict=True)
            if pause
        ]
        if (wait := max(waits)) > EPSILON:
            raise RateLimitError(TOO_MANY, ceil(wait))

    def count(self, peer: str) -> None:
        """A client has presented a wrong key."""
        now, network = self._clock(), find_network(peer)
        for name, pause in zip((network, network.is_local), self._pauses, strict=True):
            if pause:
                self._forgotten[name] = max(self._forgotten.pop(name, 0.0), now) + pause
        if len(self._forgotten) > MAX_NETWORKS:
            del self._forgotten[next(iter(self._forgotten))]

    def _remember(self, mark: int, right: bool) -> None:
        known = self._known[right]
        self._known[not right].pop(mark, None)
        known[mark] = None
        if len(known) > MAX_KNOWN:
            del known[next(iter(known))]


@lru_cache(maxsize=1024)
def find_network(peer: str) -> Network:
    """The network of an address; a client without an address uses a socket of this machine."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return Network(peer, is_local=True)
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return Network(address.exploded[:19], is_local=False)
    return Network(str(address), address.is_loopback)

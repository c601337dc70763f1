"""How many wrong keys a client may try, by address and in all."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import cast

import pytest

from toolglot.config.loader import make_settings
from toolglot.core.errors import AuthenticationError, RateLimitError
from toolglot.gateway.key_guesses import ALL_CLIENT_GUESSES, MAX_KNOWN, MAX_NETWORKS, GuessLimit, find_network
from toolglot.gateway.mounting import HttpRequest
from toolglot.server.admission import make_access

NUMBERS = count()


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.3

    def __call__(self) -> float:
        return self.seconds


def is_right(key: str) -> bool:
    return key.startswith("right")


def count_guesses(limit: GuessLimit, peer: str, most: int = 1000, *, login: bool = False) -> int:
    """How many different wrong keys are compared before one is refused."""
    for number in range(most):
        try:
            if login:
                limit.check(peer)
                limit.count(peer)
            else:
                assert not limit.admit(peer, f"guess {next(NUMBERS)}", is_right)
        except RateLimitError:
            return number
    return most


@pytest.mark.parametrize("login", [False, True])
def test_an_address_is_blocked_and_gets_tries_back(login: bool) -> None:
    clock = Clock()
    limit = GuessLimit(clock, each=10)
    assert count_guesses(limit, "10.0.0.1", login=login) == 10
    assert count_guesses(limit, "10.0.0.1", login=login) == 0
    with pytest.raises(RateLimitError) as caught:
        limit.check("10.0.0.1")
    assert caught.value.retry_after == 6 and caught.value.status == 429
    clock.seconds += 6
    assert count_guesses(limit, "10.0.0.1", login=login) == 1
    clock.seconds += 3600
    assert count_guesses(limit, "10.0.0.1", login=login) == 10


def test_in_an_hour_there_are_no_more_than_the_rate() -> None:
    clock = Clock()
    limit, compared = GuessLimit(clock, each=10), 0
    for _ in range(3600):
        compared += count_guesses(limit, "10.0.0.1", most=20)
        clock.seconds += 1
    assert compared <= 10 * 60 + 10


def test_others_are_not_blocked() -> None:
    limit = GuessLimit(Clock(), each=10)
    count_guesses(limit, "10.0.0.1")
    assert limit.admit("10.0.0.2", "right", is_right)
    with pytest.raises(RateLimitError):
        limit.admit("10.0.0.1", "right", is_right)


def test_all_together_are_limited_but_not_those_of_this_machine() -> None:
    """A botnet cannot guess, and cannot lock the owner out."""
    limit = GuessLimit(Clock(), each=10, total=100)
    assert sum(count_guesses(limit, f"10.0.0.{host}", login=True) for host in range(200)) == 100
    with pytest.raises(RateLimitError):
        limit.check("10.9.9.9")
    for peer in ("127.0.0.1", "::1", "", "/run/socket"):
        limit.check(peer)
    assert sum(count_guesses(limit, f"127.0.0.{host}", login=True) for host in range(1, 200)) == 100


def test_a_key_that_was_presented_before_is_no_guess() -> None:
    """Clients that work go on while others at their address guess; one that repeats an old key blocks no one."""
    limit = GuessLimit(Clock(), each=10)
    assert limit.admit("10.0.0.1", "right", is_right)
    assert not any(limit.admit("10.0.0.1", "old", is_right) for _ in range(1000))
    assert count_guesses(limit, "10.0.0.1") == 9
    assert limit.admit("10.0.0.1", "right", is_right)
    with pytest.raises(RateLimitError):
        limit.admit("10.0.0.1", "right too", is_right)
    assert not limit.admit("10.0.0.1", "right", lambda key: False), "it was revoked"
    assert limit.admit("10.0.0.1", "old", lambda key: True), "it was made valid"


def test_guesses_of_others_displace_no_client_that_works() -> None:
    """Not even an idle one, however long they go on."""
    clock = Clock()
    limit = GuessLimit(clock, each=60, total=600)
    assert limit.admit("10.0.0.1", "right", is_right)
    for number in range(2 * MAX_KNOWN):
        clock.seconds += 0.1
        limit.admit(f"2001:db8:{number % 500:x}::1", f"guess {number}", is_right)
    assert sum(count_guesses(limit, f"10.9.9.{host}") for host in range(20)) >= 590
    with pytest.raises(RateLimitError):
        limit.admit("10.0.0.1", "right too", is_right)
    assert limit.admit("10.0.0.1", "right", is_right)


def test_keys_at_the_endpoints_of_clients_are_limited_in_all() -> None:
    """Admin keys are client keys, too, so they could be tried there from many addresses."""
    settings = make_settings(client_keys="right", admin_keys="right-admin", state_dir="none")
    access, refused, wrong = make_access(settings, lambda: 0.0, Clock()), 0, 0

    def ask(peer: str, key: str) -> None:
        access.check(cast(HttpRequest, SimpleNamespace(peer=peer, key=key)))

    ask("10.1.1.1", "right")
    ask("10.1.1.1", "right-admin")
    for number in range(2000):
        try:
            ask(f"10.0.0.{number % 200}", f"guess {number}")
        except AuthenticationError:
            wrong += 1
        except RateLimitError:
            refused += 1
    assert (wrong, refused) == (ALL_CLIENT_GUESSES, 2000 - ALL_CLIENT_GUESSES)
    ask("10.1.1.1", "right")
    ask("10.1.1.1", "right-admin")


def test_no_key_is_no_guess() -> None:
    limit = GuessLimit(Clock(), each=10)
    assert not any(limit.admit("10.0.0.1", "", is_right) for _ in range(100))
    count_guesses(limit, "10.0.0.1")
    assert not limit.admit("10.0.0.1", "", is_right)


def test_memory_is_bounded() -> None:
    limit = GuessLimit(Clock(), each=60)
    for number in range(3 * MAX_NETWORKS):
        peer = f"2001:db8:{number:x}::1"
        for guess in range(5):
            limit.admit(peer, f"{guess}", is_right)
    assert len(limit._forgotten) <= MAX_NETWORKS and all(len(known) <= MAX_KNOWN for known in limit._known.values())


def test_workers_share_the_limit() -> None:
    limits = [GuessLimit(Clock(), each=10, total=100, workers=4) for _ in range(4)]
    assert sum(count_guesses(limit, "10.0.0.1", login=True) for limit in limits) == 8
    assert count_guesses(GuessLimit(Clock(), each=10, workers=64), "10.0.0.1") == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::1", "::2", False),
    ],
)
def test_networks(one: str, other: str, same: bool) -> None:
    assert (find_network(one) == find_network(other)) == same


def test_who_is_on_this_machine() -> None:
    local = {peer for peer in ("127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "") if find_network(peer).is_local}
    assert len(local) == 5
    assert not any(find_network(peer).is_local for peer in ("10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"))

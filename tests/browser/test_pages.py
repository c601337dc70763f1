"""Pages in a real browser, and a gateway on the same machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from browser.chromium import SECONDS, browsing, read_address
from browser.sites import NAME, SECRET, Journal, Sites, running_sites

KEY = "sk-right"
PREFLIGHTED = {"fetch-json", "fetch-authorization", "fetch-put", "xhr-json"}
"""The browser asks first, by OPTIONS, whether the page may."""
REDIRECTED = {"bounce-post"}
"""On its way the origin has become null."""
REFUSAL = "This gateway has no client keys"
OWN = {"fetch-metrics", "fetch-health", "fetch-put", "ping", "form-encoded"}
"""Ways that the gateway answers itself, served or not."""
FOREIGN = [
    pytest.param(NAME, "127.0.0.1", "", id="another-site"),
    pytest.param(NAME, "localhost", "", id="another-site-by-name"),
    pytest.param(NAME, NAME, "", id="foreign-host"),
    pytest.param(NAME, "127.0.0.1", "no-referrer", id="no-referrer"),
    pytest.param("127.0.0.1", "127.0.0.1", "sandbox", id="sandboxed"),
    pytest.param(NAME, "", "", id="rebound"),
]


def let_page_try(sites: Sites, folder: Path, address: str) -> Journal:
    """Show the page until it has tried every way."""
    journal = sites.journal
    with browsing(folder, address):
        assert journal.finished.wait(SECONDS), (list(journal.results), (folder / "browser.log").read_text())
    missed = [(way, received.failed) for way, received in journal.results.items() if not journal.of(way)]
    assert len(journal.results) > 30
    assert missed == [], "these never reached the gateway, so nothing is known about them"
    return journal


def read_directly(sites: Sites, **headers: str) -> str:
    body = json.dumps({"model": "sim", "messages": [{"role": "user", "content": "hi"}]}).encode()
    asked = Request(f"http://127.0.0.1:{sites.gateway}/v1/chat/completions", body, headers)
    with urlopen(asked, timeout=20) as answer:
        return str(answer.read().decode())


@pytest.fixture
def keyless(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    with running_sites(monkeypatch) as sites:
        yield sites


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    with running_sites(monkeypatch, client_keys=KEY) as sites:
        yield sites


@pytest.mark.parametrize(("host", "target", "policy"), FOREIGN)
def test_a_foreign_page_gets_nothing(host: str, target: str, policy: str, keyless: Sites, tmp_path: Path) -> None:
    journal = let_page_try(keyless, tmp_path, keyless.address(host, target, policy))
    assert journal.asked == []
    assert journal.statuses == {403}
    if target:
        assert journal.read == {}
    else:  # the page is of the origin that it asks, so it may read that it is refused
        assert "forbidden_origin" in journal.read["fetch-cors-get"]
        assert [way for way, text in journal.read.items() if REFUSAL not in text] == []
    assert SECRET in read_directly(keyless)


@pytest.mark.parametrize(("host", "target", "policy"), FOREIGN)
def test_without_the_rule_it_would(
    host: str, target: str, policy: str, keyless: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page tries is known to work where nothing refuses it."""
    monkeypatch.setattr("toolglot.server.admission.check_origin", lambda *headers: None)
    journal = let_page_try(keyless, tmp_path, keyless.address(host, target, policy))
    assert journal.reaching == set(journal.results) - OWN - (PREFLIGHTED if target else set())
    assert SECRET in "".join(journal.read.values()) if not target else journal.read == {}


def test_a_page_on_loopback_is_served_and_reads_nothing(keyless: Sites, tmp_path: Path) -> None:
    """There are no CORS headers, so a page of another port may ask and may not read."""
    journal = let_page_try(keyless, tmp_path, keyless.address("127.0.0.1", "127.0.0.1"))
    assert journal.reaching == set(journal.results) - OWN - PREFLIGHTED - REDIRECTED
    assert journal.read == {}


def test_a_page_on_loopback_under_another_name_needs_an_origin(keyless: Sites, tmp_path: Path) -> None:
    """Without an Origin header it cannot be distinguished from a page of another site."""
    journal = let_page_try(keyless, tmp_path, keyless.address("localhost", "127.0.0.1"))
    named = {
        page_request.way for page_request in journal.requests if page_request.origin.startswith("http://localhost")
    }
    assert {"fetch-no-cors-text", "form-text", "web-socket"} <= named
    assert journal.reaching == named - OWN - PREFLIGHTED
    assert journal.read == {}


def test_a_page_of_the_gateway_itself_reads_what_it_asks(keyless: Sites, tmp_path: Path) -> None:
    """Such as one behind a server that leads to both; nothing but the name differs from a name that was rebound."""
    journal = let_page_try(keyless, tmp_path, keyless.address("127.0.0.1"))
    assert journal.reaching == set(journal.results) - OWN - REDIRECTED
    assert all(SECRET in journal.read[way] for way in ("fetch-cors-get", "fetch-json", "xhr-json", "iframe"))


@pytest.mark.parametrize(
    ("address", "served"), [("127.0.0.1", True), ("localhost", True), (NAME, False), (f"sub.{NAME}", False)]
)
def test_an_address_that_is_typed(address: str, served: bool, keyless: Sites, tmp_path: Path) -> None:
    shown = read_address(tmp_path, f"http://{address}:{keyless.gateway}/v1/models")
    assert (SECRET in shown) == served
    assert (REFUSAL in shown) == (not served)
    assert bool(keyless.journal.asked) == served


@pytest.mark.parametrize(("host", "target"), [(NAME, "127.0.0.1"), (NAME, ""), ("127.0.0.1", "127.0.0.1")])
def test_with_keys_a_page_without_one_gets_nothing(host: str, target: str, keyed: Sites, tmp_path: Path) -> None:
    """Every request needs a key, wherever the page is from; health needs none."""
    journal = let_page_try(keyed, tmp_path, keyed.address(host, target))
    assert journal.asked == []
    assert {page_request.way for page_request in journal.requests if page_request.status != 401} <= {"", "fetch-health"}
    assert set(journal.read) <= ({"fetch-health"} if target else set(journal.results))
    assert SECRET not in "".join(journal.read.values())


def test_with_keys_a_page_that_shows_one_is_a_client(keyed: Sites, tmp_path: Path) -> None:
    journal = let_page_try(keyed, tmp_path, keyed.address(NAME, key=KEY))
    assert journal.reaching >= {"fetch-cors-get", "fetch-cors-text", "fetch-json", "xhr-json", "form-get"}
    assert SECRET in journal.read["fetch-json"]
    assert SECRET in read_directly(keyed, Authorization=f"Bearer {KEY}", Origin=f"http://{NAME}")

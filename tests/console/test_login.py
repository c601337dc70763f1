"""Who may open the console: keys with the admin scope, and without keys only this machine's own pages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from support.console import OpenedConsole, opened_console
from support.gateway import Answer, run

from toolglot.config import KeyHash, make_key
from toolglot.gateway.key_guesses import ALL_LOGIN_GUESSES, CLIENT_GUESSES, LOGIN_GUESSES
from toolglot.store import open_store
from toolglot.store.interface import ADMIN, KeyRow, Store
from toolglot.store.sql_store import SqlStore

ADMIN_KEY, CLIENT_KEY = (make_key(Random(seed).randbytes) for seed in (1, 2))
KEYS: dict[str, Any] = {"admin_keys": str(KeyHash.of(ADMIN_KEY)), "client_keys": str(KeyHash.of(CLIENT_KEY))}


async def log_in(console: OpenedConsole, key: str, **headers: str) -> Answer:
    return await console.call("/login", "POST", {"key": key}, **headers)


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def test_without_a_login_there_is_only_the_page(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            page = await console.call("/console")
            assert page.status == 200 and b"<title>toolglot console" in page.body
            assert (await console.call("/console/assets/app.js")).status == 200
            state = (await console.call("/state")).json
            assert state == {"login_required": True, "login_possible": True, "logged_in": False}
            for path in ("/sessions", "/sessions/x", "/turns/x", "/live", "/replay/options", "/turns/x/snippets"):
                assert (await console.call(path)).status == 401, path
            assert (await console.call("/turns/x/replay", "POST", {})).status == 401
            assert (await console.call("/sessions/x", "DELETE")).status == 401
            assert (await console.call("/sessions/x/export")).status == 401

    run(test)


def test_a_login_gives_a_cookie_that_opens_the_console(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            answer = await log_in(console, ADMIN_KEY)
            given = answer.headers["set-cookie"]
            assert answer.status == 200 and "HttpOnly" in given and "SameSite=Strict" in given
            assert "Path=/console" in given and "Secure" not in given
            assert ADMIN_KEY not in given and KeyHash.of(ADMIN_KEY).digest.hex() not in given
            console.headers["cookie"] = f"other=1; {cookie_of(answer)}"
            assert (await console.get("/sessions"))["total"] == 0
            assert (await console.get("/state"))["logged_in"]
            out = await console.call("/logout", "POST", {})
            assert "Max-Age=0" in out.headers["set-cookie"]

    run(test)


def test_logging_out_ends_the_login_and_no_other(tmp_path: Path) -> None:
    """A copy of the cookie opens nothing any more; another login with the same key goes on."""

    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            copied, other = [cookie_of(await log_in(console, ADMIN_KEY)) for _ in range(2)]
            assert (await console.call("/sessions", cookie=copied)).status == 200
            out = await console.call("/logout", "POST", {}, cookie=copied)
            assert out.json == {"ended": True}
            assert (await console.call("/sessions", cookie=copied)).status == 401
            assert not (await console.call("/state", cookie=copied)).json["logged_in"]
            assert (await console.call("/sessions", cookie=other)).status == 200
            assert (await console.call("/logout", "POST", {}, cookie=copied)).status == 200  # again

    run(test)


@pytest.mark.parametrize("state", ["kept", "none"])
def test_a_logout_holds_for_other_gateways_and_after_a_start(tmp_path: Path, state: str) -> None:
    """Two gateways with one store; without a store, this process only, which the answer says."""

    async def test() -> None:
        more: dict[str, Any] = {} if state == "kept" else {"state_dir": "none"}
        async with opened_console(tmp_path, **KEYS, **more) as one, opened_console(tmp_path, **KEYS, **more) as other:
            cookie = cookie_of(await log_in(one, ADMIN_KEY))
            for console in (one, other):
                assert (await console.call("/playground", "POST", {"text": "x"}, cookie=cookie)).status == 200
            assert (await one.call("/logout", "POST", {}, cookie=cookie)).json == {"ended": state == "kept"}
            assert (await one.call("/dialects", cookie=cookie)).status == 401
            if state == "kept":
                async with asyncio.timeout(10):
                    while (await other.call("/dialects", cookie=cookie)).status != 401:
                        await asyncio.sleep(0.05)
        async with opened_console(tmp_path, **KEYS, **more) as again:
            status = (await again.call("/dialects", cookie=cookie)).status
            assert status == (401 if state == "kept" else 200)

    run(test)


def test_live_updates_end_with_the_login(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            cookie = cookie_of(await log_in(console, ADMIN_KEY))
            async with console.http.get(f"{console.address}/console/api/live", headers={"cookie": cookie}) as live:
                assert live.status == 200
                await live.content.readany()
                await console.call("/logout", "POST", {}, cookie=cookie)
                async with asyncio.timeout(10):
                    await live.content.read()

    run(test)


def test_the_store_is_asked_about_a_login_once_a_second_and_never_for_assets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    find = SqlStore.find_kept

    async def note(store: SqlStore, owner: bytes, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        asked.append(owner)
        return await find(store, owner, keys)

    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            cookie = cookie_of(await log_in(console, ADMIN_KEY))
            monkeypatch.setattr(SqlStore, "find_kept", note)
            for name in ("app.js", "console.css", "lib/api.js"):
                await console.call(f"/console/assets/{name}", cookie=cookie)
            await console.call("/console", cookie=cookie)
            assert not asked
            began = time.monotonic()
            await asyncio.gather(*(console.call("/dialects", cookie=cookie) for _ in range(20)))
            assert len(asked) <= 1 + int(time.monotonic() - began)

    run(test)


@pytest.mark.parametrize("key", ["", "sk-wrong", ADMIN_KEY[:-1], ADMIN_KEY + "x", str(KeyHash.of(ADMIN_KEY)), "é" * 9])
def test_a_wrong_key_gives_nothing(tmp_path: Path, key: str) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            answer = await log_in(console, key)
            assert answer.status == 401 and "set-cookie" not in answer.headers

    run(test)


def test_a_client_key_has_no_admin_scope(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            assert (await log_in(console, CLIENT_KEY)).status == 403
            assert (await console.call("/sessions", authorization=f"Bearer {CLIENT_KEY}")).status == 403
            assert (await console.call("/sessions", authorization=f"Bearer {ADMIN_KEY}")).status == 200
            assert (await console.ask(key=ADMIN_KEY)).status == 200  # an admin key is a client key as well

    run(test)


@pytest.mark.parametrize(
    "forged",
    ["toolglot_console=", "toolglot_console=99999999999.00", "toolglot_console=99999999999." + "0" * 32 + ".00", "toolglot_console=x.y", "toolglot_console=²²²²²²²²²²²².ab",
     "toolglot_console=" + "9" * 5000 + ".ab", 'toolglot_console="99999999999.é"', "=;=;;", "toolglot_console"],
)  # fmt: skip
def test_forged_cookies(tmp_path: Path, forged: str) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            assert (await console.call("/sessions", cookie=forged)).status == 401

    run(test)


def test_a_changed_or_expired_cookie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            cookie = cookie_of(await log_in(console, ADMIN_KEY))
            name, _, value = cookie.partition("=")
            expires, login, signature = value.split(".")
            for changed in (f"{int(expires) + 1}.{login}", f"{expires}.{login[::-1]}", f"{expires}.", expires):
                assert (await console.call("/sessions", cookie=f"{name}={changed}.{signature}")).status == 401
            assert (await console.call("/sessions", cookie=cookie)).status == 200
            monkeypatch.setattr("toolglot.console.login.LOGIN_SECONDS", 0)
            ended = cookie_of(await log_in(console, ADMIN_KEY))
            assert (await console.call("/sessions", cookie=ended)).status == 401

    run(test)


def test_a_key_of_the_store_opens_the_console_until_it_is_revoked(tmp_path: Path) -> None:
    async def test() -> None:
        store = open_store("sqlite:toolglot.db", state_folder=tmp_path, now=time.time)
        assert store is not None
        await store.open()
        row = KeyRow(name="root", hash=str(KeyHash.of(ADMIN_KEY)), created=1.0, scope=ADMIN)
        await store.save_key(row)
        await store.save_key(KeyRow(name="app", hash=str(KeyHash.of(CLIENT_KEY)), created=1.0))
        assert (await store.list_keys())[1] == row
        async with opened_console(tmp_path) as console:
            assert (await log_in(console, CLIENT_KEY)).status == 403
            console.headers["cookie"] = cookie_of(await log_in(console, ADMIN_KEY))
            await console.get("/sessions")
            await revoke(store, console)
        await store.close()

    async def revoke(store: Store, console: OpenedConsole) -> None:
        await store.delete_key("root")
        end = time.monotonic() + 10
        while (status := (await console.call("/sessions")).status) == 200 and time.monotonic() < end:
            await asyncio.sleep(0.05)
        assert status == 401
        assert not (await console.call("/state")).json["login_possible"]

    run(test)


def test_behind_https_the_cookie_is_secure(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            host = console.address.removeprefix("http://")
            answer = await log_in(console, ADMIN_KEY, origin=f"https://{host}")
            assert "; Secure" in answer.headers["set-cookie"]

    run(test)


FOREIGN = (
    {"origin": "https://evil.example"},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"x_toolglot_console": "0"},
    {"origin": "null"},
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "no keys"])
def test_pages_of_other_sites_change_nothing(tmp_path: Path, keyed: bool, headers: dict[str, str]) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **(KEYS if keyed else {})) as console:
            if keyed:
                console.headers["cookie"] = cookie_of(await log_in(console, ADMIN_KEY))
            await console.ask(key=ADMIN_KEY)
            session = (await console.only_session())["session"] if not keyed else {"id": "x"}
            path = f"/sessions/{session['id']}"
            assert (await console.call(path, "DELETE", **headers)).status == 403
            assert (await log_in(console, ADMIN_KEY, **headers)).status == 403
            if "sec_fetch_site" in headers:
                assert (await console.call("/sessions", **headers)).status == 403

    run(test)


def test_without_keys_only_loopback_is_served(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path) as console:
            assert (await console.call("/sessions")).status == 200
            for path in ("/console", "/console/assets/app.js", "/console/api/state", "/console/api/sessions"):
                assert (await console.call(path, host="evil.example")).status == 403, path
                assert (await console.call(path, origin="http://evil.example")).status == 403, path

    run(test)


# -- guessing ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No try is given back while a test runs."""
    monkeypatch.setattr("toolglot.server.app.monotonic", lambda: 1000.0)


async def log_in_from(console: OpenedConsole, address: str, key: str) -> Answer:
    """Log in from another address of this machine."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0))
    async with aiohttp.ClientSession(connector=connector) as http:
        return await log_in(OpenedConsole(console.address, http), key)


@pytest.mark.usefixtures("stopped_clock")
def test_logins_are_limited_by_address(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            cookie = cookie_of(await log_in(console, ADMIN_KEY))
            statuses = [(await log_in(console, f"guess {number}")).status for number in range(LOGIN_GUESSES + 5)]
            assert statuses == [401] * LOGIN_GUESSES + [429] * 5
            refused = await log_in(console, ADMIN_KEY)
            assert refused.status == 429 and 0 < int(refused.headers["retry-after"]) <= 60
            assert "set-cookie" not in refused.headers
            assert refused.json["error"]["message"].startswith("Too many wrong keys")
            assert (await console.call("/sessions", cookie=cookie)).status == 200, "a login goes on"
            assert (await console.call("/state")).status == 200, "the page can be shown"
            assert (await log_in_from(console, "127.0.0.2", ADMIN_KEY)).status == 200
            assert (await log_in_from(console, "127.0.0.2", CLIENT_KEY)).status == 403

    run(test)


@pytest.mark.parametrize("path", ["/state", "/sessions", "/live", "/turns/x"])
@pytest.mark.usefixtures("stopped_clock")
def test_the_console_is_no_other_way_to_guess(path: str, tmp_path: Path) -> None:
    """Programs may present the key itself."""

    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            assert (await console.call("/sessions", x_api_key=ADMIN_KEY)).status == 200
            statuses = [
                (await console.call(path, authorization=f"Bearer guess-{number}")).status
                for number in range(LOGIN_GUESSES + 5)
            ]
            assert statuses[LOGIN_GUESSES:] == [429] * 5 and 429 not in statuses[:LOGIN_GUESSES]
            assert (await log_in(console, ADMIN_KEY)).status == 429
            assert (await console.call("/sessions", x_api_key=CLIENT_KEY)).status == 429
            assert (await console.call("/sessions", x_api_key=ADMIN_KEY)).status == 200, "it was used before"
            assert (await console.ask(key=CLIENT_KEY)).status == 200

    run(test)


@pytest.mark.usefixtures("stopped_clock")
def test_logins_are_limited_in_all(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            compared = 0
            for host in range(2, 20):
                connector = aiohttp.TCPConnector(local_addr=(f"127.0.0.{host}", 0))
                async with aiohttp.ClientSession(connector=connector) as http:
                    other = OpenedConsole(console.address, http)
                    for number in range(LOGIN_GUESSES + 1):
                        compared += (await log_in(other, f"guess {host} {number}")).status == 401
            assert compared == ALL_LOGIN_GUESSES

    run(test)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/records", "/metrics", "/nowhere", "/v1/chat/completions"])
@pytest.mark.usefixtures("stopped_clock")
def test_client_keys_cannot_be_guessed_without_limit(path: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, **KEYS) as console:
            assert (await console.ask(key=CLIENT_KEY)).status == 200

            async def present(key: str) -> int:
                method = "POST" if path.endswith("completions") else "GET"
                async with console.http.request(method, console.address + path, headers={"x-api-key": key}) as answer:
                    return answer.status

            statuses = [await present(f"guess-{number}") for number in range(CLIENT_GUESSES + 5)]
            assert statuses == [401] * CLIENT_GUESSES + [429] * 5
            assert await present(ADMIN_KEY) == 429, "a right key that is new is not compared either"
            assert await present("") == 401, "no key is no guess"
            assert (await console.ask(key=CLIENT_KEY)).status == 200, "a client that works goes on"

    run(test)

"""Read-only mode: nothing that changes something is answered, by whatever path the console could ask for it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.console import CHANGE, OpenedConsole, opened_console
from support.gateway import Answer, run

from toolglot.config import KeyHash, load, make_key
from toolglot.console.app import open_console
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.server.app import Gateway
from toolglot.server.router import ANY_METHOD

ADMIN_KEY = make_key(Random(1).randbytes)
CHANGES_NOTHING = {
    "/console/api/login",
    "/console/api/logout",
    "/console/api/playground",
    "/console/api/rollout/preview",
}
ASKED_BY_PAGES = {"sec-fetch-site": "same-origin"}
RECOVERED = {"model": "sim", "name": "reading", "plan": "canary-40"}
"""A body that every change accepts as far as it can."""


def list_changes() -> list[tuple[str, str]]:
    """Every route of a gateway with the console that is not only read."""
    settings = load({"base_url": "http://127.0.0.1:1/v1", "state_dir": "none"}, {})
    routes = Gateway(settings, Telemetry(), mount=open_console).router.list_routes()
    return sorted({(method, path) for method, path, _ in routes if method not in ("GET", "HEAD", ANY_METHOD)})


def fill(path: str, session: str, turn: str) -> str:
    """A path with the ids of what there is."""
    return (
        path.replace("/sessions/{id:[^/]+}", f"/sessions/{session}")
        .replace("/sessions/{id:.+}", f"/sessions/{session}")
        .replace("/turns/{id:[^/]+}", f"/turns/{turn}")
    )


async def try_change(console: OpenedConsole, method: str, path: str, headers: dict[str, str]) -> Answer:
    async with console.http.request(
        method, console.address + path, json=RECOVERED, headers={**CHANGE, **headers}
    ) as response:
        return Answer(response.status, response.headers, await response.read())


async def describe(console: OpenedConsole) -> Any:
    """What can be changed: sessions and their turns, routes, rollout."""
    found = await console.only_session()
    return [found, await console.get("/routes"), await console.get("/rollout")]


def test_there_are_changes() -> None:
    listed = {path for _, path in list_changes()}
    assert {"/console/api/sessions/{id:[^/]+}", "/v1/sessions/{id:.+}", "/console/api/rollout"} <= listed
    assert listed >= CHANGES_NOTHING


@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "no keys"])
def test_nothing_is_changed(tmp_path: Path, keyed: bool) -> None:
    """With the cookie of a login; without keys, from the console's page, which needs none."""

    async def test() -> None:
        settings: dict[str, Any] = {"admin_keys": str(KeyHash.of(ADMIN_KEY))} if keyed else {}
        async with opened_console(tmp_path, console_read_only="true", **settings) as console:
            await console.ask(key=ADMIN_KEY)
            headers = dict(ASKED_BY_PAGES)
            if keyed:
                login = await console.call("/login", "POST", {"key": ADMIN_KEY})
                headers["cookie"] = login.headers["set-cookie"].partition(";")[0]
                console.headers |= {"authorization": f"Bearer {ADMIN_KEY}"}
            before = await describe(console)
            session, turn = before[0]["session"]["id"], before[0]["turns"][0]["id"]
            for method, path in list_changes():
                if path in CHANGES_NOTHING:
                    continue
                answer = await try_change(console, method, fill(path, session, turn), headers)
                own = 403 if path.startswith("/console") or not keyed else 401
                assert answer.status == own, f"{method} {path}: {answer.status} {answer.body[:200]!r}"
            assert await describe(console) == before
            assert (await console.get("/state"))["read_only"]

    run(test)


@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "no keys"])
def test_clients_keep_what_they_may_do(tmp_path: Path, keyed: bool) -> None:
    async def test() -> None:
        settings: dict[str, Any] = {"admin_keys": str(KeyHash.of(ADMIN_KEY))} if keyed else {}
        async with opened_console(tmp_path, console_read_only="true", **settings) as console:
            assert (await console.ask(key=ADMIN_KEY)).status == 200
            console.headers |= {"authorization": f"Bearer {ADMIN_KEY}"}
            session = (await console.only_session())["session"]["id"]
            answer = await try_change(console, "DELETE", f"/v1/sessions/{session}", dict(console.headers))
            assert answer.status == 200

    run(test)


def test_pages_of_other_ports_of_this_machine_may_ask_models(tmp_path: Path) -> None:
    """Without keys they could before, and they are not the console."""

    async def test() -> None:
        async with opened_console(tmp_path, console_read_only="true") as console:
            body = {"model": "sim", "messages": [{"role": "user", "content": "Hi"}]}
            for origin, status in (("http://localhost:3000", 200), (console.address, 403)):
                url = f"{console.address}/v1/chat/completions"
                async with console.http.post(url, json=body, headers={"origin": origin}) as response:
                    assert response.status == status

    run(test)

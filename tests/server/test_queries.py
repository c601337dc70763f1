"""The endpoints of records and sessions, over a real server and a real store."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.gateway import ASK, Answer, Gate, gateway, run

from toolglot.config import make_key, owner_of
from toolglot.sim import SimOptions
from toolglot.store import open_store
from toolglot.store.interface import ChainNode, RecordQuery, RecordRow, SessionRow, Store

KEYS = [make_key(Random(seed).randbytes) for seed in (1, 2)]
STREAM = {**ASK, "stream": True}
WAIT = 10.0


async def records(gate: Gate, query: str = "", **headers: str) -> list[dict[str, Any]]:
    answer = await gate.get(f"/v1/records{query}", **headers)
    assert answer.status == 200, answer.body
    listed: list[dict[str, Any]] = answer.json["data"]
    return listed


async def wait_for_records(gate: Gate, count: int, **headers: str) -> list[dict[str, Any]]:
    """The records, as soon as there are so many: an abandoned request ends a moment after its client."""
    end = time.monotonic() + WAIT
    while len(found := await records(gate, **headers)) < count and time.monotonic() < end:
        await asyncio.sleep(0.02)
    return found


async def reopen(folder: Path) -> Store:
    """The same store, as another process sees it."""
    store = open_store("sqlite:toolglot.db", state_folder=folder, now=time.time)
    assert store is not None
    await store.open()
    return store


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def session(name: str, key: str = "") -> SessionRow:
    owner = owner_of(key) if key else b""
    return SessionRow(id=name, owner=owner, created=1.0, used=1.0, turns=0, model="sim", upstream="default")


def row(number: int, key: str = "", session: str = "") -> RecordRow:
    owner = owner_of(key) if key else b""
    data = json.dumps({"request_id": f"r{number}", "session": session}).encode()
    return RecordRow(
        id=f"rec_{number:030x}", request_id=f"r{number}", owner=owner, session=session, time=time.time(),
        wire="openai_chat", model="sim", upstream="default", status=200, outcome="ok", data=data,
    )  # fmt: skip


def test_an_answer_has_a_record_that_its_request_id_finds(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            whole = await gate.ask(x_request_id="my request/1")
            streamed = await gate.ask(STREAM)
            newest, oldest = await records(gate)
            assert newest["request_id"] == streamed.headers["x-request-id"]
            assert (oldest["request_id"], oldest["stream"], newest["stream"]) == ("my request/1", False, True)
            for one in (newest, oldest):
                assert (one["object"], one["outcome"], one["status"], one["tools"]) == ("record", "ok", 200, ["read"])
                assert one["duration"] > 0 and one["finish"] == "tool_calls"
            assert oldest["usage"]["total_tokens"] > 0
            for name in (oldest["id"], "my request/1", "my%20request%2F1"):
                assert (await gate.get(f"/v1/records/{name}")).json == oldest
            assert whole.status == 200 and "bodies" not in oldest
        assert {path.name for path in tmp_path.iterdir()} >= {"toolglot.db"}

    run(test)


def test_records_survive_a_restart_and_ids_keep_growing(tmp_path: Path) -> None:
    async def test() -> None:
        ids: list[str] = []
        for _ in range(2):
            async with gateway(state_dir=str(tmp_path)) as gate:
                await gate.ask()
                ids.append((await records(gate))[0]["id"])
        assert ids == sorted(set(ids))

    run(test)


def test_shutdown_writes_what_is_queued(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            await asyncio.gather(*(gate.ask() for _ in range(20)))
        store = await reopen(tmp_path)
        assert len(await store.list_records(None, RecordQuery(limit=100))) == 20
        await store.close()

    run(test)


REFUSED: dict[str, tuple[Any, dict[str, str], int, str]] = {
    "bad JSON": (b"{", {}, 400, "invalid_request"),
    "too deep": (b'{"messages":' + b"[" * 100_000, {}, 400, "invalid_request"),
    "no messages": ({"model": "sim"}, {}, 400, "invalid_request"),
    "too large": (b" " * 3000, {}, 413, "request_too_large"),
    "unknown encoding": (b"{}", {"content_encoding": "br"}, 400, "invalid_request"),
    "origin": (ASK, {"origin": "https://example.org"}, 403, "forbidden_origin"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_requests_have_records(tmp_path: Path, name: str) -> None:
    body, headers, status, code = REFUSED[name]
    limit = "2000" if name == "too large" else "1 MiB"

    async def test() -> None:
        async with gateway(state_dir=str(tmp_path), limit_body_bytes=limit) as gate:
            answer = await gate.ask(body, **headers)
            assert answer.status == status
            (found,) = await records(gate, "?outcome=refused")
            assert (found["status"], found["error"], found["outcome"]) == (status, code, "refused")
            assert await records(gate, "?outcome=ok") == []

    run(test)


def test_unknown_models_rate_limits_and_overload_have_records(tmp_path: Path) -> None:
    async def test() -> None:
        options = SimOptions(latency=500)
        async with gateway(
            options, state_dir=str(tmp_path), model={"name": "known"},
            limit_requests_per_minute=3, limit_open_requests=1, limit_queued_requests=0,
        ) as gate:  # fmt: skip
            assert (await gate.ask({**ASK, "model": "nobody"})).status == 404
            ask = {**ASK, "model": "known"}
            assert sorted([one.status for one in await asyncio.gather(gate.ask(ask), gate.ask(ask))]) == [200, 503]
            assert (await gate.ask(ask)).status == 429
            found = {(one["status"], one["error"], one["outcome"]) for one in await records(gate)}
            assert found == {
                (404, "model_not_found", "refused"),
                (503, "overloaded", "refused"),
                (429, "rate_limit_exceeded", "refused"),
                (200, "", "ok"),
            }

    run(test)


async def _fail(request: web.Request) -> web.StreamResponse:
    how = request.headers.get("x-request-id", "")
    if how.startswith("status"):
        return web.json_response({"error": {"message": "no", "code": "nope"}}, status=int(how[6:]))
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    chunk = {"choices": [{"index": 0, "delta": {"content": "Let me see"}, "finish_reason": None}]}
    await response.write(b"data: %b\n\n" % json.dumps(chunk).encode())
    if how == "hangs":
        await asyncio.sleep(WAIT)
    return response


def failing() -> web.Application:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _fail)
    return app


def test_failed_and_abandoned_requests_have_records(tmp_path: Path) -> None:
    plain = {"model": "sim", "messages": [{"role": "user", "content": "Hello"}], "stream": True}

    async def test() -> None:
        async with gateway(app=failing(), state_dir=str(tmp_path), mode="native") as gate:
            for status in (400, 401, 429, 500):
                await gate.ask(plain, x_request_id=f"status{status}")
            await gate.ask(plain, x_request_id="cut")
            timeout = aiohttp.ClientTimeout(total=0.5)
            with pytest.raises(TimeoutError):
                url, headers = f"{gate.address}/v1/chat/completions", {"x-request-id": "hangs"}
                async with gate.session.post(url, json=plain, headers=headers, timeout=timeout) as response:
                    await response.read()
            found = {one["request_id"]: one for one in await wait_for_records(gate, 6)}
            assert {name: (one["outcome"], one["status"]) for name, one in found.items()} == {
                **{f"status{status}": ("failed", status) for status in (400, 401, 429, 500)},
                "cut": ("failed", 200),
                "hangs": ("abandoned", 499),
            }
            assert found["cut"]["error"] == "upstream_closed"

    run(test)


def test_requests_without_a_valid_key_are_recorded_for_the_operator_only(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path), client_keys=",".join(KEYS)) as gate:
            assert (await gate.ask()).status == 401
            assert (await gate.ask(**bearer("sk-wrong-0123456789"))).status == 401
            for key in KEYS:
                assert await records(gate, **bearer(key)) == []
        store = await reopen(tmp_path)
        found = await store.list_records(None, RecordQuery())
        assert [(one.status, one.outcome) for one in found] == [(401, "refused")] * 2
        assert not {one.owner for one in found} & {b"", *map(owner_of, KEYS), owner_of("sk-wrong-0123456789")}
        await store.close()

    run(test)


def test_requests_without_a_valid_key_cannot_fill_the_store(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path), client_keys=KEYS[0]) as gate:
            for _ in range(4):
                await asyncio.gather(*(gate.ask(b"") for _ in range(100)))
            metrics = (await gate.get("/metrics", **bearer(KEYS[0]))).body.decode()
        store = await reopen(tmp_path)
        kept = len(await store.list_records(None, RecordQuery(limit=1000)))
        await store.close()
        assert 120 <= kept <= 240  # a minute may end in between
        assert f'toolglot_records_dropped_total{{reason="unauthenticated"}} {400 - kept}.0' in metrics

    run(test)


def test_a_key_sees_only_its_own_rows(tmp_path: Path) -> None:
    async def test() -> None:
        mine, other = map(bearer, KEYS)
        async with gateway(state_dir=str(tmp_path), client_keys=",".join(KEYS)) as gate:
            store = await reopen(tmp_path)
            for name, key in zip(("ses_a", "ses_b"), KEYS, strict=True):
                await store.add_session(session(name, key), [ChainNode(key=name.encode(), session=name)])
            await store.add_records([row(1, KEYS[0], "ses_a"), row(2, KEYS[1], "ses_b")])
            await gate.ask(x_request_id="same", **mine)
            await gate.ask(x_request_id="same", **other)
            theirs = await records(gate, **other)
            assert len(theirs) == 2
            for one in theirs:
                assert (await gate.get(f"/v1/records/{one['id']}", **mine)).status == 404
                assert (await gate.get(f"/v1/records/{one['id']}", **other)).status == 200
                listed = await records(gate, f"?before={one['id']}", **mine)
                assert not {found["id"] for found in listed} & {found["id"] for found in theirs}
            same = [(await gate.get("/v1/records/same", **key)).json["id"] for key in (mine, other)]
            assert same[0] != same[1] == theirs[0]["id"]
            assert await records(gate, "?session=ses_b", **mine) == []
            assert [one["id"] for one in (await gate.get("/v1/sessions", **mine)).json["data"]] == ["ses_a"]
            assert [one["id"] for one in (await gate.get("/v1/sessions?before=ses_c", **mine)).json["data"]] == [
                "ses_a"
            ]
            for method in ("GET", "DELETE"):
                foreign, missing = [
                    await gate.get(f"/v1/sessions/{name}", method, **mine) for name in ("ses_b", "ses_x")
                ]
                assert foreign.status == missing.status == 404
                assert foreign.body.replace(b"ses_b", b"ses_x") == missing.body
            assert (await gate.get("/v1/sessions/ses_b", **other)).status == 200
            for path in ("/v1/records", f"/v1/records/{theirs[0]['id']}", "/v1/sessions", "/v1/sessions/ses_a"):
                assert (await gate.get(path)).status == 401
            assert (await gate.get("/v1/sessions/ses_a", "DELETE")).status == 401
            await store.close()

    run(test)


def test_a_session_shows_its_records_and_is_deleted_with_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            store = await reopen(tmp_path)
            await store.add_session(session("ses_1"), [])
            await store.add_records([row(number, session="ses_1") for number in range(1, 61)] + [row(61)])
            shown = (await gate.get("/v1/sessions/ses_1")).json
            assert (shown["id"], shown["object"], shown["turns"], shown["model"]) == ("ses_1", "session", 60, "sim")
            assert "owner" not in shown
            assert [one["request_id"] for one in shown["records"]["data"]] == [f"r{n}" for n in range(60, 10, -1)]
            rest = await records(gate, f"?session=ses_1&before={shown['records']['next']}")
            assert [one["request_id"] for one in rest] == [f"r{n}" for n in range(10, 0, -1)]
            deleted = await gate.get("/v1/sessions/ses_1", "DELETE")
            assert deleted.json == {"id": "ses_1", "object": "session", "deleted": True}
            assert (await gate.get("/v1/sessions/ses_1", "DELETE")).status == 404
            assert [one["request_id"] for one in await records(gate)] == ["r61"]
            await store.close()

    run(test)


def test_pages_have_every_record_once_while_requests_go_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            for _ in range(5):
                await asyncio.gather(*(gate.ask() for _ in range(5)))
            first = {one["id"] for one in await records(gate)}
            assert len(first) == 25
            seen: list[str] = []
            query = "?limit=4"
            while True:
                page = (await gate.get(f"/v1/records{query}")).json
                seen += [one["id"] for one in page["data"]]
                await asyncio.gather(*(gate.ask() for _ in range(2)))
                if not page["has_more"]:
                    assert page["next"] is None
                    break
                query = f"?limit=4&before={page['next']}"
            assert seen == sorted(seen, reverse=True)
            assert len(seen) == len(set(seen))
            assert first == set(seen)

    run(test)


def test_filters(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            await gate.ask({**ASK, "model": "a"})
            await gate.ask({**ASK, "model": "b & c/d"})
            await gate.ask(b"{")
            assert [one["model"] for one in await records(gate, "?model=a")] == ["a"]
            assert [one["model"] for one in await records(gate, "?model=b%20%26%20c%2Fd&outcome=ok")] == ["b & c/d"]
            assert await records(gate, "?model=a&outcome=failed") == []
            assert await records(gate, "?model=A") == []
            assert len(await records(gate, "?limit=&model=&outcome=")) == 3

    run(test)


BAD = (
    *("limit=0", "limit=-1", "limit=501", "limit=x", "limit=1.5", "limit=%D9%A1", "limit=" + "9" * 5000),
    *("outcome=good", "before=x", "before=rec_1", "before=%00", "model=%00", "session=a%0Ab", "model=" + "m" * 501),
    *("befor=rec_1", "%FF=1", "offset=3"),
)


@pytest.mark.parametrize("query", BAD)
def test_bad_parameters_are_refused(tmp_path: Path, query: str) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            answer = await gate.get(f"/v1/records?{query}")
            assert answer.status == 400
            assert answer.error["type"] == "invalid_request_error"
            name = query.partition("=")[0]
            assert name in answer.error["message"] or name == "%FF"

    run(test)


@pytest.mark.parametrize(
    "name", ["x", "%00", "%ff", "a%20b", "rec_" + "0" * 30, "'; DROP TABLE records; --", "x" * 5000]
)
def test_ids_that_do_not_exist(tmp_path: Path, name: str) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            for what in ("records", "sessions"):
                answer = await gate.get(f"/v1/{what}/{name}")
                assert (answer.status, answer.error["type"]) == (404, "not_found_error")

    run(test)


@pytest.mark.parametrize("settings", [{"store_url": "none"}, {"state_dir": "none"}])
def test_without_a_store_the_endpoints_name_the_setting(tmp_path: Path, settings: dict[str, Any]) -> None:
    async def test() -> None:
        given: dict[str, Any] = {"state_dir": str(tmp_path), **settings}
        async with gateway(**given) as gate:
            assert (await gate.ask()).status == 200
            answers: list[Answer] = [
                await gate.get(f"/v1/{path}") for path in ("records", "records/x", "sessions", "sessions/x")
            ]
            answers.append(await gate.get("/v1/sessions/x", "DELETE"))
            for answer in answers:
                assert answer.status == 404
                assert "store.url" in answer.error["message"]
            assert (await gate.get("/health/readiness")).json == {"status": "ready", "store": "none"}
        assert not list(tmp_path.glob("*.db*"))

    run(test)


def test_queries_obey_the_origin_rule(tmp_path: Path) -> None:
    async def test() -> None:
        async with gateway(state_dir=str(tmp_path)) as gate:
            for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
                for path in ("records", "sessions", "records/x"):
                    assert (await gate.get(f"/v1/{path}", **headers)).status == 403
                assert (await gate.get("/v1/sessions/x", "DELETE", **headers)).status == 403

    run(test)

"""What a tester tried against the console: odd texts, large logins, forged cookies, work that takes long."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
import time
from hashlib import sha256
from pathlib import Path

import pytest
from support.console import CHANGE, opened_console
from support.gateway import run

from toolglot.config import KeyHash, load
from toolglot.console import work
from toolglot.console.login import COOKIE, LOGIN_SECONDS, SECRET_FILE, make_secret
from toolglot.core.errors import OverloadError
from toolglot.sim import SimOptions
from toolglot.sim.answer import Answer
from toolglot.sim.script import ScriptedAnswer

KEY = "tg-admin-0123456789abcdef"


def sign(secret: bytes, digest: bytes, seconds: int) -> str:
    """The value of a cookie, as one who has the secret makes it."""
    signed = f"{int(time.time()) + seconds}.{'0' * 32}"
    return f"{signed}.{hmac.new(secret, b'%b %b' % (digest, signed.encode()), 'sha256').hexdigest()}"


def test_lone_surrogates_of_a_model_are_shown_and_exported(tmp_path: Path) -> None:
    async def test() -> None:
        script = (ScriptedAnswer(Answer(text="odd \ud800 text")),)
        async with opened_console(tmp_path, SimOptions(script=script)) as console:
            await console.ask()
            [summary] = (await console.only_session())["turns"]
            turn = await console.get(f"/turns/{summary['id']}")
            assert "odd" in json.dumps(turn)
            session = (await console.only_session())["session"]["id"]
            exported = await console.call(f"/sessions/{session}/export")
            assert exported.status == 200 and b"odd" in exported.body

    run(test)


def test_a_login_without_guard_or_with_a_large_body_is_refused_unread(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened_console(tmp_path, admin_keys=str(KeyHash.of(KEY))) as console:
            url = f"{console.address}/console/api/login"
            body = json.dumps({"key": KEY}).encode()
            for data, headers, status in (
                (body, {}, 403),
                (body + b" " * 5000, CHANGE, 400),
                (body, CHANGE, 200),
            ):
                async with console.http.post(url, data=data, headers=headers) as response:
                    assert response.status == status
            reader, writer = await asyncio.open_connection("127.0.0.1", int(console.address.rpartition(":")[2]))
            writer.write(b"POST /console/api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 33000000\r\n\r\n{")
            assert b" 403 " in await asyncio.wait_for(reader.readline(), 5)  # nothing of the body was waited for
            writer.close()

    run(test)


@pytest.mark.parametrize("upstream_key", ["", "sk-upstream-0123456789"])
def test_a_cookie_cannot_be_made_from_the_hash_of_a_key(tmp_path: Path, upstream_key: str) -> None:
    async def test() -> None:
        digest = KeyHash.of(KEY).digest
        known = sha256(b"toolglot console\0").digest(), sha256(b"toolglot console").digest()
        async with opened_console(tmp_path, admin_keys=str(KeyHash.of(KEY)), api_key=upstream_key) as console:
            for secret in known:
                signed = sign(secret, digest, 100)
                assert (await console.call("/sessions", cookie=f"{COOKIE}={signed}")).status == 401

    run(test)


def test_a_cookie_that_lasts_too_long_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        arguments = {"state_dir": str(tmp_path), "base_url": "http://127.0.0.1:1/v1"}
        async with opened_console(tmp_path, admin_keys=str(KeyHash.of(KEY))) as console:
            secret = make_secret(load(arguments, {}))
            for seconds, status in ((LOGIN_SECONDS - 10, 200), (LOGIN_SECONDS + 1000, 401), (10**15, 401)):
                signed = sign(secret, KeyHash.of(KEY).digest, seconds)
                assert (await console.call("/sessions", cookie=f"{COOKIE}={signed}")).status == status

    run(test)


def test_the_secret_is_the_same_for_all_processes_and_private(tmp_path: Path) -> None:
    settings = load({"state_dir": str(tmp_path), "base_url": "http://127.0.0.1:1/v1"}, {})
    assert make_secret(settings) == make_secret(settings)
    assert (tmp_path / SECRET_FILE).stat().st_mode & 0o077 == 0
    (tmp_path / SECRET_FILE).write_bytes(b"short")
    assert make_secret(settings) != sha256(b"toolglot console" + b"short").digest()


def test_work_of_the_console_is_bounded_and_leaves_others_their_threads(tmp_path: Path) -> None:
    async def test() -> None:
        waiting = [asyncio.create_task(work.run(time.sleep, 0.02)) for _ in range(work.MAX_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(OverloadError):
            await work.run(time.sleep, 0)
        await asyncio.gather(*waiting)
        async with opened_console(tmp_path) as console:
            released = threading.Event()
            slow = [asyncio.create_task(work.run(released.wait, 60)) for _ in range(4)]
            assert (await console.ask("Read " + "x" * 20_000)).status == 200
            assert not any(one.done() for one in slow)
            released.set()
            assert await asyncio.gather(*slow) == [True] * 4

    run(test)

"""Client keys, the rollout and learned failures in the store: read by all gateways that share it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.replicas import make_settings
from support.stores import Place, until
from support.thinking_upstream import Thinker

from toolglot.cli.main import main
from toolglot.config import KeyHash, LiveReload, Settings
from toolglot.config.keys import ClientKeys, StoredKey
from toolglot.config.rollout import Rollout, read_plan
from toolglot.config.shared_rollout import change_rollout, decode_rollout, fingerprint
from toolglot.core.errors import UsageError
from toolglot.gateway.capabilities.learned import FILE_NAME, LearnedFailures
from toolglot.gateway.telemetry.log import Telemetry
from toolglot.gateway.telemetry.record_writer import RecordWriter
from toolglot.server.app import Gateway
from toolglot.server.lifecycle import listening
from toolglot.server.shared_state import KEY_MARKER
from toolglot.sim import running
from toolglot.store.interface import FailureRow, KeyRow, Store

ONE, OTHER = "sk-one-is-long-enough", "sk-other-is-long-enough"
DEAD = "postgresql://user:secret@127.0.0.1:1/none"


def key_row(name: str, key: str, expires: float = 0.0) -> KeyRow:
    return KeyRow(name=name, hash=str(KeyHash.of(key)), created=1.0, expires=expires)


async def wait_for(condition: Callable[[], bool]) -> None:
    await asyncio.wait_for(until(condition), 20)


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Gateway]:
    """A gateway with its store, without a listener."""
    from toolglot.gateway.storage import make_store

    store = make_store(settings, {})
    telemetry = Telemetry()
    if store is not None:
        telemetry.writer = RecordWriter(store, telemetry.metrics, settings.store)
    gateway = Gateway(settings, telemetry)
    await gateway.start()
    try:
        yield gateway
    finally:
        await gateway.close()


async def get(address: str, key: str = "", host: str = "") -> int:
    headers = ({"authorization": f"Bearer {key}"} if key else {}) | ({"host": host} if host else {})
    async with aiohttp.ClientSession() as session, session.get(address + "/v1/models", headers=headers) as response:
        return response.status


# -- client keys -------------------------------------------------------------------------------------------------------


async def test_keys_of_the_store_admit_and_revoked_ones_do_not(place: Place) -> None:
    settings = make_settings(place, "http://127.0.0.1:1/v1")
    async with place_store(place) as store, listening(settings) as one, listening(settings) as other:
        assert await get(one) == await get(other) == 200  # no keys: this machine only
        assert await get(one, host="example.com") == 403
        await store.save_key(key_row("anna", ONE))
        await store.save_key(key_row("berta", OTHER))
        for address in (one, other):
            await asyncio.wait_for(reach(address, "", 401), 20)
            await asyncio.wait_for(reach(address, OTHER, 200), 20)
            assert [await get(address, key) for key in (ONE, OTHER, ONE + "x")] == [200, 200, 401]
            assert await get(address, ONE, host="example.com") == 200
        await store.delete_key("anna")
        for address in (one, other):
            await asyncio.wait_for(reach(address, ONE, 401), 20)
            assert await get(address, OTHER) == 200
        await store.delete_key("berta")
        for address in (one, other):
            await asyncio.wait_for(reach(address, OTHER, 401), 20)
            assert await get(address) == 401  # a gateway that had keys does not open


async def reach(address: str, key: str, status: int) -> None:
    while await get(address, key) != status:
        await asyncio.sleep(0.02)


@asynccontextmanager
async def place_store(place: Place) -> AsyncIterator[Store]:
    async with place.opened() as store:
        yield store


async def test_keys_of_settings_and_store_count_both(place: Place) -> None:
    async with place_store(place) as store:
        await store.save_key(key_row("anna", ONE))
        async with listening(make_settings(place, "http://127.0.0.1:1/v1", client_keys=OTHER)) as address:
            assert [await get(address, key) for key in (ONE, OTHER, "", "x")] == [200, 200, 401, 401]


async def test_an_expired_key_is_refused_and_admits_no_request(place: Place) -> None:
    async with place_store(place) as store:
        await store.save_key(key_row("anna", ONE, time.time() - 1))
        await store.save_key(key_row("berta", OTHER, time.time() + 1000))
        async with listening(make_settings(place, "http://127.0.0.1:1/v1")) as address:
            assert [await get(address, key) for key in (ONE, OTHER, "")] == [401, 200, 401]


def test_a_key_expires_while_the_gateway_runs() -> None:
    now = [100.0]
    keys = ClientKeys((), lambda: now[0])
    needed = [keys.required]
    keys.set_stored([StoredKey(KeyHash.of(ONE), 200.0)])
    needed.append(keys.required)
    assert needed == [False, True] and keys.admit(ONE) and not keys.admit("") and not keys.admit(OTHER)
    now[0] = 200.0
    assert not keys.admit(ONE)
    keys.set_stored([])
    assert keys.required and not keys.admit(ONE)


async def test_each_key_has_its_own_records(place: Place) -> None:
    thinker = Thinker(is_strict=False)
    async with place_store(place) as store, running(thinker.make_app()) as upstream:
        for name, key in (("anna", ONE), ("berta", OTHER)):
            await store.save_key(key_row(name, key))
        async with listening(make_settings(place, upstream + "/v1")) as address, aiohttp.ClientSession() as session:
            for key, count in ((ONE, 1), (OTHER, 2)):
                for _ in range(count):
                    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
                    headers = {"authorization": f"Bearer {key}"}
                    async with session.post(address + "/v1/chat/completions", json=body, headers=headers) as response:
                        assert response.status == 200
            for key, count in ((ONE, 1), (OTHER, 2)):
                async with session.get(address + "/v1/records", headers={"authorization": f"Bearer {key}"}) as response:
                    assert len((await response.json())["data"]) == count
    assert all("authorization" not in body for body in thinker.asked)


async def test_an_address_of_others_needs_a_key_in_settings_or_store(place: Place) -> None:
    settings = make_settings(place, "http://127.0.0.1:1/v1", host="0.0.0.0")
    with pytest.raises(UsageError, match="no client key"):
        async with listening(settings):
            raise AssertionError("it is open")
    async with place_store(place) as store:
        await store.save_key(key_row("anna", ONE))
    async with listening(settings) as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        assert [await get(local, key) for key in (ONE, "")] == [200, 401]


async def test_a_store_that_cannot_be_read_opens_no_address_of_others(place: Place) -> None:
    settings = make_settings(place, "http://127.0.0.1:1/v1", host="0.0.0.0", store_url=DEAD)
    with pytest.raises(UsageError):
        async with listening(settings):
            raise AssertionError("it is open")
    closed = make_settings(place, "http://127.0.0.1:1/v1", host="0.0.0.0", store_url=DEAD, require_key=True)
    async with listening(closed) as address:
        local = address.replace("0.0.0.0", "127.0.0.1")
        assert [await get(local, key) for key in ("", ONE)] == [401, 401]


async def test_a_gateway_that_has_seen_keys_stays_closed_without_its_store(place: Place) -> None:
    settings = make_settings(place, "http://127.0.0.1:1/v1")
    dead = make_settings(place, "http://127.0.0.1:1/v1", store_url=DEAD)
    async with listening(dead) as address:
        assert await get(address) == 200  # nothing says that there are keys; only this machine is served
    async with place_store(place) as store:
        await store.save_key(key_row("anna", ONE))
        async with listening(settings) as address:
            assert await get(address) == 401
        async with listening(dead) as address:
            assert [await get(address, key) for key in ("", ONE)] == [401, 401]
        await store.delete_key("anna")
    async with listening(settings) as address:
        assert await get(address) == 200
    assert not (place.folder / "state" / KEY_MARKER).exists()


async def test_the_last_known_keys_count_while_the_store_fails(place: Place) -> None:
    async with place_store(place) as store:
        await store.save_key(key_row("anna", ONE))
        async with started(make_settings(place, "http://127.0.0.1:1/v1")) as gateway:
            assert gateway.shared is not None
            broken = Broken(gateway.shared.store)
            gateway.shared.store = broken
            gateway.shared._note_change("keys")
            await wait_for(lambda: broken.asked > 0)
            assert gateway.access.keys.admit(ONE) and not gateway.access.keys.admit(OTHER)


class Broken:
    """A store that fails whatever it is asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: object) -> None:
            from toolglot.core.errors import StoreError

            self.asked += 1
            raise StoreError("broken")

        return fail


async def test_a_damaged_hash_admits_no_key(place: Place) -> None:
    async with place_store(place) as store:
        await store.save_key(KeyRow(name="anna", hash=ONE, created=1.0))
        async with listening(make_settings(place, "http://127.0.0.1:1/v1")) as address:
            assert [await get(address, key) for key in ("", ONE)] == [401, 401]


def test_the_commands_create_list_and_revoke(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    options = ["--store-url", url, "--state-dir", str(place.folder)]
    assert main(["key", "create", "--name", "anna", "--expires", "30d", *options]) == 0
    key = capsys.readouterr().out.split()[1]
    assert main(["key", "create", "--name", "anna", *options]) == 2 and "already" in capsys.readouterr().err
    for wrong in ("0d", "30", "d", "-1d", "1y", "9999999d"):
        assert main(["key", "create", "--name", "berta", f"--expires={wrong}", *options]) == 2
    assert main(["key", "list", *options]) == 0
    listed = capsys.readouterr().out
    assert "anna" in listed and "berta" not in listed and key not in listed

    async def admits() -> int:
        async with listening(make_settings(place, "http://127.0.0.1:1/v1")) as address:
            return await get(address, key)

    assert asyncio.run(admits()) == 200
    for file in place.folder.rglob("*"):
        assert file.is_dir() or key.encode() not in file.read_bytes()
    assert main(["key", "revoke", "anna", *options]) == 0
    assert main(["key", "revoke", "anna", *options]) == 2
    assert main(["key"]) == 0 and "hash: sha256:" in capsys.readouterr().out


# -- rollout -----------------------------------------------------------------------------------------------------------


def write_config(path: Path, rollout: str) -> Path:
    path.write_text(f"[rollout]\n{rollout}\n" if rollout else "", "utf-8")
    return path


def stages(settings: Settings) -> tuple[str, str]:
    now = settings.rollout_now
    return now.plan_of("reading").stage, now.plan_of("xml").stage


def have_stage(stage: str, *settings: Settings) -> bool:
    return all(stages(one)[0] == stage for one in settings)


async def test_a_changed_file_reaches_all_gateways(place: Place) -> None:
    file = write_config(place.folder / "one.toml", 'reading = "canary-10"')
    one, other = (make_settings(place, "http://127.0.0.1:1/v1", file, port=port) for port in (1, 2))
    other = make_settings(place, "http://127.0.0.1:1/v1", port=2)
    async with started(one), started(other):
        await wait_for(lambda: stages(other) == ("canary-10", "full"))
        reload = LiveReload(file, lambda: make_settings(place, "http://127.0.0.1:1/v1", file, port=1), one)
        write_config(file, 'reading = "canary-25"\nxml = "off"')
        assert reload.check()
        await wait_for(lambda: stages(other) == ("canary-25", "off") == stages(one))
    async with started(other := make_settings(place, "http://127.0.0.1:1/v1", port=2)):
        await wait_for(lambda: stages(other) == ("canary-25", "off"))


async def test_the_newest_change_wins_at_a_start(place: Place) -> None:
    def settings_of(port: int, rollout: str) -> Settings:
        file = write_config(place.folder / f"{port}.toml", rollout)
        return make_settings(place, "http://127.0.0.1:1/v1", file, port=port)

    async def start(port: int, rollout: str) -> str:
        settings = settings_of(port, rollout)
        async with started(settings) as gateway:
            assert gateway.shared is not None
            await wait_for(lambda: not gateway.shared._stale and gateway.shared.rollout._has_started)  # type: ignore[union-attr]
            return stages(settings)[0]

    assert await start(1, 'reading = "canary-10"') == "canary-10"
    assert await start(2, "") == "canary-10"  # a file that says nothing changes nothing
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    options = ["--store-url", url, "--state-dir", str(place.folder)]
    assert await asyncio.to_thread(main, ["rollout", "set", "reading", "canary-40", *options]) == 0
    assert await start(1, 'reading = "canary-10"') == "canary-40"  # its file is as old as before
    assert await start(3, 'reading = "canary-10"') == "canary-40"  # unknown, but so was the file of the first
    assert await start(1, 'reading = "canary-20"') == "canary-20"  # changed while it was down
    assert await start(2, "") == "canary-20"
    assert await start(1, 'reading = "canary-10"') == "canary-10"  # and changed back
    assert await start(3, 'reading = "canary-10"') == "canary-10"
    assert await start(1, "") == "full"  # the section was removed
    assert await start(4, 'reading = "canary-77"') == "canary-77"  # a new gateway with another rollout


async def test_a_command_reaches_running_gateways(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    options = ["--store-url", url, "--state-dir", str(place.folder)]
    one, other = (make_settings(place, "http://127.0.0.1:1/v1", port=port) for port in (1, 2))
    async with started(one), started(other):
        for plan, stage in (("canary-25", "canary-25"), ("5", "canary-5"), ("off", "off"), ("full", "full")):
            assert await asyncio.to_thread(main, ["rollout", "set", "reading", plan, *options]) == 0
            await wait_for(partial(have_stage, stage, one, other))
    assert await asyncio.to_thread(main, ["rollout", "show", *options]) == 0
    assert "From the store" in capsys.readouterr().out
    assert await asyncio.to_thread(main, ["rollout", "set", "reading", "most", *options]) == 2


async def test_a_change_is_published_when_the_store_is_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolglot.server.shared_state.RETRY_SECONDS", 0.01)
    one, other = (make_settings(place, "http://127.0.0.1:1/v1", port=port) for port in (1, 2))
    async with started(one) as gateway, started(other):
        assert gateway.shared is not None
        sync = gateway.shared.rollout
        real, broken = sync._store, Broken(sync._store)
        sync._store = broken
        one.live.change(Rollout(read_plan("canary-3")))
        await wait_for(lambda: broken.asked > 2)
        assert stages(one)[0] == "canary-3" and stages(other)[0] == "full"
        sync._store = real
        await wait_for(lambda: stages(other)[0] == "canary-3")


def test_a_rollout_is_read_as_it_was_stored() -> None:
    plans = {
        "reading": read_plan({"stage": "canary-25", "tools": ["a", "b"], "min_confidence": 0.5}),
        "xml": read_plan("shadow-7.5"),
    }
    rollout = Rollout(read_plan("off"), plans)
    stored = decode_rollout(change_rollout(None, rollout).encode())
    assert stored is not None and stored.rollout == rollout
    for damaged in (
        b"",
        b"[]",
        b"{}",
        b'{"plans": {"reading": {"percent": 101}}}',
        b'{"plans": {"reading": 1}}',
        b"\xff",
    ):
        assert decode_rollout(damaged) is None or damaged == b'{"plans": {}}'
    assert fingerprint(Rollout()) == fingerprint(Rollout(plans={"reading": read_plan("full")}))


# -- learned failures --------------------------------------------------------------------------------------------------


async def test_learned_failures_reach_other_gateways_and_survive(place: Place) -> None:
    one, other = (make_settings(place, "http://127.0.0.1:1/v1", port=port) for port in (1, 2))
    address, model, now = "http://user:pw@host/v1", "m", time.time()
    async with started(one) as first, started(other) as second:
        first.capabilities.failures.learn(address, model, "refused", "no tools", now)
        await wait_for(lambda: second.capabilities.failures.recall(address, model, now) is not None)
    async with started(one) as third:
        await wait_for(lambda: third.capabilities.failures.recall(address, model, now) is not None)
        known = third.capabilities.failures.recall(address, model, now)
        assert (
            known is not None and (known.kind, known.evidence) == ("refused", "no tools") and "pw" not in known.address
        )


async def test_the_file_is_imported_once(place: Place) -> None:
    folder, now = place.folder / "state", time.time()
    LearnedFailures(folder).learn("http://host/v1", "m", "refused", "no tools", now)
    LearnedFailures(folder).learn("http://host/v1", "old", "refused", "no tools", now - 10_000)
    async with started(make_settings(place, "http://127.0.0.1:1/v1")) as gateway:
        assert gateway.capabilities.failures.recall("http://host/v1", "m", now) is not None
        await wait_for(lambda: not (folder / FILE_NAME).exists())
    async with place_store(place) as store:
        assert [row.model for row in await store.list_failures()] == ["m"]


async def test_without_a_store_the_file_stays(place: Place) -> None:
    settings, now = make_settings(place, "http://127.0.0.1:1/v1", store_url="none"), time.time()
    async with started(settings) as gateway:
        gateway.capabilities.failures.learn("http://host/v1", "m", "refused", "no tools", now)
    assert (place.folder / "state" / FILE_NAME).exists()


async def test_the_file_is_not_lost_while_the_store_fails(place: Place) -> None:
    folder, now = place.folder / "state", time.time()
    LearnedFailures(folder).learn("http://host/v1", "m", "refused", "no tools", now)
    async with started(make_settings(place, "http://127.0.0.1:1/v1", store_url=DEAD)) as gateway:
        assert gateway.capabilities.failures.recall("http://host/v1", "m", now) is not None
    assert (folder / FILE_NAME).exists()


async def test_expired_failures_are_removed(place: Place) -> None:
    async with place_store(place) as store:
        for model, expires in (("old", 1.0), ("new", time.time() + 1000)):
            await store.save_failure(
                FailureRow(
                    address="http://host/v1", model=model, kind="refused", evidence="", learned=0.5, expires=expires
                )
            )
        async with started(make_settings(place, "http://127.0.0.1:1/v1")):

            async def forgotten() -> None:
                while [row.model for row in await store.list_failures()] != ["new"]:
                    await asyncio.sleep(0.02)

            await asyncio.wait_for(forgotten(), 20)


async def test_explain_shows_what_the_store_has_learned(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:{place.file}" if place.is_sqlite else place.url
    options = ["explain", "--learned", "--state-dir", str(place.folder), "--base-url", "http://127.0.0.1:1/v1"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLGLOT_STORE_URL", url)
        if place.is_sqlite:
            assert await asyncio.to_thread(main, options) == 0 and not place.file.exists()
        async with place_store(place) as store:
            row = FailureRow(
                address="http://host/v1", model="m", kind="refused", evidence="no tools", learned=1.0, expires=1e12
            )
            await store.save_failure(row)
        capsys.readouterr()
        assert await asyncio.to_thread(main, options) == 0
        assert "http://host/v1  m  refused: no tools" in capsys.readouterr().out
        patch.setenv("TOOLGLOT_STORE_URL", DEAD)
        assert await asyncio.to_thread(main, options) == 0
        shown = capsys.readouterr()
        assert "cannot be read" in shown.err and "secret" not in shown.err

"""Stores for tests: where they are, and rows to put into them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from toolglot.core.errors import StoreError
from toolglot.store import open_store
from toolglot.store.interface import ChainNode, Chat, RecordRow, SessionRow, Store


@dataclass
class Place:
    """The URL of a store and the state folder."""

    url: str
    folder: Path
    now: Callable[[], float] = time.time

    @property
    def is_sqlite(self) -> bool:
        return self.url.startswith("sqlite:")

    @property
    def file(self) -> Path:
        return self.folder / self.url.removeprefix("sqlite:")

    def make(self) -> Store:
        store = open_store(self.url, state_folder=self.folder, now=self.now)
        assert store is not None
        return store

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Store]:
        store = self.make()
        await store.open()
        try:
            yield store
        finally:
            await store.close()


def make_id(now: float, ending: str = "") -> str:
    """An id that sorts by time."""
    return f"{int(now * 1000):012x}{ending}"


def session(id: str = "s1", **fields: Any) -> SessionRow:
    given: dict[str, Any] = {
        "owner": b"anna",
        "created": 1.0,
        "used": 1.0,
        "turns": 0,
        "model": "sim",
        "upstream": "here",
    } | fields
    return SessionRow(id=id, **given)


def record(id: str = "r1", **fields: Any) -> RecordRow:
    given: dict[str, Any] = {
        "request_id": f"req-{id}",
        "owner": b"anna",
        "session": "s1",
        "time": 10.0,
        "wire": "openai_chat",
    }
    given |= {"model": "sim", "upstream": "here", "status": 200, "outcome": "ok", "data": b'{"a":1}'}
    return RecordRow(id=id, **given | fields)


def chat(id: str = "c1", **fields: Any) -> Chat:
    given: dict[str, Any] = {"account": "qwen/1", "session": "s1", "owner": b"anna", "created": 1.0} | fields
    return Chat(id=id, **given)


def node(key: bytes, session: str = "s1", **fields: Any) -> ChainNode:
    return ChainNode(key=key, session=session, **fields)


@contextmanager
def store_fails(match: str = ".", without: tuple[str, ...] = ()) -> Iterator[None]:
    """A StoreError; none of the secrets in ``without`` is in what is logged of it."""
    with pytest.raises(StoreError, match=match) as caught:
        yield
    shown = repr(caught.value) + "".join(format_exception(caught.value))
    assert [secret for secret in without if secret in shown] == []


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), 120))
    return True


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where a fresh store can be made."""
    if request.param == "sqlite":
        return Place("sqlite:store.db", tmp_path)
    return Place(request.getfixturevalue("postgres_url"), tmp_path)

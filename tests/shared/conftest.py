"""Runs coroutine tests, and the places to store things: each test that takes ``place`` runs on both engines."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import pytest
from support.postgres import postgres_server, postgres_url
from support.stores import Place

__all__ = ["postgres_server", "postgres_url"]


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

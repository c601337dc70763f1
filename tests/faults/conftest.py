"""Stores for tests: one that takes ``place`` is a coroutine or a function that runs on both engines."""

from __future__ import annotations

from support.postgres import postgres_server, postgres_url
from support.stores import place, pytest_pyfunc_call

__all__ = ["place", "postgres_server", "postgres_url", "pytest_pyfunc_call"]
